package topology

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Constraint checks of a topology spread constraint what its schema here, next to
// TopologySpec, does not.
func Constraint(at *field.Path, c corev1.TopologySpreadConstraint) field.ErrorList {
	errs := Key(at.Child("topologyKey"), c.TopologyKey)
	errs = append(errs, Selector(at.Child("labelSelector"), c.LabelSelector)...)
	return append(errs, matchLabelKeys(at.Child("matchLabelKeys"), c.MatchLabelKeys, c.LabelSelector)...)
}

// filled returns the constraint as a service has it, which fills in a selector.
func filled(c corev1.TopologySpreadConstraint) corev1.TopologySpreadConstraint {
	if c.LabelSelector == nil {
		c.LabelSelector = &metav1.LabelSelector{}
	}
	return c
}

// Key checks the label of nodes by which they are in a domain. An empty
// one is refused by the schema of constraints, and here for affinity.
func Key(at *field.Path, key string) field.ErrorList {
	if key == "" {
		return field.ErrorList{field.Required(at, "set the label of the nodes whose values are the domains, for example topology.kubernetes.io/zone")}
	}
	return labelName(at, key, "set a label of the nodes, for example topology.kubernetes.io/zone")
}

func labelName(at *field.Path, key, remedy string) field.ErrorList {
	if len(validation.IsQualifiedName(key)) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, key, "is not a valid name of a label: "+remedy)}
}

func labelValues(at *field.Path, values []string) field.ErrorList {
	var errs field.ErrorList
	for i, v := range values {
		if len(validation.IsValidLabelValue(v)) > 0 {
			errs = append(errs, field.Invalid(at.Index(i), v, `is not a valid value of a label: use at most 63 letters, digits, "-", "_" and ".", beginning and ending with a letter or digit`))
		}
	}
	return errs
}

// Selector checks a selector of labels; none is in order.
func Selector(at *field.Path, s *metav1.LabelSelector) field.ErrorList {
	errs := metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, at)
	for _, err := range errs {
		if strings.HasSuffix(err.Field, ".operator") {
			err.Detail = "is not an operator of selectors: use In, NotIn, Exists or DoesNotExist"
		}
	}
	return errs
}

// matchLabelKeys checks the keys of labels whose values are taken from each pod,
// which add to a selector.
func matchLabelKeys(at *field.Path, keys []string, s *metav1.LabelSelector) field.ErrorList {
	if len(keys) == 0 {
		return nil
	}
	if s == nil {
		return field.ErrorList{field.Forbidden(at, "the keys extend a labelSelector, and there is none: add it, for example labelSelector: {matchLabels: {service: glance}}, or remove the keys")}
	}
	selected, seen := keysOf(s), map[string]bool{}
	var errs field.ErrorList
	for i, key := range keys {
		errs = append(errs, labelName(at.Index(i), key, "set a label of the pods, for example controller-revision-hash")...)
		switch {
		case slices.Contains(selected, key):
			errs = append(errs, field.Invalid(at.Index(i), key, "is in labelSelector as well: remove it from one of the two"))
		case seen[key]:
			errs = append(errs, field.Invalid(at.Index(i), key, "is listed twice: remove one of the two entries"))
		}
		seen[key] = true
	}
	return errs
}

// keysOf returns the labels that a selector is about.
func keysOf(s *metav1.LabelSelector) []string {
	var keys []string
	for key := range s.MatchLabels {
		keys = append(keys, key)
	}
	for _, e := range s.MatchExpressions {
		keys = append(keys, e.Key)
	}
	return keys
}
