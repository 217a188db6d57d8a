package podified

import (
	"context"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// leaving is an API that is being deleted, in a cluster with what is left of it.
func leaving(t *testing.T, left ...client.Object) (*Deployer, *glancev1.GlanceAPI) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, glancev1.AddToScheme, topologyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	names := Names{Service: "glance", Finalizer: glancev1.GlanceAPIFinalizer}
	api := &glancev1.GlanceAPI{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "glance-default", UID: "api-uid", Finalizers: []string{names.Finalizer}, DeletionTimestamp: ptr.To(metav1.Now()),
	}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(left, api)...).Build()
	return &Deployer{Client: c, Live: c, Names: names}, api
}

func remains(t *testing.T, d *Deployer) []string {
	t.Helper()
	pods := &corev1.PodList{}
	if err := d.List(context.Background(), pods); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, pod := range pods.Items {
		names[pod.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func TestNoPodIsLeftBehind(t *testing.T) {
	pod := func(name, owner string, controllers ...metav1.OwnerReference) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, OwnerReferences: controllers,
			Labels: map[string]string{ServiceLabel: "glance", ownerLabel: owner, appsv1.StatefulSetPodNameLabel: name},
		}}
	}
	debug := pod("glance-default-single-7", "glance-default")
	delete(debug.Labels, appsv1.StatefulSetPodNameLabel)
	d, api := leaving(t, pod("glance-default-single-0", "glance-default"), pod("glance-edge-api-0", "glance-edge"), pod("of-a-person", "glance-default"), debug,
		pod("glance-default-single-1", "glance-default", metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "s", UID: "u", Controller: ptr.To(true)}))
	if err := d.Release(t.Context(), api, []*Service{{Name: "glance-default-single"}}); err != nil {
		t.Fatal(err)
	}
	if got, want := remains(t, d), []string{"glance-default-single-1", "glance-default-single-7", "glance-edge-api-0", "of-a-person"}; !slices.Equal(got, want) {
		t.Errorf("the pods %v remain, want %v: only what a StatefulSet left behind is deleted, and the garbage collector takes the one with its set", got, want)
	}
	if len(api.Finalizers) != 0 {
		t.Errorf("the API keeps the finalizers %v", api.Finalizers)
	}
}

// Until such a set is gone its pods are not no one's yet.
func TestAnOwnerStaysUntilTheSetThatLeavesItsPodsIsGone(t *testing.T) {
	former := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "glance-default-single", Finalizers: []string{metav1.FinalizerOrphanDependents}, DeletionTimestamp: ptr.To(metav1.Now()),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "glance.openstack.org/v1beta1", Kind: "GlanceAPI", Name: "glance-default", UID: "api-uid", Controller: ptr.To(true)}},
	}}
	d, api := leaving(t, former)
	if err := d.Release(t.Context(), api, []*Service{{Name: former.Name}}); err != nil {
		t.Fatal(err)
	}
	if !controllerutil.ContainsFinalizer(api, d.Finalizer) {
		t.Error("the API goes before the pods of its former set can be found")
	}
}
