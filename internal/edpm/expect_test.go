package edpm

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
)

var role1 = roleKey{group1.Namespace, group1.Role}

// wakened are the owners of hosts that have been woken.
func (y *yard) wakened(hosts ...string) {
	for _, h := range hosts {
		y.expect(expectedOwner{roleKey: role1}, ownerID{kind, group1.Namespace, h})
	}
}

func (y *yard) pass(d time.Duration) { y.clock.SetTime(y.clock.Now().Add(d)) }

func TestARunWaitsForOwnersThatWereWoken(t *testing.T) {
	y := newYard(t)
	y.wakened("a", "b", "c")
	y.converge(&common.Ledger{}, wantedOf("a", nil))
	y.pass(y.Patience - 2*time.Second)
	y.plan(group1)
	if n := len(y.runs()); n > 0 {
		t.Fatalf("there are %d runs though owners are expected", n)
	}
	y.converge(&common.Ledger{}, wantedOf("b", nil))
	y.Withdraw(kind, group1.Namespace, "c") // it has been looked at and wants nothing
	y.plan(group1)
	if hosts := slices.Sorted(slices.Values(y.runs()[y.onlyRun().Name])); !slices.Equal(hosts, []string{"a", "b"}) {
		t.Errorf("the run is of %v; want a and b", hosts)
	}
}

func TestARunWaitsForAnOwnerThatIsAboutToBeCreated(t *testing.T) {
	y := newYard(t)
	y.wakened("a", "created")
	y.converge(&common.Ledger{}, wantedOf("a", nil))
	y.Await(kind, group1.Namespace, "created")
	y.pass(y.Patience - 2*time.Second)
	y.plan(group1)
	if n := len(y.runs()); n > 0 {
		t.Fatalf("there are %d runs though an owner is being created", n)
	}
	y.converge(&common.Ledger{}, wantedOf("created", nil))
	y.plan(group1)
	if hosts := slices.Sorted(slices.Values(y.runs()[y.onlyRun().Name])); !slices.Equal(hosts, []string{"a", "created"}) {
		t.Errorf("the run is of %v; want a and created", hosts)
	}
}

func TestAnOwnerThatIsCreatedAgainWaitsForNothing(t *testing.T) {
	y := newYard(t)
	y.converge(&common.Ledger{}, wantedOf("a", nil))
	y.Await(kind, group1.Namespace, "a")
	y.pass(y.Patience)
	y.plan(group1)
	if n := len(y.runs()); n > 0 {
		t.Errorf("there are %d runs; the object that wanted one no longer exists", n)
	}
}

func TestARunDoesNotWaitForAnOwnerThatStaysSilent(t *testing.T) {
	y := newYard(t)
	y.wakened("a", "silent")
	y.converge(&common.Ledger{}, wantedOf("a", nil))
	y.pass(y.Patience)
	y.plan(group1)
	if hosts := y.runs()[y.onlyRun().Name]; !slices.Equal(hosts, []string{"a"}) {
		t.Errorf("the run is of %v; want a", hosts)
	}
	if len(y.barriers.expected)+len(y.barriers.byRole) > 0 {
		t.Errorf("owners are still expected: %v", y.barriers.expected)
	}
}

func TestARunDoesNotWaitForOwnersOfAnotherRole(t *testing.T) {
	y := newYard(t)
	y.expect(expectedOwner{roleKey: roleKey{group1.Namespace, "other"}}, ownerID{kind, group1.Namespace, "x"})
	y.converge(&common.Ledger{}, wantedOf("a", nil))
	y.plan(group1)
	y.onlyRun()
}

func TestAnExpectedOwnerThatMovedToAnotherRoleIsNotWaitedForInTheOld(t *testing.T) {
	y := newYard(t)
	y.wakened("x")
	y.expect(expectedOwner{roleKey: roleKey{group1.Namespace, "other"}}, ownerID{kind, group1.Namespace, "x"})
	y.converge(&common.Ledger{}, wantedOf("a", nil))
	y.plan(group1)
	y.onlyRun()
}

// prompt is a queue whose owners are reconciled the moment they are enqueued.
type prompt struct {
	requests
	reconcile func(reconcile.Request)
}

func (p prompt) Add(r reconcile.Request) { p.reconcile(r) }

func TestAnOwnerIsExpectedNoMoreOnceItWasReconciled(t *testing.T) {
	y := newYard(t)
	reconciled := map[string]int{}
	q := prompt{reconcile: func(r reconcile.Request) {
		reconciled[r.Name]++
		y.Withdraw(kind, r.Namespace, r.Name)
	}}
	owners := func(_ context.Context, obj client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}, {NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: "b"}}}
	}
	node := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: metav1.ObjectMeta{Namespace: group1.Namespace, Name: "a"}}
	role := func(client.Object) string { return group1.Role }
	h := y.Following(kind, role, owners, func(_, _ client.Object) bool { return true })
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: node, ObjectNew: node}, q)
	h.Delete(t.Context(), event.DeleteEvent{Object: node}, q)
	if len(y.barriers.expected)+len(y.barriers.byRole) > 0 {
		t.Errorf("owners are still expected: %v", y.barriers.expected)
	}
	if want := map[string]int{"a": 2, "b": 2}; !maps.Equal(reconciled, want) {
		t.Errorf("reconciled %v; want %v, once for each event", reconciled, want)
	}
}

func TestNothingIsKeptOfOwnersThatWereHeardOf(t *testing.T) {
	y := newYard(t)
	y.wakened("a", "b")
	y.wakened("a")
	y.converge(&common.Ledger{}, wantedOf("a", nil))
	y.Withdraw(kind, group1.Namespace, "b")
	if len(y.barriers.expected)+len(y.barriers.byRole) > 0 {
		t.Errorf("owners are still expected: %v", y.barriers.expected)
	}
}

func TestWhatFollowsARunDoesNotWaitForMoreHosts(t *testing.T) {
	y := newYard(t)
	for _, h := range []string{"a", "b"} {
		y.expect(expectedOwner{roleKey: role1, ran: true}, ownerID{kind, group1.Namespace, h})
	}
	y.converge(&common.Ledger{}, wantedOf("a", nil))
	y.planNow(group1)
	if n := len(y.runs()); n > 0 {
		t.Fatalf("there are %d runs before the other host of the last run is heard of", n)
	}
	y.converge(&common.Ledger{}, wantedOf("b", nil))
	y.planNow(group1)
	if hosts := slices.Sorted(slices.Values(y.runs()[y.onlyRun().Name])); !slices.Equal(hosts, []string{"a", "b"}) {
		t.Errorf("the run is of %v; want a and b", hosts)
	}
}

func TestAHostThatWasInNoRunIsWaitedForWithOthers(t *testing.T) {
	y := newYard(t)
	y.expect(expectedOwner{roleKey: role1, ran: true}, ownerID{kind, group1.Namespace, "a"})
	y.converge(&common.Ledger{}, wantedOf("a", nil))
	y.converge(&common.Ledger{}, wantedOf("new", nil))
	y.planNow(group1)
	if n := len(y.runs()); n > 0 {
		t.Fatalf("there are %d runs though a host has just joined", n)
	}
	y.plan(group1)
	y.onlyRun()
}

func TestHostsThatFollowWaitForOneAnotherAFifthOfTheDebounce(t *testing.T) {
	y := newYard(t)
	follow := func(host string) {
		y.expect(expectedOwner{roleKey: role1, follows: true}, ownerID{kind, group1.Namespace, host})
		y.wakened(host) // by the same update
		y.converge(&common.Ledger{}, wantedOf(host, nil))
	}
	follow("a")
	y.planNow(group1)
	y.pass(y.Debounce / 10)
	follow("b")
	y.planNow(group1)
	if n := len(y.runs()); n > 0 {
		t.Fatalf("there are %d runs though a host has just followed", n)
	}
	y.pass(y.Debounce / 5)
	y.planNow(group1)
	if hosts := slices.Sorted(slices.Values(y.runs()[y.onlyRun().Name])); !slices.Equal(hosts, []string{"a", "b"}) {
		t.Errorf("the run is of %v; want a and b", hosts)
	}
}

func TestAHostThatFollowsDoesNotHurryOthers(t *testing.T) {
	y := newYard(t)
	y.converge(&common.Ledger{}, wantedOf("new", nil))
	y.expect(expectedOwner{roleKey: role1, follows: true}, ownerID{kind, group1.Namespace, "a"})
	y.converge(&common.Ledger{}, wantedOf("a", nil))
	y.pass(y.Debounce / 2)
	y.planNow(group1)
	if n := len(y.runs()); n > 0 {
		t.Fatalf("there are %d runs though a host has joined a moment ago", n)
	}
	y.plan(group1)
	y.onlyRun()
}
