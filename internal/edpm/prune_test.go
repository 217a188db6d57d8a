package edpm

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// aRun is a finished run of one host with a serial number.
func aRun(host string, serial int64, result ansibleeev1.HostStatus) *ansibleeev1.OpenStackAnsibleEE {
	r := newAnsibleEE(fmt.Sprintf("run-%s-%d", host, serial), []*pendingTarget{{Target: wantedOf(host, nil), hash: "H", serial: serial, attempt: 1}})
	r.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(serial) * time.Minute))
	r.Status.JobStatus, r.Status.Hosts = ansibleeev1.JobSucceeded, []ansibleeev1.HostStatus{result}
	return r
}

func compute(name string, uid types.UID, ledger common.Ledger) *novav1.NovaExternalCompute {
	c := &novav1.NovaExternalCompute{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid}}
	c.Status.Ledger = ledger
	return c
}

func recordedUpTo(serial int64) common.Ledger {
	l := common.Ledger{}
	l.Set("nova", "H", common.RunRecord{Serial: serial})
	return l
}

func (y *yard) left() []string {
	var names []string
	for name := range y.runs() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestPruneKeepsTheHistory(t *testing.T) {
	objects := []client.Object{compute("a", "uid-a", recordedUpTo(20))}
	for i := int64(1); i <= 20; i++ {
		objects = append(objects, aRun("a", i, ok("a")))
	}
	y := newYard(t, objects...)
	y.plan(group1) // deleted, but held by the finalizer
	y.plan(group1) // let go
	got := y.left()
	if len(got) != y.History {
		t.Fatalf("%d runs are left; want %d", len(got), y.History)
	}
	if slices.Contains(got, "run-a-1") || !slices.Contains(got, "run-a-20") {
		t.Errorf("%v are left; want the last ones", got)
	}
}

func TestPruneKeepsWhatIsNeeded(t *testing.T) {
	for name, c := range map[string]struct {
		owner *novav1.NovaExternalCompute
		run   *ansibleeev1.OpenStackAnsibleEE
		kept  bool
	}{
		"a recorded success is not needed":              {compute("old", "uid-old", recordedUpTo(1)), aRun("old", 1, ok("old")), false},
		"a success that is not recorded is":             {compute("old", "uid-old", common.Ledger{}), aRun("old", 1, ok("old")), true},
		"the last failure of a host is":                 {compute("old", "uid-old", recordedUpTo(1)), aRun("old", 1, failed("old")), true},
		"a failure that is not recorded is":             {compute("old", "uid-old", common.Ledger{}), aRun("old", 1, failed("old")), true},
		"what its owner left behind is not needed":      {compute("other", "x", common.Ledger{}), aRun("old", 1, failed("old")), false},
		"what an owner of that name before is not":      {compute("old", "uid-new", common.Ledger{}), aRun("old", 1, failed("old")), false},
		"a run that no one has finished is":             {compute("old", "uid-old", common.Ledger{}), unfinished(aRun("old", 1, ok("old"))), true},
		"a run of an owner that is not ours is left to": {compute("old", "uid-old", recordedUpTo(1)), ofAnotherKind(aRun("old", 1, ok("old"))), true},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{c.owner, c.run, compute("a", "uid-a", recordedUpTo(100))}
			for i := int64(2); i <= 20; i++ {
				objects = append(objects, aRun("a", i, ok("a")))
			}
			y := newYard(t, objects...)
			y.plan(group1)
			y.plan(group1)
			if got := slices.Contains(y.left(), "run-old-1"); got != c.kept {
				t.Errorf("whether it is kept is %v; want %v", got, c.kept)
			}
		})
	}
}

func unfinished(r *ansibleeev1.OpenStackAnsibleEE) *ansibleeev1.OpenStackAnsibleEE {
	r.Status.JobStatus = ansibleeev1.JobRunning
	return r
}

func ofAnotherKind(r *ansibleeev1.OpenStackAnsibleEE) *ansibleeev1.OpenStackAnsibleEE {
	r.Spec.OwnerKind = "Unknown"
	return r
}

func TestADeletedRunGoesOnlyOnceItIsRecorded(t *testing.T) {
	for name, c := range map[string]struct {
		result ansibleeev1.HostStatus
		change func(*ansibleeev1.OpenStackAnsibleEE) *ansibleeev1.OpenStackAnsibleEE
		ledger common.Ledger
		uid    types.UID
		goes   bool
	}{
		"a success that is not recorded stays":              {result: ok("a"), uid: "uid-a"},
		"a recorded success goes":                           {result: ok("a"), uid: "uid-a", ledger: recordedUpTo(1), goes: true},
		"a failure that is not recorded stays":              {result: failed("a"), uid: "uid-a"},
		"a failure before a later success goes":             {result: failed("a"), uid: "uid-a", ledger: recordedUpTo(2), goes: true},
		"a host that was never reached leaves nothing":      {result: ansibleeev1.HostStatus{Name: "a", Unreachable: 1, NotConnected: true}, uid: "uid-a", goes: true},
		"nothing is recorded for an owner that was deleted": {result: ok("a"), uid: "uid-other", goes: true},
		"a run that has not finished stays":                 {result: ok("a"), uid: "uid-a", ledger: recordedUpTo(1), change: unfinished},
		"a run of an owner that is not ours stays":          {result: ok("a"), uid: "uid-a", ledger: recordedUpTo(1), change: ofAnotherKind},
	} {
		t.Run(name, func(t *testing.T) {
			r := aRun("a", 1, c.result)
			if c.change != nil {
				r = c.change(r)
			}
			y := newYard(t, compute("a", c.uid, c.ledger), r)
			if err := y.api.Delete(ctx, r); err != nil {
				t.Fatal(err)
			}
			y.plan(group1)
			if gone := len(y.left()) == 0; gone != c.goes {
				t.Errorf("whether it has gone is %v; want %v", gone, c.goes)
			}
		})
	}
}

// The owner may have recorded it, and only the cache not shown it yet: nothing else
// would wake the group.
func TestADeletedRunThatIsNotRecordedIsLookedAtAgain(t *testing.T) {
	r := aRun("a", 1, ok("a"))
	y := newYard(t, compute("a", "uid-a", common.Ledger{}), r)
	y.Debounce = time.Millisecond
	y.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Group]())
	defer y.queue.ShutDown()
	if err := y.api.Delete(ctx, r); err != nil {
		t.Fatal(err)
	}
	y.plan(group1)
	time.AfterFunc(10*time.Second, y.queue.ShutDown)
	if g, over := y.queue.Get(); over || g != group1 {
		t.Errorf("the group that is looked at again is %v, over %v; want %v", g, over, group1)
	}
}

func TestTheSweeperRemovesInputsWithoutARun(t *testing.T) {
	secret := func(name string, age time.Duration, label string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, Labels: map[string]string{label: "true"}, CreationTimestamp: metav1.NewTime(noon.Add(-age)),
		}}
	}
	elsewhere := secret("of-nobody-here", time.Hour, common.RunInputsLabel)
	elsewhere.Namespace = "elsewhere"
	y := newYard(t, elsewhere, compute("a", "uid-a", common.Ledger{}),
		secret("left-behind", time.Hour, common.RunInputsLabel), secret("about-to-be-used", time.Minute, common.RunInputsLabel),
		secret("run-a-1", time.Hour, common.RunInputsLabel), secret("somebodys", time.Hour, "other"), aRun("a", 1, ok("a")))
	if err := (sweeper{runs: y.Engine.runs, owners: y.owners, clock: y.clock}).Start(ctx); err != nil {
		t.Fatal(err)
	}
	list := &corev1.SecretList{}
	if err := y.api.List(ctx, list); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, s := range list.Items {
		left = append(left, s.Name)
	}
	slices.Sort(left)
	if want := []string{"about-to-be-used", "of-nobody-here", "run-a-1", "somebodys"}; !slices.Equal(left, want) {
		t.Errorf("%v are left; want %v", left, want)
	}
	if !(sweeper{}).NeedLeaderElection() {
		t.Error("a manager that does not lead would sweep")
	}
}
