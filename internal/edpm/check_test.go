package edpm

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
)

func TestHostsHaveTheirTurnsInBatchesThatAreSpreadOverTheInterval(t *testing.T) {
	const interval = 24 * time.Hour
	turns := map[time.Duration]int{}
	for i := range 4000 {
		g := Group{Namespace: "ns", Kind: kind, Role: fmt.Sprint("role-", i%20), Check: true}
		turn := turnOf(g, fmt.Sprint("compute-", i), 200, 50, interval)
		if turn < 0 || turn >= interval || turn != turnOf(g, fmt.Sprint("compute-", i), 200, 50, interval) {
			t.Fatalf("the turn of host %d is %s", i, turn)
		}
		turns[turn]++
	}
	if len(turns) != 80 {
		t.Errorf("4,000 hosts have %d turns; want one for each of 80 batches", len(turns))
	}
	hours := map[time.Duration]int{}
	for turn, n := range turns {
		hours[turn.Truncate(time.Hour)] += n
	}
	if most := slices.Max(slices.Collect(maps.Values(hours))); most > 4000/24*3 {
		t.Errorf("%d of 4,000 hosts have their turns in one hour", most)
	}
}

func TestNextCheck(t *testing.T) {
	c := Checks{Interval: 24 * time.Hour}
	midnight := noon.Truncate(24 * time.Hour)
	const turn = 6 * time.Hour
	for name, at := range map[string]struct{ last, now, want time.Time }{
		"never looked at, before its turn":             {time.Time{}, midnight.Add(5 * time.Hour), midnight.Add(turn)},
		"never looked at, at its turn":                 {time.Time{}, midnight.Add(turn + time.Second), midnight.Add(turn)},
		"never looked at, long after its turn":         {time.Time{}, midnight.Add(turn + 2*time.Hour), midnight.Add(30 * time.Hour)},
		"checked at its turn":                          {midnight.Add(turn), midnight.Add(turn + time.Minute), midnight.Add(30 * time.Hour)},
		"run an hour before its turn":                  {midnight.Add(5 * time.Hour), midnight.Add(turn), midnight.Add(30 * time.Hour)},
		"the manager was away at its turn":             {midnight.Add(-18 * time.Hour), midnight.Add(turn + 59*time.Minute), midnight.Add(turn)},
		"the manager was away for a week":              {midnight.Add(-7 * 24 * time.Hour), midnight.Add(20 * time.Hour), midnight.Add(30 * time.Hour)},
		"the clock is behind that of the last manager": {midnight.Add(turn), midnight, midnight.Add(30 * time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			since := midnight.Sub(epoch) % c.Interval // the epoch is a midnight, too
			if got := c.next(turn+since, at.last, at.now); !got.Equal(at.want) {
				t.Errorf("the next check is at %s; want %s", got, at.want)
			}
		})
	}
}

// checkYard has a host that has converged in two steps, and is checked every day.
type checkYard struct {
	*yard
	ledger *common.Ledger
	checks Checks
}

func newCheckYard(t *testing.T, repair common.RepairPolicy, objects ...client.Object) *checkYard {
	y := &checkYard{yard: newYard(t, objects...), ledger: &common.Ledger{}, checks: Checks{Interval: 24 * time.Hour, Repair: repair}}
	w := y.wanted()
	y.ledger.Set("nova", w.Hash(), common.RunRecord{Name: "nova-run", Serial: 1})
	return y
}

func (y *checkYard) wanted() Target {
	w := wantedOf("a", nil)
	w.Strategy.Checks = y.checks
	return w
}

// toTurn moves the clock to the next turn of the host.
func (y *checkYard) toTurn() {
	g := group1
	g.Check = true
	turn := turnOf(g, "a", 0, ansibleeev1.MaxTargets, y.checks.Interval)
	y.clock.SetTime(y.checks.turnFrom(turn, y.clock.Now().Add(time.Hour)))
}

// check runs the check of the turn, which ends with the result.
func (y *checkYard) check(result ansibleeev1.HostStatus) string {
	y.t.Helper()
	y.toTurn()
	before := y.runs()
	y.converge(y.ledger, y.wanted())
	y.clock.SetTime(y.clock.Now().Add(time.Second))
	g := group1
	g.Check = true
	y.plan(g)
	for name := range y.runs() {
		if _, old := before[name]; old {
			continue
		}
		run := &ansibleeev1.OpenStackAnsibleEE{}
		if err := y.api.Get(ctx, client.ObjectKey{Namespace: "ns", Name: name}, run); err != nil {
			y.t.Fatal(err)
		}
		if !run.Spec.Check || run.Spec.Targets[0].Hash != "" || run.Labels[common.CheckLabel] != "true" {
			y.t.Fatalf("%s is no check: %+v", name, run.Spec)
		}
		y.end(run, result)
		return name
	}
	y.t.Fatalf("no check was started; there are %v", before)
	return ""
}

func differs(host string, tasks ...string) ansibleeev1.HostStatus {
	h := ok(host)
	for _, task := range tasks {
		h.Differences = append(h.Differences, ansibleeev1.StepDifference{Step: 1, Difference: common.Difference{Task: task}})
	}
	return h
}

func TestACheckIsNoRunOfAHash(t *testing.T) {
	y := newCheckYard(t, common.RepairNever)
	before := y.ledger.DeepCopy()
	run := y.check(differs("a", "Write hosts"))
	s := y.converge(y.ledger, y.wanted())
	if s.Phase != Converged || y.ledger.DriftOf("nova").Run != run {
		t.Fatalf("the state is %+v, and the ledger has %+v", s, y.ledger.Drift)
	}
	if diff := cmp.Diff([]any{before.Hash, before.Runs}, []any{y.ledger.Hash, y.ledger.Runs}); diff != "" {
		t.Errorf("the ledger differs (-want +got):\n%s", diff)
	}
	changed := y.wanted()
	changed.Vars = map[string]any{"another": true}
	if s := y.converge(y.ledger, changed); s.Phase != Pending {
		t.Errorf("the state with other inputs is %+v; want Pending: a check has made no hash count", s)
	}
	same := y.ledger.DeepCopy()
	y.converge(y.ledger, y.wanted())
	if diff := cmp.Diff(same.Drift, y.ledger.Drift); diff != "" {
		t.Errorf("another look changes the ledger:\n%s", diff)
	}
}

func TestAFindingIsRepairedOnce(t *testing.T) {
	y := newCheckYard(t, common.RepairAlways)
	y.check(differs("a", "Write hosts"))
	repair := func() {
		t.Helper()
		if s := y.converge(y.ledger, y.wanted()); s.Phase != Pending {
			t.Fatalf("the state is %+v; want Pending", s)
		}
		y.clock.SetTime(y.clock.Now().Add(time.Minute))
		y.plan(group1)
		for name := range y.runs() {
			run := &ansibleeev1.OpenStackAnsibleEE{}
			if err := y.api.Get(ctx, client.ObjectKey{Namespace: "ns", Name: name}, run); err == nil && !run.Finished() {
				y.end(run, ok("a"))
			}
		}
	}
	converged := func(why string) {
		t.Helper()
		if s := y.converge(y.ledger, y.wanted()); s.Phase != Converged {
			t.Fatalf("the state is %+v; want Converged: %s", s, why)
		}
	}
	repair()
	converged("it was repaired")
	if d := y.ledger.DriftOf("nova"); d.Differs() || !d.Repaired {
		t.Fatalf("the drift is %+v", d)
	}
	y.check(differs("a", "Write hosts"))
	converged("it came back")
	conditions := &condition.Conditions{}
	ShowDrift(conditions, y.ledger, common.RepairAlways)
	if c := conditions.Get(common.HostInSyncCondition); c == nil || c.Reason != common.DriftReturnedReason {
		t.Errorf("the condition is %+v", c)
	}
	y.check(ok("a"))
	converged("nothing differs")
	y.check(differs("a", "Write hosts"))
	repair()
	converged("it was another finding")
}

func TestACheckThatFailsKeepsWhatIsKnown(t *testing.T) {
	y := newCheckYard(t, common.RepairAsk)
	y.check(differs("a", "Write hosts"))
	y.converge(y.ledger, y.wanted())
	first := y.ledger.DriftOf("nova").Checked
	y.check(ansibleeev1.HostStatus{Name: "a", Unreachable: 1, Message: "no route to host"})
	if s := y.converge(y.ledger, y.wanted()); s.Phase != Converged {
		t.Fatalf("the state is %+v; want Converged", s)
	}
	d := y.ledger.DriftOf("nova")
	if !d.Differs() || d.Message != "no route to host" || !d.Checked.After(first.Time) {
		t.Errorf("the drift is %+v", d)
	}
	if n := y.states.drifted["nova"]; n != 1 {
		t.Errorf("%d hosts are counted that differ; want 1", n)
	}
	y.checks.Interval = 0
	y.converge(y.ledger, y.wanted())
	if n := y.states.drifted["nova"]; len(y.ledger.Drift) > 0 || n != 0 {
		t.Errorf("without checks the ledger has %+v, and %d hosts are counted", y.ledger.Drift, n)
	}
}

func TestChecksComeAfterEverythingElse(t *testing.T) {
	check := Group{Namespace: "a", Kind: kind, Role: "idle", Check: true}
	busy, idle := Group{Namespace: "b", Kind: kind, Role: "busy"}, &usage{byGroup: map[Group]int{}, byNamespace: map[string]int{"b": 9}}
	if idle.less(check, busy) || !idle.less(busy, check) {
		t.Error("a check comes before the run of a namespace that has more")
	}
	opts := DefaultOptions()
	opts.MaxRuns = 8
	s := newSlots(&opts, func(Group, time.Duration) {})
	if granted := s.reserve(check, 5, &usage{byGroup: map[Group]int{}, byNamespace: map[string]int{}}); granted != 2 {
		t.Errorf("%d of 8 runs may be checks; want 2", granted)
	}
	opts.MaxRuns = 0
	if granted := s.reserve(Group{Namespace: "c", Check: true}, 50, &usage{byGroup: map[Group]int{}, byNamespace: map[string]int{}}); granted > 5 {
		t.Errorf("%d checks at once where any number of runs may be under way", granted)
	}
}

func TestACheckThatHasNotStartedGivesWay(t *testing.T) {
	y := newCheckYard(t, common.RepairNever)
	y.toTurn()
	y.converge(y.ledger, y.wanted())
	y.clock.SetTime(y.clock.Now().Add(time.Second))
	g := group1
	g.Check = true
	y.plan(g)
	run := y.onlyRun()
	changed := y.wanted()
	changed.Vars = map[string]any{"another": true}
	y.converge(y.ledger, changed)
	if key := (Key{Namespace: "ns", Kind: kind, Step: "nova", Host: "a", Check: true}); y.verdicts.unwanted[key] != run.Name {
		t.Errorf("the check is not taken back: %v", y.verdicts.unwanted)
	}
}

func TestHostsWithTheSameTurnShareACheck(t *testing.T) {
	y := newCheckYard(t, common.RepairNever)
	y.toTurn()
	for _, host := range []string{"a", "b"} {
		w := wantedOf(host, nil)
		w.Strategy.Checks = y.checks
		ledger := &common.Ledger{}
		ledger.Set("nova", w.Hash(), common.RunRecord{Name: "nova-run", Serial: 1})
		y.converge(ledger, w)
	}
	y.clock.SetTime(y.clock.Now().Add(time.Second))
	g := group1
	g.Check = true
	y.plan(g)
	if run := y.onlyRun(); len(run.Spec.Targets) != 2 {
		t.Errorf("the check has %+v", run.Spec.Targets)
	}
}
