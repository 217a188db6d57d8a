package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// Spread is how evenly the pods that a topology spread constraint selects lie
// over the domains that it names.
type Spread struct {
	TopologyKey string
	// Domains holds the number of selected pods in each eligible domain.
	Domains map[string]int
	// NodesLackingKey are the nodes without the label, sorted: a constraint with
	// DoNotSchedule keeps pods off them. Nodes that the policies of the
	// constraint leave out are not among them.
	NodesLackingKey []string
	// Outside is the number of selected pods on nodes that belong to no eligible
	// domain: they count nowhere.
	Outside int
	// Skew is the difference between the fullest domain and the global minimum,
	// which is 0 while there are fewer domains than MinDomains.
	Skew, MaxSkew, MinDomains int32
	// Selects is whether the constraint selects the workload's own pods. One
	// that does not is inert: it counts other pods, or none.
	Selects bool
	// Holds is whether Skew is at most MaxSkew now.
	Holds bool
}

// Measure counts the pods that the constraint selects by the rules of
// kube-scheduler (plugin PodTopologySpread, KEP-895 and its successors): in the
// namespace of self; not those that terminate or have ended; on nodes that have
// the keys of all constraints of self with the same whenUnsatisfiable, that
// self's node selector and affinity match (nodeAffinityPolicy, default Honor)
// and whose taints self tolerates (nodeTaintsPolicy, default Ignore);
// matchLabelKeys narrow the selector to self's values. A selector that is
// missing or empty selects nothing.
//
// Self is a pod of the workload; one with only a namespace measures the
// constraint by itself. The error names the selector that cannot be parsed.
func Measure(constraint corev1.TopologySpreadConstraint, self *corev1.Pod, nodes []*corev1.Node, pods []*corev1.Pod) (Spread, error) {
	selector, err := Selector(constraint, self.Labels)
	if err != nil {
		return Spread{}, err
	}
	s := Spread{
		TopologyKey: constraint.TopologyKey, Domains: map[string]int{},
		MaxSkew: constraint.MaxSkew, MinDomains: ptr.Deref(constraint.MinDomains, 1),
		Selects: !selector.Empty() && selector.Matches(labels.Set(self.Labels)),
	}
	counts := countByNode(selector, self.Namespace, pods)
	keys := keysBeside(constraint, self)
	eligible := eligibility(constraint, self)
	for _, node := range nodes {
		s.add(node, counts[node.Name], eligible(node), keys)
	}
	slices.Sort(s.NodesLackingKey)
	s.Skew = s.fullest() - s.globalMinimum()
	s.Holds = s.Skew <= s.MaxSkew
	return s, nil
}

// maxSummary is the longest list of domains in a column of kubectl.
const maxSummary = 60

// Summarize returns the pods by domain, for example a=2,b=1, or the number of
// domains when they are many.
func Summarize(domains map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(domains)) {
		parts = append(parts, fmt.Sprintf("%s=%d", name, domains[name]))
	}
	if text := strings.Join(parts, ","); len(text) <= maxSummary {
		return text
	}
	return fmt.Sprintf("%d domains", len(parts))
}

func (s *Spread) add(node *corev1.Node, count int, eligible bool, keys []string) {
	domain, ok := node.Labels[s.TopologyKey]
	if eligible && !ok {
		s.NodesLackingKey = append(s.NodesLackingKey, node.Name)
	}
	if !eligible || !ok || !hasAll(node, keys) {
		s.Outside += count
		return
	}
	s.Domains[domain] += count
}

// Admits returns whether the constraint, with DoNotSchedule, lets another pod of
// the workload into the domain: pods in the domain, plus one if the constraint
// selects the pod, minus the global minimum must be at most MaxSkew.
func (s Spread) Admits(domain string) bool {
	self := 0
	if s.Selects {
		self = 1
	}
	return int32(s.Domains[domain]+self)-s.globalMinimum() <= s.MaxSkew
}

func (s Spread) fullest() int32 {
	most := 0
	for _, n := range s.Domains {
		most = max(most, n)
	}
	return int32(most)
}

func (s Spread) globalMinimum() int32 {
	if len(s.Domains) == 0 || len(s.Domains) < int(s.MinDomains) {
		return 0
	}
	least := -1
	for _, n := range s.Domains {
		if least < 0 || n < least {
			least = n
		}
	}
	return int32(least)
}

// Selector returns the selector of a constraint for a pod with these labels: it is
// narrowed by matchLabelKeys. The error names the selector that cannot be parsed.
func Selector(c corev1.TopologySpreadConstraint, own map[string]string) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("labelSelector of the topology spread constraint on %s: %w: fix the selector", c.TopologyKey, err)
	}
	if _, selectable := selector.Requirements(); !selectable {
		return selector, nil
	}
	matching := labels.Set{}
	for _, key := range c.MatchLabelKeys {
		if value, ok := own[key]; ok {
			matching[key] = value
		}
	}
	requirements, _ := labels.SelectorFromSet(matching).Requirements()
	return selector.Add(requirements...), nil
}

func countByNode(selector labels.Selector, namespace string, pods []*corev1.Pod) map[string]int {
	counts := map[string]int{}
	if selector.Empty() {
		return counts
	}
	for _, pod := range pods {
		if pod.Namespace == namespace && occupiesNode(pod) && pod.DeletionTimestamp == nil && selector.Matches(labels.Set(pod.Labels)) {
			counts[pod.Spec.NodeName]++
		}
	}
	return counts
}

// keysBeside are the topology keys of self's constraints of the same strictness:
// the scheduler ignores nodes that lack any of them.
func keysBeside(c corev1.TopologySpreadConstraint, self *corev1.Pod) []string {
	var keys []string
	for _, other := range self.Spec.TopologySpreadConstraints {
		if other.WhenUnsatisfiable == c.WhenUnsatisfiable {
			keys = append(keys, other.TopologyKey)
		}
	}
	return keys
}

func hasAll(node *corev1.Node, keys []string) bool {
	for _, key := range keys {
		if _, ok := node.Labels[key]; !ok {
			return false
		}
	}
	return true
}

// eligibility returns whether the inclusion policies of a constraint (KEP-3094)
// let a node take part in the spreading of self.
func eligibility(c corev1.TopologySpreadConstraint, self *corev1.Pod) func(*corev1.Node) bool {
	honorAffinity := ptr.Deref(c.NodeAffinityPolicy, corev1.NodeInclusionPolicyHonor) == corev1.NodeInclusionPolicyHonor
	honorTaints := ptr.Deref(c.NodeTaintsPolicy, corev1.NodeInclusionPolicyIgnore) == corev1.NodeInclusionPolicyHonor
	affinity := nodeaffinity.GetRequiredNodeAffinity(self)
	return func(node *corev1.Node) bool {
		if match, _ := affinity.Match(node); honorAffinity && !match {
			return false
		}
		return !honorTaints || tolerates(self, node)
	}
}

func tolerates(pod *corev1.Pod, node *corev1.Node) bool {
	keepsOff := func(t *corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }
	_, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pod.Spec.Tolerations, keepsOff, false)
	return !untolerated
}
