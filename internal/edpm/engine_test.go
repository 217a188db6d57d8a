package edpm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/metrics"
)

var ctx = context.Background()

const kind = "NovaExternalCompute"

// yard is an engine with an API server, whose clock stands still unless moved.
type yard struct {
	*Engine
	t     *testing.T
	api   client.Client
	clock *clocktesting.FakePassiveClock
	// createRun, if set, takes the place of creating a run.
	createRun func(create func() error) error
	// blind hides runs from the cache.
	blind bool
	// afterList, if set, happens after the cache was read.
	afterList func()
}

var group1 = Group{Namespace: "ns", Kind: kind, Role: "role"}

func newYard(t *testing.T, objects ...client.Object) *yard {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, ansibleeev1.AddToScheme, novav1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	run := &ansibleeev1.OpenStackAnsibleEE{}
	y := &yard{t: t, clock: clocktesting.NewFakePassiveClock(noon)}
	y.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(run, &novav1.NovaExternalCompute{}).
		WithIndex(run, targetIndex, indexTargets).WithIndex(run, groupIndex, indexGroup).WithIndex(run, busyIndex, indexBusy).WithIndex(run, activeIndex, indexActive).Build()
	y.start()
	return y
}

// successor is an engine with the same API server that knows nothing else.
func (y *yard) successor() *yard {
	y.t.Helper()
	next := &yard{t: y.t, api: y.api, clock: y.clock}
	next.start()
	return next
}

// start makes the engine, with a cache of the API server.
func (y *yard) start() {
	y.t.Helper()
	cached := interceptor.NewClient(y.api.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			create := func() error { return c.Create(ctx, obj, opts...) }
			if _, isRun := obj.(*ansibleeev1.OpenStackAnsibleEE); isRun && y.createRun != nil {
				return y.createRun(create)
			}
			return create()
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if y.afterList != nil {
				defer y.afterList()
			}
			if y.blind {
				return nil
			}
			return c.List(ctx, list, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, isRun := obj.(*ansibleeev1.OpenStackAnsibleEE); isRun && y.blind {
				return apierrors.NewNotFound(ansibleeev1.GroupVersion.WithResource("openstackansibleees").GroupResource(), key.Name)
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	opts := DefaultOptions()
	opts.Clock = y.clock
	y.Engine = New(cached, y.api, opts)
	y.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Group]())
	y.t.Cleanup(y.queue.ShutDown)
	y.Register(Owner{
		Kind: kind, New: func() client.Object { return &novav1.NovaExternalCompute{} },
		List:   func() client.ObjectList { return &novav1.NovaExternalComputeList{} },
		Ledger: func(o client.Object) *common.Ledger { return &o.(*novav1.NovaExternalCompute).Status.Ledger },
	})
}

// wanted is a target of the host; change can alter it.
func wantedOf(host string, change func(*Target)) Target {
	return target(func(t *Target) {
		t.Vars["ansible_host"] = host
		t.OwnerKind, t.Host, t.OwnerUID, t.Strategy = kind, host, types.UID("uid-"+host), Strategy{Deploy: true}
		if change != nil {
			change(t)
		}
	})
}

func (y *yard) converge(ledger *common.Ledger, targets ...Target) State {
	y.t.Helper()
	if y.owners.kinds[targets[0].OwnerKind].Kind != "" { // without its owner a run would be taken back
		owner := compute(targets[0].Host, targets[0].OwnerUID, common.Ledger{})
		if err := y.api.Create(ctx, owner); err != nil && !apierrors.IsAlreadyExists(err) {
			y.t.Fatal(err)
		}
	}
	s, err := y.Converge(ctx, ledger, targets...)
	if err != nil {
		y.t.Fatal(err)
	}
	return s
}

// plan moves the clock past the debounce and plans the group.
func (y *yard) plan(g Group) {
	y.t.Helper()
	y.clock.SetTime(y.clock.Now().Add(y.Debounce))
	y.planNow(g)
}

func (y *yard) planNow(g Group) {
	y.t.Helper()
	if _, err := y.reconcile(ctx, g); err != nil {
		y.t.Fatal(err)
	}
}

// all runs that there are.
func (y *yard) all() []ansibleeev1.OpenStackAnsibleEE {
	y.t.Helper()
	list := &ansibleeev1.OpenStackAnsibleEEList{}
	if err := y.api.List(ctx, list); err != nil {
		y.t.Fatal(err)
	}
	return list.Items
}

// runs are the hosts of each run, and its name.
func (y *yard) runs() map[string][]string {
	y.t.Helper()
	out := map[string][]string{}
	for _, r := range y.all() {
		for _, target := range r.Spec.Targets {
			out[r.Name] = append(out[r.Name], target.Host)
		}
	}
	return out
}

func (y *yard) onlyRun() *ansibleeev1.OpenStackAnsibleEE {
	y.t.Helper()
	list := &ansibleeev1.OpenStackAnsibleEEList{}
	if err := y.api.List(ctx, list); err != nil || len(list.Items) != 1 {
		y.t.Fatalf("there are %d runs (%v); want one", len(list.Items), err)
	}
	return &list.Items[0]
}

// end makes a run finish with the results.
func (y *yard) end(run *ansibleeev1.OpenStackAnsibleEE, results ...ansibleeev1.HostStatus) {
	y.t.Helper()
	run.Status.JobStatus, run.Status.Hosts, run.Status.CompletionTime = ansibleeev1.JobSucceeded, results, ptr.To(metav1.NewTime(y.clock.Now()))
	run.Status.ObservedGeneration = run.Generation
	if err := y.api.Status().Update(ctx, run); err != nil {
		y.t.Fatal(err)
	}
	y.observe(run, true, true, y.queue)
}

// seen makes the cache show all runs.
func (y *yard) seen() {
	y.t.Helper()
	list := &ansibleeev1.OpenStackAnsibleEEList{}
	if err := y.api.List(ctx, list); err != nil {
		y.t.Fatal(err)
	}
	for i := range list.Items {
		y.observe(&list.Items[i], true, false, y.queue)
	}
}

func ok(host string) ansibleeev1.HostStatus { return ansibleeev1.HostStatus{Name: host, OK: 1} }
func failed(host string) ansibleeev1.HostStatus {
	return ansibleeev1.HostStatus{Name: host, OK: 1, Failed: 1, Message: "boom"}
}

func TestHostsThatComeTogetherGoTogether(t *testing.T) {
	y := newYard(t)
	for _, h := range []string{"c", "a", "b"} {
		if s := y.converge(&common.Ledger{}, wantedOf(h, nil)); s.Phase != Pending {
			t.Fatalf("%s is %s; want Pending", h, s.Phase)
		}
	}
	if _, err := y.reconcile(ctx, group1); err != nil || len(y.runs()) > 0 {
		t.Fatalf("before the debounce there are the runs %v (%v)", y.runs(), err)
	}
	y.plan(group1)
	if diff := cmp.Diff([]string{"a", "b", "c"}, y.runs()[y.onlyRun().Name]); diff != "" {
		t.Errorf("the hosts differ (-want +got):\n%s", diff)
	}
	for _, h := range []string{"a", "b", "c"} {
		if s := y.converge(&common.Ledger{}, wantedOf(h, nil)); s.Phase != Running {
			t.Errorf("%s is %s; want Running", h, s.Phase)
		}
	}
}

func TestARunCountsBeforeTheCacheShowsIt(t *testing.T) {
	y := newYard(t)
	y.converge(&common.Ledger{}, wantedOf("a", nil))
	y.plan(group1)
	y.blind = true
	if s := y.converge(&common.Ledger{}, wantedOf("a", nil)); s.Phase != Running || s.Run != y.onlyRun().Name {
		t.Errorf("the state is %+v; want Running in %s", s, y.onlyRun().Name)
	}
	y.plan(group1)
	if n := len(y.runs()); n != 1 {
		t.Errorf("there are %d runs; want one", n)
	}
}

func TestStepsGoInOrder(t *testing.T) {
	y := newYard(t)
	ledger := &common.Ledger{}
	libvirt := wantedOf("a", func(t *Target) { t.Step = Step{Name: "libvirt", PlaybookContents: "- hosts: all"} })
	nova := wantedOf("a", nil)
	if s := y.converge(ledger, libvirt, nova); s.Phase != Pending || s.Step != "libvirt" {
		t.Fatalf("the state is %+v; want libvirt Pending", s)
	}
	y.plan(group1)
	if names := y.onlyRun().StepNames(); !slices.Equal(names, []string{"libvirt"}) {
		t.Fatalf("the run has the steps %v; want libvirt, whose playbook cannot be imported", names)
	}
	y.end(y.onlyRun(), ok("a"))
	if s := y.converge(ledger, libvirt, nova); s.Phase != Pending || s.Step != "nova" {
		t.Fatalf("the state is %+v; want nova Pending", s)
	}
	libvirt.Vars["new"] = true
	if s := y.converge(ledger, libvirt, nova); s.Step != "libvirt" {
		t.Fatalf("the state is %+v; want libvirt Pending", s)
	}
	y.plan(group1)
	for _, run := range y.all() {
		if !slices.Equal(run.StepNames(), []string{"libvirt"}) {
			t.Errorf("there is a run of %v; nova has to wait for libvirt again", run.StepNames())
		}
	}
}

func TestAHostIsInOneRunAtATime(t *testing.T) {
	y := newYard(t)
	y.converge(&common.Ledger{}, wantedOf("a", nil))
	y.plan(group1)
	other := wantedOf("a", func(t *Target) { t.Step.Name, t.OwnerKind = "other", "Other" })
	y.converge(&common.Ledger{}, other)
	g := Group{Namespace: "ns", Kind: "Other", Role: "role"}
	y.plan(g)
	y.seen()
	y.plan(g)
	if n := len(y.runs()); n != 1 {
		t.Fatalf("there are %d runs on one host", n)
	}
	y.end(y.onlyRun(), ok("a"))
	y.plan(g)
	if n := len(y.runs()); n != 2 {
		t.Errorf("there are %d runs; the host is free", n)
	}
}

func TestTheRunsOfAnOwnerOfTheSameNameBeforeDoNotCount(t *testing.T) {
	y := newYard(t)
	y.converge(&common.Ledger{}, wantedOf("a", nil))
	y.plan(group1)
	y.end(y.onlyRun(), ok("a"))
	again := wantedOf("a", func(t *Target) { t.OwnerUID = "uid-new" })
	if s := y.converge(&common.Ledger{}, again); s.Phase != Pending {
		t.Errorf("the state is %+v; an object that was created again starts from nothing", s)
	}
	if touched, err := y.Touched(ctx, kind, &common.Ledger{}, &novav1.NovaExternalCompute{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "uid-new"}}, "nova"); err != nil || touched {
		t.Errorf("Touched = %v, %v; nothing was run for the new object", touched, err)
	}
	if touched, err := y.Touched(ctx, kind, &common.Ledger{}, &novav1.NovaExternalCompute{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "uid-a"}}, "nova"); err != nil || !touched {
		t.Errorf("Touched = %v, %v; a run was made for the old object", touched, err)
	}
}

func TestTouchedRemembersARunThatFailedAndIsGone(t *testing.T) {
	y := newYard(t)
	ledger := &common.Ledger{}
	recordRuns(ledger, "nova", []*run{{finished: true, known: true, result: badHost, target: ansibleeev1.Target{Serial: 1}}})
	owner := &novav1.NovaExternalCompute{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u"}}
	if touched, err := y.Touched(ctx, kind, ledger, owner, "nova"); err != nil || !touched {
		t.Errorf("Touched = %v, %v; a failed run has left something on the host", touched, err)
	}
}

func TestTouchedNotesWhatARunDidSoThatItCanBeDeleted(t *testing.T) {
	y := newYard(t)
	y.converge(&common.Ledger{}, wantedOf("a", nil))
	y.plan(group1)
	run := y.onlyRun()
	y.end(run, failed("a"))
	ledger := &common.Ledger{}
	owner := &novav1.NovaExternalCompute{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "uid-a"}}
	if touched, err := y.Touched(ctx, kind, ledger, owner, "nova"); err != nil || !touched {
		t.Errorf("Touched = %v, %v; want true, nil", touched, err)
	}
	if !isRecorded(ledger, "nova", newRun(run, "nova", "a")) {
		t.Errorf("the ledger is %+v; it has to tell of the run, which else cannot be deleted while the host is cleaned up", *ledger)
	}
}

func TestRunsOfLaterStepsAreNotedWhileAnEarlierOneWaits(t *testing.T) {
	y := newYard(t)
	y.converge(&common.Ledger{}, wantedOf("a", nil))
	y.plan(group1)
	run := y.onlyRun()
	y.end(run, ok("a"))
	paused := wantedOf("a", func(t *Target) { t.Step.Name, t.Strategy.Deploy = "libvirt", false })
	ledger := &common.Ledger{}
	if s := y.converge(ledger, paused, wantedOf("a", nil)); s.Phase != Paused || s.Step != "libvirt" {
		t.Fatalf("the state is %+v; want libvirt DeployDisabled", s)
	}
	if !isRecorded(ledger, "nova", newRun(run, "nova", "a")) {
		t.Errorf("the ledger is %+v; it has to tell of the run, which else cannot be deleted until libvirt is deployed", *ledger)
	}
}

func TestWhatMayNotRunSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Target)
		want   Phase
	}{
		"deploy is false":           {func(t *Target) { t.Strategy.Deploy = false }, Paused},
		"the host is outside limit": {func(t *Target) { t.Strategy.Limit = "b*" }, Excluded},
		"the host is within limit":  {func(t *Target) { t.Strategy.Limit = "a*" }, Pending},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			y.converge(&common.Ledger{}, wantedOf("a", nil)) // it was allowed before
			if s := y.converge(&common.Ledger{}, wantedOf("a", c.change)); s.Phase != c.want {
				t.Errorf("the state is %+v; want %s", s, c.want)
			}
			y.plan(group1)
			if got, want := len(y.runs()) > 0, c.want == Pending; got != want {
				t.Errorf("whether there is a run is %v; want %v", got, want)
			}
		})
	}
	y := newYard(t)
	if _, err := y.Converge(ctx, &common.Ledger{}, wantedOf("a", func(t *Target) { t.Strategy.Limit = "[" })); err == nil {
		t.Error("a limit that cannot be read is no error")
	}
}

func TestNothingIsRunForAnOwnerThatTookItBack(t *testing.T) {
	for name, takeBack := range map[string]func(*yard){
		"it withdraws":              func(y *yard) { y.Withdraw(kind, "ns", "a") },
		"it forgets the step":       func(y *yard) { _ = y.Forget(ctx, kind, "ns", "a", "nova") },
		"it wants only other steps": func(y *yard) { y.converge(&common.Ledger{}, wantedOf("a", func(t *Target) { t.Step.Name = "other" })) },
		"it wants only what is done": func(y *yard) {
			other := wantedOf("a", func(t *Target) { t.Step.Name = "other" })
			y.converge(&common.Ledger{Hash: map[string]string{"other": other.Hash()}}, other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			y.converge(&common.Ledger{}, wantedOf("a", nil))
			takeBack(y)
			y.plan(group1)
			for _, run := range y.all() {
				if slices.Contains(run.StepNames(), "nova") {
					t.Errorf("there is a run of %v", run.StepNames())
				}
			}
			if y.planner.groups[group1] != nil {
				t.Error("the group is kept although no one waits in it")
			}
		})
	}
}

func TestAnOwnerThatMovedToAnotherRoleWaitsThere(t *testing.T) {
	y := newYard(t)
	y.converge(&common.Ledger{}, wantedOf("a", nil))
	y.converge(&common.Ledger{}, wantedOf("a", func(t *Target) { t.Role = "other" }))
	y.plan(group1)
	if len(y.runs()) > 0 {
		t.Error("it runs in the old role")
	}
	y.plan(Group{Namespace: "ns", Kind: kind, Role: "other"})
	if len(y.runs()) != 1 {
		t.Error("it does not run in the new role")
	}
}

func TestARunCountsThatTheCacheShowsDuringAPlan(t *testing.T) {
	y := newYard(t)
	strict := func(t *Target) { t.Strategy.MaxUnavailable = 1 }
	y.converge(&common.Ledger{}, wantedOf("a", strict))
	y.plan(group1)
	y.blind = true
	y.converge(&common.Ledger{}, wantedOf("b", strict))
	y.afterList = func() {
		y.afterList, y.blind = nil, false
		y.seen()
	}
	y.plan(group1)
	y.onlyRun()
}

// The events of an earlier run of the same name can come when the new one is created and the
// cache does not show it yet.
func TestARunCountsThoughOneOfItsNameIsDeleted(t *testing.T) {
	y := newYard(t)
	strict := func(t *Target) { t.Strategy.MaxUnavailable = 1 }
	y.converge(&common.Ledger{}, wantedOf("a", strict))
	y.plan(group1)
	y.blind = true
	earlier := y.onlyRun().DeepCopy()
	earlier.UID = "earlier"
	y.observe(earlier, false, true, y.queue)
	earlier.DeletionTimestamp = ptr.To(metav1.NewTime(noon))
	y.observe(earlier, true, false, y.queue)
	y.converge(&common.Ledger{}, wantedOf("b", strict))
	y.plan(group1)
	y.onlyRun()
}

func TestAnOfferThatChangedDuringThePlanIsPlannedAgain(t *testing.T) {
	y := newYard(t)
	y.converge(&common.Ledger{}, wantedOf("a", nil))
	y.clock.SetTime(noon.Add(time.Minute))
	stale, _, err := y.takeSnapshot(ctx, group1)
	if err != nil {
		t.Fatal(err)
	}
	y.converge(&common.Ledger{}, wantedOf("a", nil)) // a resync: the same again
	for y.queue.Len() > 0 {
		g, _ := y.queue.Get()
		y.queue.Done(g)
	}
	if err := y.startRun(ctx, stale); err != nil {
		t.Fatal(err)
	}
	if len(y.runs()) > 0 {
		t.Fatal("a run was started for a pending target that is no longer valid")
	}
	planned := make(chan Group, 1)
	go func() {
		g, _ := y.queue.Get()
		planned <- g
	}()
	select {
	case g := <-planned:
		if g != group1 {
			t.Errorf("%v is planned; want %v", g, group1)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("no one plans the group again: the host would wait for ever")
	}
	y.plan(group1)
	if len(y.runs()) != 1 {
		t.Error("the new pending target is not run")
	}
}

func TestLimitsThatAreRelaxedLetGo(t *testing.T) {
	y := newYard(t)
	strict := func(t *Target) { t.Strategy.MaxUnavailable = 1 }
	for _, h := range []string{"a", "b"} {
		y.converge(&common.Ledger{}, wantedOf(h, strict))
	}
	y.plan(group1)
	if s := y.converge(&common.Ledger{}, wantedOf("b", strict)); s.Phase != RolloutHeld || !strings.Contains(s.Message, "maxUnavailable is 1") {
		t.Fatalf("the state is %+v; want RolloutHeld", s)
	}
	for y.queue.Len() > 0 {
		g, _ := y.queue.Get()
		y.queue.Done(g)
	}
	y.converge(&common.Ledger{}, wantedOf("b", nil))
	if y.queue.Len() == 0 {
		t.Error("the group is not planned again, so the host stays held")
	}
}

func TestThoseHeldAreWoken(t *testing.T) {
	y := newYard(t)
	for _, h := range []string{"a", "b", "c"} {
		y.converge(&common.Ledger{}, wantedOf(h, func(t *Target) { t.Strategy.MaxUnavailable = 1 }))
	}
	y.plan(group1)
	var woken []string
	for len(y.owners.wakeups[kind]) > 0 {
		woken = append(woken, (<-y.owners.wakeups[kind]).Object.GetName())
	}
	slices.Sort(woken)
	if diff := cmp.Diff([]string{"b", "c"}, woken); diff != "" {
		t.Errorf("who was woken differs (-want +got):\n%s", diff)
	}
	y.plan(group1)
	if n := len(y.owners.wakeups[kind]); n > 0 {
		t.Errorf("%d owners were woken though nothing changed for them", n)
	}
}

func TestALingeringFailureDoesNotSpoilTheDebounce(t *testing.T) {
	y := newYard(t)
	y.converge(&common.Ledger{}, wantedOf("bad", nil))
	y.plan(group1)
	y.end(y.onlyRun(), failed("bad"))
	ledger := &common.Ledger{}
	y.converge(ledger, wantedOf("bad", nil))
	y.plan(group1)
	y.clock.SetTime(noon.Add(8 * time.Second)) // long, but before its next attempt
	y.plan(group1)
	for _, h := range []string{"a", "b", "c"} {
		y.converge(&common.Ledger{}, wantedOf(h, nil))
		if _, err := y.reconcile(ctx, group1); err != nil {
			t.Fatal(err)
		}
		y.clock.SetTime(y.clock.Now().Add(y.Debounce / 2))
	}
	if n := len(y.runs()); n != 1 {
		t.Fatalf("there are %d runs; hosts that come one after the other should be gathered", n)
	}
	y.plan(group1)
	if n := len(y.runs()); n != 2 {
		t.Errorf("there are %d runs: %v; want one for a, b and c", n, y.runs())
	}
}

func TestACreationThatMayHaveHappenedIsNotRepeated(t *testing.T) {
	unclear := errors.New("connection reset by peer")
	for name, c := range map[string]struct {
		answer   error
		happens  bool
		runsOnce bool
	}{
		"the answer got lost, and the run exists":     {unclear, true, true},
		"the answer got lost, and there is no run":    {unclear, false, true},
		"the server failed, and the run exists":       {apierrors.NewInternalError(unclear), true, true},
		"the server refused, and it is tried at once": {apierrors.NewForbidden(ansibleeev1.GroupVersion.WithResource("x").GroupResource(), "x", unclear), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			y.createRun = func(create func() error) error {
				if c.happens {
					if err := create(); err != nil {
						t.Fatal(err)
					}
				}
				return c.answer
			}
			y.converge(&common.Ledger{}, wantedOf("a", nil))
			y.clock.SetTime(noon.Add(time.Minute))
			if _, err := y.reconcile(ctx, group1); err == nil {
				t.Fatal("the fault is not returned, so it is not retried")
			}
			y.createRun, y.blind = nil, true // the cache is late, too
			s := y.converge(&common.Ledger{}, wantedOf("a", nil))
			if running := s.Phase == Running; running != c.runsOnce {
				t.Fatalf("the state is %+v", s)
			}
			// Another host joins, so that a second run would have another name.
			y.converge(&common.Ledger{}, wantedOf("b", nil))
			y.plan(group1)
			for name, hosts := range y.runs() {
				if slices.Contains(hosts, "a") && slices.Contains(hosts, "b") && c.happens {
					t.Fatalf("%s runs %v although a run for a exists", name, hosts)
				}
			}
			if !c.runsOnce {
				return
			}
			// After staleAfter the API server is asked.
			y.blind = false
			y.clock.SetTime(y.clock.Now().Add(2 * staleAfter))
			y.plan(group1)
			s = y.converge(&common.Ledger{}, wantedOf("a", nil))
			if want := map[bool]Phase{true: Running, false: Pending}[c.happens]; s.Phase != want {
				t.Errorf("after the doubt the state is %+v; want %s", s, want)
			}
			if y.started[Key{Namespace: "ns", Kind: kind, Step: "nova", Host: "a"}].name != "" {
				t.Error("the doubt is not resolved: the host would be busy for ever")
			}
		})
	}
}

func TestAnOwnerIsWokenWhenItsRunTurnsOutNotToExist(t *testing.T) {
	y := newYard(t)
	y.createRun = func(func() error) error { return errors.New("lost") }
	y.converge(&common.Ledger{}, wantedOf("a", nil))
	y.clock.SetTime(noon.Add(time.Minute))
	if _, err := y.reconcile(ctx, group1); err == nil {
		t.Fatal("the fault is not returned")
	}
	y.converge(&common.Ledger{}, wantedOf("a", nil)) // it believes to be running
	y.clock.SetTime(noon.Add(time.Hour))
	y.plan(group1)
	if len(y.owners.wakeups[kind]) != 1 {
		t.Errorf("%d owners were woken; want 1, or the host would be taken for running for ever", len(y.owners.wakeups[kind]))
	}
}

func TestARunThatExistedAlreadyIsTaken(t *testing.T) {
	y := newYard(t)
	y.converge(&common.Ledger{}, wantedOf("a", nil))
	pending, _, err := y.takeSnapshot(ctx, group1)
	if err != nil {
		t.Fatal(err)
	}
	// The manager before has made the same run and died; the cache showed it before the claim.
	name := runName(pending)
	if err := y.api.Create(ctx, newAnsibleEE(name, pending)); err != nil {
		t.Fatal(err)
	}
	y.blind = true
	y.plan(group1)
	y.blind = false
	if n := len(y.runs()); n != 1 {
		t.Fatalf("there are %d runs; want one", n)
	}
	y.clock.SetTime(noon.Add(time.Hour))
	y.plan(group1)
	if len(y.started) > 0 {
		t.Error("the run is still taken for unseen: its host would be busy for ever")
	}
}

func TestInputsThatAreTooLargeAreSpreadOverMoreRuns(t *testing.T) {
	y := newYard(t)
	for i := range 4 {
		y.converge(&common.Ledger{}, wantedOf(fmt.Sprint("h", i), func(t *Target) { t.Files = map[string][]byte{"f": []byte(strings.Repeat(t.Host, 200<<10))} }))
	}
	y.plan(group1)
	if n := len(y.runs()); n != 2 {
		t.Errorf("there are %d runs: %v; want two of two hosts", n, y.runs())
	}
}

func TestTheInputsOfARunAreThereBeforeIt(t *testing.T) {
	y := newYard(t)
	y.createRun = func(create func() error) error {
		secrets := &corev1.SecretList{}
		if err := y.api.List(ctx, secrets, client.HasLabels{common.RunInputsLabel}); err != nil || len(secrets.Items) != 1 {
			t.Errorf("there are %d Secrets (%v) when the run is created; want one", len(secrets.Items), err)
		}
		return create()
	}
	y.converge(&common.Ledger{}, wantedOf("a", nil))
	y.plan(group1)
	if got := y.onlyRun(); got.Spec.InputsSecretName != got.Name {
		t.Errorf("the run names the inputs %q; want %q", got.Spec.InputsSecretName, got.Name)
	}
}

func TestGivingUp(t *testing.T) {
	y := newYard(t)
	ledger := &common.Ledger{}
	twice := func(key string) Target {
		return wantedOf("a", func(t *Target) { t.MaxAttempts, t.SSHKeyDigest = 2, key })
	}
	attempt := func(key string) {
		t.Helper()
		y.converge(ledger, twice(key))
		y.clock.SetTime(y.clock.Now().Add(time.Hour))
		y.plan(group1)
		for name, hosts := range y.runs() {
			run := &ansibleeev1.OpenStackAnsibleEE{}
			if err := y.api.Get(ctx, client.ObjectKey{Namespace: "ns", Name: name}, run); err != nil {
				t.Fatal(err)
			}
			if !run.Finished() {
				y.end(run, failed(hosts[0]))
			}
		}
	}
	attempt("old")
	attempt("old")
	if s := y.converge(ledger, twice("old")); s.Phase != RetriesExhausted || s.Attempt != 2 {
		t.Fatalf("the state is %+v; want RetriesExhausted after 2 attempts", s)
	}
	y.clock.SetTime(y.clock.Now().Add(time.Hour))
	y.plan(group1)
	if n := len(y.runs()); n != 2 {
		t.Fatalf("there are %d runs; want 2", n)
	}
	if s := y.converge(ledger, twice("new")); s.Phase != Failed {
		t.Fatalf("the state is %+v; access was fixed, so it is tried again", s)
	}
	attempt("new")
	if s := y.converge(ledger, twice("new")); s.Phase != RetriesExhausted || s.Attempt != 3 {
		t.Fatalf("the state is %+v; want RetriesExhausted after 3 attempts", s)
	}
	token := twice("new")
	token.Rerun = "again"
	if s := y.converge(ledger, token); s.Phase != Pending {
		t.Errorf("the state is %+v; a rerun token asks for another attempt", s)
	}
}

func TestStatesAreCounted(t *testing.T) {
	y := newYard(t)
	done := wantedOf("a", nil)
	y.converge(&common.Ledger{Hash: map[string]string{"nova": done.Hash()}}, done)
	y.converge(&common.Ledger{}, wantedOf("b", nil))
	y.converge(&common.Ledger{}, wantedOf("c", nil))
	_ = y.Forget(ctx, kind, "ns", "c", "nova")
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(y.states)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "edpm_hosts" {
		t.Fatalf("the metrics are %v, %v; want edpm_hosts", families, err)
	}
	got := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		labels := []string{}
		for _, l := range m.GetLabel() {
			labels = append(labels, l.GetName()+"="+l.GetValue())
		}
		got[strings.Join(labels, ",")] = m.GetGauge().GetValue()
	}
	want := map[string]float64{"cell=cell1,state=Converged,step=nova": 1, "cell=cell1,state=Pending,step=nova": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the metrics differ (-want +got):\n%s", diff)
	}
}

func TestMetricsAreNamedAsPrometheusAsks(t *testing.T) {
	y := newYard(t)
	y.converge(&common.Ledger{}, wantedOf("a", nil))
	y.plan(group1) // a run is started
	y.end(y.onlyRun(), failed("a"))
	countEnd(t.Context(), y.onlyRun())
	y.states.set(Key{Namespace: "ns", Kind: kind, Step: "nova", Host: "b"}, "cell1", Pending, false, noon)
	y.states.set(Key{Namespace: "ns", Kind: kind, Step: "nova", Host: "b"}, "cell1", Converged, true, noon.Add(time.Minute))
	checksFinished.WithLabelValues("nova", "Succeeded").Inc()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(y.states, runsStarted, runsFinished, checksFinished, convergeSeconds)
	families, err := registry.Gather()
	if err != nil || len(families) != 6 {
		t.Fatalf("there are %d metrics, %v; want 6", len(families), err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestSeriesAreBoundedHoweverManyStepsAndCellsThereAre(t *testing.T) {
	steps, cells := metrics.Steps, metrics.Cells
	metrics.Steps, metrics.Cells = metrics.NewVocabulary(metrics.MaxSteps), metrics.NewVocabulary(metrics.MaxCells)
	t.Cleanup(func() { metrics.Steps, metrics.Cells = steps, cells })
	convergeSeconds.Reset()
	y := newYard(t)
	for i := range 500 {
		step, cell := fmt.Sprint("step-", i), fmt.Sprint("cell-", i)
		key := Key{Namespace: "ns", Kind: kind, Step: step, Host: "host"}
		y.states.set(key, cell, Pending, false, noon)
		y.states.set(key, cell, Converged, false, noon.Add(time.Minute))
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(y.states, convergeSeconds)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		values := map[string]map[string]bool{"step": {}, "cell": {}}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if values[l.GetName()] != nil {
					values[l.GetName()][l.GetValue()] = true
				}
			}
		}
		if n := len(values["step"]); n > metrics.MaxSteps+2 || !values["step"][metrics.Other] {
			t.Errorf("%s has %d steps; want %d, the empty one and %s at most", f.GetName(), n, metrics.MaxSteps, metrics.Other)
		}
		if n := len(values["cell"]); n > metrics.MaxCells+2 {
			t.Errorf("%s has %d cells; want %d, the empty one and %s at most", f.GetName(), n, metrics.MaxCells, metrics.Other)
		}
		if n := len(f.GetMetric()); n > 500 {
			t.Errorf("%s has %d series", f.GetName(), n)
		}
	}
}

func TestAFailureCountsBeforeItsOwnerHasHeardOfIt(t *testing.T) {
	canary := func(t *Target) { t.Strategy.MaxUnavailable, t.Strategy.MaxFailures = 1, ptr.To[int32](0) }
	start := func(t *testing.T, owner *novav1.NovaExternalCompute) *yard {
		t.Helper()
		y := newYard(t, owner)
		y.converge(&common.Ledger{}, wantedOf("a", canary))
		y.plan(group1)
		y.converge(&common.Ledger{}, wantedOf("a", canary)) // it knows of its run
		y.converge(&common.Ledger{}, wantedOf("b", canary))
		y.end(y.onlyRun(), failed("a"))
		return y
	}
	y := start(t, compute("a", "uid-a", common.Ledger{}))
	y.plan(group1) // a has not reconciled yet
	if n := len(y.runs()); n != 1 {
		t.Fatalf("there are %d runs; b has to wait, as a failed", n)
	}
	y.converge(&common.Ledger{}, wantedOf("a", canary))
	y.plan(group1)
	if n := len(y.runs()); n != 1 {
		t.Fatalf("there are %d runs; b has to wait for a to be tried again", n)
	}
	if s := y.converge(&common.Ledger{}, wantedOf("b", canary)); s.Phase != RolloutHeld {
		t.Errorf("the state of b is %+v; want RolloutHeld", s)
	}

	y = start(t, compute("a", "uid-a", common.Ledger{}))
	remove(y, "a")
	if err := y.api.Create(ctx, compute("a", "uid-new", common.Ledger{})); err != nil {
		t.Fatal(err)
	}
	y.plan(group1)
	if n := len(y.runs()); n != 2 {
		t.Errorf("there are %d runs; a failure of an owner that was deleted holds no other host", n)
	}
}
