package placement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSmoke(t *testing.T) {
	w := World{Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "crc"}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{}}}}}
	v, err := Predict(t.Context(), w, Workload{Namespace: "openstack", Name: "glance", Replicas: 2})
	t.Logf("%+v %v", v, err)
}
