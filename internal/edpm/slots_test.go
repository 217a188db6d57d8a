package edpm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
)

// tenant has hosts in a namespace, each of which needs a run of its own.
func (y *yard) tenant(namespace, role string, hosts int) Group {
	y.t.Helper()
	for _, h := range numbered(hosts) {
		y.wantsOne(namespace, role, h)
	}
	return Group{Namespace: namespace, Kind: "Other", Role: role}
}

func (y *yard) wantsOne(namespace, role, host string) State {
	y.t.Helper()
	return y.converge(&common.Ledger{}, wantedOf(role+"-"+host, func(t *Target) {
		t.Namespace, t.Role, t.OwnerKind, t.Strategy.BatchSize = namespace, role, "Other", 1
	}))
}

// underWay counts the runs of a group, and gives the age zero to those that have none.
func (y *yard) underWay(g Group) int {
	y.t.Helper()
	n := 0
	for _, run := range y.all() {
		if run.CreationTimestamp.IsZero() {
			run.CreationTimestamp = metav1.NewTime(y.clock.Now())
			if err := y.api.Update(ctx, &run); err != nil {
				y.t.Fatal(err)
			}
		}
		if groupOf(&run) == g && !run.Finished() {
			n++
		}
	}
	return n
}

// endOne ends the first run of a group.
func (y *yard) endOne(g Group) {
	y.t.Helper()
	runs := y.all()
	slices.SortFunc(runs, func(a, b ansibleeev1.OpenStackAnsibleEE) int { return strings.Compare(a.Name, b.Name) })
	for _, run := range runs {
		if groupOf(&run) == g && !run.Finished() {
			y.end(&run, ok(run.Spec.Targets[0].Host))
			return
		}
	}
	y.t.Fatalf("%v has no run to end", g)
}

// settleAll plans the groups until none is planned any more.
func (y *yard) settleAll(groups ...Group) {
	y.t.Helper()
	for range 4 {
		for _, g := range groups {
			y.plan(g)
			for _, run := range y.all() {
				if !run.Finished() {
					y.hasJob(&run, ansibleeev1.JobRunning)
				}
			}
			y.seen()
		}
	}
}

func TestNoMoreRunsAreStartedThanAllowed(t *testing.T) {
	y := newYard(t)
	y.MaxRuns = 3
	g := y.tenant("ns", "role", 5)
	y.settleAll(g)
	if n := y.underWay(g); n != 3 {
		t.Fatalf("%d runs are under way; want 3", n)
	}
	want := State{Phase: RolloutHeld, Message: "3 runs are in progress, which is the maximum (--max-concurrent-runs)"}
	if s := y.wantsOne("ns", "role", "h004"); s.Phase != want.Phase || s.Message != want.Message {
		t.Errorf("a host that waits says %+v; want %+v", s, want)
	}
	y.idle()
	y.endOne(g)
	y.woken(g)
	if n := y.underWay(g); n != 3 {
		t.Errorf("after one has ended %d runs are under way; want 3", n)
	}
	y.MaxRuns = 0
	y.plan(g)
	if n := len(y.runs()); n != 5 {
		t.Errorf("there are %d runs without a limit; want 5", n)
	}
}

func TestNoNamespaceKeepsOthersFromRunning(t *testing.T) {
	y := newYard(t)
	y.MaxRuns = 4
	greedy := []Group{y.tenant("greedy", "one", 9), y.tenant("greedy", "two", 9)}
	y.settleAll(greedy...)
	modest := y.tenant("modest", "role", 3)
	y.settleAll(append(greedy, modest)...)
	if n := y.underWay(modest); n != 0 {
		t.Fatalf("%d runs are started next to 4 others", n)
	}
	for i := range 2 {
		for _, g := range greedy {
			if y.underWay(g) > 0 {
				y.endOne(g)
				break
			}
		}
		y.settleAll(append(greedy, modest)...)
		if n := y.underWay(modest); n != i+1 {
			t.Fatalf("after %d runs of others have ended the second namespace has %d; want %d", i+1, n, i+1)
		}
	}
	if total := y.underWay(greedy[0]) + y.underWay(greedy[1]) + y.underWay(modest); total != 4 {
		t.Errorf("%d runs are under way; want 4", total)
	}
}

func TestRolesOfANamespaceTakeTurns(t *testing.T) {
	y := newYard(t)
	y.MaxRuns = 4
	one, two := y.tenant("ns", "one", 9), y.tenant("ns", "two", 9)
	y.settleAll(one, two)
	for range 8 {
		if y.underWay(one) > y.underWay(two) {
			y.endOne(one)
		} else {
			y.endOne(two)
		}
		y.settleAll(one, two)
	}
	if a, b := y.underWay(one), y.underWay(two); a != 2 || b != 2 {
		t.Errorf("one role has %d runs and the other %d; want 2 each", a, b)
	}
}

func TestRunsThatCannotStartKeepNobodyFromRunning(t *testing.T) {
	y := newYard(t)
	y.MaxRuns = 2
	stuck := y.tenant("stuck", "role", 2)
	y.plan(stuck)
	y.underWay(stuck)
	y.seen()
	other := y.tenant("other", "role", 1)
	y.pass(y.Debounce)
	res, err := y.reconcile(ctx, other)
	if err != nil || y.underWay(other) != 0 {
		t.Fatalf("a run is started next to two others (%v)", err)
	}
	if res.RequeueAfter <= 0 || res.RequeueAfter > stuckAfter {
		t.Errorf("it is planned again after %v; want within %v", res.RequeueAfter, stuckAfter)
	}
	y.pass(stuckAfter)
	y.plan(other)
	if n := y.underWay(other); n != 1 {
		t.Errorf("%d runs are under way; want one, as the others do not start", n)
	}
}

func TestAGroupThatWithdrawsDoesNotKeepOthersWaiting(t *testing.T) {
	y := newYard(t)
	y.MaxRuns = 1
	first := y.tenant("a", "role", 1)
	y.settleAll(first)
	leaves, stays := y.tenant("b", "role", 1), y.tenant("a", "other", 1)
	y.settleAll(leaves, stays)
	y.idle()
	y.Withdraw("Other", "b", "role-h000")
	y.endOne(first)
	y.plan(stays) // the group that comes first has not been planned yet
	y.plan(leaves)
	y.woken(stays)
	if n := y.underWay(stays); n != 1 {
		t.Errorf("%d runs are under way; want that of the group that is left", n)
	}
	if len(y.planner.slots.queued)+len(y.planner.slots.reserved) > 0 {
		t.Errorf("groups are still queued: %v, reserved: %v", y.planner.slots.queued, y.planner.slots.reserved)
	}
}

func TestAFailedHostThatWaitsForOtherRunsSaysBoth(t *testing.T) {
	y := newYard(t)
	y.MaxRuns = 1
	ledger := &common.Ledger{}
	y.converge(ledger, wantedOf("a", nil))
	y.plan(group1)
	y.end(y.onlyRun(), failed("a"))
	other := y.tenant("other", "role", 1)
	y.plan(other)
	y.converge(ledger, wantedOf("a", nil))
	y.pass(stuckAfter / 2)
	y.underWay(other)
	y.plan(group1)
	s := y.converge(ledger, wantedOf("a", nil))
	if want := fmt.Sprintf("boom; the next attempt is held: %d runs are in progress", y.MaxRuns); s.Phase != Failed || !strings.HasPrefix(s.Message, want) {
		t.Errorf("the state is %+v; want Failed: %s", s, want)
	}
}
