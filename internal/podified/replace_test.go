package podified

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// An API can be deleted between the former StatefulSet and the next one: pods
// that were nobody's then would stay for good.
func TestPodsAreTheOwnersBeforeTheirSetGoes(t *testing.T) {
	ctx := context.Background()
	owner := &glancev1.GlanceAPI{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "glance", UID: "glance-uid"}}
	have := set(func(*appsv1.StatefulSetSpec) {})
	have.ObjectMeta = metav1.ObjectMeta{Namespace: "ns", Name: "glance", UID: "set-uid"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "glance-0"}}
	scheme := runtime.NewScheme()
	for _, err := range []error{
		clientgoscheme.AddToScheme(scheme), glancev1.AddToScheme(scheme),
		controllerutil.SetControllerReference(owner, have, scheme), controllerutil.SetControllerReference(have, pod, scheme),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	deleted := false
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(have, pod).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			now := &corev1.Pod{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(pod), now); err != nil {
				return err
			}
			if owners := now.OwnerReferences; len(owners) != 2 || owners[0].UID != have.UID || owners[1].UID != owner.UID || *owners[0].Controller != true || owners[1].Controller != nil {
				t.Errorf("when its set is deleted, the pod has the owners %v; want the set, as its controller, and the API", owners)
			}
			deleted = true
			return c.Delete(ctx, obj)
		},
	}).Build()
	p := &deployment{
		Deployer: &Deployer{Client: c, Events: events.NewFakeRecorder(1)}, Service: &Service{Name: "glance"},
		owner: owner, set: have, want: set(func(s *appsv1.StatefulSetSpec) { s.VolumeClaimTemplates = nil }), pods: []*corev1.Pod{pod},
	}
	var halt *phase.Halt
	if err := p.replace(ctx); !errors.As(err, &halt) {
		t.Errorf("replace returned %v, want to wait for the former set", err)
	}
	if !deleted {
		t.Error("the set that cannot be changed in place was not deleted")
	}
}
