package placement

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// selection is which pods a term between pods selects.
type selection int

const (
	noPod selection = iota
	// itself is that each pod of the workload selects itself at most.
	itself
	otherPods
)

// term reports a term of the affinity between pods that selects no pod, or of each pod only
// the pod itself, and its keys.
func (i *inertRules) term(kind string, term corev1.PodAffinityTerm) {
	rule := fmt.Sprintf("the %s on %q", kind, term.TopologyKey)
	remedy := "fix the labelSelector so that it matches the labels of the pods that are meant"
	if term.NamespaceSelector != nil {
		remedy += ", or the namespaceSelector: it includes the pod's own namespace only if it matches the labels of that"
	}
	selected := i.selection(term)
	switch {
	case term.LabelSelector == nil:
		i.add(term.TopologyKey, "set a labelSelector: without one no pod is selected, and {} selects all pods", "%s has no labelSelector: it has no effect", rule)
	case selected == noPod && i.selection(withoutMismatch(term)) != noPod:
		list := strings.Join(term.MismatchLabelKeys, ", ")
		i.add(term.TopologyKey, fmt.Sprintf("remove from mismatchLabelKeys what the pods that are meant have the same value of (%s)", list),
			"%s selects %s, of which none has another value of %s, its mismatchLabelKeys, than the pod itself: it has no effect", rule, selectedBy(term), list)
	case selected == noPod:
		i.add(term.TopologyKey, remedy, "%s selects %s, and there is none: it has no effect", rule, selectedBy(term))
	case selected == itself && len(i.own) > 1:
		if keys := i.keysPerPod(term.MatchLabelKeys); len(keys) > 0 {
			i.addPerPod(rule, term.TopologyKey, keys, "it has no effect")
		}
	}
	i.termKeys(kind, term)
	i.nodeKey(rule, term.TopologyKey)
}

// termKeys reports keys of a term that no pod of the workload has.
func (i *inertRules) termKeys(kind string, term corev1.PodAffinityTerm) {
	rule := fmt.Sprintf("the %s on %q", kind, term.TopologyKey)
	i.podKeys(rule, term.TopologyKey, "matchLabelKeys", term.MatchLabelKeys)
	i.podKeys(rule, term.TopologyKey, "mismatchLabelKeys", term.MismatchLabelKeys)
}

func withoutMismatch(term corev1.PodAffinityTerm) corev1.PodAffinityTerm {
	term.MismatchLabelKeys = nil
	return term
}

// selectedBy writes which pods a term selects, whatever their keys.
func selectedBy(term corev1.PodAffinityTerm) string {
	text := "pods with " + metav1.FormatLabelSelector(term.LabelSelector)
	if term.NamespaceSelector != nil {
		text += " in namespaces with " + metav1.FormatLabelSelector(term.NamespaceSelector)
	}
	if len(term.MatchLabelKeys) > 0 {
		text += " and the pod's own value of " + strings.Join(term.MatchLabelKeys, ", ")
	}
	return text
}

// selection returns which pods a term selects, as the API server narrows it to the labels of
// each pod. The labels of two pods of a workload show it: what differs differs between all.
func (i *inertRules) selection(term corev1.PodAffinityTerm) selection {
	found := noPod
	for _, self := range i.own[:min(2, len(i.own))] {
		narrowed := *term.DeepCopy()
		matchLabelKeys(&narrowed, self.Labels)
		selects := matcher(narrowed, self.Namespace, i.namespaces)
		other := func(p *corev1.Pod) bool { return (p.Name != self.Name || p.Namespace != self.Namespace) && selects(p) }
		if slices.ContainsFunc(i.own, other) || slices.ContainsFunc(i.pods, other) {
			return otherPods
		}
		if selects(self) {
			found = itself
		}
	}
	return found
}

// matcher returns which pods a term of a pod in a namespace selects, by the rules of
// kube-scheduler: of the namespaces that it names, those whose labels its namespaceSelector
// matches, and its own if it has neither.
func matcher(term corev1.PodAffinityTerm, own string, namespaces []*corev1.Namespace) func(*corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
	ofNamespaces, invalid := metav1.LabelSelectorAsSelector(term.NamespaceSelector)
	if err != nil || invalid != nil {
		return func(*corev1.Pod) bool { return false }
	}
	selected := map[string]bool{own: len(term.Namespaces) == 0 && term.NamespaceSelector == nil}
	for _, name := range term.Namespaces {
		selected[name] = true
	}
	for _, namespace := range namespaces {
		selected[namespace.Name] = selected[namespace.Name] || ofNamespaces.Matches(labels.Set(namespace.Labels))
	}
	return func(pod *corev1.Pod) bool { return selected[pod.Namespace] && selector.Matches(labels.Set(pod.Labels)) }
}

// nodeTerm reports a preference for nodes that no node matches: keys that none has, though it
// asks for them, or else the whole term.
func (i *inertRules) nodeTerm(term corev1.NodeSelectorTerm) {
	before := len(i.problems)
	for _, r := range term.MatchExpressions {
		if r.Operator != corev1.NodeSelectorOpNotIn && r.Operator != corev1.NodeSelectorOpDoesNotExist {
			i.nodeKey("a preference of the nodeAffinity", r.Key)
		}
	}
	requirements := slices.Concat(term.MatchExpressions, term.MatchFields)
	selector, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}})
	if err != nil || len(requirements) == 0 || len(i.problems) > before || len(i.nodes) == 0 || slices.ContainsFunc(i.nodes, selector.Match) {
		return
	}
	i.add(requirements[0].Key, "fix the values, or label the nodes that are meant",
		"a preference of the nodeAffinity is for nodes with %s, and there is none: it has no effect", strings.Join(collectNames(requirements, writeRequirement), " and "))
}

func writeRequirement(r corev1.NodeSelectorRequirement) string {
	text := r.Key + " " + string(r.Operator)
	if len(r.Values) > 0 {
		text += " [" + strings.Join(r.Values, ", ") + "]"
	}
	return text
}
