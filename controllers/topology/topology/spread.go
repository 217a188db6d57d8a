package topology

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/placement"
)

// spread is the phase that measures how the pods are spread.
func (s *scope) spread(ctx context.Context) error {
	status := &s.topology.Status
	status.Constraints = nil
	var domains, skews []string
	for i := range s.topology.Spec.TopologySpreadConstraints {
		c := &s.topology.Spec.TopologySpreadConstraints[i]
		m, err := s.measure(c)
		if err != nil {
			return fmt.Errorf("measuring constraint %d: %w", i, err)
		}
		status.Constraints = append(status.Constraints, m.status(c, s.nodes))
		domains = append(domains, placement.Summarize(m.pods))
		skews = append(skews, fmt.Sprintf("%d/%d", m.skew, c.MaxSkew))
	}
	status.DomainsSummary, status.SkewSummary = strings.Join(domains, "; "), strings.Join(skews, "; ")
	return s.judge(ctx)
}

// measurement is how the pods that a constraint counts are spread. A constraint
// without a labelSelector counts the pods of each service separately.
type measurement struct {
	// pods by domain, of all services.
	pods map[string]int
	// lacking are the nodes without the key.
	lacking map[string]bool
	// skew is the worst of all services, and holds reports whether none exceeds.
	skew  int32
	holds bool
}

// measure measures a constraint for each kind of pod that follows it: which nodes
// count depends on what else the pods ask of nodes.
func (s *scope) measure(c *corev1.TopologySpreadConstraint) (*measurement, error) {
	total := &measurement{pods: map[string]int{}, lacking: map[string]bool{}, holds: true}
	groups, err := s.groups(c)
	if err != nil {
		return nil, err
	}
	for _, group := range groups {
		most := map[string]int{}
		for _, self := range group {
			one, err := placement.Measure(constraintOf(c, self), self, s.nodes, s.pods)
			if err != nil {
				return nil, err
			}
			total.add(one)
			for domain, n := range one.Domains {
				most[domain] = max(most[domain], n)
			}
		}
		for domain, n := range most {
			total.pods[domain] += n
		}
	}
	return total, nil
}

func (m *measurement) add(one placement.Spread) {
	m.skew, m.holds = max(m.skew, one.Skew), m.holds && one.Holds
	for _, node := range one.NodesLackingKey {
		m.lacking[node] = true
	}
}

// groups returns one pod of each kind of pod that follows the Topology, and
// together those for which the constraint counts the same pods: with matchLabelKeys
// these are the pods of one value. While there is none, a pod is made up that asks
// for nothing else.
func (s *scope) groups(c *corev1.TopologySpreadConstraint) (map[string]map[string]*corev1.Pod, error) {
	groups := map[string]map[string]*corev1.Pod{}
	for _, pod := range s.own {
		selector, err := placement.Selector(constraintOf(c, pod), pod.Labels)
		if err != nil {
			return nil, err
		}
		counted := selector.String()
		if groups[counted] == nil {
			groups[counted] = map[string]*corev1.Pod{}
		}
		groups[counted][demands(pod)] = pod
	}
	if len(groups) == 0 {
		groups[""] = map[string]*corev1.Pod{"": s.anyPod()}
	}
	return groups, nil
}

func (s *scope) anyPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.topology.Namespace},
		Spec:       corev1.PodSpec{TopologySpreadConstraints: s.topology.Spec.TopologySpreadConstraints, Affinity: s.topology.Spec.Affinity},
	}
}

// constraintOf returns the constraint as a pod has it: with the selector that a
// service filled in, if the Topology has none.
func constraintOf(c *corev1.TopologySpreadConstraint, pod *corev1.Pod) corev1.TopologySpreadConstraint {
	filled := *c
	if c.LabelSelector != nil {
		return filled
	}
	for _, own := range pod.Spec.TopologySpreadConstraints {
		if own.TopologyKey == c.TopologyKey && own.WhenUnsatisfiable == c.WhenUnsatisfiable {
			filled.LabelSelector = own.LabelSelector
		}
	}
	return filled
}

// demands is equal for pods for which the same nodes count.
func demands(pod *corev1.Pod) string {
	var nodes *corev1.NodeAffinity
	if pod.Spec.Affinity != nil {
		nodes = pod.Spec.Affinity.NodeAffinity
	}
	var keys []string
	for _, c := range pod.Spec.TopologySpreadConstraints {
		keys = append(keys, c.TopologyKey+" "+string(c.WhenUnsatisfiable))
	}
	text, _ := json.Marshal([]any{pod.Spec.NodeSelector, nodes, pod.Spec.Tolerations, keys}) // always marshals
	return string(text)
}

func (m *measurement) status(c *corev1.TopologySpreadConstraint, nodes []*corev1.Node) topologyv1.ConstraintStatus {
	status := topologyv1.ConstraintStatus{
		TopologyKey: c.TopologyKey, WhenUnsatisfiable: c.WhenUnsatisfiable, MaxSkew: c.MaxSkew,
		DomainCount: int32(len(m.pods)), Skew: m.skew, Holds: m.holds,
	}
	inDomain := map[string]int32{}
	for _, node := range nodes {
		if domain, ok := node.Labels[c.TopologyKey]; ok {
			inDomain[domain]++
		}
	}
	for _, name := range first(m.pods, topologyv1.MaxDomains) {
		status.Domains = append(status.Domains, topologyv1.Domain{Name: name, Nodes: inDomain[name], Pods: int32(m.pods[name])})
	}
	status.NodesLackingKey.Count = int32(len(m.lacking))
	status.NodesLackingKey.Names = first(m.lacking, topologyv1.MaxNodes)
	return status
}

// first returns the first n keys in order.
func first[V any](of map[string]V, n int) []string {
	keys := slices.Sorted(maps.Keys(of))
	return keys[:min(len(keys), n)]
}

// judge sets the condition: of constraints that are ScheduleAnyway nothing is
// demanded.
func (s *scope) judge(ctx context.Context) error {
	status := &s.topology.Status
	for i, c := range status.Constraints {
		at := fmt.Sprintf("spec.topologySpreadConstraints[%d]", i)
		switch {
		case c.WhenUnsatisfiable != corev1.DoNotSchedule:
		case c.DomainCount == 0:
			status.Conditions.MarkFalse(topologyv1.SpreadReadyCondition, topologyv1.NoDomainReason, condition.SeverityWarning,
				"%s: no node has the label %s, so no pod can be scheduled: label the nodes, set topologyKey to a label that they have, or set whenUnsatisfiable: ScheduleAnyway", at, c.TopologyKey)
			return nil
		case !c.Holds:
			remedy, err := s.remedy(ctx, &s.topology.Spec.TopologySpreadConstraints[i])
			if err != nil {
				return fmt.Errorf("looking for what reduces the skew of constraint %d: %w", i, err)
			}
			status.Conditions.MarkFalse(topologyv1.SpreadReadyCondition, topologyv1.SkewExceededReason, condition.SeverityWarning,
				"%s: the pods are spread over %s with a skew of %d, and maxSkew is %d. %s", at, c.TopologyKey, c.Skew, c.MaxSkew, remedy)
			return nil
		}
	}
	status.Conditions.MarkTrue(topologyv1.SpreadReadyCondition, "%s", holding(status.Constraints))
	return nil
}

func holding(constraints []topologyv1.ConstraintStatus) string {
	if len(constraints) == 0 {
		return "There are no constraints"
	}
	return "Every constraint with DoNotSchedule is satisfied"
}
