package drain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

const (
	// backoffBase and backoffMax bound how often a guest is tried again that could not be
	// moved: the pause is doubled each time.
	backoffBase = time.Minute
	backoffMax  = 30 * time.Minute
	// relevantFor is how long a failed migration counts.
	relevantFor = 2 * time.Hour
)

// immobile is what keeps a guest whose host cannot have any moved by a call.
var immobile = map[Call]string{LiveMigrate: "cannot be migrated while it runs", Migrate: "cannot be migrated cold"}

// Evacuation is the mode for a host that is off: guests are made again elsewhere.
const Evacuation = computeservice.Evacuation

// Host is what nova reports of a host that is drained.
type Host struct {
	Name string
	// Mode as in validate.Drain, or Evacuation; empty to only complete what an earlier drain has
	// begun.
	Mode string
	// Obstacles are why no guest of the host can be moved by a call; empty for one that nova can try.
	Obstacles map[Call]string
	// Parallel is how many guests are moved at a time.
	Parallel   int
	Guests     []computeservice.Guest
	Migrations []computeservice.Migration
	// Notes are what is remembered of guests and migrations, by their id.
	Notes map[string]Note
	Now   time.Time
}

// Note is an attempt of which nova keeps nothing.
type Note struct {
	// Text says what became of it.
	Text string
	// Attempts so far, and when the last was.
	Attempts int
	At       time.Time
}

// State of a guest.
type State string

// States of guests.
const (
	// Moving guests are migrated, or shut down.
	Moving State = "moving"
	// Waiting guests are moved when those before them are done.
	Waiting State = "waiting"
	// Failed guests could not be moved, and are tried again.
	Failed State = "failed"
	// Blocked guests need a person.
	Blocked State = "blocked"
	// Settled guests are shut off where that is all that is wanted.
	Settled State = "settled"
)

// Call of nova's API for a guest.
type Call string

// Calls of nova's API.
const (
	LiveMigrate Call = "live-migrate"
	Migrate     Call = "migrate"
	Confirm     Call = "confirm"
	Shutdown    Call = "stop"
	Evacuate    Call = "evacuate"
)

// Verdict on a guest.
type Verdict struct {
	Guest computeservice.Guest
	State State
	// Call that is due, empty for none.
	Call Call
	// Text says what keeps the guest from being moved, and what helps.
	Text string
	// Migration that failed last, empty for none: nova knows why.
	Migration string
	// Retry is when the guest is tried again; zero for when its turn comes.
	Retry time.Time
	// Stuck reports whether nova still does something with a blocked guest.
	Stuck bool
}

// Judge returns a verdict on each guest that is on the host, or whose migration from or to
// it has not ended: in the order in which they are moved, those that failed last.
func Judge(h Host) []Verdict {
	open := map[string]computeservice.Migration{}
	for _, m := range h.Migrations {
		if m.IsOpen() && h.concerns(m) {
			open[m.Guest] = m
		}
	}
	var all []Verdict
	for _, g := range h.Guests {
		if m, ok := open[g.ID]; ok {
			all = append(all, h.inMigration(g, m))
		} else if h.Mode != "" {
			all = append(all, h.judge(g))
		}
		delete(open, g.ID)
	}
	for _, m := range open {
		all = append(all, h.inMigration(computeservice.Guest{ID: m.Guest}, m))
	}
	slices.SortFunc(all, func(a, b Verdict) int {
		return cmp.Or(attempts(a)-attempts(b), cmp.Compare(a.Guest.Name, b.Guest.Name), cmp.Compare(a.Guest.ID, b.Guest.ID))
	})
	return all
}

// concerns reports whether the drain waits for the end of a migration. What an earlier one
// began is completed: a guest that was migrated cold has to be confirmed. No migration ends
// whose host is off.
func (h Host) concerns(m computeservice.Migration) bool {
	switch h.Mode {
	case "":
		return m.Ours && m.Kind == computeservice.ColdMigration
	case Evacuation:
		return m.Kind == Evacuation && m.Source == h.Name
	}
	return true
}

// attempts orders guests that were tried after those that were not.
func attempts(v Verdict) int {
	if v.Migration != "" || v.State == Failed {
		return 1
	}
	return 0
}

// inMigration judges a guest whose migration has not ended.
func (h Host) inMigration(g computeservice.Guest, m computeservice.Migration) Verdict {
	v := Verdict{Guest: g, State: Moving}
	confirmable := m.Status == "finished" && m.Source == h.Name && m.Kind == computeservice.ColdMigration && m.Ours
	note, hasNote := h.Notes[m.ID]
	switch {
	case confirmable && hasNote && h.Now.Before(retry(note.Attempts, note.At)):
		v.State, v.Text, v.Retry = Failed, "was moved, and nova does not confirm that: "+note.Text, retry(note.Attempts, note.At)
	case confirmable:
		v.Call = Confirm
	case m.Status == "finished":
		return blocked(g, "%s", unconfirmed(m))
	case m.StandsStill(h.Now):
		return standsStill(g, m)
	}
	return v
}

// standsStill judges a guest whose migration stands still. Only a live one can be aborted.
func standsStill(g computeservice.Guest, m computeservice.Migration) Verdict {
	since := fmt.Sprintf("that is %s since %s", m.Status, stamp(m.Changed))
	switch m.Kind {
	case Evacuation:
		return stuck(g, "has an evacuation %s: see the log of nova-compute on %s, and of the conductor", since, targetOf(m))
	case "live-migration":
		return stuck(g, "has a migration %s: see the log of nova-compute on %s, and openstack server migration abort", since, m.Source)
	}
	return stuck(g, "has a migration %s: see the logs of nova-compute on %s and %s, and openstack server set --state", since, m.Source, targetOf(m))
}

func unconfirmed(m computeservice.Migration) string {
	return fmt.Sprintf("has a %s from %s to %s that was not confirmed: openstack server resize confirm or revert %s", m.Kind, m.Source, m.Target, m.Guest)
}

// targetOf is the host that a migration leads to, as far as nova has chosen it.
func targetOf(m computeservice.Migration) string { return cmp.Or(m.Target, "its new host") }

// judge judges a guest that no migration concerns.
func (h Host) judge(g computeservice.Guest) Verdict {
	switch {
	case h.Mode == validate.DrainStop && g.State == "stopped" && g.Task == "":
		return Verdict{Guest: g, State: Settled}
	case g.State == "":
		return blocked(g, "is in a cell whose database nova does not reach")
	case g.Task != "" && h.Mode != Evacuation: // of a host that is off none ends
		return h.inTask(g)
	case g.Locked: // nova locks for other users only, not for one with the role admin
		return blocked(g, "is locked: openstack server unlock %s", g.ID)
	}
	call, obstacle := howToMove(h.Mode, g)
	switch {
	case obstacle != "":
		return blocked(g, "%s", obstacle)
	case h.Obstacles[call] != "":
		return blocked(g, "%s", immobile[call])
	}
	return h.due(Verdict{Guest: g, State: Waiting, Call: call})
}

// inTask judges a guest with which nova does something.
func (h Host) inTask(g computeservice.Guest) Verdict {
	if h.Now.Sub(g.Updated) > computeservice.StuckAfter {
		return stuck(g, "is in task %s since %s: see the log of nova-compute, and openstack server set --state", g.Task, stamp(g.Updated))
	}
	switch g.Task {
	case "migrating", "resize_prep", "resize_migrating", "resize_migrated", "resize_finish", "powering-off":
		return Verdict{Guest: g, State: Moving}
	}
	return Verdict{Guest: g, State: Waiting}
}

// howToMove returns the call for a guest, or what keeps it from being moved: states that
// nova refuses (check_instance_state in nova/compute/api.py).
func howToMove(mode string, g computeservice.Guest) (call Call, obstacle string) {
	if mode == Evacuation {
		return howToEvacuate(g)
	}
	switch g.State {
	case "active":
		return map[string]Call{validate.DrainLive: LiveMigrate, validate.DrainCold: Migrate, validate.DrainStop: Shutdown}[mode], ""
	case "stopped":
		return Migrate, ""
	case "paused":
		if mode == validate.DrainLive {
			return LiveMigrate, ""
		}
		return "", "is paused: openstack server unpause " + g.ID
	case "suspended":
		return "", "is suspended: openstack server resume " + g.ID
	case "rescued":
		return "", "is rescued: openstack server unrescue " + g.ID
	case "resized":
		return "", "has a resize that was not confirmed: openstack server resize confirm or revert " + g.ID
	case "shelved":
		return "", "is shelved: openstack server unshelve " + g.ID
	case "error":
		return "", "is in ERROR: see its fault with openstack server show, and rebuild, reset or delete it"
	}
	return "", "is " + g.State + ", which nova does not move: wait for it, or delete the guest"
}

// howToEvacuate is howToMove for a guest whose host is off. One in ERROR is made again, too: so
// it is after an evacuation for which there was no host.
func howToEvacuate(g computeservice.Guest) (call Call, obstacle string) {
	switch g.State {
	case "active", "stopped", "error":
		return Evacuate, ""
	case "shelved":
		return "", "is shelved: openstack server unshelve " + g.ID
	}
	return "", fmt.Sprintf("is %s, in which nova evacuates no guest: openstack server set --state error %s, or delete it", g.State, g.ID)
}

// due holds a guest back that could not be moved until it is time to try again.
func (h Host) due(v Verdict) Verdict {
	var last computeservice.Migration
	failures := 0
	for _, m := range h.Migrations {
		if m.Guest != v.Guest.ID || m.Source != h.Name || !isFailure(m) || (m.Kind == Evacuation) != (h.Mode == Evacuation) || h.Now.Sub(m.Changed) > relevantFor {
			continue
		}
		failures++
		if last.ID == "" || m.Changed.After(last.Changed) {
			last = m
		}
	}
	note, hasNote := h.Notes[v.Guest.ID]
	switch {
	case hasNote && !last.Changed.After(note.At):
		v.Text, v.Retry = note.Text, retry(note.Attempts, note.At)
	case failures > 0:
		v.Text, v.Migration, v.Retry = "could not be moved", last.ID, retry(failures, last.Changed)
	default:
		return v
	}
	v.State = Failed
	if h.Now.Before(v.Retry) {
		v.Call = ""
	}
	return v
}

func isFailure(m computeservice.Migration) bool {
	return m.Status == "error" || m.Status == "failed" || m.Status == "cancelled"
}

// retry returns when to try again after so many attempts.
func retry(attempts int, last time.Time) time.Time {
	return last.Add(min(backoffBase<<min(attempts-1, 10), backoffMax))
}

func blocked(g computeservice.Guest, format string, args ...any) Verdict {
	return Verdict{Guest: g, State: Blocked, Text: fmt.Sprintf(format, args...)}
}

func stuck(g computeservice.Guest, format string, args ...any) Verdict {
	v := blocked(g, format, args...)
	v.Stuck = true
	return v
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// evacuated are the guests that nova has made again elsewhere, and whose former copies its
// nova-compute has not removed from the host.
func (h Host) evacuated() int {
	guests := map[string]bool{}
	for _, m := range h.Migrations {
		if m.Kind == Evacuation && m.Source == h.Name && m.Status == "done" {
			guests[m.Guest] = true
		}
	}
	return len(guests)
}
