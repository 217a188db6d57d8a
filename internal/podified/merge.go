package podified

import (
	"slices"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"

	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// mergeConditions gives an object the conditions of its services, and returns the halt that
// it shows: that of the worst condition.
func mergeConditions(object *condition.Conditions, services []condition.Conditions, halts []*phase.Halt) error {
	byType := map[condition.Type][]condition.Condition{}
	for _, conditions := range services {
		for _, c := range conditions {
			byType[c.Type] = append(byType[c.Type], c)
		}
	}
	for _, same := range byType {
		merged := worst(same)
		object.Set(&merged)
	}
	at := slices.IndexFunc(halts, func(halt *phase.Halt) bool {
		shown := object.Get(halt.Type)
		return shown != nil && shown.Message == halt.Message
	})
	if at < 0 {
		return nil
	}
	return halts[at]
}

// severities of conditions that are False, the worst first.
var severities = []condition.Severity{condition.SeverityError, condition.SeverityWarning, condition.SeverityInfo}

// worst returns the first of the worst of conditions of one type. If all are True
// it has what each says.
func worst(same []condition.Condition) condition.Condition {
	for _, severity := range severities {
		for _, c := range same {
			if c.Status == corev1.ConditionFalse && c.Severity == severity {
				return c
			}
		}
	}
	merged, messages := same[0], []string{}
	for _, c := range same {
		if c.Status != corev1.ConditionTrue {
			return c
		}
		if !slices.Contains(messages, c.Message) {
			messages = append(messages, c.Message)
		}
	}
	merged.Message = strings.Join(messages, "; ")
	return merged
}
