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
		return phase.Failing(t, reason, "%s", s.Describe())
	case GaveUp:
		return phase.Stalled(t, reason, "%s", s.Describe())
	}
	return phase.Waiting(t, reason, "%s", s.Describe())
}
