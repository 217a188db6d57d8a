package apply

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// statefulSet has of everything that JSON writes in more ways than one: empty
// structs, pointers to them, times, quantities and what is an integer or a string.
func statefulSet() *appsv1.StatefulSet {
	labels := map[string]string{"a": "b"}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "child", Labels: labels},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{
					Name: "c", Image: "i", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
					ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(80)}}},
					Resources:      corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("0.5")}},
				}},
				Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
				Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
					{TopologyKey: "zone", NamespaceSelector: &metav1.LabelSelector{}},
				}}},
			}},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "v"}}},
		},
	}
}

func hashOf(t *testing.T, desired client.Object) string {
	t.Helper()
	a, err := newApplication(newDesk(), "manager", owner("me"), nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := a.configuration(desired)
	if err != nil {
		t.Fatal(err)
	}
	return want.GetAnnotations()[appliedAnnotation]
}

// The hash of an object must not depend on the version of the libraries: a
// difference is a write of every object there is, and with enforcement Hold a
// change that is held. If this test fails after an update of a library, fix
// meaning, not the test.
func TestTheHashLasts(t *testing.T) {
	if got, want := hashOf(t, statefulSet()), "2a0e19220f01cc7e"; got != want {
		t.Errorf("the hash is %s; want %s, as before", got, want)
	}
}

func TestTheHashTellsWhatIsSet(t *testing.T) {
	same := hashOf(t, statefulSet())
	for name, c := range map[string]struct {
		change  func(*appsv1.StatefulSetSpec)
		differs bool
	}{
		"nothing":                           {func(*appsv1.StatefulSetSpec) {}, false},
		"an empty map where there was none": {func(s *appsv1.StatefulSetSpec) { s.Template.Annotations = map[string]string{} }, false},
		"an empty list within a struct": {func(s *appsv1.StatefulSetSpec) {
			s.Template.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{}
		}, false},
		"other replicas":                  {func(s *appsv1.StatefulSetSpec) { s.Replicas = ptr.To[int32](1) }, true},
		"no replicas":                     {func(s *appsv1.StatefulSetSpec) { s.Replicas = nil }, true},
		"an empty selector that was none": {func(s *appsv1.StatefulSetSpec) { s.VolumeClaimTemplates[0].Spec.Selector = &metav1.LabelSelector{} }, true},
		"no emptyDir":                     {func(s *appsv1.StatefulSetSpec) { s.Template.Spec.Volumes[0].EmptyDir = nil }, true},
		"another quantity": {func(s *appsv1.StatefulSetSpec) {
			s.Template.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("1")
		}, true},
		"the port of a probe as text": {func(s *appsv1.StatefulSetSpec) {
			s.Template.Spec.Containers[0].ReadinessProbe.HTTPGet.Port = intstr.FromString("80")
		}, true},
		"all namespaces are none any longer": {func(s *appsv1.StatefulSetSpec) {
			s.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].NamespaceSelector = nil
		}, true},
	} {
		set := statefulSet()
		c.change(&set.Spec)
		if got := hashOf(t, set); (got != same) != c.differs {
			t.Errorf("%s: the hash is %s and was %s; want another: %v", name, got, same, c.differs)
		}
	}
}

// Types of two versions of a library: the later one has fields that no one sets,
// and says of the others in another way that they may be left out.
func TestAFieldThatNobodySetsMeansNothing(t *testing.T) {
	type status struct{ Count int }
	type before struct {
		Name string `json:"name"`
	}
	type after struct {
		Name   string            `json:"name,omitempty"`
		Status status            `json:"status"`
		Note   *string           `json:"note"`
		Limit  int               `json:"limit"`
		More   map[string]string `json:"more"`
		Time   metav1.Time       `json:"time"`
	}
	if diff := cmp.Diff(setFields(reflect.ValueOf(before{"n"})), setFields(reflect.ValueOf(&after{Name: "n"}))); diff != "" {
		t.Errorf("the fields differ (-before +after):\n%s", diff)
	}
}

func TestAnUntypedObjectIsTakenAsItIs(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"a": nil, "b": map[string]any{}}}}
	if diff := cmp.Diff(u.Object, meaning(u, u)); diff != "" {
		t.Errorf("it differs (-want +got):\n%s", diff)
	}
}

// An object that an earlier version wrote, of whose JSON the hash was.
func TestTheHashOfAnEarlierVersionIsNoReasonToWrite(t *testing.T) {
	set := statefulSet()
	d := newDesk()
	apply := func() {
		t.Helper()
		if err := Child(ctx, d, "manager", owner("me"), set.DeepCopy(), &appsv1.StatefulSet{}); err != nil {
			t.Fatal(err)
		}
	}
	apply()
	stored := &appsv1.StatefulSet{}
	if err := d.Get(ctx, client.ObjectKeyFromObject(set), stored); err != nil {
		t.Fatal(err)
	}
	a, err := newApplication(d, "manager", owner("me"), nil)
	if err == nil {
		_, err = a.configuration(set.DeepCopy())
	}
	if err != nil {
		t.Fatal(err)
	}
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{appliedAnnotation: a.before}}})
	if err := d.Patch(ctx, stored, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
	if apply(); d.writes != 1 || a.before == hashOf(t, set) {
		t.Errorf("there were %d writes; want none but the first", d.writes)
	}
}
