package topology

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// Default returns the affinity that the pods of a service have without a
// Topology: they rather run on nodes where none of the service runs yet
// (seeds/001 shows it).
func Default(service string) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 100,
			PodAffinityTerm: corev1.PodAffinityTerm{
				LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
					Key: "service", Operator: metav1.LabelSelectorOpIn, Values: []string{service},
				}}},
				TopologyKey: corev1.LabelHostname,
			},
		}},
	}}
}

// Apply makes pods of the template go where the Topology says. Constraints take
// the place of those of the template; one without a labelSelector gets the given
// one. Each of the three parts of affinity that the Topology sets takes the
// place of that of the template; the others stay, so that a service keeps its
// default anti-affinity next to a constraint, as in the listings of seeds/001.
// The consumers are whose pods these are. A nil Topology changes nothing.
func Apply(template *corev1.PodTemplateSpec, t *topologyv1.Topology, selector *metav1.LabelSelector, consumers ...Consumer) {
	if t == nil {
		return
	}
	if constraints := t.Spec.TopologySpreadConstraints; len(constraints) > 0 {
		template.Spec.TopologySpreadConstraints = withSelector(constraints, selector)
	}
	template.Spec.Affinity = merge(template.Spec.Affinity, t.Spec.Affinity)
	metav1.SetMetaDataAnnotation(&template.ObjectMeta, topologyv1.NameAnnotation, t.Name)
	if len(consumers) > 0 {
		metav1.SetMetaDataAnnotation(&template.ObjectMeta, topologyv1.ConsumersAnnotation, join(consumers))
	}
}

func withSelector(constraints []corev1.TopologySpreadConstraint, selector *metav1.LabelSelector) []corev1.TopologySpreadConstraint {
	out := make([]corev1.TopologySpreadConstraint, 0, len(constraints))
	for i := range constraints {
		c := *constraints[i].DeepCopy()
		if c.LabelSelector == nil {
			c.LabelSelector = selector.DeepCopy()
			c.MatchLabelKeys = unselected(c.MatchLabelKeys, selector)
		}
		out = append(out, c)
	}
	return out
}

// unselected returns the keys that a selector is not about: it decides these labels, and
// Kubernetes refuses a key in both.
func unselected(keys []string, selector *metav1.LabelSelector) []string {
	if selector == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
		_, selected := selector.MatchLabels[key]
		return selected || slices.ContainsFunc(selector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key == key })
	})
}

// merge returns base with the parts that wanted sets in their place.
func merge(base, wanted *corev1.Affinity) *corev1.Affinity {
	if wanted == nil {
		return base
	}
	merged, wanted := base.DeepCopy(), wanted.DeepCopy()
	if merged == nil {
		return wanted
	}
	if wanted.NodeAffinity != nil {
		merged.NodeAffinity = wanted.NodeAffinity
	}
	if wanted.PodAffinity != nil {
		merged.PodAffinity = wanted.PodAffinity
	}
	if wanted.PodAntiAffinity != nil {
		merged.PodAntiAffinity = wanted.PodAntiAffinity
	}
	return merged
}

func join(consumers []Consumer) string {
	texts := make([]string, 0, len(consumers))
	for _, c := range consumers {
		texts = append(texts, c.String())
	}
	return strings.Join(texts, ",")
}
