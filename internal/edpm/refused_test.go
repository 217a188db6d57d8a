package edpm

import (
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
)

// refused is the result of a host that refuses its inputs.
func refused(host string) ansibleeev1.HostStatus {
	h := failed(host)
	h.Refused = true
	return h
}

// refusing is a yard in which a has refused what it was to be brought to.
func refusing(t *testing.T) (*yard, *common.Ledger) {
	t.Helper()
	y, ledger := newYard(t), &common.Ledger{}
	y.Debounce = 10 * time.Millisecond
	y.converge(ledger, wantedOf("a", strict))
	y.plan(group1)
	y.end(y.onlyRun(), refused("a"))
	if s := y.converge(ledger, wantedOf("a", strict)); s.Phase != Refused || ledger.NextRetry != nil {
		t.Fatalf("a is %+v, next tried at %v; want Refused and never", s, ledger.NextRetry)
	}
	return y, ledger
}

func TestWhatIsRefusedIsNotTriedAgain(t *testing.T) {
	y, ledger := refusing(t)
	for _, manager := range []*yard{y, y.successor()} {
		for range 5 {
			y.pass(24 * time.Hour)
			if s := manager.converge(ledger, wantedOf("a", strict)); s.Phase != Refused {
				t.Fatalf("a is %+v; want Refused", s)
			}
			manager.plan(group1)
		}
	}
	if n := len(y.runs()); n != 1 {
		t.Errorf("there are %d runs; want 1", n)
	}
}

func TestWhatIsRefusedIsTriedAgainWhenItMayBeOtherwise(t *testing.T) {
	for name, change := range map[string]func(*Target){
		"with other inputs":                func(t *Target) { t.Vars["other"] = true },
		"with a rerun token":               func(t *Target) { t.Rerun = "again" },
		"with another key":                 func(t *Target) { t.SSHKeyDigest = "other" },
		"in another execution environment": func(t *Target) { t.Image = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			y, ledger := refusing(t)
			again := wantedOf("a", func(t *Target) { strict(t); change(t) })
			if s := y.converge(ledger, again); s.Phase != Pending && s.Phase != Failed {
				t.Fatalf("a is %+v; want an attempt", s)
			}
			y.pass(time.Hour)
			y.plan(group1)
			if n := len(y.runs()); n != 2 {
				t.Errorf("there are %d runs; want another one", n)
			}
		})
	}
}

func TestARemovalThatIsRefusedIsTriedAsOftenAsItMayBe(t *testing.T) {
	y := newYard(t)
	removal := wantedOf("a", func(t *Target) { t.MaxAttempts = 2 })
	y.converge(&common.Ledger{}, removal)
	y.plan(group1)
	y.end(y.onlyRun(), refused("a"))
	if s := y.converge(&common.Ledger{}, removal); s.Phase != Failed {
		t.Errorf("a is %+v; want Failed", s)
	}
}

func TestAHostThatRefusesHoldsOthersUntilItWantsSomethingElse(t *testing.T) {
	for name, change := range map[string]func(*yard, *common.Ledger){
		"it cannot say what it wants": func(y *yard, _ *common.Ledger) { y.Withdraw(kind, "ns", "a") },
		"its object is being deleted": func(y *yard, _ *common.Ledger) {
			remove(y, "a", "keep/it")
			_ = y.Forget(ctx, kind, "ns", "a", "nova")
		},
		"it is not to be deployed": func(y *yard, l *common.Ledger) {
			y.converge(l, wantedOf("a", func(t *Target) { t.Strategy.Deploy = false }))
		},
		"it belongs to another role": func(y *yard, l *common.Ledger) {
			y.converge(l, wantedOf("a", func(t *Target) { t.Role = "other" }))
		},
		"it has what it wants": func(y *yard, l *common.Ledger) {
			other := wantedOf("a", func(t *Target) { strict(t); t.Vars["other"] = true })
			y.converge(l, other)
			y.plan(group1)
			for _, run := range y.all() {
				if !run.Finished() {
					y.end(&run, ok("a"))
				}
			}
			y.converge(l, other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			y, ledger := refusing(t)
			for _, manager := range []*yard{y.successor(), y} { // the first one has not looked at a
				manager.converge(&common.Ledger{}, wantedOf("b", strict))
				manager.plan(group1)
				if s := manager.converge(&common.Ledger{}, wantedOf("b", strict)); s.Phase != RolloutHeld || s.Message != "maxFailures is 0, and more hosts have failed: a" {
					t.Fatalf("b is %+v; want RolloutHeld because of a", s)
				}
			}
			y.idle()
			change(y, ledger)
			y.woken(group1)
			y.isRunning("b")
		})
	}
}

func TestOneOfSeveralRunsThatFailedInTheSameWayIsKept(t *testing.T) {
	other := failed("a")
	other.Message = "Another task: no"
	gone := ansibleeev1.HostStatus{Name: "a", Unreachable: 1, Message: "no route"}
	changed := func(r *ansibleeev1.OpenStackAnsibleEE) *ansibleeev1.OpenStackAnsibleEE {
		r.Spec.Targets[0].Hash = "H0"
		return r
	}
	for name, c := range map[string]struct {
		runs []*ansibleeev1.OpenStackAnsibleEE
		left []string
	}{
		"the last of those with the same task":    {[]*ansibleeev1.OpenStackAnsibleEE{aRun("a", 1, failed("a")), aRun("a", 2, failed("a")), aRun("a", 3, failed("a"))}, []string{"run-a-3"}},
		"one of each way":                         {[]*ansibleeev1.OpenStackAnsibleEE{aRun("a", 1, failed("a")), aRun("a", 2, other), aRun("a", 3, failed("a")), aRun("a", 4, gone), aRun("a", 5, gone)}, []string{"run-a-2", "run-a-3", "run-a-5"}},
		"those with other inputs":                 {[]*ansibleeev1.OpenStackAnsibleEE{changed(aRun("a", 1, failed("a"))), aRun("a", 2, failed("a"))}, []string{"run-a-1", "run-a-2"}},
		"those that succeeded":                    {[]*ansibleeev1.OpenStackAnsibleEE{aRun("a", 1, ok("a")), aRun("a", 2, failed("a")), aRun("a", 3, failed("a"))}, []string{"run-a-1", "run-a-3"}},
		"those without a result":                  {[]*ansibleeev1.OpenStackAnsibleEE{aRun("a", 1, ansibleeev1.HostStatus{Name: "x"}), aRun("a", 2, ansibleeev1.HostStatus{Name: "x"})}, []string{"run-a-1", "run-a-2"}},
		"those with a host that failed otherwise": {[]*ansibleeev1.OpenStackAnsibleEE{withHost(aRun("a", 1, failed("a")), failed("b")), aRun("a", 2, failed("a"))}, []string{"run-a-1", "run-a-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{compute("a", "uid-a", recordedUpTo(10)), compute("b", "uid-b", recordedUpTo(10))}
			for _, r := range c.runs {
				objects = append(objects, r)
			}
			y := newYard(t, objects...)
			y.plan(group1) // deleted, but held by the finalizer
			y.plan(group1) // let go
			if got := y.left(); !slices.Equal(got, c.left) {
				t.Errorf("%v are left; want %v", got, c.left)
			}
		})
	}
}

// withHost adds another host to a run.
func withHost(r *ansibleeev1.OpenStackAnsibleEE, result ansibleeev1.HostStatus) *ansibleeev1.OpenStackAnsibleEE {
	t := r.Spec.Targets[0]
	t.Host, t.OwnerUID = result.Name, "uid-"+"b"
	r.Spec.Targets, r.Status.Hosts = append(r.Spec.Targets, t), append(r.Status.Hosts, result)
	return r
}
