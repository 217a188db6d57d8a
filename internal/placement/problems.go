package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// Problem is one cause that keeps pods from their place.
type Problem struct {
	// Reason is one of topologyv1.PlacementReasons.
	Reason condition.Reason `json:"reason"`
	// Pods that it is about, by name.
	Pods []string `json:"pods,omitempty"`
	// Node, if it is about a single one.
	Node string `json:"node,omitempty"`
	// Volume is the name of a PersistentVolume.
	Volume string `json:"volume,omitempty"`
	// Key of a node label.
	Key string `json:"key,omitempty"`
	// ByChance reports that the pods fit for some of the choices that kube-scheduler
	// makes between nodes that score alike.
	ByChance bool `json:"byChance,omitempty"`
	// Message says what is wrong, and Remedy what to do.
	Message string `json:"message"`
	Remedy  string `json:"remedy"`
}

// maxDescribed bounds how many problems a condition spells out.
const maxDescribed = 3

// Describe returns the message of a condition about problems: which pods, what is
// wrong, and what to do.
func Describe(problems []Problem) string {
	var texts []string
	for _, p := range problems[:min(len(problems), maxDescribed)] {
		texts = append(texts, fmt.Sprintf("%s: %s. To fix it: %s.",
			Enumerate(slices.Sorted(slices.Values(p.Pods))), strings.TrimRight(p.Message, ". "), strings.TrimRight(p.Remedy, ". ")))
	}
	if more := len(problems) - maxDescribed; more > 0 {
		texts = append(texts, fmt.Sprintf("And %d more.", more))
	}
	return strings.Join(texts, " ")
}

// merge joins the pods of problems that have one cause and one remedy, and sorts
// by how telling the reason is. The message is that of the first pod.
func merge(problems []Problem) []Problem {
	type cause struct {
		reason, node, volume, key, remedy string
		byChance                          bool
	}
	var merged []Problem
	at := map[cause]int{}
	for _, p := range problems {
		c := cause{string(p.Reason), p.Node, p.Volume, p.Key, p.Remedy, p.ByChance}
		if i, ok := at[c]; ok {
			merged[i].Pods = append(merged[i].Pods, p.Pods...)
			continue
		}
		at[c] = len(merged)
		merged = append(merged, p)
	}
	slices.SortStableFunc(merged, func(a, b Problem) int {
		return slices.Index(topologyv1.PlacementReasons, a.Reason) - slices.Index(topologyv1.PlacementReasons, b.Reason)
	})
	return merged
}

// InertSelectors returns the constraints of the template that select none of the
// workload's pods. An empty selector is one: kube-scheduler counts no pods for it.
func (w Workload) InertSelectors() ([]Problem, error) {
	var pods []*corev1.Pod
	for ordinal := range max(w.Replicas, 1) {
		pods = append(pods, w.pod(ordinal))
	}
	var problems []Problem
	for _, c := range w.Template.Spec.TopologySpreadConstraints {
		inert, err := selectsNone(c, pods)
		if err != nil {
			return nil, err
		}
		if inert {
			problems = append(problems, w.inert(c, pods))
		}
	}
	return problems, nil
}

func selectsNone(c corev1.TopologySpreadConstraint, pods []*corev1.Pod) (bool, error) {
	for _, pod := range pods {
		selector, err := Selector(c, pod.Labels)
		if err != nil {
			return false, err
		}
		if !selector.Empty() && selector.Matches(labels.Set(pod.Labels)) {
			return false, nil
		}
	}
	return true, nil
}

func (w Workload) inert(c corev1.TopologySpreadConstraint, pods []*corev1.Pod) Problem {
	p := Problem{
		Reason: topologyv1.InertSelectorReason, Key: c.TopologyKey, Pods: names(pods[:w.Replicas], (*corev1.Pod).GetName),
		Message: fmt.Sprintf("the topology spread constraint on %q selects %s, but the pods of %s have the labels %s: it spreads nothing",
			c.TopologyKey, selected(c), w.Name, labels.Set(w.Template.Labels)),
		Remedy: "fix the labelSelector so that it matches the labels of the pods themselves",
	}
	if len(w.Template.Labels) > 0 {
		key := slices.Sorted(maps.Keys(w.Template.Labels))[0]
		p.Remedy += fmt.Sprintf(", for example matchLabels: {%s: %s}", key, w.Template.Labels[key])
	}
	return p
}

// selected writes a selector as kubectl does.
func selected(c corev1.TopologySpreadConstraint) string {
	selector, err := Selector(c, nil)
	if err != nil || selector.String() == "" {
		return "nothing"
	}
	return "pods with " + selector.String()
}

func names[T any](all []T, name func(T) string) []string {
	result := make([]string, len(all))
	for i := range all {
		result[i] = name(all[i])
	}
	return result
}

// Enumerate lists a few names, and says how many more there are.
func Enumerate(names []string) string {
	const few = 5
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few-1], ", "), len(names)-few+1)
}
