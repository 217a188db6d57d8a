// Package expect has the matchers of the end-to-end tests for the conditions of
// objects.
package expect

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

// Read returns a function for Eventually that reads the object again.
func Read[T phase.Object](ctx context.Context, r client.Reader, obj T) func() (phase.Object, error) {
	return func() (phase.Object, error) {
		err := r.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		return obj, err
	}
}

// Ready succeeds for an object whose status says Ready.
func Ready() types.GomegaMatcher {
	return WithTransform(func(obj phase.Object) string {
		ready := obj.GetConditions().Get(condition.ReadyCondition)
		if ready == nil {
			return "no condition Ready"
		}
		if ready.Status == corev1.ConditionTrue {
			return "Ready"
		}
		return obj.GetName() + ": " + Describe(obj)
	}, Equal("Ready"))
}

// False succeeds for an object with a condition that is False for the reason,
// with all the words in its message.
func False(t condition.Type, reason condition.Reason, words ...string) types.GomegaMatcher {
	return WithTransform(func(obj phase.Object) string { return unlike(obj, t, reason, words) }, BeEmpty())
}

// Problem succeeds like False, if Ready also mirrors the condition.
func Problem(t condition.Type, reason condition.Reason, words ...string) types.GomegaMatcher {
	return WithTransform(func(obj phase.Object) string {
		ready := obj.GetConditions().Get(condition.ReadyCondition)
		if ready == nil || ready.Status != corev1.ConditionFalse || ready.Reason != reason {
			return fmt.Sprintf("%s: Ready does not mirror %s; %s", obj.GetName(), t, Describe(obj))
		}
		return unlike(obj, t, reason, words)
	}, BeEmpty())
}

// unlike says in what the object differs from what is expected of it.
func unlike(obj phase.Object, t condition.Type, reason condition.Reason, words []string) string {
	c := obj.GetConditions().Get(t)
	if c == nil || c.Status != corev1.ConditionFalse || c.Reason != reason {
		return fmt.Sprintf("%s: want %s=False for %s; %s", obj.GetName(), t, reason, Describe(obj))
	}
	for _, w := range words {
		if !strings.Contains(c.Message, w) {
			return fmt.Sprintf("%s: want %q in the message of %s; %s", obj.GetName(), w, t, Describe(obj))
		}
	}
	return ""
}

// Describe lists the conditions of an object.
func Describe(obj phase.Object) string {
	var parts []string
	for _, c := range *obj.GetConditions() {
		parts = append(parts, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(parts, "; ")
}
