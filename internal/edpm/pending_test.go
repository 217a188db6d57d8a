package edpm

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
)

// named returns a target of host a for a step; change can alter it.
func named(step string, change func(*Target)) Target {
	return wantedOf("a", func(t *Target) {
		t.Step = Step{Name: step, Playbook: "edpm.operators." + step}
		if change != nil {
			change(t)
		}
	})
}

// stepsOfNextRun plans and returns the steps of the run that has not ended.
func (y *yard) stepsOfNextRun() []string {
	y.t.Helper()
	y.plan(group1)
	for _, run := range y.all() {
		if !run.Finished() {
			return run.StepNames()
		}
	}
	return nil
}

func TestWhatIsDueGoesIntoOneRun(t *testing.T) {
	for name, c := range map[string]struct {
		second func(*Target)
		want   []string
	}{
		"nothing is against it":          {nil, []string{"one", "two", "three"}},
		"another variable":               {func(t *Target) { t.Vars["more"] = 1 }, []string{"one", "two", "three"}},
		"other files":                    {func(t *Target) { t.Files = map[string][]byte{"f": []byte("y")} }, []string{"one", "two", "three"}},
		"a variable with another value":  {func(t *Target) { t.Vars["a"] = 2 }, []string{"one"}},
		"another image":                  {func(t *Target) { t.Image = "ee:2" }, []string{"one"}},
		"another environment":            {func(t *Target) { t.Env = nil }, []string{"one"}},
		"another limit of time":          {func(t *Target) { t.Step.TaskTimeoutSeconds = ptr.To[int32](5) }, []string{"one"}},
		"a playbook in its text":         {func(t *Target) { t.Step = Step{Name: "two", PlaybookContents: "- hosts: all"} }, []string{"one"}},
		"a template instead of a name":   {func(t *Target) { t.Step.Playbook = "{{ x }}" }, []string{"one"}},
		"too much for one Secret":        {func(t *Target) { t.Files = map[string][]byte{"f": make([]byte, maxTargetInputs-len(encode(t.Vars)))} }, []string{"one"}},
		"a host outside the limit of it": {func(t *Target) { t.Strategy.Limit = "b" }, []string{"one"}},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			// The host has been met before.
			y.converge(&common.Ledger{HostKey: "ssh-ed25519 KEY"}, named("one", nil), named("two", c.second), named("three", nil))
			if got := y.stepsOfNextRun(); !slices.Equal(got, c.want) {
				t.Errorf("the run has the steps %v; want %v", got, c.want)
			}
		})
	}
}

func TestARunOfSeveralStepsSaysWhatEachBringsTheHostTo(t *testing.T) {
	y := newYard(t)
	one := named("one", nil)
	two := named("two", func(t *Target) { t.Vars["more"], t.Files = 1, map[string][]byte{"f": []byte("y")} })
	ledger := &common.Ledger{}
	recordRuns(ledger, "two", []*run{{finished: true, known: true, result: badHost, target: ansibleeev1.Target{Serial: 6}}})
	y.converge(ledger, one, two)
	y.plan(group1)
	run := y.onlyRun()
	want := []ansibleeev1.RunStep{{Name: "one", Playbook: "edpm.operators.one"}, {Name: "two", Playbook: "edpm.operators.two"}}
	if diff := cmp.Diff(want, run.Spec.Steps); diff != "" || run.Spec.Step != "one,two" || !strings.HasPrefix(run.Name, "role-one-to-two-") {
		t.Errorf("run %s of %s has the wrong steps (-want +got):\n%s", run.Name, run.Spec.Step, diff)
	}
	targets := []ansibleeev1.TargetStep{{Hash: one.Hash(), Serial: 1, Attempt: 1}, {Hash: two.Hash(), Serial: 7, Attempt: 1}}
	if diff := cmp.Diff(targets, run.Spec.Targets[0].Steps); diff != "" {
		t.Errorf("the target has the wrong steps (-want +got):\n%s", diff)
	}
	data, err := runInputs(run.Name, []*pendingTarget{newPendingTarget("", []*assessment{due(one), due(two)}, noon)})
	if err != nil {
		t.Fatal(err)
	}
	var inventory Inventory
	if err := yaml.Unmarshal(data[InventoryKey], &inventory); err != nil {
		t.Fatal(err)
	}
	vars := inventory.All.Hosts["a"]
	path := func(content string) any { return configDir + "/" + contentKey([]byte(content)) }
	steps := map[string]any{
		"one": map[string]any{"hash": one.Hash(), "files": map[string]any{"f": path("x")}},
		"two": map[string]any{"hash": two.Hash(), "files": map[string]any{"f": path("y")}},
	}
	if len(vars) == 0 {
		vars = inventory.All.Vars
	}
	if diff := cmp.Diff(steps, vars["edpm_steps"]); diff != "" || vars["more"] == nil || vars["edpm_step"] != nil {
		t.Errorf("the variables are %v; steps differ (-want +got):\n%s", vars, diff)
	}
}

// due is a target whose step has to be run.
func due(t Target) *assessment {
	return &assessment{Target: &t, want: want{hash: t.Hash(), access: t.Access()}, state: State{Phase: Pending}}
}

// ended makes the run of a one-step-after-the-other story end, and converges.
func (y *yard) ended(ledger *common.Ledger, result *ansibleeev1.HostStatus, targets ...Target) State {
	y.t.Helper()
	for _, run := range y.all() {
		switch {
		case run.Finished():
		case result == nil:
			y.end(&run)
		default:
			y.end(&run, *result)
		}
	}
	return y.converge(ledger, targets...)
}

func TestWhatFailedIsTriedAgainFromThere(t *testing.T) {
	y, ledger := newYard(t), &common.Ledger{}
	steps := []Target{named("one", nil), named("two", nil), named("three", nil)}
	y.converge(ledger, steps...)
	y.plan(group1)
	s := y.ended(ledger, &ansibleeev1.HostStatus{Name: "a", OK: 5, Failed: 1, Message: "no image", StepsDone: ptr.To[int32](1)}, steps...)
	if s.Phase != Failed || s.Step != "two" || s.Attempt != 1 || s.Message != "no image" {
		t.Fatalf("the state is %+v; want step two Failed", s)
	}
	if ledger.Hash["one"] != steps[0].Hash() || ledger.Hash["two"] != "" || len(ledger.Runs) != 2 {
		t.Errorf("the ledger is %+v; want one done, two touched, and nothing of three", *ledger)
	}
	y.clock.SetTime(y.clock.Now().Add(time.Hour))
	if got := y.stepsOfNextRun(); !slices.Equal(got, []string{"two", "three"}) {
		t.Fatalf("the next run has the steps %v; want two and three", got)
	}
	for _, run := range y.all() {
		if target, _ := run.StepTarget("two", "a"); !run.Finished() && target.Attempt != 2 {
			t.Errorf("it is attempt %d of step two; want 2", target.Attempt)
		}
	}
	if s := y.ended(ledger, ptr.To(ok("a")), steps...); s.Phase != Converged {
		t.Errorf("the state is %+v; want Converged", s)
	}
}

func TestARunWithoutAResultIsTakenApart(t *testing.T) {
	y, ledger := newYard(t), &common.Ledger{}
	steps := []Target{named("one", nil), named("two", nil)}
	y.converge(ledger, steps...)
	y.plan(group1)
	if s := y.ended(ledger, nil, steps...); s.Phase != Failed || s.Step != "one" {
		t.Fatalf("the state is %+v; want step one Failed", s)
	}
	y.clock.SetTime(y.clock.Now().Add(time.Hour))
	for _, want := range []string{"one", "two"} {
		if got := y.stepsOfNextRun(); !slices.Equal(got, []string{want}) {
			t.Fatalf("the next run has the steps %v; want only %s", got, want)
		}
		y.ended(ledger, ptr.To(ok("a")), steps...)
	}
}

func TestARunThatHasNotStartedIsRefusedForAnyOfItsSteps(t *testing.T) {
	y, ledger := newYard(t), &common.Ledger{}
	y.converge(ledger, named("one", nil), named("two", nil))
	y.plan(group1)
	y.seen()
	y.converge(ledger, named("one", nil), named("two", func(t *Target) { t.Vars["new"] = true }))
	y.planNow(group1)
	if runs := y.all(); len(runs) != 1 || runs[0].DeletionTimestamp.IsZero() {
		t.Errorf("the run is not taken back: %v", runs)
	}
}

// TestAFailureInALaterStepHoldsOthersBack : what is rolled out are hosts, not steps.
func TestAFailureInALaterStepHoldsOthersBack(t *testing.T) {
	y := newYard(t)
	careful := func(host string) []Target {
		var steps []Target
		for _, name := range []string{"one", "two"} {
			steps = append(steps, wantedOf(host, func(t *Target) {
				t.Step = Step{Name: name, Playbook: name}
				t.Strategy.MaxFailures, t.Strategy.BatchSize = ptr.To[int32](0), 1
			}))
		}
		return steps
	}
	ledger := &common.Ledger{}
	y.converge(ledger, careful("a")...)
	y.plan(group1)
	y.end(y.onlyRun(), ansibleeev1.HostStatus{Name: "a", OK: 5, Failed: 1, StepsDone: ptr.To[int32](1)})
	y.converge(&common.Ledger{}, careful("b")...)
	y.plan(group1)
	if n := len(y.runs()); n != 1 {
		t.Errorf("there are %d runs; b has to wait for a, which has failed in step two", n)
	}
}
