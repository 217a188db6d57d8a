package edpm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
)

// service is a target of the host whose owner has a name of its own, as one of
// several services on the host.
func service(name, host string) Target {
	return wantedOf(host, func(t *Target) {
		t.Owner, t.Service, t.Step.Name = name+"-"+host, name, name
		t.OwnerUID = types.UID("uid-" + t.Owner)
	})
}

// newCrowd is a yard in which objects have the node of their host in a label, and
// those of two services on hosts a and b.
func newCrowd(t *testing.T) *yard {
	t.Helper()
	y := newYard(t)
	owner := y.owners.kinds[kind]
	owner.Host = func(o client.Object) string { return o.GetLabels()["host"] }
	y.owners.kinds[kind] = owner
	for _, name := range []string{"x", "y"} {
		for _, host := range []string{"a", "b"} {
			of := service(name, host)
			obj := compute(of.Owner, of.OwnerUID, common.Ledger{})
			obj.Labels = map[string]string{"host": host}
			if err := y.api.Create(ctx, obj); err != nil {
				t.Fatal(err)
			}
		}
	}
	return y
}

func groupOfService(name string) Group {
	return Group{Namespace: "ns", Kind: kind, Service: name, Role: "role"}
}

func (y *yard) converges(targets ...Target) {
	y.t.Helper()
	for i := range targets {
		if _, err := y.Converge(ctx, &common.Ledger{}, targets[i]); err != nil {
			y.t.Fatal(err)
		}
	}
}

func TestServicesOfOneKindOnAHostAreRolledOutApart(t *testing.T) {
	y := newCrowd(t)
	y.converges(service("x", "a"), service("x", "b"), service("y", "b"))
	y.plan(groupOfService("x"))
	run := y.onlyRun()
	if run.Spec.Service != "x" || run.Spec.Step != "x" {
		t.Errorf("the run is for service %q, step %q; want x", run.Spec.Service, run.Spec.Step)
	}
	var owners []string
	for _, target := range run.Spec.Targets {
		owners = append(owners, target.Host+" "+target.OwnerName())
	}
	if diff := cmp.Diff([]string{"a x-a", "b x-b"}, owners); diff != "" {
		t.Errorf("hosts and owners (-want +got):\n%s", diff)
	}
	y.plan(groupOfService("y"))
	if n := len(y.all()); n != 1 {
		t.Fatalf("there are %d runs; host b is in one already", n)
	}

	y.end(run, ansibleeev1.HostStatus{Name: "a", OK: 1}, ansibleeev1.HostStatus{Name: "b", Failed: 1})
	y.plan(groupOfService("y"))
	if n := len(y.all()); n != 2 {
		t.Errorf("there are %d runs; a failure of service x should not hold y", n)
	}
}

func TestTheRunsOfAnOwnerAreFoundByTheHostItNames(t *testing.T) {
	y := newCrowd(t)
	y.converges(service("x", "a"))
	y.plan(groupOfService("x"))
	run := y.onlyRun()
	owner, err := y.owners.of(ctx, run, run.Spec.Targets[0])
	if err != nil || owner == nil || owner.GetName() != "x-a" {
		t.Fatalf("the owner is %v (%v), want x-a", owner, err)
	}
	if name, err := y.Unfinished(ctx, kind, owner, "x"); err != nil || name != run.Name {
		t.Errorf("Unfinished is %q (%v), want %q", name, err, run.Name)
	}
	other := compute("y-a", "uid-y-a", common.Ledger{})
	other.Labels = map[string]string{"host": "a"}
	if name, err := y.Unfinished(ctx, kind, other, "y"); err != nil || name != "" {
		t.Errorf("Unfinished of another service is %q (%v), want none", name, err)
	}
	y.end(run, ansibleeev1.HostStatus{Name: "a", OK: 1})
	ledger := &common.Ledger{}
	if touched, err := y.Touched(ctx, kind, ledger, owner, "x"); err != nil || !touched || ledger.Runs["x"].Name != run.Name {
		t.Errorf("Touched is %t (%v), ledger %+v", touched, err, ledger)
	}
}

func TestAPendingTargetIsWithdrawnByTheNameOfItsOwner(t *testing.T) {
	y := newCrowd(t)
	y.converges(service("x", "a"), service("y", "a"))
	y.Withdraw(kind, "ns", "x-a")
	y.plan(groupOfService("x"))
	if n := len(y.all()); n != 0 {
		t.Fatalf("there are %d runs of what was withdrawn", n)
	}
	if err := y.Forget(ctx, kind, "ns", "a", "x"); err != nil {
		t.Fatal(err)
	}
	y.plan(groupOfService("y"))
	if run := y.onlyRun(); run.Spec.Service != "y" {
		t.Errorf("the run is for service %q, want y", run.Spec.Service)
	}
}

func TestForgettingAStepOfAHostDropsWhatWaitsForIt(t *testing.T) {
	y := newCrowd(t)
	y.converges(service("x", "a"), service("y", "a"))
	if err := y.Forget(ctx, kind, "ns", "a", "x"); err != nil {
		t.Fatal(err)
	}
	y.plan(groupOfService("x"))
	y.plan(groupOfService("y"))
	if run := y.onlyRun(); run.Spec.Service != "y" {
		t.Errorf("the run is for service %q, want y", run.Spec.Service)
	}
}
