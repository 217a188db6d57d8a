// Package phase runs the phases of a reconciliation and turns how they end into
// conditions, one status write and events. Every controller of edpm-operators uses
// it, so that all of them report in the same way.
package phase

import (
	"fmt"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
)

// Halt is an error that says why a reconciliation went no further, as the
// condition that it leaves behind. It is not a fault of the controller: nothing
// is retried because of it, a watch (or After) wakes the object.
type Halt struct {
	Type     condition.Type
	Reason   condition.Reason
	Severity condition.Severity
	Message  string
	// After is when to look again in any case; zero means never.
	After time.Duration
	// Repeats reports whether an event has reported it already, when an earlier attempt
	// ended in the same way. There is no other one, however long that continues.
	Repeats bool
}

// Error is the message of the condition.
func (h *Halt) Error() string { return h.Message }

// Waiting says that something is awaited that will come by itself.
func Waiting(t condition.Type, reason condition.Reason, format string, args ...any) *Halt {
	return &Halt{Type: t, Reason: reason, Severity: condition.SeverityInfo, Message: fmt.Sprintf(format, args...)}
}

// Failing says that something went wrong that will be tried again by itself.
func Failing(t condition.Type, reason condition.Reason, format string, args ...any) *Halt {
	return &Halt{Type: t, Reason: reason, Severity: condition.SeverityWarning, Message: fmt.Sprintf(format, args...)}
}

// Stalled says that a person has to change something.
func Stalled(t condition.Type, reason condition.Reason, format string, args ...any) *Halt {
	return &Halt{Type: t, Reason: reason, Severity: condition.SeverityError, Message: fmt.Sprintf(format, args...)}
}
