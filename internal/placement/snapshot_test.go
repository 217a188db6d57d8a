package placement

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestRead(t *testing.T) {
	nodes, pods := zones(1, 2)
	want := Snapshot{
		Nodes: nodes, Pods: pods, PersistentVolumes: []*corev1.PersistentVolume{makeVolume("pv", "local", "1Gi", "zone", "z0")},
		PersistentVolumeClaims: []*corev1.PersistentVolumeClaim{makeClaim("claim", "local", "1Gi")},
		StorageClasses:         drawnClasses(), Namespaces: drawnNamespaces(),
		CSINodes:             []*storagev1.CSINode{{ObjectMeta: metav1.ObjectMeta{Name: "n0"}}},
		CSIDrivers:           []*storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: "topolvm.io"}}},
		CSIStorageCapacities: []*storagev1.CSIStorageCapacity{{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "n0-local"}}},
		LimitRanges:          []*corev1.LimitRange{{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "limits"}}},
		ResourceQuotas:       []*corev1.ResourceQuota{{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "quota"}}},
	}
	objects := fake.NewClientBuilder()
	for _, o := range want.all() {
		objects.WithObjects(o)
	}
	got, err := Read(t.Context(), objects.Build())
	byName := cmpopts.SortSlices(func(a, b client.Object) bool { return a.GetName() < b.GetName() })
	if diff := cmp.Diff(want, got, byName, cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion"), cmpopts.IgnoreUnexported(Snapshot{})); diff != "" || err != nil {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
}

func TestReadNamesTheKindThatItCannotList(t *testing.T) {
	refuse := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, ok := list.(*storagev1.CSINodeList); ok {
			return errors.New("forbidden")
		}
		return c.List(ctx, list, opts...)
	}}
	_, err := Read(t.Context(), fake.NewClientBuilder().WithInterceptorFuncs(refuse).Build())
	if err == nil || !strings.Contains(err.Error(), "listing *v1.CSINode for the placement prediction: forbidden") {
		t.Errorf("got %v", err)
	}
}

// all returns every object of a snapshot.
func (w Snapshot) all() []client.Object {
	var all []client.Object
	fields := reflect.ValueOf(w)
	for i := range fields.NumField() {
		if !fields.Type().Field(i).IsExported() {
			continue
		}
		for j := range fields.Field(i).Len() {
			all = append(all, fields.Field(i).Index(j).Interface().(client.Object))
		}
	}
	return all
}

func TestTrimDropsWhatTakesMemory(t *testing.T) {
	pod := makePod("a", "n")
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", Value: "secret"}}
	pod.Spec.Containers[0].Command = []string{"sleep"}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "c", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}})
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", ImageID: "sha256"}}
	got, err := Trim(pod)
	if diff := cmp.Diff(makePod("a", "n"), got, cmpopts.EquateEmpty()); diff != "" || err != nil {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
	node := makeNode("n")
	node.Status.Images = []corev1.ContainerImage{{Names: []string{"registry.example.com/a:1"}}}
	node.Status.NodeInfo.KernelVersion = "6.12"
	want := makeNode("n")
	want.Status.Capacity = nil
	got, err = Trim(node)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
}

func TestTrimChangesNoPrediction(t *testing.T) {
	for i := range 100 {
		d := newDraw(9, i)
		want := predict(t, d.snapshot, d.workload)
		for _, o := range d.snapshot.all() {
			if _, err := Trim(o); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, predict(t, d.snapshot, d.workload), cmpopts.IgnoreUnexported(Problem{})); diff != "" {
			t.Fatalf("draw %d, -want +got:\n%s", i, diff)
		}
	}
}
