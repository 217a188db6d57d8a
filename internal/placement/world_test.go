package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTrimDropsWhatTakesMemory(t *testing.T) {
	pod := makePod("a", "n")
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", Value: "secret"}}
	pod.Spec.Containers[0].Command = []string{"sleep"}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", ImageID: "sha256"}}
	got, err := Trim(pod)
	if diff := cmp.Diff(makePod("a", "n"), got); diff != "" || err != nil {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
	node := makeNode("n")
	if got, err := Trim(node); got != node || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestTrimChangesNoVerdict(t *testing.T) {
	for i := range 100 {
		d := newDraw(9, i)
		want := predict(t, d.world, d.workload)
		for _, pod := range d.world.Pods {
			if _, err := Trim(pod); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, predict(t, d.world, d.workload)); diff != "" {
			t.Fatalf("draw %d, -want +got:\n%s", i, diff)
		}
	}
}
