package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

func TestNotes(t *testing.T) {
	snapshot := Snapshot{Nodes: []*corev1.Node{makeNode("n0")}, StorageClasses: []*storagev1.StorageClass{
		makeClass("ceph", "rbd", storagev1.VolumeBindingImmediate),
		makeClass("lvms", "topolvm.io", storagev1.VolumeBindingWaitForFirstConsumer),
		makeClass("local", noProvisioner, storagev1.VolumeBindingWaitForFirstConsumer),
	}}
	snapshot.CSIDrivers = []*storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: "topolvm.io"}, Spec: storagev1.CSIDriverSpec{StorageCapacity: ptr.To(true)}}}
	for name, c := range map[string]struct {
		change func(*Workload)
		want   []string
	}{
		"nothing":                       {func(*Workload) {}, nil},
		"a volume that is there or not": {func(w *Workload) { *w = withClaims(*w, "local") }, nil},
		"a priority":                    {func(w *Workload) { w.Template.Spec.PriorityClassName = "high" }, []string{"eviction of pods of lower priority (priorityClassName high)"}},
		"devices":                       {func(w *Workload) { w.Template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} }, []string{"the devices of resourceClaims"}},
		"another scheduler":             {func(w *Workload) { w.Template.Spec.SchedulerName = "bin-packing" }, []string{"the rules of scheduler bin-packing"}},
		"immediate binding":             {func(w *Workload) { *w = withClaims(*w, "ceph") }, []string{"where StorageClass ceph makes new volumes, which binds them at once"}},
		"storage capacity":              {func(w *Workload) { *w = withClaims(*w, "lvms") }, []string{"that several new volumes of StorageClass lvms share the room of a CSIStorageCapacity"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := makeWorkload(1)
			c.change(&w)
			if diff := cmp.Diff(c.want, predict(t, snapshot, w).Notes); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAProblemSaysWhatThePredictionLeavesOut(t *testing.T) {
	w := makeWorkload(1)
	w.Template.Spec.PriorityClassName = "high"
	problem(t, predict(t, full(), w), topologyv1.UnsatisfiableReason, "1 node(s) were unschedulable. The prediction leaves out eviction of pods of lower priority (priorityClassName high)")
}
