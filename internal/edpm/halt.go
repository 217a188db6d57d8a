package edpm

import (
	"fmt"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// ShowDrift sets the condition HostInSync of an owner if a check found differences on its host.
func ShowDrift(conditions *condition.Conditions, l *common.Ledger, repair common.RepairPolicy) {
	var found []string
	reason, remedy := common.HostDiffersReason, "see kubectl edpm drift"
	for _, d := range l.Drift {
		if !d.Differs() {
			continue
		}
		found = append(found, fmt.Sprintf("Step %s would change the host: %s", d.Step, strings.Join(d.Tasks(maxNamed), ", ")))
		switch {
		case d.Repaired:
			reason, remedy = common.DriftReturnedReason, "the step was run again after the previous check, and is not run automatically once more: find out what changes the host"
		case repair == common.RepairAsk && reason == common.HostDiffersReason:
			reason, remedy = common.RepairAwaitedReason, "set annotation "+common.RerunAnnotation+" to a new value to repair it"
		}
	}
	if len(found) > 0 {
		conditions.MarkFalse(common.HostInSyncCondition, reason, condition.SeverityWarning, "%s; %s", strings.Join(found, "; "), remedy)
	}
}

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
