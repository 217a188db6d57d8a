package phase

import (
	"context"
	"testing"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
)

func TestAnInformationalConditionDoesNotDecideWhetherAnObjectIsReady(t *testing.T) {
	s := newStage(t)
	ran := false
	halt := func(context.Context) error { return Failing(first, "Unreachable", "no answer") }
	_, err := s.Run(t.Context(), s.cell, InformationalOf(first, halt), Of(second, func(context.Context) error { ran = true; return nil }))
	if err != nil || !ran {
		t.Fatalf("the phase after it has run: %t, %v", ran, err)
	}
	s.read(t)
	if c := s.cell.Status.Conditions.Get(first); c == nil || c.Status != corev1.ConditionFalse || c.Message != "no answer" {
		t.Errorf("it shows %+v", c)
	}
	if !s.cell.Status.Conditions.IsTrue(condition.ReadyCondition) {
		t.Errorf("Ready is %+v", s.cell.Status.Conditions.Get(condition.ReadyCondition))
	}
}

func TestAnInformationalConditionThatWasNotReachedIsUnknown(t *testing.T) {
	s := newStage(t)
	halt := func(context.Context) error { return Stalled(first, "Missing", "set it") }
	if _, err := s.Run(t.Context(), s.cell, Of(first, halt), InformationalOf(second)); err != nil {
		t.Fatal(err)
	}
	s.read(t)
	if c := s.cell.Status.Conditions.Get(second); c == nil || c.Status != corev1.ConditionUnknown {
		t.Errorf("it shows %+v", c)
	}
}

func TestAnObjectIsLookedAtAgainAtTheEarliestTime(t *testing.T) {
	again := func(after time.Duration) Phase {
		return Of(first, func(ctx context.Context) error { Again(ctx, after); return nil })
	}
	late := Of(second, func(context.Context) error {
		h := Waiting(second, "Later", "later")
		h.After = time.Hour
		return h
	})
	for name, c := range map[string]struct {
		phases []Phase
		want   time.Duration
	}{
		"never":                       {[]Phase{Of(first)}, 0},
		"once":                        {[]Phase{again(time.Minute)}, time.Minute},
		"the earlier of two":          {[]Phase{again(time.Hour), again(time.Minute), again(2 * time.Hour)}, time.Minute},
		"before a phase looks again":  {[]Phase{again(time.Minute), late}, time.Minute},
		"after a phase looks again":   {[]Phase{again(2 * time.Hour), late}, time.Hour},
		"when it should have been":    {[]Phase{again(-time.Hour)}, time.Second},
		"only when a phase has asked": {[]Phase{late}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			if got, err := s.Run(t.Context(), s.cell, c.phases...); err != nil || got.RequeueAfter != c.want {
				t.Errorf("again after %s (%v), want %s", got.RequeueAfter, err, c.want)
			}
		})
	}
}
