package placement

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// BenchmarkPredict plays the roll-out of three pods with one constraint in a
// cluster of the size of a large control plane.
func BenchmarkPredict(b *testing.B) {
	world, w := largeWorld(100, 1000), makeWorkload(3, spreadBy("zone", "service", "glance"))
	b.Run("100 nodes, 1000 pods", func(b *testing.B) {
		for b.Loop() {
			if v, err := Predict(b.Context(), world, w); err != nil || !v.Fits() {
				b.Fatal(v, err)
			}
		}
	})
	w.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64")}
	b.Run("100 nodes, 1000 pods, nothing fits", func(b *testing.B) {
		for b.Loop() {
			if v, err := Predict(b.Context(), world, w); err != nil || v.Fits() {
				b.Fatal(v, err)
			}
		}
	})
}

func BenchmarkMeasure(b *testing.B) {
	world, constraint := largeWorld(100, 1000), spreadBy("zone", "service", "glance")
	self := makePod("self", "", "service", "glance")
	for b.Loop() {
		if _, err := Measure(constraint, self, world.Nodes, world.Pods); err != nil {
			b.Fatal(err)
		}
	}
}

func largeWorld(nodes, pods int) World {
	var w World
	for i := range nodes {
		w.Nodes = append(w.Nodes, makeNode(fmt.Sprintf("n%d", i), "zone", fmt.Sprintf("z%d", i%3)))
	}
	for i := range pods {
		pod := makePod(fmt.Sprintf("p%d", i), w.Nodes[i%nodes].Name, "service", fmt.Sprintf("s%d", i%20))
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
		pod.UID = types.UID(pod.Name)
		w.Pods = append(w.Pods, pod)
	}
	return w
}
