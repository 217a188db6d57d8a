package drain

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
)

// mostRefusals in a row end an attempt: hundreds of guests can be refused for one reason.
const mostRefusals = 10

// Caller calls nova's API: a *computeservice.Client. What nova refuses for a guest is a
// *computeservice.RefusedError.
type Caller interface {
	LiveMigrate(ctx context.Context, guest string) error
	Migrate(ctx context.Context, guest string) error
	Confirm(ctx context.Context, guest string) error
	Stop(ctx context.Context, guest string) error
	Evacuate(ctx context.Context, guest string) error
	// Explain returns why the last migration of a guest failed, and the server group that it
	// obeys; both are empty if nova does not know.
	Explain(ctx context.Context, guest string) (why, group string, err error)
}

// Carry makes the calls that are due, and returns the verdicts as they are then: of no more
// guests than may be moved at a time. It ends with an error that concerns not only a guest.
func Carry(ctx context.Context, caller Caller, h Host, verdicts []Verdict) error {
	free, refusals := h.Parallel-moving(verdicts), 0
	for i := range verdicts {
		v := &verdicts[i]
		starts := v.Call != Confirm
		if v.Call == "" || refusals == mostRefusals || starts && free <= 0 {
			continue
		}
		err := call(ctx, caller, v)
		refused := (*computeservice.RefusedError)(nil)
		switch {
		case errors.As(err, &refused):
			refusals++
			h.refuse(v, refused.Message)
			continue
		case err != nil:
			return err
		case v.Call == Shutdown: // nova keeps no record of it
			h.note(v.Guest.ID, "was told to shut down, and runs")
		}
		v.State, v.Call = Moving, ""
		if starts {
			free--
		}
	}
	return nil
}

// moving is how many guests are being moved.
func moving(verdicts []Verdict) int {
	n := 0
	for _, v := range verdicts {
		if v.State == Moving && v.Call == "" || v.Stuck {
			n++
		}
	}
	return n
}

func call(ctx context.Context, caller Caller, v *Verdict) error {
	return map[Call]func(context.Context, string) error{
		LiveMigrate: caller.LiveMigrate, Migrate: caller.Migrate, Confirm: caller.Confirm, Shutdown: caller.Stop, Evacuate: caller.Evacuate,
	}[v.Call](ctx, v.Guest.ID)
}

// refuse notes that nova has refused a call.
func (h Host) refuse(v *Verdict, message string) {
	id := v.Guest.ID
	if v.Call == Confirm {
		id = h.migrationOf(id)
	}
	note := h.note(id, "nova refuses to "+string(v.Call)+" it: "+message)
	v.State, v.Call, v.Migration, v.Text, v.Retry = Failed, "", "", note.Text, retry(note.Attempts, note.At)
}

// note notes an attempt of which nova keeps nothing.
func (h Host) note(id, text string) Note {
	n := Note{Text: text, Attempts: h.Notes[id].Attempts + 1, At: h.Now}
	h.Notes[id] = n
	return n
}

// Explain completes the verdicts that a message names with why migrations failed. nova is
// asked once for each.
func Explain(ctx context.Context, caller Caller, h Host, verdicts []Verdict) error {
	shown := 0
	for i := range verdicts {
		v := &verdicts[i]
		if v.State != Blocked && v.State != Failed {
			continue
		}
		if shown++; shown > mostListed {
			return nil
		}
		if v.Migration == "" {
			continue
		}
		note, known := h.Notes[v.Migration]
		if !known {
			why, group, err := caller.Explain(ctx, v.Guest.ID)
			if err != nil {
				return err
			}
			note = Note{Text: explanation(why, group), At: h.Now}
			h.Notes[v.Migration] = note
		}
		v.Text = note.Text
	}
	return nil
}

// explanation of a failure, from nova's own words. nova does not say which of its filters
// has left no host.
func explanation(why, group string) string {
	switch {
	case why == "":
		return "could not be moved: see openstack server event list"
	case !strings.Contains(why, "No valid host"):
		return "could not be moved: " + why
	case group != "":
		return "could not be moved: " + why + " No other host has room for it, or is allowed by its server group " + group + ", its availability zone or the host that was requested for it"
	}
	return "could not be moved: " + why + " No other host has room for it, or is allowed by its availability zone or the host that was requested for it"
}

// migrationOf returns the id of the migration of a guest that has not ended.
func (h Host) migrationOf(guest string) string {
	for _, m := range h.Migrations {
		if m.Guest == guest && m.IsOpen() {
			return m.ID
		}
	}
	return ""
}

// Memory has the Notes of all computes that are drained. It is lost with the manager: a
// guest is refused once more then.
type Memory struct {
	mu    sync.Mutex
	notes map[types.NamespacedName]map[string]Note
}

// NewMemory returns an empty one.
func NewMemory() *Memory { return &Memory{notes: map[types.NamespacedName]map[string]Note{}} }

// Of returns the notes of a compute, to be changed in place by the one reconciliation of it,
// without those that are too old to count.
func (m *Memory) Of(compute types.NamespacedName, now time.Time) map[string]Note {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.notes[compute] == nil {
		m.notes[compute] = map[string]Note{}
	}
	maps.DeleteFunc(m.notes[compute], func(_ string, n Note) bool { return now.Sub(n.At) > relevantFor })
	return m.notes[compute]
}

// Forget the notes of a compute.
func (m *Memory) Forget(compute types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.notes, compute)
}
