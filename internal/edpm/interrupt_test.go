package edpm

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

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

func TestABusyHostWaitsAndKeepsNoPlaceFromOthers(t *testing.T) {
	y, doing := newYard(t), map[string]string{"a": "a migration"}
	owner := y.owners.kinds[kind]
	owner.Busy = func(_ context.Context, obj client.Object) Busy { return Busy{With: doing[obj.GetName()]} }
	y.owners.kinds[kind] = owner
	step := wantedOf("a", nil).Step.Name
	converge := func(host string, ran bool) State {
		ledger := &common.Ledger{}
		if ran {
			ledger.Hash = map[string]string{step: "old"}
		}
		return y.converge(ledger, wantedOf(host, func(t *Target) { t.Step.Interrupts = true }))
	}
	hosts := func() (all []string) {
		for _, run := range y.all() {
			for _, target := range run.Spec.Targets {
				all = append(all, target.Host)
			}
		}
		return all
	}
	converge("a", true)
	converge("b", true)
	y.plan(group1)
	if got := hosts(); len(got) > 0 {
		t.Fatalf("a is busy, and there are runs of %v", got)
	}
	if s := converge("a", true); s.Phase != HostBusy || s.Message != "a migration" {
		t.Errorf("a is %s: %s; want that it is busy with a migration", s.Phase, s.Message)
	}
	y.plan(group1)
	if got := hosts(); len(got) != 1 || got[0] != "b" {
		t.Fatalf("there are runs of %v, want one of b, which does not wait for a", got)
	}
	converge("new", false)
	doing["new"] = "something"
	y.plan(group1)
	if got := hosts(); len(got) != 2 {
		t.Errorf("there are runs of %v; want one of new, on which the step interrupts nothing", got)
	}
}

func TestABusyHostIsLookedAtAgain(t *testing.T) {
	y, doing := newYard(t), "a migration"
	owner := y.owners.kinds[kind]
	again := time.Duration(0)
	owner.Busy = func(context.Context, client.Object) Busy { return Busy{doing, again} }
	y.owners.kinds[kind] = owner
	ledger := &common.Ledger{Hash: map[string]string{wantedOf("a", nil).Step.Name: "old"}}
	y.converge(ledger, wantedOf("a", func(t *Target) { t.Step.Interrupts = true }))
	y.plan(group1)
	doing = ""
	y.planNow(group1)
	if len(y.all()) > 0 {
		t.Fatal("nova is asked again at once")
	}
	doing, again = "not known yet", time.Second
	y.clock.SetTime(y.clock.Now().Add(y.Backoff.Base))
	y.planNow(group1)
	if len(y.all()) > 0 {
		t.Fatal("it is not known yet what the host does")
	}
	doing = ""
	y.clock.SetTime(y.clock.Now().Add(time.Second))
	y.planNow(group1)
	y.onlyRun()
}
