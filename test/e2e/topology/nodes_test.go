package topology

import (
	"context"
	"maps"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kwokLabel marks the nodes that KWOK plays. A node that loses it gives no sign
// of life any more, and its pods neither start nor end.
const kwokLabel, kwokValue = "type", "kwok"

// labels of nodes, by name.
type labels map[string]map[string]string

// sevenNodes are those of seeds/001, "Create Zones". There, worker-3 seems to
// have lost its label zone: see withoutZone.
func sevenNodes() labels {
	return labels{
		"master-0": {"node": "node1", "zone": "zoneA"}, "worker-0": {"node": "node2", "zone": "zoneA"}, "worker-3": {"node": "node3", "zone": "zoneA"},
		"master-1": {"node": "node4", "zone": "zoneB"}, "worker-1": {"node": "node5", "zone": "zoneB"},
		"master-2": {"node": "node6", "zone": "zoneC"}, "worker-2": {"node": "node7", "zone": "zoneC"},
	}
}

// threeNodes are those of seeds/002.
func threeNodes() labels {
	return labels{
		"master-0": {"node": "node0", "zone": "zoneA"}, "master-1": {"node": "node1", "zone": "zoneB"}, "master-2": {"node": "node2", "zone": "zoneC"},
	}
}

func (l labels) withoutZone(name string) labels {
	delete(l[name], "zone")
	return l
}

// boot makes these nodes, and none but these, and waits until they are ready.
// A node that an earlier container has made stays, with the labels that are wanted
// now: KWOK 0.8 may stop the leases of all nodes when one is deleted and made again
// while it renews that one's.
func boot(ctx context.Context, machines labels) {
	GinkgoHelper()
	var nodes corev1.NodeList
	Expect(k8s.List(ctx, &nodes)).To(Succeed())
	for i := range nodes.Items {
		if _, wanted := machines[nodes.Items[i].Name]; !wanted {
			Expect(k8s.Delete(ctx, &nodes.Items[i])).To(Succeed())
		}
	}
	for name, extra := range machines {
		wanted := newNode(name, extra)
		err := k8s.Create(ctx, wanted.DeepCopy())
		if apierrors.IsAlreadyExists(err) {
			change(ctx, node(name), func(n *corev1.Node) { n.Labels, n.Spec.Unschedulable, n.Spec.Taints = wanted.Labels, false, nil })
			continue
		}
		Expect(err).NotTo(HaveOccurred())
	}
	for name := range machines {
		Eventually(ready).WithContext(ctx).WithArguments(name).Should(BeTrue(), "node %s", name)
	}
}

func newNode(name string, extra map[string]string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{kwokLabel: kwokValue, corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"},
		Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
	}}
	maps.Copy(node.Labels, extra)
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("250"),
	}
	node.Status = corev1.NodeStatus{Capacity: room, Allocatable: room}
	return node
}

func node(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }

// ready reports whether a node is, and whether no taint is left of a time when it
// was not.
func ready(ctx context.Context, name string) (bool, error) {
	n := node(name)
	err := k8s.Get(ctx, client.ObjectKeyFromObject(n), n)
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue && len(n.Spec.Taints) == 0, err
		}
	}
	return false, err
}

// suspend does to a node what virsh suspend does to its machine.
func suspend(ctx context.Context, name string) {
	GinkgoHelper()
	change(ctx, node(name), func(n *corev1.Node) { delete(n.Labels, kwokLabel) })
}

// resume brings a node back.
func resume(ctx context.Context, name string) {
	GinkgoHelper()
	change(ctx, node(name), func(n *corev1.Node) { n.Labels[kwokLabel] = kwokValue })
	Eventually(ready).WithContext(ctx).WithArguments(name).Should(BeTrue(), "node %s", name)
}

// cordon keeps further pods off nodes, or lets them on again.
func cordon(ctx context.Context, unschedulable bool, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		change(ctx, node(name), func(n *corev1.Node) { n.Spec.Unschedulable = unschedulable })
	}
}
