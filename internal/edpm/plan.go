package edpm

import (
	"fmt"
	"sort"
	"time"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// offer is a target that waits for a run.
type offer struct {
	Target
	hash, access, podKey string
	serial               int64
	attempt              int32
	notBefore            time.Time
	// denied is why the API server did not take its run the last time.
	denied string
}

// ownerID names an object that owns targets.
type ownerID struct{ kind, namespace, name string }

func (o *offer) owner() ownerID { return ownerID{o.OwnerKind, o.Namespace, o.Host} }

// remember keeps why the API server did not take the run of the offer before,
// which can be nil, unless another run is offered now.
func (o *offer) remember(old *offer) {
	if old != nil && old.hash == o.hash && old.podKey == o.podKey && old.access == o.access {
		o.denied = old.denied
	}
}

// retry tells whether the host has failed before for the same hash.
func (o *offer) retry() bool { return o.attempt > 1 }

// moment is the state of a group at which a plan is made.
type moment struct {
	now time.Time
	// first and last time that a target joined since none waited for others.
	first, last time.Time
	// awaited is until when hosts of the role are expected; zero if none is.
	awaited time.Time
	// debounce is how long no target may be offered before a run is started
	// that is not full; after patience it is started in any case.
	debounce, patience time.Duration
	// inFlight are the hosts of the group that are in a run.
	inFlight map[string]bool
	// retrying are those of them that have failed before.
	retrying map[string]bool
	// failed are hosts that have failed and are not offered yet: their owners
	// have not heard of it.
	failed map[string]bool
	// busy are the hosts that are in a run of any step.
	busy map[string]bool
}

// plan says what to do for a group.
type plan struct {
	batches [][]*offer
	// held are hosts that are not started, with the reason.
	held map[string]string
	// wake is when to plan again; zero means when something changes.
	wake time.Duration
	// gathering tells that hosts wait for others to join them.
	gathering bool
}

// makePlan decides which offers become which runs. It changes nothing.
func makePlan(offers []*offer, m moment) plan {
	sort.Slice(offers, func(i, j int) bool { return offers[i].Host < offers[j].Host })
	p := plan{held: map[string]string{}}
	due := p.selectDue(offers, m)
	due = p.hold(due, offers, m)
	quiet := m.quiet()
	for _, together := range byPod(due) {
		size, settled := batchSize(together), !m.now.Before(quiet)
		for len(together) >= size || len(together) > 0 && settled {
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

// quiet is when runs are started that are not full: when nobody is expected any
// more and nobody has joined for the debounce.
func (m moment) quiet() time.Time {
	if !m.awaited.IsZero() {
		return m.awaited
	}
	if patience := m.first.Add(m.patience); patience.Before(m.last.Add(m.debounce)) {
		return patience
	}
	return m.last.Add(m.debounce)
}

// selectDue leaves out hosts that are in a run, and those whose time to be
// tried again has not come.
func (p *plan) selectDue(offers []*offer, m moment) []*offer {
	var due []*offer
	for _, o := range offers {
		switch {
		case m.busy[o.Host]:
		case o.notBefore.After(m.now):
			p.wakeAt(o.notBefore, m.now)
		default:
			due = append(due, o)
		}
	}
	return due
}

// hold keeps hosts back that maxFailures or maxUnavailable forbid. Hosts that
// failed before count as unavailable already, so they can always be tried again.
func (p *plan) hold(due, all []*offer, m moment) []*offer {
	failed, unavailable := len(m.retrying)+len(m.failed), len(m.inFlight)+len(m.failed)
	for _, o := range all {
		if o.retry() && !m.inFlight[o.Host] {
			failed++
			unavailable++
		}
	}
	var started []*offer
	for _, o := range due {
		switch s := o.Strategy; {
		case o.retry():
		case s.MaxFailures != nil && failed > int(*s.MaxFailures):
			p.held[o.Host] = fmt.Sprintf("%d hosts have failed and maxFailures is %d", failed, *s.MaxFailures)
			continue
		case s.MaxUnavailable > 0 && unavailable >= s.MaxUnavailable:
			p.held[o.Host] = fmt.Sprintf("%d hosts are in a run or have failed and maxUnavailable is %d", unavailable, s.MaxUnavailable)
			continue
		default:
			unavailable++
		}
		started = append(started, o)
	}
	return started
}

func (p *plan) wakeAt(t, now time.Time) {
	if d := max(t.Sub(now), time.Millisecond); p.wake == 0 || d < p.wake {
		p.wake = d
	}
}

// byPod returns the offers that can share a Pod, in a stable order.
func byPod(offers []*offer) [][]*offer {
	index := map[string]int{}
	var groups [][]*offer
	for _, o := range offers {
		i, ok := index[o.podKey]
		if !ok {
			i = len(groups)
			index[o.podKey] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], o)
	}
	return groups
}

// batchSize is the smallest that any of the offers asks for.
func batchSize(offers []*offer) int {
	size := ansibleeev1.MaxTargets
	for _, o := range offers {
		if n := o.Strategy.BatchSize; n > 0 && n < size {
			size = n
		}
	}
	return size
}
