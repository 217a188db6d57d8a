package placement

import (
	"fmt"
	"slices"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// nodeInfos are the nodes of a snapshot with the sums over their pods that the
// scheduler's plugins read. They never change, so that all predictions share them.
// The scheduler's own snapshot (k8s.io/kubernetes/pkg/scheduler/backend/cache) copies all nodes
// for each session of changes.
type nodeInfos struct {
	// What they were made of.
	nodes []*corev1.Node
	pods  []*corev1.Pod

	list []fwk.NodeInfo
	// at is the place of a node in the list.
	at map[string]int
	// claims counts the pods on nodes that use a claim, by namespace/name.
	claims map[string]int
}

// with returns those of the nodes and pods. What is of the same objects is taken
// from the receiver, which may be nil: objects of a cache are replaced, not changed.
func (n *nodeInfos) with(nodes []*corev1.Node, pods []*corev1.Pod) *nodeInfos {
	if n == nil {
		n = &nodeInfos{}
	} else if same(n.nodes, nodes) && same(n.pods, pods) {
		return n
	}
	next := &nodeInfos{nodes: nodes, pods: pods, list: make([]fwk.NodeInfo, len(nodes)), at: make(map[string]int, len(nodes)), claims: map[string]int{}}
	byNode := group(pods)
	for i, node := range nodes {
		info := n.info(node, byNode[node.Name])
		next.list[i], next.at[node.Name] = info, i
		for claim, count := range info.PVCRefCounts {
			next.claims[claim] += count
		}
	}
	return next
}

// same reports whether two slices are one.
func same[T any](a, b []T) bool {
	return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}

// group returns the pods that take room by their nodes.
func group(pods []*corev1.Pod) map[string][]*corev1.Pod {
	byNode := map[string][]*corev1.Pod{}
	for _, pod := range pods {
		if occupiesNode(pod) {
			byNode[pod.Spec.NodeName] = append(byNode[pod.Spec.NodeName], withUID(pod))
		}
	}
	return byNode
}

// withUID gives a pod from outside a cluster the identity that the scheduler
// distinguishes pods by.
func withUID(pod *corev1.Pod) *corev1.Pod {
	if pod.UID != "" {
		return pod
	}
	named := *pod
	named.UID = types.UID(pod.Namespace + "/" + pod.Name)
	return &named
}

// info returns the NodeInfo that there is if it is of the same objects, else a new one.
func (n *nodeInfos) info(node *corev1.Node, pods []*corev1.Pod) *framework.NodeInfo {
	before := &framework.NodeInfo{}
	if i, ok := n.at[node.Name]; ok {
		before = n.list[i].(*framework.NodeInfo)
	}
	known := make(map[*corev1.Pod]fwk.PodInfo, len(before.Pods))
	for _, pod := range before.Pods {
		known[pod.GetPod()] = pod
	}
	isKnown := func(pod *corev1.Pod) bool { return known[pod] != nil }
	if before.Node() == node && len(pods) == len(known) && all(pods, isKnown) {
		return before
	}
	info := framework.NewNodeInfo()
	info.SetNode(node)
	for _, pod := range pods {
		if isKnown(pod) {
			info.AddPodInfo(known[pod])
		} else {
			info.AddPod(pod)
		}
	}
	return info
}

func all[T any](of []T, holds func(T) bool) bool {
	return !slices.ContainsFunc(of, func(x T) bool { return !holds(x) })
}

// sharedLister is what the plugins of one prediction see: the shared nodes, and copies
// of those that the prediction changes.
type sharedLister struct {
	fwk.SharedLister // of pod groups, of which there are none
	shared           *nodeInfos
	list             []fwk.NodeInfo
	copied           map[string]bool
	// claims is how many more pods than in shared use a claim.
	claims map[string]int
	// Nodes with pods that have affinity terms, required terms that keep others off,
	// and such terms on more than the host; nil after a change.
	affinity, anti, wide []fwk.NodeInfo
	listed               bool
}

func newSharedLister(shared *nodeInfos) *sharedLister {
	return &sharedLister{
		SharedLister: cache.NewEmptySnapshot(), shared: shared, list: slices.Clone(shared.list), copied: map[string]bool{}, claims: map[string]int{},
	}
}

// add puts a pod on a node.
func (s *sharedLister) add(pod *corev1.Pod, node string) error {
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return fmt.Errorf("reading the affinity terms of pod %s: %w", pod.Name, err)
	}
	return s.change(pod, node, 1, func(on *framework.NodeInfo) error { on.AddPodInfo(info); return nil })
}

// remove takes a pod off a node. No error if there is no such node.
func (s *sharedLister) remove(pod *corev1.Pod, node string) error {
	if _, ok := s.shared.at[node]; !ok {
		return nil
	}
	return s.change(pod, node, -1, func(on *framework.NodeInfo) error { return on.RemovePod(klog.Background(), pod) })
}

func (s *sharedLister) change(pod *corev1.Pod, node string, by int, change func(*framework.NodeInfo) error) error {
	i, ok := s.shared.at[node]
	if !ok {
		return fmt.Errorf("node %s does not exist", node)
	}
	info := s.list[i].(*framework.NodeInfo)
	if !s.copied[node] {
		info = info.SnapshotConcrete()
		s.list[i], s.copied[node] = info, true
	}
	for claim := range framework.PodPVCKeys(pod) {
		s.claims[claim] += by
	}
	s.listed = false
	return change(info)
}

// relist lists the nodes whose pods have affinity terms, after a change.
func (s *sharedLister) relist() {
	if s.listed {
		return
	}
	having := func(pods func(*framework.NodeInfo) []fwk.PodInfo) []fwk.NodeInfo {
		return filter(s.list, func(n fwk.NodeInfo) bool { return len(pods(n.(*framework.NodeInfo))) > 0 })
	}
	s.affinity = having(func(n *framework.NodeInfo) []fwk.PodInfo { return n.PodsWithAffinity })
	s.anti = having(func(n *framework.NodeInfo) []fwk.PodInfo { return n.PodsWithRequiredAntiAffinity })
	s.wide = having(func(n *framework.NodeInfo) []fwk.PodInfo { return n.PodsWithRequiredNonHostScopedAntiAffinity })
	s.listed = true
}

// NodeInfos and the methods below are what the plugins read.
func (s *sharedLister) NodeInfos() fwk.NodeInfoLister { return s }

// StorageInfos implements fwk.SharedLister.
func (s *sharedLister) StorageInfos() fwk.StorageInfoLister { return s }

// List implements fwk.NodeInfoLister.
func (s *sharedLister) List() ([]fwk.NodeInfo, error) { return s.list, nil }

// Get implements fwk.NodeInfoLister.
func (s *sharedLister) Get(node string) (fwk.NodeInfo, error) {
	i, ok := s.shared.at[node]
	if !ok {
		return nil, fmt.Errorf("node %s does not exist", node)
	}
	return s.list[i], nil
}

// HavePodsWithAffinityList implements fwk.NodeInfoLister.
func (s *sharedLister) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) {
	s.relist()
	return s.affinity, nil
}

// HavePodsWithRequiredAntiAffinityList implements fwk.NodeInfoLister.
func (s *sharedLister) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	s.relist()
	return s.anti, nil
}

// HavePodsWithRequiredNonHostScopedAntiAffinityList implements fwk.NodeInfoLister.
func (s *sharedLister) HavePodsWithRequiredNonHostScopedAntiAffinityList() ([]fwk.NodeInfo, error) {
	s.relist()
	return s.wide, nil
}

// IsPVCUsedByPods implements fwk.StorageInfoLister.
func (s *sharedLister) IsPVCUsedByPods(claim string) bool {
	return s.shared.claims[claim]+s.claims[claim] > 0
}

// pods returns those that are on nodes now.
func (s *sharedLister) pods() []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, len(s.shared.pods))
	for _, node := range s.list {
		for _, info := range node.GetPods() {
			pods = append(pods, info.GetPod())
		}
	}
	return pods
}
