package drain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
)

// Open names the guests whose migrations from or to a host that is not drained have not ended, with
// what ends each, and reports whether a person has to do something for one of them. It is empty if
// there are none.
func Open(h Host) (text string, needsPerson bool) {
	var lines []string
	more := 0
	for _, m := range h.Migrations {
		if !m.IsOpen() {
			continue
		}
		line, isBlocked := h.whatEnds(m)
		needsPerson = needsPerson || isBlocked
		if len(lines) < mostListed {
			lines = append(lines, "guest "+m.Guest+" "+line)
		} else {
			more++
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "; "), needsPerson
}

// whatEnds returns what ends a migration, and whether a person does. Without a drain those of the
// service user are confirmed by no one else.
func (h Host) whatEnds(m computeservice.Migration) (text string, needsPerson bool) {
	switch v := h.inMigration(computeservice.Guest{ID: m.Guest}, m); {
	case v.State == Blocked:
		return v.Text, true
	case m.Status == "finished":
		return unconfirmed(m), true
	}
	return fmt.Sprintf("has a %s from %s to %s that is %s: wait until it has ended", m.Kind, m.Source, targetOf(m), m.Status), false
}

// Standstill names the guests whose evacuations from a host have not changed for long; it is empty if
// there are none.
func Standstill(h Host) string {
	h.Mode, h.Guests = Evacuation, nil
	return list(slices.DeleteFunc(Judge(h), func(v Verdict) bool { return !v.Stuck }))
}
