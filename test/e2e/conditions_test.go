package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// current returns a function for Eventually that reads an object.
func current[T phase.Object](ctx context.Context, obj T) func() (phase.Object, error) {
	return func() (phase.Object, error) {
		err := k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		return obj, err
	}
}

// beReady succeeds for an object whose status says Ready for its present spec.
func beReady() types.GomegaMatcher {
	return WithTransform(func(obj phase.Object) string {
		ready := obj.GetConditions().Get(condition.ReadyCondition)
		if ready == nil {
			return "no condition Ready"
		}
		if ready.Status == corev1.ConditionTrue {
			return "Ready"
		}
		return obj.GetName() + ": " + describe(obj)
	}, Equal("Ready"))
}

// haveProblem succeeds for an object with a condition that is False for the
// reason, with all the words in its message, and that is mirrored by Ready.
func haveProblem(t condition.Type, reason condition.Reason, words ...string) types.GomegaMatcher {
	return WithTransform(func(obj phase.Object) string {
		c, ready := obj.GetConditions().Get(t), obj.GetConditions().Get(condition.ReadyCondition)
		switch {
		case c == nil || c.Status != corev1.ConditionFalse || c.Reason != reason:
			return fmt.Sprintf("%s: want %s=False for %s; %s", obj.GetName(), t, reason, describe(obj))
		case ready == nil || ready.Status != corev1.ConditionFalse || ready.Reason != reason:
			return fmt.Sprintf("%s: Ready does not mirror %s; %s", obj.GetName(), t, describe(obj))
		}
		for _, w := range words {
			if !strings.Contains(c.Message, w) {
				return fmt.Sprintf("%s: want %q in the message of %s; %s", obj.GetName(), w, t, describe(obj))
			}
		}
		return ""
	}, BeEmpty())
}

func describe(obj phase.Object) string {
	var parts []string
	for _, c := range *obj.GetConditions() {
		parts = append(parts, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(parts, "; ")
}
