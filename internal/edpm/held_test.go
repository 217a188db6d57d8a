package edpm

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

func strict(t *Target) { t.Strategy.MaxUnavailable, t.Strategy.MaxFailures = 1, ptr.To[int32](0) }

// holding is a yard in which a has failed and b is held because of it.
func holding(t *testing.T) *yard {
	t.Helper()
	y := newYard(t, compute("a", "uid-a", common.Ledger{}), compute("b", "uid-b", common.Ledger{}))
	y.Debounce = 10 * time.Millisecond
	y.converge(&common.Ledger{}, wantedOf("a", strict))
	y.plan(group1)
	y.end(y.onlyRun(), failed("a"))
	y.converge(&common.Ledger{}, wantedOf("a", strict))
	y.converge(&common.Ledger{}, wantedOf("b", strict))
	y.plan(group1)
	if s := y.converge(&common.Ledger{}, wantedOf("b", strict)); s.Phase != RolloutHeld || s.Message != "maxFailures is 0, and more hosts have failed: a" {
		t.Fatalf("b is %+v; want RolloutHeld because of a", s)
	}
	y.idle()
	return y
}

// idle empties the queue.
func (y *yard) idle() {
	for y.queue.Len() > 0 {
		g, _ := y.queue.Get()
		y.queue.Forget(g)
		y.queue.Done(g)
	}
}

// woken plans a group once it is in the queue.
func (y *yard) woken(want Group) {
	y.t.Helper()
	timer := time.AfterFunc(10*time.Second, y.queue.ShutDown)
	defer timer.Stop()
	for {
		g, over := y.queue.Get()
		if over {
			y.t.Fatalf("no one plans %v: those held wait for ever", want)
		}
		y.queue.Done(g)
		if g == want {
			break
		}
	}
	y.plan(want)
}

func (y *yard) isRunning(host string) {
	y.t.Helper()
	for _, run := range y.all() {
		if _, found := run.Target(host); found && !run.Finished() {
			return
		}
	}
	y.t.Errorf("%s is not run: %v", host, y.runs())
}

func TestThoseHeldStartWhenTheFailedHostIsGone(t *testing.T) {
	for name, leave := range map[string]func(*yard){
		"its object is being deleted": func(y *yard) {
			remove(y, "a", "keep/it")
			_ = y.Forget(ctx, kind, "ns", "a", "nova")
		},
		"it cannot say what it wants any more": func(y *yard) { y.Withdraw(kind, "ns", "a") },
		"it is not to be deployed": func(y *yard) {
			y.converge(&common.Ledger{}, wantedOf("a", func(t *Target) { strict(t); t.Strategy.Deploy = false }))
		},
		"it moves to another role": func(y *yard) {
			y.converge(&common.Ledger{}, wantedOf("a", func(t *Target) { strict(t); t.Role = "other" }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			y := holding(t)
			leave(y)
			y.woken(group1)
			y.isRunning("b")
		})
	}
}

func TestThoseHeldStayHeldWhenTheFailedHostCannotBeLookedAt(t *testing.T) {
	y := holding(t)
	faulty := wantedOf("a", func(t *Target) { strict(t); t.Strategy.Limit = "~(" })
	if _, err := y.Converge(ctx, &common.Ledger{}, faulty); err == nil {
		t.Fatal("a limit that is no expression is accepted")
	}
	y.pass(time.Hour)
	y.plan(group1)
	if s := y.converge(&common.Ledger{}, wantedOf("b", strict)); s.Phase != RolloutHeld {
		t.Errorf("b is %+v; want RolloutHeld because of a", s)
	}
}

// remove deletes the owner of a host, which a finalizer can keep.
func remove(y *yard, host string, finalizers ...string) {
	y.t.Helper()
	owner := &novav1.NovaExternalCompute{}
	if err := y.api.Get(ctx, client.ObjectKey{Namespace: "ns", Name: host}, owner); err != nil {
		y.t.Fatal(err)
	}
	owner.Finalizers = finalizers
	if err := y.api.Update(ctx, owner); err != nil {
		y.t.Fatal(err)
	}
	if err := y.api.Delete(ctx, owner); err != nil {
		y.t.Fatal(err)
	}
}

func TestAHostThatFailedDoesNotCountInTheRoleThatItLeft(t *testing.T) {
	y := holding(t)
	moved := wantedOf("a", func(t *Target) { strict(t); t.Role = "other" })
	ledger := &common.Ledger{}
	y.converge(ledger, moved)
	y.pass(time.Hour)
	y.plan(moved.Group())
	for _, run := range y.all() {
		if run.Spec.Role == "other" {
			y.end(&run, ok("a"))
		}
	}
	for _, restarted := range []bool{false, true} {
		if restarted { // which heard of none of the runs
			y = y.successor()
		}
		y.converge(ledger, moved)
		y.converge(&common.Ledger{}, wantedOf("b", strict))
		y.plan(group1)
		if s := y.converge(&common.Ledger{}, wantedOf("b", strict)); s.Phase != Running {
			t.Errorf("b is %+v; a failed in this role, but left it. A new manager: %v", s, restarted)
		}
	}
}

// TestAFailureDoesNotChangeWhatThousandsAreTold : each of them would be written.
func TestAFailureDoesNotChangeWhatThousandsAreTold(t *testing.T) {
	const hosts = 50
	ten := func(o *pendingTarget) { o.Strategy.MaxUnavailable, o.Strategy.MaxFailures = 10, ptr.To[int32](4) }
	all := pending(ten, numbered(hosts)...)
	m, said, changes := later(), map[string]bool{}, 0
	for failures := range 40 {
		for _, o := range all[:failures] {
			o.attempt, o.notBefore = 2, noon.Add(time.Hour)
		}
		p := makePlan(slices.Clone(all), m)
		m.named = p.named
		if message := p.held["h049"]; message != "" && !said[message] {
			said[message], changes = true, changes+1
		}
	}
	want := []string{
		"maxFailures is 4, and more hosts have failed: h000, h001, h002 and others",
		"maxUnavailable is 10, and as many hosts of the role are in a run or have failed",
	}
	if got := fmt.Sprintf("%q", sortedKeys(said)); got != fmt.Sprintf("%q", want) {
		t.Errorf("its message is %s; want %q", got, want)
	}
	all[1].attempt, all[1].notBefore = 1, time.Time{}
	if got, want := makePlan(slices.Clone(all), m).held["h049"], "maxFailures is 4, and more hosts have failed: h000, h002, h003 and others"; got != want {
		t.Errorf("after a named host was repaired it says %q; want %q", got, want)
	}
}

func sortedKeys(m map[string]bool) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// TestAFailureOfALaterStepHoldsNobodyForever : the owner waits for an earlier step,
// perhaps until a user changes it.
func TestAFailureOfALaterStepHoldsNobodyForever(t *testing.T) {
	y := newYard(t)
	y.Debounce = 10 * time.Millisecond
	y.converge(&common.Ledger{}, wantedOf("a", strict))
	y.plan(group1)
	y.end(y.onlyRun(), failed("a"))
	y.converge(&common.Ledger{}, wantedOf("b", strict))
	y.plan(group1)
	if s := y.converge(&common.Ledger{}, wantedOf("b", strict)); s.Phase != RolloutHeld {
		t.Fatalf("b is %+v; want RolloutHeld, as a failed and has not heard of it", s)
	}
	y.idle()
	paused := wantedOf("a", func(t *Target) { strict(t); t.Step.Name, t.Strategy.Deploy = "libvirt", false })
	if s := y.converge(&common.Ledger{}, paused, wantedOf("a", strict)); s.Phase != Paused {
		t.Fatalf("a is %+v; want Paused", s)
	}
	y.woken(group1)
	y.isRunning("b")
}
