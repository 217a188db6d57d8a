package edpm

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// usage is how many runs are under way.
type usage struct {
	total       int
	byGroup     map[Group]int
	byNamespace map[string]int
	// again is when a run ceases to count that has not started; zero if none does.
	again time.Time
}

func (u *usage) add(g Group, n int) {
	u.total += n
	u.byGroup[g] += n
	u.byNamespace[g.Namespace] += n
}

// less reports whether a group has less than another one: its namespace fewer
// runs, or the group itself.
func (u *usage) less(a, b Group) bool {
	return cmp.Or(cmp.Compare(u.byNamespace[a.Namespace], u.byNamespace[b.Namespace]), cmp.Compare(u.byGroup[a], u.byGroup[b])) < 0
}

// reserve returns how many of the runs that a group could start it may start now,
// and when to ask again at the latest. Groups that have less come first. The
// reservation counts until it is ended.
func (e *Engine) reserve(ctx context.Context, g Group, wanted int) (int, time.Time, error) {
	if e.MaxRuns <= 0 {
		return wanted, time.Time{}, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	use, err := e.usage(ctx)
	if err != nil {
		return 0, time.Time{}, err
	}
	granted := 0
	for granted < wanted && use.total < e.MaxRuns && e.before(g, use) < e.MaxRuns-use.total {
		granted++
		use.add(g, 1)
	}
	e.reserved[g] = granted
	if granted < wanted {
		e.queued[g] = true
		return granted, use.again, nil
	}
	if e.queued[g] { // others may have waited for this one
		delete(e.queued, g)
		e.wakeQueued()
	}
	return granted, time.Time{}, nil
}

// before counts the groups that come before this one. The caller holds the lock.
func (e *Engine) before(g Group, use *usage) int {
	n := 0
	for other := range e.queued {
		if use.less(other, g) {
			n++
		}
	}
	return n
}

// unreserve ends a reservation: what has become of it is known.
func (e *Engine) unreserve(g Group) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reserved[g] > 0 {
		e.wakeQueued()
	}
	delete(e.reserved, g)
}

// wakeQueued plans the groups again that wait for others to have fewer runs. The
// caller holds the lock.
func (e *Engine) wakeQueued() {
	for g := range e.queued {
		e.enqueue(g, 0)
	}
}

// usage counts the runs of all namespaces that have not ended, those that the
// cache does not show yet among them. One that does not start in time does not
// count: a namespace with runs that cannot start must not keep others from
// running. The caller holds the lock.
func (e *Engine) usage(ctx context.Context) (*usage, error) {
	use := &usage{byGroup: map[Group]int{}, byNamespace: map[string]int{}}
	runs, err := e.list(ctx, metav1.NamespaceAll, activeIndex, active)
	if err != nil {
		return nil, fmt.Errorf("listing the runs that are under way: %w", err)
	}
	seen := map[types.NamespacedName]bool{}
	for i := range runs {
		run := &runs[i]
		seen[types.NamespacedName{Namespace: run.Namespace, Name: run.Name}] = true
		if late := run.CreationTimestamp.Add(stuckAfter); !unstarted(run) {
			use.add(groupOf(run), 1)
		} else if late.After(e.Clock.Now()) {
			use.add(groupOf(run), 1)
			if use.again.IsZero() || late.Before(use.again) {
				use.again = late
			}
		}
	}
	for key, l := range e.created {
		name := types.NamespacedName{Namespace: key.Namespace, Name: l.name}
		if !seen[name] {
			seen[name] = true
			use.add(l.group, 1)
		}
	}
	for g, n := range e.reserved {
		use.add(g, n)
	}
	return use, nil
}

// postpone omits the batches beyond what may be started now.
func (p *plan) postpone(granted, most int) {
	for _, batch := range p.batches[granted:] {
		for _, o := range batch {
			p.held[o.Host] = fmt.Sprintf("%d runs are in progress, which is the maximum (--max-concurrent-runs)", most)
		}
	}
	p.batches = p.batches[:granted]
}
