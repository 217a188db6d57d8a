package topology

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/edpm-operators/edpm-operators/internal/validate"
)

const (
	required  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferred = "preferredDuringSchedulingIgnoredDuringExecution"
)

// Affinity checks the affinity of pods; none is in order.
func Affinity(at *field.Path, a *corev1.Affinity) field.ErrorList {
	if a == nil {
		return nil
	}
	errs := nodeAffinity(at.Child("nodeAffinity"), a.NodeAffinity)
	if p := a.PodAffinity; p != nil {
		errs = append(errs, podTerms(at.Child("podAffinity"), p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)...)
	}
	if p := a.PodAntiAffinity; p != nil {
		errs = append(errs, podTerms(at.Child("podAntiAffinity"), p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)...)
	}
	return errs
}

func nodeAffinity(at *field.Path, a *corev1.NodeAffinity) field.ErrorList {
	if a == nil {
		return nil
	}
	var errs field.ErrorList
	if r := a.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
		terms := at.Child(required, "nodeSelectorTerms")
		if len(r.NodeSelectorTerms) == 0 {
			errs = append(errs, field.Required(terms, "matches no node: add a term, for example {matchExpressions: [{key: zone, operator: In, values: [zoneA]}]}"))
		}
		for i, term := range r.NodeSelectorTerms {
			errs = append(errs, requiredNodes(terms.Index(i), term)...)
		}
	}
	for i, p := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		item := at.Child(preferred).Index(i)
		errs = append(errs, weight(item.Child("weight"), p.Weight)...)
		errs = append(errs, nodeTerm(item.Child("preference"), p.Preference)...)
	}
	return errs
}

// requiredNodes checks a term that nodes must match. An empty one matches none,
// which is surely not meant: pods would wait for ever.
func requiredNodes(at *field.Path, term corev1.NodeSelectorTerm) field.ErrorList {
	if len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0 {
		return field.ErrorList{field.Required(at, "an empty term matches no node: add matchExpressions, or remove the term")}
	}
	return nodeTerm(at, term)
}

func nodeTerm(at *field.Path, term corev1.NodeSelectorTerm) field.ErrorList {
	var errs field.ErrorList
	for i, r := range term.MatchExpressions {
		item := at.Child("matchExpressions").Index(i)
		errs = append(errs, labelName(item.Child("key"), r.Key, "set a label of the nodes, for example topology.kubernetes.io/zone")...)
		errs = append(errs, nodeRequirement(item, r)...)
	}
	for i, r := range term.MatchFields {
		errs = append(errs, nodeField(at.Child("matchFields").Index(i), r)...)
	}
	return errs
}

// nodeRequirement checks that the values are those that the operator takes.
func nodeRequirement(at *field.Path, r corev1.NodeSelectorRequirement) field.ErrorList {
	values := at.Child("values")
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) == 0 {
			return field.ErrorList{field.Required(values, "In and NotIn need values: add values, or use Exists or DoesNotExist")}
		}
		return labelValues(values, r.Values)
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			return field.ErrorList{field.Forbidden(values, "Exists and DoesNotExist do not allow values: remove them, or use In or NotIn")}
		}
		return nil
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		return oneInteger(values, r.Values)
	}
	return field.ErrorList{field.NotSupported(at.Child("operator"), r.Operator, []corev1.NodeSelectorOperator{
		corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt,
	})}
}

func oneInteger(at *field.Path, values []string) field.ErrorList {
	if len(values) != 1 {
		return field.ErrorList{field.Invalid(at, values, "Gt and Lt compare with one integer: set exactly one value")}
	}
	if _, err := strconv.ParseInt(values[0], 10, 64); err != nil {
		return field.ErrorList{field.Invalid(at.Index(0), values[0], `is not an integer, which Gt and Lt need: set for example "4"`)}
	}
	return nil
}

// nodeField checks a requirement of a field of nodes: of all fields only the
// name can be asked for, and only one at a time.
func nodeField(at *field.Path, r corev1.NodeSelectorRequirement) field.ErrorList {
	var errs field.ErrorList
	if r.Key != "metadata.name" {
		errs = append(errs, field.NotSupported(at.Child("key"), r.Key, []string{"metadata.name"}))
	}
	if !slices.Contains([]corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn}, r.Operator) {
		errs = append(errs, field.NotSupported(at.Child("operator"), r.Operator, []corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn}))
	}
	if len(r.Values) != 1 {
		return append(errs, field.Invalid(at.Child("values"), r.Values, "a field is compared with one value: set the name of exactly one node, and add a term for each additional node"))
	}
	return append(errs, validate.RequiredName(at.Child("values").Index(0), r.Values[0])...)
}

func podTerms(at *field.Path, must []corev1.PodAffinityTerm, better []corev1.WeightedPodAffinityTerm) field.ErrorList {
	var errs field.ErrorList
	for i, term := range must {
		errs = append(errs, podTerm(at.Child(required).Index(i), term)...)
	}
	for i, w := range better {
		item := at.Child(preferred).Index(i)
		errs = append(errs, weight(item.Child("weight"), w.Weight)...)
		errs = append(errs, podTerm(item.Child("podAffinityTerm"), w.PodAffinityTerm)...)
	}
	return errs
}

func podTerm(at *field.Path, term corev1.PodAffinityTerm) field.ErrorList {
	errs := Key(at.Child("topologyKey"), term.TopologyKey)
	errs = append(errs, Selector(at.Child("labelSelector"), term.LabelSelector)...)
	errs = append(errs, Selector(at.Child("namespaceSelector"), term.NamespaceSelector)...)
	for i, ns := range term.Namespaces {
		errs = append(errs, namespace(at.Child("namespaces").Index(i), ns)...)
	}
	errs = append(errs, matchLabelKeys(at.Child("matchLabelKeys"), term.MatchLabelKeys, term.LabelSelector)...)
	return append(errs, mismatchLabelKeys(at.Child("mismatchLabelKeys"), term)...)
}

func namespace(at *field.Path, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "set a namespace, or remove the entry: without entries, the namespace of the pod is used")}
	}
	return validate.Label(at, name)
}

// mismatchLabelKeys checks the keys of labels whose values must differ from
// those of each pod. Unlike matchLabelKeys they may be in the selector.
func mismatchLabelKeys(at *field.Path, term corev1.PodAffinityTerm) field.ErrorList {
	if len(term.MismatchLabelKeys) > 0 && term.LabelSelector == nil {
		return field.ErrorList{field.Forbidden(at, "the keys extend a labelSelector, and there is none: add it, or remove the keys")}
	}
	var errs field.ErrorList
	for i, key := range term.MismatchLabelKeys {
		errs = append(errs, labelName(at.Index(i), key, "set a label of the pods")...)
		if slices.Contains(term.MatchLabelKeys, key) {
			errs = append(errs, field.Invalid(at.Index(i), key, "is in matchLabelKeys as well, and no pod matches both: remove it from one of the two"))
		}
	}
	return errs
}

func weight(at *field.Path, w int32) field.ErrorList {
	if w >= 1 && w <= 100 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, w, "is out of range: set a number from 1, the lowest preference, to 100")}
}
