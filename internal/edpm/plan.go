package edpm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
)

// suspicion is what is known of a host whose last run ended without a result: one
// of the hosts of that run may have caused it. They go in two halves the next
// time, apart from others, until the one that causes it is alone.
type suspicion struct {
	// run without a result; empty when the last one had a result.
	run string
	// most hosts that may go together.
	most int
}

// suspect is the suspicion that the last run of a host leaves, if any. A run that
// would have another Pod now, for example of another image, leaves none: the Pod
// may have been the cause.
func (t *Target) suspect(l *common.Ledger, last *run) suspicion {
	touched := l.Runs[touchedKey(t.Step.Name)]
	if last == nil || last.lost == 0 || !t.fits(last.object) ||
		touched.Name != last.name || touched.Serial < lastSerial(l, t.Step.Name) { // a later one is gone already
		return suspicion{}
	}
	return suspicion{run: last.name, most: (last.lost + 1) / 2}
}

func (t *Target) owner() ownerID {
	return ownerID{t.OwnerKind, t.Namespace, cmp.Or(t.Owner, t.Host)}
}

// naming is some of the failed hosts because of which a limit holds others back.
type naming struct {
	hosts []string
	// more is whether there were others.
	more bool
}

// maxNamed is the most hosts, or tasks that differ, that a message names.
const maxNamed = 3

// plan says what to do for a group.
type plan struct {
	batches [][]*pendingTarget
	// held are hosts that are not started, with the reason.
	held map[string]string
	// named are the failed hosts that these reasons name, by limit.
	named map[string]naming
	// displaced are the groups of checks that have not started and that give way, by host.
	displaced map[string]Group
	// wake is when to plan again; zero means when something changes.
	wake time.Duration
	// gathering reports whether hosts wait for others to join them.
	gathering bool
}

// makePlan decides which pending targets become which runs. It changes nothing.
func makePlan(pending []*pendingTarget, m snapshot) plan {
	sort.Slice(pending, func(i, j int) bool { return pending[i].Host < pending[j].Host })
	p := plan{held: map[string]string{}, named: map[string]naming{}, displaced: map[string]Group{}}
	due := p.selectDue(pending, m)
	due = p.displace(p.hold(due, pending, m), m)
	quiet := m.quiet()
	for _, together := range byPod(due) {
		size, complete := batchSize(together), !m.now.Before(quiet)
		for len(together) >= size || len(together) > 0 && complete {
			n := min(size, len(together))
			p.batches = append(p.batches, together[:n])
			together = together[n:]
		}
		if len(together) > 0 {
			p.gathering = true
			p.wakeAt(quiet, m.now)
		}
	}
	return p
}

// quiet is when runs are started that are not full: when no one is expected any
// more and no one has joined for the debounce.
func (m snapshot) quiet() time.Time {
	if !m.awaited.IsZero() {
		return m.awaited
	}
	if patience := m.first.Add(m.patience); patience.Before(m.last.Add(m.debounce)) {
		return patience
	}
	return m.last.Add(m.debounce)
}

// selectDue leaves out hosts that are in a run, and those whose time to be tried
// again has not come.
func (p *plan) selectDue(pending []*pendingTarget, m snapshot) []*pendingTarget {
	var due []*pendingTarget
	for _, o := range pending {
		switch {
		case m.isBusy(o):
		case o.notBefore.After(m.now):
			p.wakeAt(o.notBefore, m.now)
		case o.busyUntil.After(m.now):
			p.wakeAt(o.busyUntil, m.now)
		default:
			due = append(due, o)
		}
	}
	return due
}

// hold keeps hosts back that maxFailures or maxUnavailable forbid. Hosts that
// failed before count as unavailable already, so they can always be tried again. Of
// those that are one machine the first that may start does.
func (p *plan) hold(due, all []*pendingTarget, m snapshot) []*pendingTarget {
	failed := m.allFailed(all)
	unavailable := len(failed)
	for host := range m.inFlight {
		if !failed[host] {
			unavailable++
		}
	}
	var started []*pendingTarget
	taken := map[string]bool{}
	for _, o := range due {
		if taken[o.machine] {
			continue
		}
		switch s, limit := o.Strategy, o.Strategy.unavailableLimit(m.members); {
		case o.retry():
		case s.MaxFailures != nil && len(failed) > int(*s.MaxFailures):
			p.held[o.Host] = fmt.Sprintf("maxFailures is %d, and more hosts have failed%s", *s.MaxFailures, p.name("maxFailures", failed, m))
			continue
		case limit > 0 && unavailable >= limit:
			// Without the numbers of now: every change of them would be written to every host that is held.
			p.held[o.Host] = fmt.Sprintf("maxUnavailable is %s, and as many hosts of the role are in a run or have failed%s", s.unavailableText(), p.name("maxUnavailable", failed, m))
			continue
		default:
			unavailable++
		}
		started = append(started, o)
		taken[o.machine] = o.machine != ""
	}
	return started
}

// allFailed are the hosts whose last run failed, also those that are tried again.
func (m snapshot) allFailed(pending []*pendingTarget) map[string]bool {
	failed := map[string]bool{}
	maps.Copy(failed, m.failed)
	maps.Copy(failed, m.retrying)
	for _, o := range pending {
		if o.retry() && !m.inFlight[o.Host] {
			failed[o.Host] = true
		}
	}
	return failed
}

// name returns words that name some of the failed hosts. They are the same as
// before as long as those hosts are failed: thousands can be held, and have the
// words in their conditions.
func (p *plan) name(limit string, failed map[string]bool, m snapshot) string {
	named, ok := p.named[limit]
	if !ok {
		named, ok = m.named[limit]
	}
	if !ok || slices.ContainsFunc(named.hosts, func(h string) bool { return !failed[h] }) {
		hosts := slices.Sorted(maps.Keys(failed))
		named = naming{hosts[:min(len(hosts), maxNamed)], len(hosts) > maxNamed}
	}
	p.named[limit] = named
	words := strings.Join(named.hosts, ", ")
	switch {
	case words == "":
		return ""
	case named.more:
		words += " and others"
	}
	return ": " + words
}

func (p *plan) wakeAt(t, now time.Time) {
	if d := max(t.Sub(now), time.Millisecond); p.wake == 0 || d < p.wake {
		p.wake = d
	}
}

// byPod returns the pending targets that can share a Pod, in a stable order. Hosts of a run
// without a result share one with each other only.
func byPod(pending []*pendingTarget) [][]*pendingTarget {
	type key struct{ pod, suspects string }
	index := map[key]int{}
	var groups [][]*pendingTarget
	for _, o := range pending {
		k := key{o.podKey, o.suspicion.run}
		i, ok := index[k]
		if !ok {
			i = len(groups)
			index[k] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], o)
	}
	return groups
}

// batchSize is the smallest that any of the pending targets asks for or allows.
func batchSize(pending []*pendingTarget) int {
	size := ansibleeev1.MaxTargets
	for _, o := range pending {
		if n := o.Strategy.BatchSize; n > 0 && n < size {
			size = n
		}
		if o.suspicion.run != "" {
			size = min(size, o.most)
		}
	}
	return size
}
