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
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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
		errs = append(errs, Constraint(at.Child("topologySpreadConstraints").Index(i), filled(c))...)
	}
	return append(errs, Affinity(at.Child("affinity"), t.Spec.Affinity)...)
}

// topologyWarnings reports what surely has no effect: selectors that are empty, which
// other than anywhere else select nothing in a constraint (kube-scheduler,
// podtopologyspread), terms between pods without a selector, and the key that only pods of
// Deployments have.
func topologyWarnings(_ context.Context, _, t *topologyv1.Topology) []string {
	var warnings []string
	for i, c := range t.Spec.TopologySpreadConstraints {
		at := field.NewPath("spec", "topologySpreadConstraints").Index(i)
		if s := c.LabelSelector; s != nil && len(keysOf(s)) == 0 && len(c.MatchLabelKeys) == 0 {
			warnings = append(warnings, fmt.Sprintf("%s: {} selects no pods, so that the constraint only keeps pods on nodes with the label: remove labelSelector to spread the pods of each service, or set labels", at.Child("labelSelector")))
		}
		warnings = append(warnings, keyWarnings(at, c.MatchLabelKeys)...)
	}
	eachTerm(t.Spec.Affinity, func(at *field.Path, term corev1.PodAffinityTerm) {
		if term.LabelSelector == nil {
			warnings = append(warnings, fmt.Sprintf("%s: is missing, so that the term selects no pods and has no effect: set labels, or {} for all pods", at.Child("labelSelector")))
		}
		warnings = append(warnings, keyWarnings(at, term.MatchLabelKeys)...)
	})
	return warnings
}

// keyWarnings names the key that the documentation of Kubernetes has as its example.
func keyWarnings(at *field.Path, keys []string) []string {
	i := slices.Index(keys, appsv1.DefaultDeploymentUniqueLabelKey)
	if i < 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s is a label of pods of Deployments, and is ignored: use %s, which pods of StatefulSets have", at.Child("matchLabelKeys").Index(i), keys[i], appsv1.ControllerRevisionHashLabelKey)}
}

// eachTerm calls a function with each term between pods.
func eachTerm(a *corev1.Affinity, do func(*field.Path, corev1.PodAffinityTerm)) {
	if a == nil {
		return
	}
	all := func(at *field.Path, must []corev1.PodAffinityTerm, better []corev1.WeightedPodAffinityTerm) {
		for i, term := range must {
			do(at.Child(required).Index(i), term)
		}
		for i, term := range better {
			do(at.Child(preferred).Index(i).Child("podAffinityTerm"), term.PodAffinityTerm)
		}
	}
	at := field.NewPath("spec", "affinity")
	if p := a.PodAffinity; p != nil {
		all(at.Child("podAffinity"), p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		all(at.Child("podAntiAffinity"), p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}
