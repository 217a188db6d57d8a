// Package topologymap draws where pods are: the domains of a cluster side by
// side, with their nodes and pods, as the pictures of seeds/002 do, and how well
// each topology spread constraint holds. It only looks at what it is given.
package topologymap

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/internal/placement"
)

// Map is a picture of pods in their domains.
type Map struct {
	// TopologyKey is the label of nodes that names their domain.
	TopologyKey string `json:"topologyKey"`
	// Domains by name.
	Domains []Domain `json:"domains"`
	// Outside are the nodes without the label that have pods of the picture.
	Outside []Node `json:"outside,omitempty"`
	// Pending are the pods without a node.
	Pending []Pod `json:"pending,omitempty"`
	// Constraints of the pods, each once.
	Constraints []Constraint `json:"constraints,omitempty"`
}

// Domain is the nodes with the same value of the topology key.
type Domain struct {
	Name  string `json:"name"`
	Nodes []Node `json:"nodes"`
}

// Node of a domain and its pods, by name.
type Node struct {
	Name string `json:"name"`
	// State is what keeps pods away or in doubt: NotReady or Cordoned.
	State string `json:"state,omitempty"`
	Pods  []Pod  `json:"pods,omitempty"`
}

// Pod of the picture.
type Pod struct {
	Name string `json:"name"`
	Node string `json:"node,omitempty"`
	// State of a pod that does not simply run: Pending, Terminating or NotReady.
	State string `json:"state,omitempty"`
}

// Constraint is a topology spread constraint and how it holds, by the
// scheduler's rule.
type Constraint struct {
	TopologyKey       string `json:"topologyKey"`
	WhenUnsatisfiable string `json:"whenUnsatisfiable"`
	Selector          string `json:"selector"`
	// Pods per domain.
	Pods map[string]int `json:"pods"`
	// NodesLackingKey are nodes without the label.
	NodesLackingKey []string `json:"nodesLackingKey,omitempty"`
	Skew            int32    `json:"skew"`
	MaxSkew         int32    `json:"maxSkew"`
	Holds           bool     `json:"holds"`
	// Inert reports whether it selects none of the pods that have it.
	Inert bool `json:"inert,omitempty"`
}

// New draws the pods that show picks out of the snapshot, by the domains of the key.
// The error names a selector that cannot be read.
func New(snapshot placement.Snapshot, key string, show func(*corev1.Pod) bool) (Map, error) {
	m := Map{TopologyKey: key}
	pods := selected(snapshot.Pods, show)
	byNode := map[string][]Pod{}
	for _, p := range pods {
		if p.Spec.NodeName == "" {
			m.Pending = append(m.Pending, newPod(p))
			continue
		}
		byNode[p.Spec.NodeName] = append(byNode[p.Spec.NodeName], newPod(p))
	}
	m.place(snapshot.Nodes, byNode)
	return m, m.measure(snapshot, pods)
}

// selected are the pods to be shown that have not ended, by name.
func selected(pods []*corev1.Pod, show func(*corev1.Pod) bool) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range pods {
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed && show(p) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// place puts the nodes into their domains.
func (m *Map) place(nodes []*corev1.Node, pods map[string][]Pod) {
	domains := map[string]*Domain{}
	for _, n := range nodes {
		node := Node{Name: n.Name, State: nodeState(n), Pods: pods[n.Name]}
		name, ok := n.Labels[m.TopologyKey]
		switch {
		case ok && domains[name] == nil:
			domains[name] = &Domain{Name: name, Nodes: []Node{node}}
		case ok:
			domains[name].Nodes = append(domains[name].Nodes, node)
		case len(node.Pods) > 0:
			m.Outside = append(m.Outside, node)
		}
	}
	byName := func(a, b Node) int { return cmp.Compare(a.Name, b.Name) }
	for _, d := range domains {
		slices.SortFunc(d.Nodes, byName)
		m.Domains = append(m.Domains, *d)
	}
	slices.SortFunc(m.Outside, byName)
	slices.SortFunc(m.Domains, func(a, b Domain) int { return cmp.Compare(a.Name, b.Name) })
}

// measure adds the constraints of the pods. Pods of one service have the same.
func (m *Map) measure(snapshot placement.Snapshot, pods []*corev1.Pod) error {
	seen := map[string]bool{}
	for _, p := range pods {
		for _, c := range p.Spec.TopologySpreadConstraints {
			s, err := placement.Measure(c, p, snapshot.Nodes, snapshot.Pods)
			if err != nil {
				return fmt.Errorf("pod %s: %w", p.Name, err)
			}
			constraint := newConstraint(c, s)
			if id := fmt.Sprint(constraint); !seen[id] {
				seen[id] = true
				m.Constraints = append(m.Constraints, constraint)
			}
		}
	}
	return nil
}

func newConstraint(c corev1.TopologySpreadConstraint, s placement.Spread) Constraint {
	return Constraint{
		TopologyKey: c.TopologyKey, WhenUnsatisfiable: string(c.WhenUnsatisfiable), Selector: metav1.FormatLabelSelector(c.LabelSelector),
		Pods: s.Domains, NodesLackingKey: s.NodesLackingKey, Skew: s.Skew, MaxSkew: s.MaxSkew, Holds: s.Holds, Inert: !s.Selects,
	}
}

func newPod(p *corev1.Pod) Pod { return Pod{Name: p.Name, Node: p.Spec.NodeName, State: podState(p)} }

func podState(p *corev1.Pod) string {
	switch {
	case p.DeletionTimestamp != nil:
		return "Terminating"
	case p.Spec.NodeName == "":
		return "Pending"
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
			return "NotReady"
		}
	}
	return ""
}

func nodeState(n *corev1.Node) string {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return "NotReady"
		}
	}
	if n.Spec.Unschedulable {
		return "Cordoned"
	}
	return ""
}
