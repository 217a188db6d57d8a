// Package topology admits Topologies.
//
// What a Topology says ends up in the pods of services. A mistake that the API
// server would refuse there is refused here, where the person who made it sees
// it: the rules are those of core/v1 for Pods (pkg/apis/core/validation of
// Kubernetes), and a test holds them against an API server. The schema has those
// rules that need no code, so that they hold while this webhook is away.
package topology

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
)

var rules = hook.Rules[*topologyv1.Topology]{
	Kind:     topologyv1.GroupVersion.WithKind("Topology").GroupKind(),
	Errors:   topologyErrors,
	Warnings: topologyWarnings,
}

// SetupTopologyWithManager serves the rules of Topology.
func SetupTopologyWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &topologyv1.Topology{}).WithValidator(rules).Complete()
}

func topologyErrors(t *topologyv1.Topology) field.ErrorList {
	at := field.NewPath("spec")
	var errs field.ErrorList
	for i, c := range t.Spec.TopologySpreadConstraints {
		errs = append(errs, Constraint(at.Child("topologySpreadConstraints").Index(i), c)...)
	}
	return append(errs, Affinity(at.Child("affinity"), t.Spec.Affinity)...)
}

// topologyWarnings reports selectors that are empty: other than anywhere else,
// one of a constraint selects nothing (kube-scheduler, podtopologyspread).
func topologyWarnings(_ context.Context, _, t *topologyv1.Topology) []string {
	var warnings []string
	for i, c := range t.Spec.TopologySpreadConstraints {
		if s := c.LabelSelector; s != nil && len(keysOf(s)) == 0 && len(c.MatchLabelKeys) == 0 {
			at := field.NewPath("spec", "topologySpreadConstraints").Index(i).Child("labelSelector")
			warnings = append(warnings, fmt.Sprintf("%s: {} selects no pods, so that the constraint only keeps pods on nodes with the label: remove labelSelector to spread the pods of each service, or set labels", at))
		}
	}
	return warnings
}
