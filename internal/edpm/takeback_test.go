package edpm

import (
	"slices"
	"testing"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
)

// waiting is a yard with a run of a and b whose Pod has not started.
func waiting(t *testing.T) (*yard, map[string]*common.Ledger) {
	t.Helper()
	y, ledgers := newYard(t), map[string]*common.Ledger{"a": {}, "b": {}}
	for host, ledger := range ledgers {
		y.converge(ledger, wantedOf(host, nil))
	}
	y.plan(group1)
	y.seen()
	return y, ledgers
}

// hasJob gives the run a Job.
func (y *yard) hasJob(run *ansibleeev1.OpenStackAnsibleEE, status ansibleeev1.JobStatus) {
	y.t.Helper()
	run.Status.JobName, run.Status.JobStatus = run.Name, status
	if err := y.api.Status().Update(ctx, run); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) takenBack() bool {
	y.t.Helper()
	return !slices.ContainsFunc(y.all(), func(r ansibleeev1.OpenStackAnsibleEE) bool { return r.DeletionTimestamp.IsZero() })
}

// neverRan ends a deleted run as the controller of runs does.
func (y *yard) neverRan(run *ansibleeev1.OpenStackAnsibleEE) {
	y.t.Helper()
	if err := y.api.Get(ctx, client.ObjectKeyFromObject(run), run); err != nil {
		y.t.Fatal(err)
	}
	run.Status.JobStatus, run.Status.CompletionTime = ansibleeev1.JobFailed, ptr.To(metav1.NewTime(y.clock.Now()))
	run.Status.Conditions.Set(condition.FalseCondition(ansibleeev1.JobReadyCondition, ansibleeev1.JobNotStartedReason, condition.SeverityError, "why"))
	if err := y.api.Status().Update(ctx, run); err != nil {
		y.t.Fatal(err)
	}
	y.observe(run, true, true, y.queue)
}

func TestWhenARunIsTakenBack(t *testing.T) {
	all := func(change func(*Target)) func(*yard, map[string]*common.Ledger) {
		return func(y *yard, ledgers map[string]*common.Ledger) {
			for host, ledger := range ledgers {
				y.converge(ledger, wantedOf(host, change))
			}
		}
	}
	one := func(change func(*Target)) func(*yard, map[string]*common.Ledger) {
		return func(y *yard, ledgers map[string]*common.Ledger) {
			y.converge(ledgers["a"], wantedOf("a", change))
			y.converge(ledgers["b"], wantedOf("b", nil))
		}
	}
	deleted := func(y *yard, _ map[string]*common.Ledger) {
		remove(y, "a", "keep/it")
		if err := y.Forget(ctx, kind, "ns", "a", "nova"); err != nil {
			y.t.Fatal(err)
		}
	}
	image := func(t *Target) { t.Image = "another" }
	for name, c := range map[string]struct {
		job    ansibleeev1.JobStatus // "" is none
		change func(*yard, map[string]*common.Ledger)
		after  time.Duration
		want   bool
	}{
		"nothing changes":                                 {"", all(nil), 0, false},
		"other network attachments":                       {"", all(func(t *Target) { t.NetworkAttachments = []string{"right"} }), 0, true},
		"another image":                                   {"", all(image), 0, true},
		"another image while the Pod may start":           {ansibleeev1.JobPending, all(image), 0, false},
		"another image while the image is not found":      {ansibleeev1.JobPending, all(image), startup, true},
		"another image while the run is at work":          {ansibleeev1.JobRunning, all(image), time.Hour, false},
		"other variables":                                 {"", all(func(t *Target) { t.Vars["x"] = "y" }), 0, true},
		"another key":                                     {"", all(func(t *Target) { t.SSHKeyDigest = "new" }), 0, true},
		"deploy is false":                                 {"", all(func(t *Target) { t.Strategy.Deploy = false }), 0, true},
		"the limit leaves them out":                       {"", all(func(t *Target) { t.Strategy.Limit = "c" }), 0, true},
		"another image for one of two":                    {"", one(image), 0, true},
		"another image for one of two, with a Job":        {ansibleeev1.JobPending, one(image), time.Hour, false},
		"one of two is deleted":                           {"", deleted, 0, true},
		"one of two is deleted, while the Pod may start":  {ansibleeev1.JobPending, deleted, 0, false},
		"one of two is deleted, and the Pod cannot start": {ansibleeev1.JobPending, deleted, 2 * time.Minute, true},
		"one of two is deleted while the run is at work":  {ansibleeev1.JobRunning, deleted, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			y, ledgers := waiting(t)
			run := y.onlyRun()
			run.CreationTimestamp = metav1.NewTime(y.clock.Now())
			if err := y.api.Update(ctx, run); err != nil {
				t.Fatal(err)
			}
			if c.job != "" {
				y.hasJob(run, c.job)
			}
			all(nil)(y, ledgers)
			y.idle()
			c.change(y, ledgers)
			y.pass(c.after)
			y.plan(group1)
			if got := y.takenBack(); got != c.want {
				t.Errorf("whether it is taken back is %v; want %v", got, c.want)
			}
		})
	}
}

func TestAnOwnerThatIsGoneDoesNotKeepARunThatHasNotStarted(t *testing.T) {
	y, _ := waiting(t)
	remove(y, "a")
	y = y.successor() // which never heard of them
	y.plan(group1)
	if !y.takenBack() {
		t.Error("a run is kept for an owner that is gone")
	}
}

func TestAManagerThatKnowsNothingYetTakesNothingBack(t *testing.T) {
	y, _ := waiting(t)
	y = y.successor()
	y.plan(group1)
	if y.takenBack() {
		t.Error("a run is taken back although no one has refused it")
	}
}

func TestARunThatStartsInTheMeantimeIsNotTakenBack(t *testing.T) {
	y, ledgers := waiting(t)
	stale := y.onlyRun()
	y.hasJob(y.onlyRun(), ansibleeev1.JobRunning)
	for host := range ledgers {
		y.verdicts.unwanted[Key{Namespace: "ns", Kind: kind, Step: "nova", Host: host}] = stale.Name
	}
	if err := y.takeBack(ctx, stale); err != nil {
		t.Fatal(err)
	}
	if y.takenBack() {
		t.Error("a run was deleted that has started since")
	}
}

func TestARunThatWasTakenBackLeavesNoTrace(t *testing.T) {
	y, ledgers := waiting(t)
	ledgers["a"].Set("nova", "old", common.RunRecord{Name: "before", Serial: 7})
	change := func(t *Target) { t.NetworkAttachments = []string{"right"} }
	for host, ledger := range ledgers {
		y.converge(ledger, wantedOf(host, change))
	}
	y.plan(group1)
	run := y.onlyRun()
	y.neverRan(run)
	for host, ledger := range ledgers {
		if s := y.converge(ledger, wantedOf(host, change)); s.Phase != Pending {
			t.Errorf("%s is %+v; want Pending: it was not in any run", host, s)
		}
	}
	if r := ledgers["a"].Runs; len(r) != 1 || r["nova"].Serial != 7 {
		t.Errorf("the ledger became %+v; the host was not touched", r)
	}
	if touched, err := y.Touched(ctx, kind, &common.Ledger{}, compute("b", "uid-b", common.Ledger{}), "nova"); err != nil || touched {
		t.Errorf("Touched = %v, %v; nothing was run", touched, err)
	}
	y.plan(group1) // drops the finalizer, and starts the next run
	next := y.onlyRun()
	if next.Name == run.Name || next.Spec.NetworkAttachments[0] != "right" || len(next.Spec.Targets) != 2 {
		t.Errorf("the next run is %s %+v; want one with the right network", next.Name, next.Spec)
	}
	if len(y.verdicts.unwanted) > 0 {
		t.Errorf("runs that are gone are still refused: %v", y.verdicts.unwanted)
	}
}

func TestAChangeThatIsUndoneKeepsTheRun(t *testing.T) {
	y, ledgers := waiting(t)
	for host, ledger := range ledgers {
		y.converge(ledger, wantedOf(host, func(t *Target) { t.Image = "another" }))
		y.converge(ledger, wantedOf(host, nil))
	}
	y.plan(group1)
	if y.takenBack() {
		t.Error("a run is taken back that all want")
	}
}
