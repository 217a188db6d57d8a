package phase

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

const (
	first  condition.Type = "FirstReady"
	second condition.Type = "SecondReady"
)

// stage is a runner, one object and what became of them.
type stage struct {
	*Runner
	api    client.Client
	events *events.FakeRecorder
	writes int
	fail   error // what the next write of the status ends with
	cell   *novav1.NovaCell
}

func newStage(t *testing.T) *stage {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := novav1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	s := &stage{events: events.NewFakeRecorder(100)}
	cell := &novav1.NovaCell{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cell", Generation: 3}}
	compute := &novav1.NovaExternalCompute{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "compute"}}
	s.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(cell, compute).WithStatusSubresource(cell, compute).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			s.writes++
			if s.fail != nil {
				return s.fail
			}
			return c.SubResource(sub).Patch(ctx, obj, p, opts...)
		},
	}).Build()
	s.Runner = &Runner{Client: s.api, Events: s.events}
	s.read(t)
	return s
}

func (s *stage) read(t *testing.T) {
	t.Helper()
	s.cell = &novav1.NovaCell{}
	if err := s.api.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "cell"}, s.cell); err != nil {
		t.Fatal(err)
	}
}

// run reconciles what is stored and reads it back.
func (s *stage) run(t *testing.T, funcs ...Func) (ctrl.Result, error) {
	t.Helper()
	s.read(t)
	result, err := s.Run(context.Background(), s.cell, phasesOf(funcs)...)
	s.read(t)
	return result, err
}

// phasesOf are a phase for each of the conditions: the first function is that of the
// first, all others are those of the second.
func phasesOf(funcs []Func) []Phase {
	return []Phase{Of(first, funcs[:1]...), Of(second, funcs[1:]...)}
}

// said returns the events since the last call.
func (s *stage) said() []string {
	var out []string
	for {
		select {
		case e := <-s.events.Events:
			out = append(out, e)
		default:
			return out
		}
	}
}

func (s *stage) mark(t condition.Type) Func {
	return func(context.Context) error { s.cell.Status.Conditions.MarkTrue(t, "Fine"); return nil }
}

// compute returns the stored compute.
func (s *stage) compute(t *testing.T) *novav1.NovaExternalCompute {
	t.Helper()
	compute := &novav1.NovaExternalCompute{}
	if err := s.api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "compute"}, compute); err != nil {
		t.Fatal(err)
	}
	return compute
}

func ends(err error) Func { return func(context.Context) error { return err } }

// standing shows the conditions as status/reason: message.
func (s *stage) standing() map[condition.Type]string {
	out := map[condition.Type]string{}
	for _, c := range s.cell.Status.Conditions {
		out[c.Type] = string(c.Status) + "/" + string(c.Reason) + ": " + c.Message
	}
	return out
}

func (s *stage) expect(t *testing.T, want map[condition.Type]string) {
	t.Helper()
	got := s.standing()
	for kind, text := range got {
		if strings.HasPrefix(text, "Unknown/Init") {
			got[kind] = "Unknown"
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the conditions differ (-want +got):\n%s", diff)
	}
}

func TestPhasesThatGoThroughMakeTheObjectReady(t *testing.T) {
	s := newStage(t)
	result, err := s.run(t, s.mark(first), s.mark(second))
	if err != nil || !result.IsZero() {
		t.Errorf("Run = %v, %v; want nothing more to do", result, err)
	}
	s.expect(t, map[condition.Type]string{
		"Ready": "True/Ready: Setup complete", first: "True/Ready: Fine", second: "True/Ready: Fine",
	})
	if s.cell.Status.ObservedGeneration != 3 {
		t.Errorf("observedGeneration is %d; want 3", s.cell.Status.ObservedGeneration)
	}
	if got := s.said(); len(got) > 0 {
		t.Errorf("the events are %q; that it is Ready is no news", got)
	}
}

func TestTheStatusIsWrittenOnceAndOnlyWhenItChanged(t *testing.T) {
	s := newStage(t)
	for range 10 {
		if _, err := s.run(t, s.mark(first), ends(Failing(second, "Broken", "x"))); err != nil {
			t.Fatal(err)
		}
	}
	if s.writes != 1 {
		t.Errorf("the status was written %d times; want once", s.writes)
	}
	if got := s.said(); len(got) != 1 {
		t.Errorf("the events are %q; want one", got)
	}
}

func TestReadyMirrorsTheWorst(t *testing.T) {
	broken := errors.New("boom")
	for name, c := range map[string]struct {
		err    error
		want   map[condition.Type]string
		events []string
		after  time.Duration
	}{
		"something is awaited": {
			err: Waiting(second, "CellNotReady", "Waiting for %s", "cell"),
			want: map[condition.Type]string{
				"Ready": "False/CellNotReady: Waiting for cell", first: "True/Ready: Fine", second: "False/CellNotReady: Waiting for cell",
			},
		},
		"something went wrong that is tried again": {
			err: Failing(second, "SecretMissing", "Secret %q is missing", "s"),
			want: map[condition.Type]string{
				"Ready": `False/SecretMissing: Secret "s" is missing`, first: "True/Ready: Fine", second: `False/SecretMissing: Secret "s" is missing`,
			},
			events: []string{`Warning SecretMissing SecretReady`},
		},
		"a person has to change something, and it is looked at again": {
			err: &Halt{Type: second, Reason: "Invalid", Severity: condition.SeverityError, Message: "100% wrong", After: time.Minute},
			want: map[condition.Type]string{
				"Ready": "False/Invalid: 100% wrong", first: "True/Ready: Fine", second: "False/Invalid: 100% wrong",
			},
			events: []string{"Warning Invalid SecondReady: 100% wrong"}, after: time.Minute,
		},
		"an earlier phase halts and the later are not known": {
			err: Stalled(first, "Invalid", "wrong"),
			want: map[condition.Type]string{
				"Ready": "False/Invalid: wrong", first: "False/Invalid: wrong", second: "Unknown",
			},
			events: []string{"Warning Invalid FirstReady: wrong"},
		},
		"a fault is the condition of the phase that was running": {
			err: broken,
			want: map[condition.Type]string{
				"Ready": "False/Error: Retrying after an error: boom", first: "True/Ready: Fine", second: "False/Error: Retrying after an error: boom",
			},
			events: []string{"Warning Error SecondReady: Retrying after an error: boom"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			result, err := s.run(t, s.mark(first), ends(c.err))
			var halt *Halt
			if isHalt := errors.As(c.err, &halt); isHalt && err != nil {
				t.Errorf("Run returns %v; a halt is no fault", err)
			} else if !isHalt && !errors.Is(err, c.err) {
				t.Errorf("Run returns %v; a fault is to be retried", err)
			}
			if result.RequeueAfter != c.after {
				t.Errorf("Run wants to look again after %v; want %v", result.RequeueAfter, c.after)
			}
			s.expect(t, c.want)
			got := s.said()
			if len(got) != len(c.events) {
				t.Errorf("the events are %q; want %q", got, c.events)
			}
		})
	}
}

func TestReadyMirrorsTheSameOfTwoConditionsWheneverTheyWereSet(t *testing.T) {
	var shown []string
	for _, later := range []time.Duration{-time.Hour, time.Hour} {
		s := newStage(t)
		_, err := s.run(t, func(context.Context) error {
			c := condition.FalseCondition(second, "Draining", condition.SeverityInfo, "two")
			c.LastTransitionTime = metav1.NewTime(time.Now().Add(later))
			s.cell.Status.Conditions.Set(c)
			return Waiting(first, "Pending", "one")
		}, s.mark(second))
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, s.cell.Status.Conditions.Get(condition.ReadyCondition).Message)
	}
	if shown[0] != shown[1] {
		t.Errorf("Ready is %q", shown)
	}
}

func TestAPhaseThatHaltsStopsTheOthers(t *testing.T) {
	s := newStage(t)
	_, err := s.run(t, ends(Waiting(first, "X", "y")), func(context.Context) error { t.Error("the second phase was run"); return nil })
	if err != nil {
		t.Fatal(err)
	}
}

func TestEventsTellTransitionsOnly(t *testing.T) {
	s := newStage(t)
	failing := func(message string) Func { return ends(Failing(second, "Broken", "%s", message)) }
	for _, c := range []struct {
		why   string
		phase Func
		want  []string
	}{
		{"a problem appears", failing("one"), []string{"Warning Broken SecondReady: one"}},
		{"it continues", failing("one"), nil},
		{"its message changes, as with each attempt", failing("two"), nil},
		{"it is another problem", ends(Failing(second, "Worse", "three")), []string{"Warning Worse SecondReady: three"}},
		{"it is fixed", s.mark(second), []string{"Normal Ready Setup complete"}},
		{"it stays so", s.mark(second), nil},
		{"it waits, which is no problem", ends(Waiting(second, "Running", "four")), nil},
		{"it is through again, which is no news", s.mark(second), nil},
		{"the first problem is back", failing("one"), []string{"Warning Broken SecondReady: one"}},
		{"it is tried once more", ends(Waiting(second, "Running", "five")), nil},
		{"that fails as the attempt before did", ends(&Halt{Type: second, Reason: "Broken", Severity: condition.SeverityWarning, Message: "six", Repeats: true}), nil},
		{"and once more", ends(Waiting(second, "Running", "seven")), nil},
		{"that succeeds", s.mark(second), []string{"Normal Ready Setup complete"}},
	} {
		if _, err := s.run(t, s.mark(first), c.phase); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, s.said()); diff != "" {
			t.Errorf("%s: the events differ (-want +got):\n%s", c.why, diff)
		}
	}
}

func TestNoEventWithoutTheWriteThatMadeItTrue(t *testing.T) {
	s := newStage(t)
	s.fail = errors.New("the API server is away")
	if _, err := s.run(t, s.mark(first), ends(Failing(second, "Broken", "x"))); !errors.Is(err, s.fail) {
		t.Errorf("Run returns %v; want the error of the write", err)
	}
	if got := s.said(); len(got) > 0 {
		t.Errorf("the events are %q; nothing was written", got)
	}
	s.fail = nil
	if _, err := s.run(t, s.mark(first), ends(Failing(second, "Broken", "x"))); err != nil {
		t.Fatal(err)
	}
	if got := s.said(); len(got) != 1 {
		t.Errorf("the events are %q; want one", got)
	}
}

func TestAnObjectThatHasGoneIsNoFault(t *testing.T) {
	s := newStage(t)
	gone := schema.GroupResource{Resource: "novacells"}
	s.fail = apierrors.NewNotFound(gone, "cell")
	if _, err := s.run(t, s.mark(first), s.mark(second)); err != nil {
		t.Errorf("Run returns %v; the object has gone", err)
	}
	if got := s.said(); len(got) > 0 {
		t.Errorf("the events are %q; no one is left to tell", got)
	}
}

func TestAConflictLeavesTheStatusAsItIs(t *testing.T) {
	s := newStage(t)
	if _, err := s.run(t, s.mark(first), s.mark(second)); err != nil {
		t.Fatal(err)
	}
	want := s.standing()
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "novacells"}, "cell", errors.New("newer"))
	if result, err := s.run(t, ends(conflict)); err == nil && result.RequeueAfter == 0 {
		t.Error("Run is through; a conflict is to be looked at again")
	}
	if diff := cmp.Diff(want, s.standing()); diff != "" || s.writes != 1 {
		t.Errorf("there were %d writes and the conditions differ (-before +after):\n%s", s.writes, diff)
	}
}

func TestTransitionTimesAreThoseOfTransitions(t *testing.T) {
	s := newStage(t)
	if _, err := s.run(t, s.mark(first), ends(Failing(second, "Broken", "x"))); err != nil {
		t.Fatal(err)
	}
	old := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	for i := range s.cell.Status.Conditions {
		s.cell.Status.Conditions[i].LastTransitionTime = old
	}
	if err := s.api.Status().Update(context.Background(), s.cell); err != nil {
		t.Fatal(err)
	}
	if _, err := s.run(t, s.mark(first), s.mark(second)); err != nil {
		t.Fatal(err)
	}
	for _, c := range s.cell.Status.Conditions {
		if changed := !c.LastTransitionTime.Equal(&old); changed != (c.Type != first) {
			t.Errorf("whether the time of %s changed is %v", c.Type, changed)
		}
		if c.Status != corev1.ConditionTrue {
			t.Errorf("%s is %s; want True", c.Type, c.Status)
		}
	}
}

// deleting marks the stored object as deleted, with a finalizer that keeps it.
func (s *stage) deleting(t *testing.T) {
	t.Helper()
	s.cell.Finalizers = []string{"test/finalizer"}
	if err := s.api.Update(context.Background(), s.cell); err != nil {
		t.Fatal(err)
	}
	if err := s.api.Delete(context.Background(), s.cell); err != nil {
		t.Fatal(err)
	}
}

func TestNoStatusIsWrittenAfterTheFinalizerIsRemoved(t *testing.T) {
	s := newStage(t)
	s.deleting(t)
	release := func(context.Context) error { s.cell.Finalizers = nil; return nil }
	if _, err := s.run(t, s.mark(first), s.mark(second), release); err != nil || s.writes != 0 {
		t.Errorf("Run = %v with %d writes; want none: the name may be that of another object already", err, s.writes)
	}
}

func TestTheStatusOfADeletedObjectIsNotWrittenIntoItsSuccessor(t *testing.T) {
	s := newStage(t)
	s.deleting(t)
	replace := func(context.Context) error {
		gone := s.cell.DeepCopy()
		gone.Finalizers = nil
		if err := s.api.Update(context.Background(), gone); err != nil {
			return err
		}
		return s.api.Create(context.Background(), &novav1.NovaCell{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cell"}})
	}
	if result, err := s.run(t, s.mark(first), s.mark(second), replace); err != nil || result.RequeueAfter == 0 {
		t.Errorf("Run = %v, %v; want it to be looked at again", result, err)
	}
	if len(s.cell.Status.Conditions) > 0 {
		t.Errorf("the new object has the conditions of the old one: %v", s.cell.Status.Conditions)
	}
}

// TestALedgerIsNotWrittenOverANewerOne: a manager that leads no longer comes late
// with what it made of an older object.
func TestALedgerIsNotWrittenOverANewerOne(t *testing.T) {
	s := newStage(t)
	stale, newer := s.compute(t), s.compute(t)
	newer.Status.Set("nova", "new", common.RunRecord{Name: "right"})
	if err := s.api.Status().Update(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	late := func(context.Context) error {
		stale.Status.Set("nova", "old", common.RunRecord{Name: "late"})
		return nil
	}
	if result, err := s.Run(t.Context(), stale, phasesOf([]Func{late})...); err != nil || result.RequeueAfter == 0 {
		t.Errorf("Run = %v, %v; want it to be looked at again", result, err)
	}
	if got := s.compute(t).Status.Hash["nova"]; got != "new" {
		t.Errorf("the ledger has %q; want the newer one", got)
	}
}

// TestAStatusOlderThanTheWrittenOneIsNotJudged: a cause comes and goes faster than
// the cache shows what was written of it.
func TestAStatusOlderThanTheWrittenOneIsNotJudged(t *testing.T) {
	s := newStage(t)
	if _, err := s.run(t, s.mark(first), s.mark(second)); err != nil {
		t.Fatal(err)
	}
	ready := s.cell.DeepCopy()
	if _, err := s.run(t, ends(Waiting(first, "Gone", "It is away"))); err != nil {
		t.Fatal(err)
	}
	s.cell = ready // as the cache still shows it
	again := WhenHalted(phasesOf([]Func{s.mark(first), s.mark(second)}), func() { t.Error("an older object says nothing of what is wanted") })
	if result, err := s.Run(t.Context(), s.cell, again...); err != nil || result.RequeueAfter == 0 {
		t.Errorf("Run = %v, %v; want it to be looked at again", result, err)
	}
	if result, err := s.run(t, s.mark(first), s.mark(second)); err != nil || !result.IsZero() {
		t.Errorf("Run = %v, %v; want nothing more to do", result, err)
	}
	if !s.cell.Status.Conditions.IsTrue(condition.ReadyCondition) {
		t.Errorf("what came back is not reported: %v", s.standing())
	}
}

func TestOnlyAHaltSaysThatNothingIsWanted(t *testing.T) {
	for name, c := range map[string]struct {
		end    error
		notice bool
		halts  int
	}{
		"a halt":                          {end: Waiting(first, "Gone", "It is away"), halts: 1},
		"a halt with more around it":      {end: fmt.Errorf("x: %w", Waiting(first, "Gone", "It is away")), halts: 1},
		"nothing":                         {},
		"a fault":                         {end: errors.New("timed out")},
		"a conflict":                      {end: apierrors.NewConflict(schema.GroupResource{}, "cell", errors.New("newer"))},
		"a halt that ends its phase only": {end: Waiting(first, "Gone", "It is away"), notice: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, halts := newStage(t), 0
			only := Of(first, ends(c.end))
			if c.notice {
				only = NoticeOf(first, ends(c.end))
			}
			_, _ = s.Run(t.Context(), s.cell, WhenHalted([]Phase{only}, func() { halts++ })...)
			if halts != c.halts {
				t.Errorf("called %d times; want %d", halts, c.halts)
			}
		})
	}
}

func TestAPhaseOwnsItsCondition(t *testing.T) {
	broken := errors.New("boom")
	const extra condition.Type = "ExtraReady"
	for name, c := range map[string]struct {
		phases func(*stage) []Phase
		want   map[condition.Type]string
	}{
		"a function that sets nothing leaves it True": {
			func(s *stage) []Phase { return []Phase{Of(first, ends(nil)), Of(second, s.mark(second))} },
			map[condition.Type]string{"Ready": "True/Ready: Setup complete", first: "True/Ready: Setup complete", second: "True/Ready: Fine"},
		},
		"a fault shows where it happened, not on the first that is Unknown": {
			func(s *stage) []Phase { return []Phase{Of(first), Of(second, ends(broken))} },
			map[condition.Type]string{"Ready": "False/Error: Retrying after an error: boom", first: "Unknown", second: "False/Error: Retrying after an error: boom"},
		},
		"also on a condition that the object does not always have": {
			func(s *stage) []Phase {
				return []Phase{Of(first, ends(nil)), OptionalOf(extra, ends(broken)), Of(second, ends(nil))}
			},
			map[condition.Type]string{
				"Ready": "False/Error: Retrying after an error: boom", first: "True/Ready: Setup complete", extra: "False/Error: Retrying after an error: boom", second: "Unknown",
			},
		},
		"which is not there if nothing sets it": {
			func(s *stage) []Phase {
				return []Phase{Of(first, ends(nil)), OptionalOf(extra, ends(nil)), Of(second, ends(nil))}
			},
			map[condition.Type]string{"Ready": "True/Ready: Setup complete", first: "True/Ready: Setup complete", second: "True/Ready: Setup complete"},
		},
		"of an object that is being deleted one is worked on": {
			func(s *stage) []Phase {
				return Deleting([]Phase{Of(first, ends(broken)), OptionalOf(extra, ends(broken)), Of(second, ends(broken))}, second, ends(Waiting(second, "Busy", "not yet")))
			},
			map[condition.Type]string{"Ready": "False/Busy: not yet", first: "Unknown", second: "False/Busy: not yet"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			if _, err := s.Run(t.Context(), s.cell, c.phases(s)...); err != nil && !errors.Is(err, broken) {
				t.Fatal(err)
			}
			s.read(t)
			s.expect(t, c.want)
		})
	}
}
