package cache_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/internal/cache"
)

// held returns what is held of an object in memory.
func held[T client.Object](t *testing.T, obj T, operators ...string) T {
	t.Helper()
	out, err := transform[T](t, operators...)(obj)
	if err != nil {
		t.Fatal(err)
	}
	return out.(T)
}

// transform returns what objects of a kind pass on their way into memory.
func transform[T client.Object](t *testing.T, operators ...string) func(any) (any, error) {
	t.Helper()
	for kind, by := range cache.Options(operators).ByObject {
		if _, same := kind.(T); same {
			return by.Transform
		}
	}
	t.Fatalf("nothing is said of %T", *new(T))
	return nil
}

func podWithEverything(labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: labels, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
		Spec: corev1.PodSpec{
			NodeName: "worker-0", NodeSelector: map[string]string{"a": "b"}, Tolerations: []corev1.Toleration{{Key: "t"}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{TopologyKey: "zone"}}, Affinity: &corev1.Affinity{},
			Containers: []corev1.Container{{Name: "c", Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "hunter2"}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: "recap"}},
		}}},
	}
}

func TestOfPodsTheCacheHoldsWhatTheSchedulerLooksAt(t *testing.T) {
	for name, c := range map[string]struct {
		labels map[string]string
		recap  bool
	}{"a pod of a service": {nil, false}, "a pod of a run": {map[string]string{"osaee": "true"}, true}} {
		t.Run(name, func(t *testing.T) {
			want := podWithEverything(c.labels)
			want.ManagedFields, want.Spec.Containers[0].Env = nil, nil
			if !c.recap {
				want.Status.ContainerStatuses = nil
			}
			if diff := cmp.Diff(want, held(t, podWithEverything(c.labels)), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("what is held differs (-want +got):\n%s", diff)
			}
		})
	}
}

// podOf is a Pod of a controller in a release of it.
func podOf(kind, name, release string) *corev1.Pod {
	pod := podWithEverything(map[string]string{"release": release})
	pod.Name, pod.Annotations = name, map[string]string{"checksum": "abc", "topology.openstack.org/name": "zones"}
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "web", UID: "web", Controller: ptr.To(true)}}
	pod.Spec.Containers[0].Image = release
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Message: "starting"}}
	return pod
}

func TestOfPodsOfOthersTheCacheDoesNotHoldWhatTheySayOfThemselves(t *testing.T) {
	for kind, kept := range map[string]int{"StatefulSet": 1, "ReplicaSet": 0} {
		got := held(t, podOf(kind, "a", "1"))
		if len(got.Status.Conditions) != kept {
			t.Errorf("of a pod of a %s the conditions %v are held", kind, got.Status.Conditions)
		}
		if diff := cmp.Diff(map[string]string{"topology.openstack.org/name": "zones"}, got.Annotations); diff != "" {
			t.Errorf("the annotations differ (-want +got):\n%s", diff)
		}
	}
}

func TestOfPodsOfServicesTheCacheHoldsWhatFailsUntilTheyAreReady(t *testing.T) {
	for ready, want := range map[corev1.ConditionStatus]int{corev1.ConditionFalse: 1, corev1.ConditionTrue: 0} {
		pod := podOf("StatefulSet", "a", "1")
		pod.Status.Conditions[0].Status = ready
		if got := held(t, pod); len(got.Status.ContainerStatuses) != want {
			t.Errorf("of a pod whose condition Ready is %s, it holds %v of its containers; want %d", ready, got.Status.ContainerStatuses, want)
		}
	}
}

func TestPodsOfAControllerShareWhatTheyHaveInCommon(t *testing.T) {
	of := transform[*corev1.Pod](t)
	var pods []*corev1.Pod
	for _, pod := range []*corev1.Pod{podOf("ReplicaSet", "a", "1"), podOf("ReplicaSet", "b", "1"), podOf("ReplicaSet", "c", "2")} {
		got, err := of(pod)
		if err != nil {
			t.Fatal(err)
		}
		pods = append(pods, got.(*corev1.Pod))
	}
	shared := func(a, b *corev1.Pod) bool { return &a.Spec.Containers[0] == &b.Spec.Containers[0] }
	if !shared(pods[0], pods[1]) || shared(pods[1], pods[2]) {
		t.Error("pods with the same containers should share them, and no others")
	}
	for i, release := range []string{"1", "1", "2"} {
		if pods[i].Labels["release"] != release || pods[i].Spec.Containers[0].Image != release {
			t.Errorf("pod %d has the labels %v and the image %q", i, pods[i].Labels, pods[i].Spec.Containers[0].Image)
		}
	}
}

func TestOfNodesTheCacheHoldsNoImages(t *testing.T) {
	node := &corev1.Node{Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{SizeBytes: 1}}, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady}}}}
	if got := held(t, node); len(got.Status.Images) > 0 || len(got.Status.Conditions) == 0 {
		t.Errorf("the cache holds the status %+v", got.Status)
	}
}

func TestWithoutTopologiesOnlyTheResultsOfRunsAreHeld(t *testing.T) {
	got := held(t, podWithEverything(nil), "ansibleee", "dataplane")
	want := podWithEverything(nil)
	want.ManagedFields, want.Spec = nil, corev1.PodSpec{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is held differs (-want +got):\n%s", diff)
	}
	for kind, by := range cache.Options([]string{"ansibleee"}).ByObject {
		switch kind.(type) {
		case *corev1.Pod, *batchv1.Job:
			if by.Label == nil {
				t.Errorf("every %T of the cluster is held", kind)
			}
		}
	}
	if pods := held(t, &batchv1.Job{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Name: "x"}}}}); pods.Spec.Template.Name != "" {
		t.Error("the template of a Job is held")
	}
}

// metaWithEverything is metadata such as anybody can write.
func metaWithEverything(owner string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "ns", Name: "o", UID: "u", ResourceVersion: "7",
		Labels: map[string]string{"l": "v"}, Finalizers: []string{"f"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		Annotations: map[string]string{
			"short": "s", "long": strings.Repeat("x", 2000), "edpm.openstack.org/rerun": strings.Repeat("t", 2000),
		},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: owner, Kind: "K", Controller: ptr.To(true)}, {APIVersion: "v1", Kind: "Other", UID: "o"}},
	}
}

func TestOfConfigMapsTheCacheHoldsWhichTheyAreAndWhose(t *testing.T) {
	var identity func(any) (any, error)
	for kind, by := range cache.Options(nil).ByObject {
		if _, ok := kind.(*corev1.ConfigMap); ok {
			identity = by.Transform
		}
	}
	got, err := identity(&metav1.PartialObjectMetadata{ObjectMeta: metaWithEverything("dataplane.openstack.org/v1beta1")})
	want := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "o", UID: "u", ResourceVersion: "7",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "dataplane.openstack.org/v1beta1", Kind: "K", Controller: ptr.To(true)}, {UID: "o"}},
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v; what is held differs (-want +got):\n%s", err, diff)
	}
	if _, err := identity(&corev1.ConfigMap{}); err == nil {
		t.Error("the content of all ConfigMaps can be cached by accident")
	}
}

func TestOfForeignObjectsTheCacheHoldsWhichTheyAreAndWhose(t *testing.T) {
	set := func(owner string) *appsv1.StatefulSet {
		return &appsv1.StatefulSet{ObjectMeta: metaWithEverything(owner), Spec: appsv1.StatefulSetSpec{ServiceName: "s"}}
	}
	service := func(owner string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metaWithEverything(owner), Spec: corev1.ServiceSpec{ExternalName: "s"}}
	}
	for owner, ours := range map[string]bool{"glance.openstack.org/v1beta1": true, "apps/v1": false} {
		gotSet, gotService := held(t, set(owner)), held(t, service(owner))
		if gotSet.Spec.ServiceName == "s" != ours || gotService.Spec.ExternalName == "s" != ours {
			t.Errorf("of objects of %s the cache holds %+v and %+v", owner, gotSet, gotService)
		}
		if metav1.GetControllerOf(gotSet).APIVersion != owner || len(gotService.Labels) > 0 != ours {
			t.Errorf("of objects of %s the cache holds the metadata %+v and %+v", owner, gotSet.ObjectMeta, gotService.ObjectMeta)
		}
	}
}

func TestLongAnnotationsOfOthersAreNotHeld(t *testing.T) {
	got, err := cache.Options(nil).DefaultTransform(&corev1.Node{ObjectMeta: metaWithEverything("x/v1")})
	if err != nil {
		t.Fatal(err)
	}
	annotations := got.(*corev1.Node).Annotations
	if diff := cmp.Diff([]string{"edpm.openstack.org/rerun", "short"}, slices.Sorted(maps.Keys(annotations))); diff != "" {
		t.Errorf("the annotations differ (-want +got):\n%s", diff)
	}
}

func TestOfResourceDefinitionsOnlyTheOneThatIsWaitedForIsHeld(t *testing.T) {
	definitions := func(operators ...string) (fields []string) {
		for kind, by := range cache.Options(operators).ByObject {
			if _, ok := kind.(*metav1.PartialObjectMetadata); ok {
				fields = append(fields, by.Field.String())
			}
		}
		return fields
	}
	if got := definitions("glance", "ocs"); !cmp.Equal(got, []string{"metadata.name=cephclusters.ceph.rook.io"}) {
		t.Errorf("with the operator ocs %q are held", got)
	}
	if got := definitions(); len(got) > 0 {
		t.Errorf("without it %q are held", got)
	}
}
