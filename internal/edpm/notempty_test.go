package edpm

import (
	"testing"
	"time"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
)

// occupied is the result of a host that has guests and must be empty.
func occupied(host string) ansibleeev1.HostStatus {
	h := failed(host)
	h.HostNotEmpty = true
	return h
}

// occupying is a yard in which a has guests, and when that was found.
func occupying(t *testing.T) (*yard, *common.Ledger, time.Time) {
	t.Helper()
	y, ledger := newYard(t), &common.Ledger{}
	y.Debounce, y.Backoff = 10*time.Millisecond, Backoff{Base: time.Hour, Max: time.Hour}
	y.converge(ledger, wantedOf("a", nil))
	y.plan(group1)
	run := y.onlyRun()
	y.end(run, occupied("a"))
	s := y.converge(ledger, wantedOf("a", nil))
	if s.Phase != HostNotEmpty || s.Emptied || ledger.NextRetry == nil {
		t.Fatalf("a is %+v, next tried at %v; want HostNotEmpty, and tried again", s, ledger.NextRetry)
	}
	return y, ledger, run.Status.CompletionTime.Time
}

func TestAStepIsRunAgainWhenItsHostHasBecomeEmpty(t *testing.T) {
	for name, c := range map[string]struct {
		since time.Duration
		known bool
		after time.Duration
		runs  int
	}{
		"at once":                                {time.Second, true, time.Second, 2},
		"after its retry if it has guests":       {0, false, 3 * time.Hour, 2},
		"not before its retry if it has guests":  {0, false, time.Minute, 1},
		"not at once if it was drained before":   {-time.Second, true, time.Minute, 1},
		"after its retry if it was drained then": {-time.Second, true, 3 * time.Hour, 2},
	} {
		t.Run(name, func(t *testing.T) {
			y, ledger, end := occupying(t)
			again := wantedOf("a", nil)
			if c.known {
				again.EmptySince = end.Add(c.since)
			}
			for _, manager := range []*yard{y, y.successor()} {
				if s := manager.converge(ledger, again); s.Phase != HostNotEmpty || s.Emptied != (c.since > 0) {
					t.Errorf("a is %+v; want HostNotEmpty, and Emptied %v", s, c.since > 0)
				}
			}
			y.pass(c.after)
			y.plan(group1)
			if n := len(y.runs()); n != c.runs {
				t.Errorf("there are %d runs; want %d", n, c.runs)
			}
		})
	}
}

func TestOneHostMayBeInterruptedHoweverFewThereAre(t *testing.T) {
	y := newYard(t)
	for name, c := range map[string]struct {
		strategy      Strategy
		members, want int
	}{
		"of none that are counted":    {Strategy{}, 0, 1},
		"of 100 by default":           {Strategy{}, 100, 5},
		"as a number":                 {Strategy{MaxUnavailable: 3}, 100, 3},
		"as a share, rounded up":      {Strategy{MaxUnavailablePercent: 10}, 11, 2},
		"though the share is smaller": {Strategy{MaxUnavailablePercent: 1}, 3, 1},
	} {
		y.Members = func(string, string) int { return c.members }
		if got := y.MayInterrupt(c.strategy, "ns", "role"); got != c.want {
			t.Errorf("%s: %d hosts may be interrupted; want %d", name, got, c.want)
		}
	}
}
