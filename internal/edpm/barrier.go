package edpm

import "time"

// roleKey names a role.
type roleKey struct{ namespace, role string }

// barrier of a role is what the engine knows of its owners that have been woken and have
// not said yet what they want. Hosts of a role that started together, or that
// were together in a run, come back one by one: as fast as their owners are
// reconciled. A run is not started without those that are about to come.
type barrier struct {
	owners map[ownerID]bool
	// progress is when an owner was woken or heard of last.
	progress time.Time
}

// expectedOwner is an owner that was woken.
type expectedOwner struct {
	roleKey
	// ran reports whether its host was in a run that has ended. The hosts of that run
	// are all expected: no one else has to be waited for.
	ran bool
	// follows reports whether it continues where another owner of its host has ended.
	// The others that do are about to be expected.
	follows bool
}

// joins returns when a host joined a group last, as the debounce counts it, now that
// this one joins. Of the debounce a host that follows waits a fifth: as long as the
// results of others that were in one run with it may take to be heard of.
func (a expectedOwner) joins(last, now time.Time, debounce time.Duration) time.Time {
	if a.follows {
		now = now.Add(-debounce * 4 / 5)
	}
	if a.ran || now.Before(last) {
		return last
	}
	return now
}

// barriers has the owners that are expected, by role.
type barriers struct {
	byRole map[roleKey]*barrier
	// expected are the owners that the barriers have.
	expected map[ownerID]expectedOwner
	opts     *Options
	// lowered is called when no one is expected any more in a role.
	lowered func(roleKey)
}

func newBarriers(opts *Options, lowered func(roleKey)) barriers {
	return barriers{byRole: map[roleKey]*barrier{}, expected: map[ownerID]expectedOwner{}, opts: opts, lowered: lowered}
}

// expect notes that an owner was woken.
func (b *barriers) expect(a expectedOwner, id ownerID) {
	c := a.roleKey
	if old, ok := b.expected[id]; ok && old.roleKey != c {
		b.reported(id)
	} else {
		a.follows = a.follows || old.follows
	}
	if b.byRole[c] == nil {
		b.byRole[c] = &barrier{owners: map[ownerID]bool{}}
	}
	b.byRole[c].owners[id], b.byRole[c].progress, b.expected[id] = true, b.opts.Clock.Now(), a
}

// reported notes that an owner has said what it wants, or that it wants nothing.
func (b *barriers) reported(id ownerID) {
	a, ok := b.expected[id]
	if !ok {
		return
	}
	c := a.roleKey
	delete(b.expected, id)
	delete(b.byRole[c].owners, id)
	b.byRole[c].progress = b.opts.Clock.Now()
	if len(b.byRole[c].owners) == 0 {
		b.lower(c)
	}
}

// lower removes the barrier of a role: its groups wait for no one more.
func (b *barriers) lower(c roleKey) {
	for id := range b.byRole[c].owners {
		delete(b.expected, id)
	}
	delete(b.byRole, c)
	b.lowered(c)
}

// awaited is until when a group waits for owners of its role, at most: while
// they are heard of one after the other it continues waiting. Zero means that
// none is expected.
func (b *barriers) awaited(g Group) time.Time {
	c := roleKey{g.Namespace, g.Role}
	x := b.byRole[c]
	if x == nil {
		return time.Time{}
	}
	until := x.progress.Add(b.opts.Patience)
	if !until.After(b.opts.Clock.Now()) {
		b.lower(c)
		return time.Time{}
	}
	return until
}
