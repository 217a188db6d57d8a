package topology

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/edpm-operators/edpm-operators/internal/names"
	"github.com/edpm-operators/edpm-operators/internal/placement"
)

// maxTried is of how many pods it is tried where they would go.
const maxTried = 5

// remedy says what reduces the skew of a constraint that exceeds it: that nodes with taints
// do not count, or that a pod is deleted, if it would be scheduled in another domain.
func (s *scope) remedy(ctx context.Context, c *corev1.TopologySpreadConstraint) (string, error) {
	empty, err := s.emptyForTaints(c)
	if err != nil {
		return "", err
	}
	if len(empty) > 0 {
		return fmt.Sprintf("Nodes with taints that the pods do not tolerate (%s) count as domains without pods: set nodeTaintsPolicy: Honor in the constraint, or remove the taints from the nodes if pods should run there",
			names.List(empty, names.Few)), nil
	}
	return s.deletion(ctx, c)
}

// deletion says which pod to delete, or why that does not help.
func (s *scope) deletion(ctx context.Context, c *corev1.TopologySpreadConstraint) (string, error) {
	const otherwise = "add domains if there are fewer than minDomains, or raise maxSkew"
	candidates, err := s.candidates(c)
	if err != nil {
		return "", err
	}
	if len(candidates) == 0 {
		return fmt.Sprintf("In the %s with the most pods there is no pod of a StatefulSet with this Topology that could be deleted and created again: %s", c.TopologyKey, otherwise), nil
	}
	tried := candidates[:min(maxTried, len(candidates))]
	places, err := s.Predictor.Replace(ctx, tried)
	if err != nil {
		return "", err
	}
	domains := domainsOf(s.nodes, c.TopologyKey)
	var stays string
	for i, pod := range tried {
		moves, where := destination(domains, pod, places[i])
		if moves {
			return fmt.Sprintf("The scheduler does not move running pods: delete pods of the %s with the most pods, one at a time (kubectl delete pod -n %s %s: it would be scheduled in %s), %s",
				c.TopologyKey, pod.Namespace, pod.Name, where, otherwise), nil
		}
		if i == 0 {
			stays = fmt.Sprintf("pod %s %s", pod.Name, where)
		}
	}
	return fmt.Sprintf("Do not delete pods: %s. Provide nodes in other domains that can take it, %s", stays, otherwise), nil
}

// destination reports whether a pod would be scheduled in another domain than now, whatever
// kube-scheduler chooses, and in which; or says what would become of it.
func destination(domains map[string]string, pod *corev1.Pod, place placement.Replacement) (moves bool, where string) {
	if len(place.Nodes) == 0 {
		return false, "would not be scheduled again: " + strings.TrimRight(place.Message, ". ")
	}
	now, next := domains[pod.Spec.NodeName], map[string]bool{}
	for _, node := range place.Nodes {
		next[domains[node]] = true
	}
	if next[now] {
		return false, "could be scheduled in " + now + " again"
	}
	return true, strings.Join(slices.Sorted(maps.Keys(next)), " or ")
}

// domainsOf returns the domain of each node that has the key.
func domainsOf(nodes []*corev1.Node, key string) map[string]string {
	domains := map[string]string{}
	for _, node := range nodes {
		if domain, has := node.Labels[key]; has {
			domains[node.Name] = domain
		}
	}
	return domains
}

// emptyForTaints returns the nodes because of whose taints a constraint is exceeded: it
// would hold without them, and no pod that it counts is on one of them.
func (s *scope) emptyForTaints(c *corev1.TopologySpreadConstraint) ([]string, error) {
	if ptr.Deref(c.NodeTaintsPolicy, corev1.NodeInclusionPolicyIgnore) == corev1.NodeInclusionPolicyHonor {
		return nil, nil
	}
	honoring := c.DeepCopy()
	honoring.NodeTaintsPolicy = ptr.To(corev1.NodeInclusionPolicyHonor)
	domains, left, helps := domainsOf(s.nodes, c.TopologyKey), map[string]bool{}, true
	err := s.eachMeasured(c, func(self *corev1.Pod, before placement.Spread) error {
		after, err := placement.Measure(constraintOf(honoring, self), self, s.nodes, s.pods)
		if err != nil {
			return err
		}
		helps = helps && after.Holds && after.Outside <= before.Outside
		for node, domain := range domains {
			_, counted := before.Domains[domain]
			if _, counts := after.Domains[domain]; counted && !counts && !before.Holds {
				left[node] = true
			}
		}
		return nil
	})
	if err != nil || !helps {
		return nil, err
	}
	return slices.Sorted(maps.Keys(left)), nil
}

// eachMeasured calls a function with each kind of pod that follows a constraint, and how the
// pods are spread that it counts.
func (s *scope) eachMeasured(c *corev1.TopologySpreadConstraint, do func(*corev1.Pod, placement.Spread) error) error {
	groups, err := s.groups(c)
	if err != nil {
		return err
	}
	for _, counted := range slices.Sorted(maps.Keys(groups)) {
		for _, demand := range slices.Sorted(maps.Keys(groups[counted])) {
			self := groups[counted][demand]
			one, err := placement.Measure(constraintOf(c, self), self, s.nodes, s.pods)
			if err != nil {
				return err
			}
			if err := do(self, one); err != nil {
				return err
			}
		}
	}
	return nil
}

// candidates returns the pods of the Topology in the domains with the most pods of those
// that a constraint counts and that exceed it, by name, if they are made again when they are
// deleted. Those of runs are not.
func (s *scope) candidates(c *corev1.TopologySpreadConstraint) ([]*corev1.Pod, error) {
	chosen, domains := map[string]*corev1.Pod{}, domainsOf(s.nodes, c.TopologyKey)
	err := s.eachMeasured(c, func(self *corev1.Pod, one placement.Spread) error {
		if one.Holds {
			return nil
		}
		selector, err := placement.Selector(constraintOf(c, self), self.Labels)
		if err != nil {
			return err
		}
		most := slices.Max(slices.Collect(maps.Values(one.Domains)))
		for _, pod := range s.own {
			n, counts := one.Domains[domains[pod.Spec.NodeName]]
			if counts && n == most && pod.DeletionTimestamp == nil && isMadeAgain(pod) && selector.Matches(labels.Set(pod.Labels)) {
				chosen[pod.Name] = pod
			}
		}
		return nil
	})
	var candidates []*corev1.Pod
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		candidates = append(candidates, chosen[name])
	}
	return candidates, err
}

func isMadeAgain(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && (owner.Kind == "StatefulSet" || owner.Kind == "ReplicaSet")
}
