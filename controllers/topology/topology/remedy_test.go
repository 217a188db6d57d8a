package topology

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/placement"
)

// model predicts for a cluster that has only nodes and pods.
type model struct{ s *scope }

func (m model) Replace(ctx context.Context, pods []*corev1.Pod) ([]placement.Replacement, error) {
	return placement.Replace(ctx, placement.Snapshot{Nodes: m.s.nodes, Pods: m.s.pods}, pods)
}

func nodeIn(zone string, taints ...corev1.Taint) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n-" + zone, Labels: map[string]string{"zone": zone}}, Spec: corev1.NodeSpec{Taints: taints}}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("3")}
	return node
}

func ownedPod(name, zone, kind string, c corev1.TopologySpreadConstraint) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: name, Labels: map[string]string{"service": "glance"}}}
	pod.Spec = corev1.PodSpec{NodeName: "n-" + zone, TopologySpreadConstraints: []corev1.TopologySpreadConstraint{c}, Containers: []corev1.Container{{Name: "c"}}}
	owner := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind(kind))}
	return pod
}

// Pods that run are only to be deleted if that reduces the skew.
func TestTheRemedyOfASkewHelps(t *testing.T) {
	full := nodeIn("b")
	full.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	dedicated := corev1.Taint{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}
	for name, c := range map[string]struct {
		nodes []*corev1.Node
		zones []string
		kind  string
		says  string
		not   string
	}{
		"a pod goes to another zone": {[]*corev1.Node{nodeIn("a"), nodeIn("b")}, []string{"a", "a"}, "StatefulSet", "delete pods of the zone with the most pods, one at a time (kubectl delete pod -n openstack p-0: it would be scheduled in b)", "Honor"},
		"the other zone is full":     {[]*corev1.Node{nodeIn("a"), full}, []string{"a", "a"}, "StatefulSet", "Do not delete pods: pod p-0 would not be scheduled again: 0/2 nodes are available: 1 Too many pods, 1 node(s) didn't match pod topology spread constraints", "kubectl"},
		"the other zone has only nodes with taints": {
			[]*corev1.Node{nodeIn("a"), nodeIn("b", dedicated)}, []string{"a", "a"}, "StatefulSet", "Nodes with taints that the pods do not tolerate (n-b) count as domains without pods: set nodeTaintsPolicy: Honor", "delete",
		},
		"one zone has only nodes with taints, and another one room": {
			[]*corev1.Node{nodeIn("a"), nodeIn("b", dedicated), nodeIn("c")}, []string{"a", "a"}, "StatefulSet", "p-0: it would be scheduled in c", "Honor",
		},
		"two zones have pods, and the new one has only nodes with taints": {
			[]*corev1.Node{nodeIn("a"), nodeIn("c"), nodeIn("b", dedicated)}, []string{"a", "a", "c", "c"}, "StatefulSet", "(n-b) count as domains without pods: set nodeTaintsPolicy: Honor", "delete",
		},
		"pods are on the node with the taint": {[]*corev1.Node{nodeIn("a", dedicated), nodeIn("b")}, []string{"a", "a"}, "StatefulSet", "p-0: it would be scheduled in b", "Honor"},
		"the pods are those of runs":          {[]*corev1.Node{nodeIn("a"), nodeIn("b")}, []string{"a", "a"}, "Job", "no pod of a StatefulSet with this Topology that could be deleted", "kubectl"},
	} {
		t.Run(name, func(t *testing.T) {
			constraint := corev1.TopologySpreadConstraint{
				MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"service": "glance"}},
			}
			s := &scope{topology: &topologyv1.Topology{}, nodes: c.nodes, Reconciler: &Reconciler{}}
			s.topology.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{constraint}
			s.Predictor = model{s}
			for i, zone := range c.zones {
				s.own = append(s.own, ownedPod("p-"+string(rune('0'+i)), zone, c.kind, constraint))
			}
			s.pods = s.own
			if err := s.spread(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := s.topology.Status.Conditions.Get(topologyv1.SpreadReadyCondition)
			if got.Reason != topologyv1.SkewExceededReason || !strings.Contains(got.Message, c.says) || strings.Contains(got.Message, c.not) {
				t.Errorf("the message is %q; want %q, and nothing of %q", got.Message, c.says, c.not)
			}
		})
	}
}
