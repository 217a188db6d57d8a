package edpm

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// slots shares the runs that may be under way at the same time out to the groups.
type slots struct {
	// reserved is how many runs are about to be started for the groups that are
	// being planned, queued those that wait for other runs to end.
	reserved map[Group]int
	queued   map[Group]bool
	opts     *Options
	enqueue  func(Group, time.Duration)
}

func newSlots(opts *Options, enqueue func(Group, time.Duration)) slots {
	return slots{reserved: map[Group]int{}, queued: map[Group]bool{}, opts: opts, enqueue: enqueue}
}

// reserve returns how many of the runs that a group could start it may start now.
// Groups that have less come first. The reservation counts until it is ended.
func (s *slots) reserve(g Group, wanted int, use *usage) int {
	for other, n := range s.reserved {
		use.add(other, n)
	}
	granted, most := 0, s.opts.MaxRuns
	if most <= 0 {
		most = math.MaxInt
	}
	for granted < wanted && use.total < most && s.before(g, use) < most-use.total && (!g.Check || use.checks < mostChecks(s.opts.MaxRuns)) {
		granted++
		use.add(g, 1)
	}
	s.reserved[g] = granted
	if granted < wanted {
		s.queued[g] = true
	} else if s.queued[g] { // others may have waited for this one
		delete(s.queued, g)
		s.wakeQueued()
	}
	return granted
}

// mostChecks is how many of the runs that may be under way may be checks.
func mostChecks(runs int) int {
	if runs <= 0 {
		runs = DefaultOptions().MaxRuns
	}
	return max(1, runs/4)
}

// before counts the groups that come before this one.
func (s *slots) before(g Group, use *usage) int {
	n := 0
	for other := range s.queued {
		if use.less(other, g) {
			n++
		}
	}
	return n
}

// release ends a reservation: what has become of it is known.
func (s *slots) release(g Group) {
	if s.reserved[g] > 0 {
		s.wakeQueued()
	}
	delete(s.reserved, g)
}

// wakeQueued plans the groups again that wait for others to have fewer runs.
func (s *slots) wakeQueued() {
	for g := range s.queued {
		s.enqueue(g, 0)
	}
}

// usage is how many runs are under way.
type usage struct {
	// total of the runs, and checks among them.
	total       int
	checks      int
	byGroup     map[Group]int
	byNamespace map[string]int
	// again is when a run ceases to count that has not started; zero if none does.
	again time.Time
}

// countUsage counts the runs of all namespaces that have not ended, those that the
// cache does not show yet among them. One that does not start in time does not
// count: a namespace with runs that cannot start must not keep others from
// running.
func countUsage(active []ansibleeev1.OpenStackAnsibleEE, unseen startedRuns, now time.Time) *usage {
	use := &usage{byGroup: map[Group]int{}, byNamespace: map[string]int{}}
	counted := map[types.NamespacedName]bool{}
	for i := range active {
		run := &active[i]
		counted[types.NamespacedName{Namespace: run.Namespace, Name: run.Name}] = true
		if late := run.CreationTimestamp.Add(stuckAfter); !isUnstarted(run) {
			use.add(groupOf(run), 1)
		} else if late.After(now) {
			use.add(groupOf(run), 1)
			if use.again.IsZero() || late.Before(use.again) {
				use.again = late
			}
		}
	}
	for key, r := range unseen {
		name := types.NamespacedName{Namespace: key.Namespace, Name: r.name}
		if !counted[name] {
			counted[name] = true
			use.add(r.group, 1)
		}
	}
	return use
}

func (u *usage) add(g Group, n int) {
	u.total += n
	if g.Check {
		u.checks += n
	}
	u.byGroup[g] += n
	u.byNamespace[g.Namespace] += n
}

// less reports whether a group has less than another one: its namespace fewer
// runs, or the group itself. Checks come after everything else.
func (u *usage) less(a, b Group) bool {
	if a.Check != b.Check {
		return b.Check
	}
	return cmp.Or(cmp.Compare(u.byNamespace[a.Namespace], u.byNamespace[b.Namespace]), cmp.Compare(u.byGroup[a], u.byGroup[b])) < 0
}

// postpone omits the batches beyond what may be started now.
func (p *plan) postpone(granted, most int) {
	for _, batch := range p.batches[granted:] {
		for _, o := range batch {
			if o.check { // its owner has nothing to say of it
				continue
			}
			p.held[o.Host] = fmt.Sprintf("%d runs are in progress, which is the maximum (--max-concurrent-runs)", most)
		}
	}
	p.batches = p.batches[:granted]
}
