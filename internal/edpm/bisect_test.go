package edpm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
)

// fleet is a role whose hosts are all converged by engines that live as long as a
// test wants.
type fleet struct {
	*yard
	ledgers map[string]*common.Ledger
	change  func(*Target)
	// kills are the hosts that end a run without a result.
	kills []string
	// took is how many runs each host was in until it had converged.
	took map[string]int
	// sizes of the runs that were made, by what became of them.
	killed, good []int
}

func newFleet(t *testing.T, hosts int, kills ...string) *fleet {
	f := &fleet{yard: newYard(t), ledgers: map[string]*common.Ledger{}, kills: kills, took: map[string]int{}}
	for _, h := range numbered(hosts) {
		f.ledgers[h] = &common.Ledger{}
	}
	return f
}

// round lets every host say what it wants, starts what is due then, and ends it.
func (f *fleet) round() (converged int) {
	f.t.Helper()
	for h, ledger := range f.ledgers {
		if f.converge(ledger, wantedOf(h, f.change)).Phase == Converged {
			converged++
		}
	}
	f.pass(f.Backoff.Max * 2)
	f.plan(group1)
	for _, run := range f.all() {
		if !run.Finished() {
			f.finish(&run)
		}
	}
	f.seen()
	return converged
}

func (f *fleet) finish(run *ansibleeev1.OpenStackAnsibleEE) {
	f.t.Helper()
	results, n := []ansibleeev1.HostStatus{}, len(run.Spec.Targets)
	for _, t := range run.Spec.Targets {
		f.took[t.Host]++
		results = append(results, ok(t.Host))
	}
	if slices.ContainsFunc(run.Spec.Targets, func(t ansibleeev1.Target) bool { return slices.Contains(f.kills, t.Host) }) {
		f.killed = append(f.killed, n)
		results = nil
	} else {
		f.good = append(f.good, n)
	}
	f.end(run, results...)
}

// replace puts another manager in the place of the engine.
func (f *fleet) replace() {
	f.t.Helper()
	f.yard = f.successor()
}

func TestAHostThatKillsRunsEndsUpAlone(t *testing.T) {
	for name, c := range map[string]struct {
		hosts    int
		kills    []string
		restarts bool
	}{
		"one of fifty": {50, []string{"h037"}, false},
		"one of fifty, and each time a new manager": {50, []string{"h000"}, true},
		"one of two":   {2, []string{"h001"}, false},
		"two of sixty": {60, []string{"h003", "h049"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, c.hosts, c.kills...)
			for range 8 { // 50 hosts are halved six times
				f.round()
				if c.restarts {
					f.replace()
				}
			}
			if n := f.round(); n != c.hosts-len(c.kills) {
				t.Fatalf("%d hosts have converged; want all but %d of %d\nruns without a result: %v", n, len(c.kills), c.hosts, f.killed)
			}
			for h, n := range f.took {
				if n > 7 && !slices.Contains(c.kills, h) {
					t.Errorf("%s was in %d runs until it had converged; want at most 7", h, n)
				}
			}
			f.killed = nil
			for range 3 {
				f.round()
			}
			for _, n := range f.killed {
				if n > 1 {
					t.Errorf("a host that kills runs is in one with %d others", n-1)
				}
			}
			if n := len(f.killed); n != 3*len(c.kills) {
				t.Errorf("in three rounds the hosts that kill runs were tried %d times; want %d", n, 3*len(c.kills))
			}
			f.kills, f.good = nil, nil
			f.round()
			if n := f.round(); n != c.hosts {
				t.Fatalf("%d hosts have converged; want all %d, as none kills runs any more", n, c.hosts)
			}
			f.change, f.good = func(t *Target) { t.Vars["new"] = true }, nil
			f.round()
			if slices.Max(f.good) != min(c.hosts, 50) {
				t.Errorf("the next runs have %v hosts; want batches of the usual size", f.good)
			}
		})
	}
}

func TestHostsUnderSuspicionDoNotTakeOthersWithThem(t *testing.T) {
	f := newFleet(t, 4, "h000")
	f.round()
	f.ledgers["new"] = &common.Ledger{}
	f.round()
	for _, run := range f.all() {
		if _, found := run.Target("new"); found && len(run.Spec.Targets) > 1 {
			t.Errorf("a new host is in a run with hosts of one that ended without a result: %v", f.runs())
		}
	}
}

func TestWhatEndsTheSuspicion(t *testing.T) {
	reason := func(r condition.Reason) func(*ansibleeev1.OpenStackAnsibleEE) {
		return func(run *ansibleeev1.OpenStackAnsibleEE) {
			run.Status.JobStatus = ansibleeev1.JobFailed
			run.Status.Conditions.Set(condition.FalseCondition(ansibleeev1.JobReadyCondition, r, condition.SeverityError, "why"))
		}
	}
	for name, c := range map[string]struct {
		end    func(*ansibleeev1.OpenStackAnsibleEE)
		change func(*Target)
		splits bool
	}{
		"nothing":                      {reason(ansibleeev1.JobLostReason), nil, true},
		"other variables of the hosts": {reason(ansibleeev1.JobLostReason), func(t *Target) { t.Vars["x"] = "y" }, true},
		"another image":                {reason(ansibleeev1.JobLostReason), func(t *Target) { t.Image = "another" }, false},
		"another environment": {reason(ansibleeev1.JobLostReason), func(t *Target) {
			t.Env = []corev1.EnvVar{{Name: "A", Value: "b"}}
		}, false},
		"that no play was run at all": {reason(ansibleeev1.JobFailedReason), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 6)
			for h, ledger := range f.ledgers {
				f.converge(ledger, wantedOf(h, nil))
			}
			f.plan(group1)
			run := f.onlyRun()
			c.end(run)
			status := run.Status.JobStatus
			f.end(run)
			run.Status.JobStatus = status
			if err := f.api.Status().Update(ctx, run); err != nil {
				t.Fatal(err)
			}
			f.change = c.change
			f.round()
			if splits := len(f.runs()) == 3; splits != c.splits {
				t.Errorf("the runs are %v; want that the hosts are split: %v", f.runs(), c.splits)
			}
		})
	}
}

func TestHostsWithAResultAreNotSuspected(t *testing.T) {
	f := newFleet(t, 6)
	for h, ledger := range f.ledgers {
		f.converge(ledger, wantedOf(h, nil))
	}
	f.plan(group1)
	f.end(f.onlyRun(), failed("h000"), failed("h001"), failed("h002"))
	f.round()
	var batches []string
	for _, hosts := range f.runs() {
		batches = append(batches, strings.Join(hosts, ","))
	}
	slices.Sort(batches)
	want := []string{"h000,h001,h002", "h000,h001,h002,h003,h004,h005", "h003,h004", "h005"}
	if !slices.Equal(batches, want) {
		t.Errorf("the runs are %v; want %v", batches, want)
	}
}

// TestTheOthersOfABatchDoNotWaitForTheOneThatHangs counts the time: a run that
// hangs takes until its deadline.
func TestTheOthersOfABatchDoNotWaitForTheOneThatHangs(t *testing.T) {
	f := newFleet(t, 50, "h025")
	start := f.clock.Now()
	rounds := 0
	for f.round() < 49 {
		if rounds++; rounds > 8 {
			t.Fatal("the others have not converged after 8 rounds")
		}
	}
	if took := f.clock.Now().Sub(start); took > time.Duration(rounds+1)*3*f.Backoff.Max {
		t.Errorf("it took %v", took)
	}
	if n := len(f.killed); n > 8 {
		t.Errorf("%d runs ended without a result: %v; want at most 8", n, fmt.Sprint(f.killed))
	}
}
