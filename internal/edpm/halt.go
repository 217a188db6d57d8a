package edpm

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// Halt turns the state of a target that has not converged into the condition of
// its owner.
func Halt(t condition.Type, s State) *phase.Halt {
	reason := condition.Reason(s.Phase)
	switch s.Phase {
	case Failed:
		return Failure(t, reason, s)
	case RetriesExhausted, Refused, TooLarge:
		return phase.Stalled(t, reason, "%s", s.Describe())
	}
	return phase.Waiting(t, reason, "%s", s.Describe())
}

// Failure turns the state of a target that failed into a condition with the
// given reason. A host that keeps failing in the same way is reported in one
// event, however often it is tried.
func Failure(t condition.Type, reason condition.Reason, s State) *phase.Halt {
	halt := phase.Failing(t, reason, "%s", s.Describe())
	halt.Repeats = s.Repeated
	return halt
}
