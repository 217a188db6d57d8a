package edpm

import (
	"cmp"
	"iter"
	"maps"
	"reflect"
	"slices"
	"time"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// planner has the hosts that wait for a run, by group. As the other parts of the
// engine it has neither client nor lock: the engine guards it.
type planner struct {
	groups map[Group]*group
	// places says where an owner waits.
	places map[ownerID]place
	// resting are hosts that are not tried again before their owners want something
	// else. They count as failed.
	resting map[ownerID]place
	slots   slots
	opts    *Options
	// enqueue lets a group be planned after a while.
	enqueue func(Group, time.Duration)
}

// place of a pending target: the host in a group.
type place struct {
	Group
	host string
}

type group struct {
	pending map[string]*pendingTarget // by host
	// first and last time that a target joined since none waited for others.
	first, last time.Time
	held        map[string]string
	// named are the hosts that held has the names of.
	named map[string]naming
	// displaced are the groups of the checks that give way to hosts, by host.
	displaced map[string]Group
}

func newPlanner(opts *Options, enqueue func(Group, time.Duration)) planner {
	return planner{groups: map[Group]*group{}, places: map[ownerID]place{}, resting: map[ownerID]place{}, slots: newSlots(opts, enqueue), opts: opts, enqueue: enqueue}
}

// add makes a target wait for a run and returns why it is held, if it is. Of its owner
// it is known whether and why it was expected.
func (p *planner) add(o *pendingTarget, expected expectedOwner) string {
	g, now := o.Group(), p.opts.Clock.Now()
	at := place{g, o.Host}
	if old, ok := p.places[o.owner()]; ok && old != at {
		p.drop(o.owner())
	}
	if p.groups[g] == nil {
		p.groups[g] = &group{pending: map[string]*pendingTarget{}, held: map[string]string{}}
	}
	grp := p.groups[g]
	old := grp.pending[o.Host]
	if old == nil || o.joinsAnew(old) {
		if grp.first.IsZero() {
			grp.first = now
		}
		grp.last = expected.joins(grp.last, now, p.opts.Debounce)
		p.enqueue(g, p.opts.Debounce)
	} else if !old.notBefore.Equal(o.notBefore) || !reflect.DeepEqual(old.Strategy, o.Strategy) {
		p.enqueue(g, 0)
	}
	if old != nil && o.runsAs(old) {
		o.denied, o.busy, o.busyUntil = old.denied, old.busy, old.busyUntil
	}
	grp.pending[o.Host], p.places[o.owner()] = o, at
	return cmp.Or(grp.held[o.Host], o.denied)
}

// waiting returns what an owner waits for, nil if it does not.
func (p *planner) waiting(id ownerID) *pendingTarget {
	if at, ok := p.places[id]; ok {
		return p.groups[at.Group].pending[at.host]
	}
	return nil
}

// isWaiting reports whether it is this pending target that its host waits with.
func (p *planner) isWaiting(o *pendingTarget) bool {
	grp := p.groups[o.Group()]
	return grp != nil && grp.pending[o.Host] == o
}

// drop forgets what an owner waits for.
func (p *planner) drop(id ownerID) {
	at, ok := p.places[id]
	if !ok {
		return
	}
	g := at.Group
	delete(p.places, id)
	delete(p.groups[g].pending, at.host)
	delete(p.groups[g].held, at.host)
	if _, waits := p.groups[g].displaced[at.host]; waits {
		delete(p.groups[g].displaced, at.host)
		p.wakeChecks()
	}
	switch {
	case len(p.groups[g].pending) == 0:
		delete(p.groups, g)
		if p.slots.queued[g] { // and others because of it
			p.enqueue(g, 0)
		}
	case len(p.groups[g].held) > 0: // perhaps because of this host
		p.enqueue(g, p.opts.Debounce)
	}
}

// rest notes that the host of an owner has failed, and is not tried again as it is.
func (p *planner) rest(id ownerID, at place) {
	if old, resting := p.resting[id]; resting && old == at {
		return
	}
	p.resume(id)
	p.resting[id] = at
}

// resume forgets that a host is not tried again. Others may be held because of it.
func (p *planner) resume(id ownerID) {
	at, resting := p.resting[id]
	if !resting {
		return
	}
	delete(p.resting, id)
	if grp := p.groups[at.Group]; grp != nil && len(grp.held) > 0 {
		p.enqueue(at.Group, p.opts.Debounce)
	}
}

// forget drops what waits for a step of a host, in whatever role. Others may be held
// because the host had failed: their groups are planned again.
func (p *planner) forget(key Key) {
	for id, at := range p.resting {
		if key.in(at.Group) && at.host == key.Host {
			p.resume(id)
		}
	}
	for g, grp := range p.groups {
		if !key.in(g) {
			continue
		}
		p.enqueue(g, p.opts.Debounce)
		if o := grp.pending[key.Host]; o.has(key.Step) {
			p.drop(o.owner())
		}
	}
}

// addTo returns what waits in a group, and adds what is known of it to a snapshot.
func (p *planner) addTo(m *snapshot, g Group) []*pendingTarget {
	for _, at := range p.resting {
		if at.Group == g {
			m.failed[at.host] = true
		}
	}
	grp := p.groups[g]
	if grp == nil {
		return nil
	}
	m.first, m.last, m.named = grp.first, grp.last, grp.named
	return slices.Collect(maps.Values(grp.pending))
}

// recordHolds notes what a plan says of hosts that are not started: which are held, and
// whether any wait for others. It returns those that are newly held, or no longer.
func (p *planner) recordHolds(g Group, pending []*pendingTarget, m snapshot, made *plan) []*pendingTarget {
	grp := p.groups[g]
	if grp == nil {
		return nil
	}
	var changed []*pendingTarget
	for _, o := range pending {
		if grp.held[o.Host] != made.held[o.Host] {
			changed = append(changed, o)
		}
	}
	grp.held, grp.named = made.held, made.named
	p.recordDisplaced(g, made.displaced)
	if !made.gathering && grp.first.Equal(m.first) && grp.last.Equal(m.last) {
		grp.first = time.Time{}
	}
	return changed
}

// deny notes why a target that waits has no run, and reports whether that is news.
func (p *planner) deny(o *pendingTarget, why string) bool {
	grp := p.groups[o.Group()]
	if grp == nil || grp.pending[o.Host] == nil || grp.pending[o.Host].denied == why {
		return false
	}
	grp.pending[o.Host].denied = why
	return true
}

// postponeBusy notes what a target that waits would interrupt, and reports whether that is news.
func (p *planner) postponeBusy(o *pendingTarget, busy string, until time.Time) bool {
	if !p.isWaiting(o) {
		return false
	}
	news := o.busy != busy
	o.busy, o.busyUntil = busy, until
	return news
}

// waitingFor returns the groups in which a host of the targets waits, also as
// the machine of another host.
func (p *planner) waitingFor(namespace string, targets []ansibleeev1.Target) iter.Seq[Group] {
	return func(yield func(Group) bool) {
		for g, grp := range p.groups {
			if (g.Namespace == namespace && grp.hasHost(targets) || grp.hasMachine(targets)) && !yield(g) {
				return
			}
		}
	}
}

func (g *group) hasHost(targets []ansibleeev1.Target) bool {
	return slices.ContainsFunc(targets, func(t ansibleeev1.Target) bool { return g.pending[t.Host] != nil })
}

func (g *group) hasMachine(targets []ansibleeev1.Target) bool {
	machines := map[string]bool{}
	for _, t := range targets {
		machines[t.Machine] = t.Machine != ""
	}
	for _, o := range g.pending {
		if machines[o.machine] {
			return true
		}
	}
	return false
}

// wakeRole plans the groups of a role again.
func (p *planner) wakeRole(c roleKey) {
	for g := range p.groups {
		if g.Namespace == c.namespace && g.Role == c.role {
			p.enqueue(g, 0)
		}
	}
}
