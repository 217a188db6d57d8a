package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// InertRules returns the rules of the template that have no effect: constraints that
// select none of the workload's pods or each only itself, affinities of which the same is
// true over all pods, preferences that no node matches, and keys that no pod or no node has.
// That a constraint with DoNotSchedule names a key that no node has keeps pods from their
// place, and is reported as that.
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
	if keys := i.keysPerPod(c.MatchLabelKeys); !inert && len(keys) > 0 && i.countsOnlyItself(c) {
		i.addPerPod(rule, c.TopologyKey, keys, "it spreads nothing")
	}
	i.podKeys(rule, c.TopologyKey, "matchLabelKeys", c.MatchLabelKeys)
	if c.WhenUnsatisfiable == corev1.ScheduleAnyway {
		i.prefer(func() { i.nodeKey(rule, c.TopologyKey) })
	}
	return nil
}

// keysPerPod returns those of the keys whose values differ between pods of the workload.
func (i *inertRules) keysPerPod(keys []string) []string {
	return filter(keys, func(key string) bool {
		return slices.ContainsFunc(i.own, func(p *corev1.Pod) bool { return p.Labels[key] != i.own[0].Labels[key] })
	})
}

// countsOnlyItself reports whether no pod of the workload counts another pod. The selector
// is valid.
func (i *inertRules) countsOnlyItself(c corev1.TopologySpreadConstraint) bool {
	for _, self := range i.own {
		selector, _ := Selector(c, self.Labels)
		counts := func(p *corev1.Pod) bool {
			return p.Name != self.Name && p.Namespace == self.Namespace && selector.Matches(labels.Set(p.Labels))
		}
		if slices.ContainsFunc(i.own, counts) || slices.ContainsFunc(i.pods, counts) {
			return false
		}
	}
	return true
}

// addPerPod reports a rule by which each pod selects only itself.
func (i *inertRules) addPerPod(rule, topologyKey string, keys []string, consequence string) {
	list := strings.Join(keys, ", ")
	i.add(topologyKey, fmt.Sprintf("remove %s from matchLabelKeys", list),
		"%s selects, of each pod, only the pod itself: matchLabelKeys has %s, of which each pod of %s has its own value: %s", rule, list, i.workload.Name, consequence)
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
		// That a required term selects no pod, or that no node has its key, leaves a pod
		// without a node, which is reported.
		for _, term := range p.RequiredDuringSchedulingIgnoredDuringExecution {
			i.termKeys("podAffinity", term)
		}
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
