package watch

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestNodeChanges(t *testing.T) {
	node := func() *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"zone": "a"}}}
	}
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		want   bool
	}{
		"nothing, as in a resync": {func(*corev1.Node) {}, false},
		"a heartbeat": {func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.NewTime(time.Now())}}
		}, false},
		"an annotation": {func(n *corev1.Node) { n.Annotations = map[string]string{"a": "b"} }, false},
		"a label":       {func(n *corev1.Node) { n.Labels["rack"] = "r" }, true},
		"a taint":       {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "t"}} }, true},
		"a cordon":      {func(n *corev1.Node) { n.Spec.Unschedulable = true }, true},
		"room":          {func(n *corev1.Node) { n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("1")} }, true},
	} {
		after := node()
		c.change(after)
		if got := NodeChanges.Update(event.UpdateEvent{ObjectOld: node(), ObjectNew: after}); got != c.want {
			t.Errorf("%s is let through: %v; want %v", name, got, c.want)
		}
	}
	if !NodeChanges.Create(event.CreateEvent{Object: node()}) || !NodeChanges.Delete(event.DeleteEvent{Object: node()}) {
		t.Error("nodes that come and go are let through")
	}
}

func TestClaimChanges(t *testing.T) {
	before, bound, labelled := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaim{}
	bound.Spec.VolumeName, labelled.Labels = "pv", map[string]string{"a": "b"}
	for after, want := range map[*corev1.PersistentVolumeClaim]bool{before: false, labelled: false, bound: true} {
		if got := ClaimChanges.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != want {
			t.Errorf("%+v is let through: %v; want %v", after, got, want)
		}
	}
}
