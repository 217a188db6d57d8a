package edpm

import (
	"context"
	"hash/fnv"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// A check is a run in check mode: it says which tasks of a step would change a host that has
// converged, and changes nothing. It has no hash, so that it makes none true, and is in none
// of the histories that decide what is to be run.

// Checks says when hosts are checked between runs. Without an interval they never are.
type Checks struct {
	Interval time.Duration
	// Steps that are checked; nil means all of them.
	Steps  []string
	Repair common.RepairPolicy
}

// covers reports whether a step is checked.
func (c Checks) covers(step Step) bool {
	return c.Interval > 0 && !step.Removal && (len(c.Steps) == 0 || slices.Contains(c.Steps, step.Name))
}

// missed is after what time a check that was not started waits for the next turn of its
// host: after a long stop of the manager not all hosts are checked at once.
func (c Checks) missed() time.Duration { return max(c.Interval/24, time.Minute) }

// next is when a host is checked: at the first of its turns that comes at least half an
// interval after the last look at it. One that was missed is left out.
func (c Checks) next(turn time.Duration, last, now time.Time) time.Time {
	at := c.turnFrom(turn, last.Add(c.Interval/2))
	if now.Sub(at) > c.missed() {
		at = c.turnFrom(turn, now.Add(-c.missed()))
	}
	return at
}

// turnFrom is the first turn that is not before a time.
func (c Checks) turnFrom(turn time.Duration, from time.Time) time.Time {
	if from.Before(epoch) {
		from = epoch
	}
	rounds := int64((from.Sub(epoch) - turn + c.Interval - 1) / c.Interval)
	return epoch.Add(turn + time.Duration(max(rounds, 0)*int64(c.Interval)))
}

// epoch is where turns are counted from. A time.Duration reaches from there to 2262.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// turnOf is when in the interval a host of a group has its turn, as its name has it. Hosts
// that fill a batch have theirs together, and the batches follow each other evenly.
func turnOf(g Group, host string, members, batch int, interval time.Duration) time.Duration {
	batches := max(1, (members+batch-1)/batch)
	first := float64(spread(g.Namespace+" "+g.index())) / math.MaxUint32
	place := first + float64(spread(host)%uint32(batches))/float64(batches) //nolint:gosec // small numbers
	return time.Duration(float64(interval) * (place - math.Floor(place))).Truncate(time.Second)
}

// spread turns a name into a number.
func spread(name string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return h.Sum32()
}

// checked is what is known of the checks of a step of a host.
type checked struct {
	// ended is the newest check that has ended, nil if there is none.
	ended *run
	// started are those that have not.
	started []*run
}

// readChecks reads the checks of a target. Of a step that is not checked there are none.
func (e *Engine) readChecks(ctx context.Context, t *Target) (checked, error) {
	var c checked
	if !t.Strategy.Checks.covers(t.Step) {
		return c, nil
	}
	key := t.Key()
	key.Check = true
	runs, err := e.history(ctx, key, t.OwnerUID)
	for _, r := range runs {
		switch {
		case r.void && !r.object.DeletionTimestamp.IsZero():
			// It gave way to a run before it started: the turn is still to come.
		case r.finished:
			c.ended = r
		default:
			c.started = append(c.started, r)
		}
	}
	return c, err
}

// repairSource is whose token has a step run again because of what a check found.
const repairSource = "drift"

// recordCheck writes what the last check of a step found into the ledger, in which the runs
// of the step are recorded. What a run has repaired since is not written.
func recordCheck(l *common.Ledger, step string, c checked) {
	d := l.DriftOf(step)
	if r := c.ended; r != nil && r.name != d.Run && !r.turn().Before(d.Checked.Time) {
		d = r.found(d, l.Runs[step])
	}
	if last := l.Runs[step]; d.Differs() && d.Of != last.Name {
		d.Differences, d.Message, d.Repaired = nil, "", last.Tokens[repairSource] == d.Run
	}
	if !d.Checked.IsZero() {
		l.SetDrift(d)
	}
}

// found is what a check found, given what was known before and the last run of the step.
func (r *run) found(before common.Drift, last common.RunRecord) common.Drift {
	differences := r.object.StepDifferences(r.step, r.target.Host)
	if !r.converged() && len(differences) == 0 {
		before.Checked, before.Message = metav1.NewTime(r.turn()), r.failedCheck()
		return before
	}
	d := common.Drift{Step: r.step, Checked: metav1.NewTime(r.turn()), Run: r.name, Of: last.Name, Differences: differences}
	if last.End != nil && last.End.After(r.end) {
		d.Differences = nil
	}
	if !r.converged() {
		d.Message = r.failedCheck()
	}
	d.Repaired = before.Repaired && d.Differs()
	return d
}

// turn of the hosts of a check: its serial number.
func (r *run) turn() time.Time { return time.Unix(r.target.Serial, 0) }

// failedCheck is why a check could not be done, or not to its end.
func (r *run) failedCheck() string {
	switch {
	case r.known && r.result.Message != "":
		return r.result.Message
	case r.problem != "":
		return r.problem
	}
	return "the check ended without a result for this host"
}

// askRepair asks for a run of the step because of what its last check found: each finding for
// one, if the role wants that, unless the step was repaired just before.
func (t *Target) askRepair(l *common.Ledger) {
	d := l.DriftOf(t.Step.Name)
	if c := t.Strategy.Checks; c.covers(t.Step) && c.Repair == common.RepairAlways && d.Differs() && !d.Repaired {
		t.Rerun, t.Tokens = d.Run, merged(t.Tokens, map[string]string{repairSource: d.Run})
	}
}

// keepDrift forgets what was found in steps that are no longer checked.
func keepDrift(l *common.Ledger, targets []Target) {
	l.Drift = slices.DeleteFunc(slices.Clone(l.Drift), func(d common.Drift) bool {
		return !slices.ContainsFunc(targets, func(t Target) bool { return t.Step.Name == d.Step && t.Strategy.Checks.covers(t.Step) })
	})
}

// yield has checks that have not started give way to runs of the host that are due.
func (e *Engine) yield(all []*assessment, due bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range all {
		for _, r := range a.checks.started {
			if r.object != nil && isUnstarted(r.object) {
				key := a.Key()
				key.Check = true
				e.refuse(key, r.object, due)
			}
		}
	}
}

// check lets a host that has converged wait for a check of the steps whose turn has come, and
// reports whether it does. The owner is looked at again when the next turn comes.
func (e *Engine) check(ctx context.Context, ledger *common.Ledger, all []*assessment) bool {
	now, members := e.Clock.Now(), 0
	var due []*assessment
	var first time.Time
	for _, a := range all {
		if !a.Strategy.Checks.covers(a.Step) {
			continue
		}
		if restricted, err := restriction(a.Target, &a.state); err != nil || restricted != "" || a.state.Phase != Converged || len(a.checks.started) > 0 {
			return false
		}
		if members == 0 && e.Members != nil {
			members = e.Members(a.Namespace, a.Role)
		}
		c := a.toCheck(ledger, members, now)
		if at := time.Unix(c.serial, 0); !at.After(now) || e.awaitsCheck(c) {
			due = append(due, c)
		} else if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	if len(due) > 0 {
		e.addPending(newPendingTarget(ledger.HostKey, due, now))
		return true
	}
	if !first.IsZero() {
		phase.Again(ctx, first.Sub(now))
	}
	return false
}

// awaitsCheck reports whether the host waits for a check of the step already, which is then
// the one of that turn.
func (e *Engine) awaitsCheck(a *assessment) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	o := e.planner.waiting(a.owner())
	if o == nil || !o.check {
		return false
	}
	steps, targets := o.steps()
	i := slices.IndexFunc(steps, func(s Step) bool { return s.Name == a.Step.Name })
	if i >= 0 {
		a.serial = targets[i].Serial
	}
	return i >= 0
}

// toCheck is the next check of a step: its serial number is the time of the turn.
func (a *assessment) toCheck(l *common.Ledger, members int, now time.Time) *assessment {
	t := *a.Target
	t.check, t.Rerun, t.Tokens = true, "", nil
	t.Strategy = Strategy{Deploy: true, BatchSize: t.Strategy.BatchSize, Checks: t.Strategy.Checks}
	last := l.DriftOf(t.Step.Name).Checked.Time
	if end := l.Runs[t.Step.Name].End; end != nil && end.After(last) {
		last = end.Time
	}
	checks, size := t.Strategy.Checks, t.Strategy.BatchSize
	if size == 0 {
		size = ansibleeev1.MaxTargets
	}
	at := checks.next(turnOf(t.Group(), t.Host, members, size, checks.Interval), last, now)
	return &assessment{Target: &t, want: a.want, state: State{Phase: Pending}, serial: at.Unix()}
}
