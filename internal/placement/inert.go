package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// InertRules returns the rules of the template that have no effect: constraints that
// select none of the workload's pods, affinities that select no pod at all, and keys that
// no pod or no node has. That a constraint with DoNotSchedule names a key that no node has
// keeps pods from their place, and is reported as that.
func (w Workload) InertRules(nodes []*corev1.Node, pods []*corev1.Pod, namespaces []*corev1.Namespace) ([]Problem, error) {
	i := &inertRules{workload: w, nodes: nodes, pods: pods, namespaces: namespaces}
	for ordinal := range max(w.Replicas, 1) {
		i.own = append(i.own, w.pod(ordinal))
	}
	for _, c := range w.Template.Spec.TopologySpreadConstraints {
		if err := i.constraint(c); err != nil {
			return nil, err
		}
	}
	if a := w.Template.Spec.Affinity; a != nil {
		i.affinity(a)
	}
	return i.problems, nil
}

// inertRules collects rules without effect.
type inertRules struct {
	workload Workload
	nodes    []*corev1.Node
	// own are the pods to be, pods those of the cluster.
	own, pods  []*corev1.Pod
	namespaces []*corev1.Namespace
	// preference reports whether the rule need not hold.
	preference bool
	problems   []Problem
}

func (i *inertRules) add(key, remedy, format string, args ...any) {
	i.problems = append(i.problems, Problem{
		Reason: topologyv1.InertSelectorReason, Key: key, Preference: i.preference, Pods: collectNames(i.own[:i.workload.Replicas], (*corev1.Pod).GetName),
		Message: fmt.Sprintf(format, args...), Remedy: remedy,
	})
}

func (i *inertRules) constraint(c corev1.TopologySpreadConstraint) error {
	rule := fmt.Sprintf("the topology spread constraint on %q", c.TopologyKey)
	inert, err := selectsNone(c, i.own)
	if err != nil {
		return err
	}
	if inert {
		remedy := "fix the labelSelector so that it matches the labels of the pods themselves"
		if own := i.workload.Template.Labels; len(own) > 0 {
			key := slices.Sorted(maps.Keys(own))[0]
			remedy += fmt.Sprintf(", for example matchLabels: {%s: %s}", key, own[key])
		}
		i.add(c.TopologyKey, remedy, "%s selects %s, but the pods of %s have the labels %s: it spreads nothing",
			rule, selected(c), i.workload.Name, labels.Set(i.workload.Template.Labels))
	}
	i.podKeys(rule, c.TopologyKey, "matchLabelKeys", c.MatchLabelKeys)
	if c.WhenUnsatisfiable == corev1.ScheduleAnyway {
		i.prefer(func() { i.nodeKey(rule, c.TopologyKey) })
	}
	return nil
}

// podKeys reports keys that none of the workload's pods has: the scheduler ignores them.
func (i *inertRules) podKeys(rule, topologyKey, field string, keys []string) {
	for _, key := range keys {
		if slices.ContainsFunc(i.own, func(p *corev1.Pod) bool { _, has := p.Labels[key]; return has }) {
			continue
		}
		i.add(topologyKey, fmt.Sprintf("remove %s from %s, or name a label of the pods: those of a StatefulSet have controller-revision-hash, and no pod-template-hash", key, field),
			"%s of %s has the key %s, which no pod of %s has: it is ignored", field, rule, key, i.workload.Name)
	}
}

// nodeKey reports a key that no node has.
func (i *inertRules) nodeKey(rule, key string) {
	if len(i.nodes) == 0 || slices.ContainsFunc(i.nodes, func(n *corev1.Node) bool { return hasAll(n, []string{key}) }) {
		return
	}
	i.add(key, fmt.Sprintf("fix the key, or label the nodes (kubectl label node %s %s=<domain>)", i.nodes[0].Name, key),
		"%s names the label %s, which no node has: it has no effect", rule, key)
}

// prefer judges a rule that need not hold.
func (i *inertRules) prefer(judge func()) {
	i.preference = true
	judge()
	i.preference = false
}

func (i *inertRules) affinity(a *corev1.Affinity) {
	if p := a.PodAffinity; p != nil {
		// Without effect, required terms leave a pod without a node, which is reported.
		for _, term := range p.PreferredDuringSchedulingIgnoredDuringExecution {
			i.prefer(func() { i.term("podAffinity", term.PodAffinityTerm) })
		}
	}
	if p := a.PodAntiAffinity; p != nil {
		for _, term := range p.RequiredDuringSchedulingIgnoredDuringExecution {
			i.term("podAntiAffinity", term)
		}
		for _, term := range p.PreferredDuringSchedulingIgnoredDuringExecution {
			i.prefer(func() { i.term("podAntiAffinity", term.PodAffinityTerm) })
		}
	}
	if n := a.NodeAffinity; n != nil {
		for _, term := range n.PreferredDuringSchedulingIgnoredDuringExecution {
			i.prefer(func() { i.nodeTerm(term.Preference) })
		}
	}
}

// term reports a term of the affinity between pods that selects no pod, and its keys.
func (i *inertRules) term(kind string, term corev1.PodAffinityTerm) {
	rule := fmt.Sprintf("the %s on %q", kind, term.TopologyKey)
	selects := i.matcher(term)
	remedy := "fix the labelSelector so that it matches the labels of the pods that are meant"
	if term.NamespaceSelector != nil {
		remedy += ", or the namespaceSelector: it includes the pod's own namespace only if it matches the labels of that"
	}
	switch {
	case term.LabelSelector == nil:
		i.add(term.TopologyKey, "set a labelSelector: without one no pod is selected, and {} selects all pods", "%s has no labelSelector: it has no effect", rule)
	case !slices.ContainsFunc(i.own, selects) && !slices.ContainsFunc(i.pods, selects):
		i.add(term.TopologyKey, remedy, "%s selects %s, and there is none: it has no effect", rule, selectedBy(term))
	}
	i.podKeys(rule, term.TopologyKey, "matchLabelKeys", term.MatchLabelKeys)
	i.podKeys(rule, term.TopologyKey, "mismatchLabelKeys", term.MismatchLabelKeys)
	i.nodeKey(rule, term.TopologyKey)
}

// selectedBy writes which pods a term selects.
func selectedBy(term corev1.PodAffinityTerm) string {
	text := "pods with " + metav1.FormatLabelSelector(term.LabelSelector)
	if term.NamespaceSelector != nil {
		text += " in namespaces with " + metav1.FormatLabelSelector(term.NamespaceSelector)
	}
	return text
}

// matcher returns which pods a term selects, by the rules of kube-scheduler: of the
// namespaces that it names, those whose labels its namespaceSelector matches, and of its own
// if it has neither.
func (i *inertRules) matcher(term corev1.PodAffinityTerm) func(*corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
	ofNamespaces, invalid := metav1.LabelSelectorAsSelector(term.NamespaceSelector)
	if err != nil || invalid != nil {
		return func(*corev1.Pod) bool { return false }
	}
	selected := map[string]bool{i.workload.Namespace: len(term.Namespaces) == 0 && term.NamespaceSelector == nil}
	for _, name := range term.Namespaces {
		selected[name] = true
	}
	for _, namespace := range i.namespaces {
		selected[namespace.Name] = selected[namespace.Name] || ofNamespaces.Matches(labels.Set(namespace.Labels))
	}
	return func(pod *corev1.Pod) bool { return selected[pod.Namespace] && selector.Matches(labels.Set(pod.Labels)) }
}

// nodeTerm reports keys of a preference that no node has, though it asks for them.
func (i *inertRules) nodeTerm(term corev1.NodeSelectorTerm) {
	for _, r := range term.MatchExpressions {
		if r.Operator != corev1.NodeSelectorOpNotIn && r.Operator != corev1.NodeSelectorOpDoesNotExist {
			i.nodeKey("a preference of the nodeAffinity", r.Key)
		}
	}
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

// selected writes a selector as kubectl does.
func selected(c corev1.TopologySpreadConstraint) string {
	selector, err := Selector(c, nil)
	if err != nil || strings.TrimSpace(selector.String()) == "" {
		return "nothing"
	}
	return "pods with " + selector.String()
}
