package openstackdataplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// planeOf describes n nodes of one role.
func planeOf(n int) *dataplanev1.OpenStackDataPlane {
	plane := &dataplanev1.OpenStackDataPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "plane", UID: "plane-uid"}}
	plane.Spec.Roles = map[string]dataplanev1.OpenStackDataPlaneRoleSpec{"compute": {}}
	plane.Spec.Nodes = map[string]dataplanev1.OpenStackDataPlaneNodeSpec{}
	for i := range n {
		plane.Spec.Nodes[fmt.Sprintf("n%02d", i)] = dataplanev1.OpenStackDataPlaneNodeSpec{Role: "compute"}
	}
	return plane
}

// rejecting is a client to an API server that does not take the named nodes.
func rejecting(t *testing.T, rejected []string, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := dataplanev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	reject := interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
		if name := obj.(interface{ GetName() string }).GetName(); slices.Contains(rejected, name) {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "openstackdataplanenodes"}, name, errors.New("ansibleHost is that of another node"))
		}
		return c.Apply(ctx, obj, opts...)
	}}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&dataplanev1.OpenStackDataPlane{}).
		WithIndex(&dataplanev1.OpenStackDataPlaneNode{}, ownerIndex, owner).WithIndex(&dataplanev1.OpenStackDataPlaneRole{}, ownerIndex, owner).
		WithInterceptorFuncs(reject).Build()
}

func reconciled(t *testing.T, c client.Client) (*dataplanev1.OpenStackDataPlane, ctrl.Result) {
	t.Helper()
	r := &Reconciler{Client: c, Runner: &phase.Runner{Client: c, Events: events.NewFakeRecorder(10)}}
	key := client.ObjectKey{Namespace: "ns", Name: "plane"}
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	if err != nil {
		t.Fatal(err)
	}
	plane := &dataplanev1.OpenStackDataPlane{}
	if err := c.Get(t.Context(), key, plane); err != nil {
		t.Fatal(err)
	}
	return plane, result
}

func nodeNames(t *testing.T, c client.Client) []string {
	t.Helper()
	list := &dataplanev1.OpenStackDataPlaneNodeList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

func TestRejectedNodesStopNoOthers(t *testing.T) {
	plane, yes := planeOf(5), true
	old := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "old", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: dataplanev1.GroupVersion.String(), Kind: "OpenStackDataPlane", Name: plane.Name, UID: plane.UID, Controller: &yes},
	}}}
	c := rejecting(t, []string{"n01", "n03"}, plane, old)
	got, result := reconciled(t, c)
	if names, want := nodeNames(t, c), []string{"n00", "n02", "n04"}; !slices.Equal(names, want) {
		t.Errorf("the nodes are %v; want %v: the others of the object applied, and the one that it no longer has removed", names, want)
	}
	input := got.Status.Conditions.Get(condition.InputReadyCondition)
	if input.Status != "False" || input.Reason != dataplanev1.RejectedReason {
		t.Errorf("InputReady is %s because of %s; want False because of %s", input.Status, input.Reason, dataplanev1.RejectedReason)
	}
	for _, part := range []string{"2 of 6 roles and nodes", "n01", "n03", "ansibleHost is that of another node"} {
		if !strings.Contains(input.Message, part) {
			t.Errorf("InputReady does not name %q: %s", part, input.Message)
		}
	}
	if got.Status.NodesSummary != "0/5" {
		t.Errorf("the summary is %s; want 0/5", got.Status.NodesSummary)
	}
	if result.RequeueAfter == 0 {
		t.Error("what was rejected is not tried again")
	}
}

func TestRejectionsAreBounded(t *testing.T) {
	plane := planeOf(60)
	var all []string
	for name := range plane.Spec.Nodes {
		all = append(all, name)
	}
	got, _ := reconciled(t, rejecting(t, all, plane))
	message := got.Status.Conditions.Get(condition.InputReadyCondition).Message
	if !strings.Contains(message, "60 of 61") || !strings.Contains(message, "and 50 more") || len(message) > 4096 {
		t.Errorf("the message has %d bytes; want the number of the rejected nodes, some of them and how many more: %s", len(message), message)
	}
}

func TestWhatIsNoRejectionIsAnError(t *testing.T) {
	r := &rejections{}
	for _, err := range []error{nil, errors.New("connection refused"), apierrors.NewConflict(schema.GroupResource{}, "n", nil), apierrors.NewInternalError(errors.New("failed calling webhook"))} {
		if r.note(err) {
			t.Errorf("%v is taken for a rejection: it would not be retried at once", err)
		}
	}
	if err := r.halt(5); err != nil {
		t.Errorf("without rejections: %v", err)
	}
}
