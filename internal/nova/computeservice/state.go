package computeservice

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// novaState is what is known of one Nova.
type novaState struct {
	access   *Access // nil as long as nobody has said how it is asked
	api      *api    // nil until it has been authenticated
	subjects map[Name]Subject
	// awaited are the subjects whose services should be up by now.
	awaited map[Name]bool
	// watched is since when the Nova is woken after each list; zero while it is not.
	watched time.Time
	// followed are the subjects that are woken after the next answer of nova, and whether nova
	// is asked soon for them.
	followed    map[Name]bool
	stop        context.CancelFunc // nil while it is not asked
	rescheduled chan struct{}

	asked    bool
	services map[string]Service // by host
	standing standing
	// unreached are hosts in cells that nova did not reach the last time.
	unreached map[string]bool
	// mapped are the ids of services whose hosts are known to be mapped, with those of their
	// compute nodes, empty for what is not known.
	mapped map[string]string
	// services of pods that a round has mapped: they are no hypervisors as long as they have
	// no nodes.
	byService map[string]bool
	trouble   *Trouble
	failures  int
	// round are hosts that are to be mapped; nil if none are, or it is not time to.
	round *Round
	// rounds is how many have ended since all hosts were mapped, and next when there may
	// be another one.
	rounds int
	next   time.Time
	// shownTrouble and shownRound are what the Nova knows of.
	shownTrouble *Trouble
	shownRound   *Round
	// read is when nova answered last, listed when it was asked for the services it has listed last,
	// and changed when something was other than before.
	read, listed, changed time.Time
}

// reset forgets what nova said.
func (c *novaState) reset() {
	c.stop, c.api, c.asked, c.services, c.unreached, c.mapped, c.trouble, c.failures = nil, nil, false, nil, nil, map[string]string{}, nil, 0
	c.byService, c.round, c.rounds = map[string]bool{}, nil, 0
	c.standing, c.listed = standing{}, time.Time{}
}

// pollSoon makes nova be asked soon.
func (c *novaState) pollSoon(now time.Time) {
	c.changed = now
	c.reschedule()
}

// reschedule has it computed again when nova is asked.
func (c *novaState) reschedule() {
	select {
	case c.rescheduled <- struct{}{}:
	default:
	}
}

// due is after which time nova is asked again. A compute that is awaited in vain is
// looked for less and less often.
func (c *novaState) due(opts Options, now time.Time) time.Duration {
	pause := opts.Interval
	switch {
	case c.trouble == nil && (!c.asked || !c.watched.IsZero() && !c.isFresh()):
		pause = opts.Soon
	case c.trouble != nil:
		pause = opts.Soon << min(c.failures, 8)
	case slices.Contains(slices.Collect(maps.Values(c.followed)), true):
		pause = opts.Soon
	case c.awaits():
		pause = now.Sub(c.changed) / 4
	}
	pause = max(opts.Soon, min(pause, opts.Interval))
	return max(0, c.read.Add(pause).Sub(now))
}

// isFresh reports whether nova was asked since the Nova is watched for what it has listed.
func (c *novaState) isFresh() bool { return c.listed.After(c.watched) }

// awaits reports whether a compute should be up and is not.
func (c *novaState) awaits() bool {
	for name := range c.awaited {
		if v := c.view(c.subjects[name]); !v.settled() || !v.Reported {
			return true
		}
	}
	return false
}

// unsure reports whether a compute that reports is not known to be mapped, or the compute node
// of a host is not known: a machine that is replaced gets its id before it reports.
func (c *novaState) unsure(services map[string]Service) bool {
	for name, s := range c.subjects {
		service := firstHost(services, s.Hosts)
		if service.Up && !c.isMapped(service.ID) || service.ID != "" && name.Pod == "" && c.mapped[service.ID] == "" {
			return true
		}
	}
	return false
}

// isMapped reports whether the host of a service is known to be mapped.
func (c *novaState) isMapped(id string) bool {
	_, mapped := c.mapped[id]
	return id != "" && (mapped || c.byService[id])
}

func (c *novaState) view(s Subject) View {
	v := View{Asked: c.asked, Service: firstHost(c.services, s.Hosts)}
	if v.Service.ID == "" && slices.ContainsFunc(s.Hosts, func(host string) bool { return c.unreached[host] }) {
		v.Asked = false
	}
	v.Service.Mapped = c.isMapped(v.Service.ID)
	if s.Name.Pod == "" { // one with the driver for ironic has many nodes, or none
		v.Service.ComputeID = c.mapped[v.Service.ID]
	}
	v.Reported = v.Service.Up && (v.Service.reported.IsZero() || v.Service.reported.After(s.Since))
	v.Service.reported, v.Service.lastReport = time.Time{}, time.Time{} // they change every few seconds
	if !v.settled() || v.Service.Up && !v.Reported {
		v.Trouble = c.trouble
	}
	return v
}

// note keeps what nova said, and returns the computes that it concerns.
func (c *novaState) note(found answer, err error, now time.Time) []Name {
	before := map[Name]View{}
	for name, s := range c.subjects {
		before[name] = c.view(s)
	}
	c.read = now
	c.keepUnreached(found)
	if found.services != nil {
		c.asked, c.services, c.unreached = true, found.services, found.unreached
	}
	if found.mapped != nil {
		c.mapped = found.mapped
	}
	if c.trouble = asTrouble(err); err != nil {
		c.failures++
	} else {
		c.failures = 0
	}
	if c.trouble == nil {
		c.plan(now)
	}
	moving := c.standing.keep(found.standing)
	var concerned []Name
	for name, s := range c.subjects {
		view := c.view(s)
		changed := !view.equal(before[name])
		if changed {
			c.changed = now
		}
		if _, followed := c.followed[name]; changed || followed || moving[view.Service.Host] {
			concerned = append(concerned, name)
		}
	}
	clear(c.followed)
	return concerned
}

// keepUnreached adds what is known of hosts that nova did not reach to what it said.
func (c *novaState) keepUnreached(found answer) {
	for host := range found.unreached {
		s, known := c.services[host]
		if !known {
			continue
		}
		if _, moved := found.services[host]; !moved { // it may be in another cell by now
			found.services[host] = s
		}
		if node, mapped := c.mapped[s.ID]; found.mapped != nil && mapped {
			found.mapped[s.ID] = node
		}
	}
}

// asTrouble is the error of a request.
func asTrouble(err error) *Trouble {
	t := (*Trouble)(nil)
	if err == nil || errors.As(err, &t) {
		return t
	}
	return &Trouble{novav1.APIUnreachableReason, "nova's API cannot be asked: it " + cause(err)}
}

// concernsNova reports whether the Nova watches the list, or does not know of the trouble,
// or of hosts that are to be mapped.
func (c *novaState) concernsNova() bool {
	known := sameTrouble(c.shownTrouble, c.trouble) && c.shownRound == c.round
	c.shownTrouble, c.shownRound = c.trouble, c.round
	return !c.watched.IsZero() || !known
}

// Round is a host discovery: one Job for all hosts that wait.
type Round struct {
	// Found is when nova was seen not to know the cell of the hosts.
	Found time.Time
	// Hosts and the ids of their services, sorted.
	Hosts []string
	// ByService reports whether some are pods: they are found by their services, as one with
	// the driver for ironic has no compute node before ironic has a node.
	ByService bool
}

// slowest is how often hosts are tried to be mapped that never are, for example
// because placement has a provider of their name: Soon is doubled so many times.
const slowest = 6

// plan begins a round if hosts wait and none is in progress: those that come
// meanwhile are in the next one, as two discoveries at once fail.
func (c *novaState) plan(now time.Time) {
	waiting := c.unmapped()
	switch {
	case len(waiting) == 0:
		c.rounds = 0
	case c.round == nil && !now.Before(c.next):
		c.round = &Round{Found: now.UTC(), Hosts: waiting, ByService: c.podsWait()}
	}
}

// unmapped are the hosts that report to nova, and of which it does not know the cell.
func (c *novaState) unmapped() []string {
	var hosts []string
	for _, s := range c.subjects {
		if v := c.view(s); v.Service.Up && !v.Service.Mapped {
			hosts = append(hosts, entryOf(v.Service))
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// podsWait reports whether a pod is among the hosts that are unmapped.
func (c *novaState) podsWait() bool {
	for name, s := range c.subjects {
		if v := c.view(s); name.Pod != "" && v.Service.Up && !v.Service.Mapped {
			return true
		}
	}
	return false
}

// entryOf is the entry of a service in a round.
func entryOf(s Service) string { return s.Host + " " + s.ID }

// ended ends a round, and returns the pods that it has mapped. Hosts that came too late for
// it are tried again soon, and then less and less often.
func (c *novaState) ended(r *Round, opts Options, now time.Time) []Name {
	if c.round != r {
		return nil
	}
	var pods []Name
	for name, s := range c.subjects {
		if v := c.view(s); r.ByService && name.Pod != "" && slices.Contains(r.Hosts, entryOf(v.Service)) {
			c.byService[v.Service.ID] = true
			pods = append(pods, name)
		}
	}
	c.round, c.next = nil, now.Add(opts.Soon<<min(c.rounds, slowest))
	c.rounds++
	c.pollSoon(now)
	return pods
}
