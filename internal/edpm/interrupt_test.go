package edpm

import (
	"testing"

	"github.com/edpm-operators/edpm-operators/apis/common"
)

func TestAStepThatInterruptsAServiceIsDoneOnFewHostsAtATime(t *testing.T) {
	due := func(interrupts, ran bool, s Strategy) *assessment {
		s.Deploy = true
		return &assessment{Target: &Target{Host: "h", Step: Step{Name: "nova", Playbook: "p", Interrupts: interrupts}, Strategy: s}, ran: ran, state: State{Phase: Pending}}
	}
	for name, c := range map[string]struct {
		due  []*assessment
		want string
	}{
		"where it was done before":            {[]*assessment{due(true, true, Strategy{})}, "5% by default"},
		"not the first time":                  {[]*assessment{due(true, false, Strategy{})}, "0"},
		"not if it interrupts nothing":        {[]*assessment{due(false, true, Strategy{})}, "0"},
		"also after another step":             {[]*assessment{due(false, true, Strategy{}), due(true, true, Strategy{})}, "5% by default"},
		"unless a person chose a number":      {[]*assessment{due(true, true, Strategy{MaxUnavailable: 7})}, "7"},
		"unless a person chose another share": {[]*assessment{due(true, true, Strategy{MaxUnavailablePercent: 100})}, "100%"},
	} {
		o := newPendingTarget("", c.due, noon)
		if got := o.Strategy.unavailableText(); got != c.want {
			t.Errorf("%s: maxUnavailable is %s, want %s", name, got, c.want)
		}
	}
	if got := (Strategy{}).interrupting(); got.unavailableLimit(3) != 1 || got.unavailableLimit(4000) != 200 {
		t.Errorf("of 3 hosts %d may be unavailable and of 4000 %d, want 1 and 200", got.unavailableLimit(3), got.unavailableLimit(4000))
	}
}

func TestHostsThatHaveDoneAStepThatInterruptsAreHeld(t *testing.T) {
	y := newYard(t)
	interrupts := func(t *Target) { t.Step.Interrupts = true }
	for _, h := range numbered(3) {
		y.converge(&common.Ledger{Hash: map[string]string{wantedOf(h, nil).Step.Name: "old"}}, wantedOf(h, interrupts))
	}
	y.converge(&common.Ledger{}, wantedOf("new", interrupts))
	y.plan(group1)
	if got := y.onlyRun().Spec.Targets; len(got) != 2 || got[0].Host != "h000" || got[1].Host != "new" {
		t.Errorf("the run has %v, want one host that has done the step, and the new one", got)
	}
}
