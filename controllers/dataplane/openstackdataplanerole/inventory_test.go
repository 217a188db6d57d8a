package openstackdataplanerole

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// bench is a role with nodes whose own variables have so many bytes.
type bench struct {
	client.Client
	*Reconciler
	t      *testing.T
	writes int
}

func newBench(t *testing.T, count, bytes int) *bench {
	t.Helper()
	scheme, b := runtime.NewScheme(), &bench{t: t}
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, dataplanev1.AddToScheme, topologyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	objects := []client.Object{
		&dataplanev1.OpenStackDataPlaneRole{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r", UID: "role-uid", Generation: 1},
			Spec: dataplanev1.OpenStackDataPlaneRoleSpec{TopologyRef: &topologyv1.TopologyRef{Name: "edge"}}},
		&topologyv1.Topology{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "edge"}},
	}
	for i := range count {
		objects = append(objects, node(i, bytes))
	}
	b.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&dataplanev1.OpenStackDataPlaneRole{}, &dataplanev1.OpenStackDataPlaneNode{}).
		WithIndex(&dataplanev1.OpenStackDataPlaneNode{}, dataplane.RoleIndex, func(o client.Object) []string { return []string{dataplane.Role(o)} }).
		WithInterceptorFuncs(interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if strings.HasPrefix(obj.(interface{ GetName() string }).GetName(), "dataplanerole") {
				b.writes++
			}
			return c.Apply(ctx, obj, opts...)
		}}).Build()
	b.Reconciler = &Reconciler{Client: b.Client, Runner: &phase.Runner{Client: b.Client, Events: events.NewFakeRecorder(1000)}, published: map[types.NamespacedName]published{}}
	return b
}

func node(i, bytes int) *dataplanev1.OpenStackDataPlaneNode {
	n := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("n%04d", i), UID: types.UID(fmt.Sprint(i)), Generation: 1}}
	n.Spec = dataplanev1.OpenStackDataPlaneNodeSpec{Role: "r", AnsibleHost: fmt.Sprintf("10.0.%d.%d", i/200, i%200)}
	n.Spec.Node.AnsibleVars = &apiextensionsv1.JSON{Raw: []byte(`{"own": "` + strings.Repeat("x", bytes) + `"}`)}
	return n
}

func (b *bench) reconcile() (*dataplanev1.OpenStackDataPlaneRole, ctrl.Result) {
	b.t.Helper()
	key, role := types.NamespacedName{Namespace: "ns", Name: "r"}, &dataplanev1.OpenStackDataPlaneRole{}
	result, err := b.Reconcile(b.t.Context(), ctrl.Request{NamespacedName: key})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.Client.Get(b.t.Context(), key, role); err != nil {
		b.t.Fatal(err)
	}
	return role, result
}

func (b *bench) maps() int {
	b.t.Helper()
	list := &corev1.ConfigMapList{}
	if err := b.List(b.t.Context(), list); err != nil {
		b.t.Fatal(err)
	}
	return len(list.Items)
}

func (b *bench) expect(role *dataplanev1.OpenStackDataPlaneRole, parts int32, message string) {
	b.t.Helper()
	input := role.Status.Conditions.Get(condition.InputReadyCondition)
	if input.Status != corev1.ConditionTrue || !strings.Contains(input.Message, message) {
		b.t.Errorf("InputReady is %s: %s; want True with %q", input.Status, input.Message, message)
	}
	if !role.Status.Conditions.IsTrue(condition.TopologyReadyCondition) || role.Status.LastAppliedTopology == nil {
		b.t.Error("the Topology of the role is not held")
	}
	if got := max(role.Status.InventoryParts, min(1, int32(len(role.Status.InventoryConfigMapName)))); got != parts || b.maps() != int(parts) {
		b.t.Errorf("the status has %d parts, and there are %d ConfigMaps; want %d", got, b.maps(), parts)
	}
}

func TestAnInventoryIsSpreadAndShrinks(t *testing.T) {
	b := newBench(t, 30, 40<<10)
	role, _ := b.reconcile()
	b.expect(role, 4, "complete")
	time.Sleep(30 * restPerNode)
	for i := 5; i < 30; i++ {
		if err := b.Delete(t.Context(), node(i, 0)); err != nil {
			t.Fatal(err)
		}
	}
	role, _ = b.reconcile()
	b.expect(role, 1, "complete")
}

func TestAnInventoryThatIsTooLargeHaltsNothing(t *testing.T) {
	b := newBench(t, 20, 400<<10)
	role, _ := b.reconcile()
	b.expect(role, 0, "not published")
	if role.Status.Nodes != 20 || role.Status.Conditions.Get(dataplanev1.NodesReadyCondition).Reason != dataplanev1.NodesNotReadyReason {
		t.Errorf("the nodes are not summed up: %+v", role.Status)
	}
}

func TestAnInventoryIsNotRenderedForStatusOfNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 100, 10)
		b.reconcile()
		key := types.NamespacedName{Namespace: "ns", Name: "r"}
		first := b.published[key].at
		for i := range 100 {
			time.Sleep(watch.DefaultGather)
			ready := node(i, 10)
			if err := b.Get(t.Context(), client.ObjectKeyFromObject(ready), ready); err != nil {
				t.Fatal(err)
			}
			ready.Status.Conditions.MarkTrue(condition.ReadyCondition, "x")
			if err := b.Status().Update(t.Context(), ready); err != nil {
				t.Fatal(err)
			}
			b.reconcile()
		}
		if got := b.published[key].at; !got.Equal(first) || b.writes != 1 {
			t.Errorf("it was rendered again %s later, and written %d times; want once", got.Sub(first), b.writes)
		}
	})
}

func TestAnInventoryRestsWhileNodesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1000, 1) // 5 s of rest
		b.reconcile()
		for i := range 10 {
			time.Sleep(time.Second)
			if err := b.Create(t.Context(), node(1000+i, 1)); err != nil {
				t.Fatal(err)
			}
			if _, result := b.reconcile(); result.RequeueAfter > 6*time.Second {
				t.Errorf("the next look is in %s", result.RequeueAfter)
			}
		}
		if b.writes < 2 || b.writes > 3 {
			t.Errorf("in 10 s the inventory was written %d times; want every 5 s", b.writes)
		}
		_, result := b.reconcile()
		time.Sleep(result.RequeueAfter)
		if _, result = b.reconcile(); result.RequeueAfter != 0 {
			t.Errorf("the last node still waits for %s", result.RequeueAfter)
		}
		cm := &corev1.ConfigMap{}
		if err := b.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: InventoryName("r", 1)}, cm); err != nil || !strings.Contains(cm.Data["inventory"], "n1009:") {
			t.Errorf("the last node is not in the inventory: %v", err)
		}
	})
}

func TestAnInventoryThatSomebodyEditsIsRestored(t *testing.T) {
	b := newBench(t, 2, 1)
	b.reconcile()
	cm := &corev1.ConfigMap{}
	key := types.NamespacedName{Namespace: "ns", Name: InventoryName("r", 1)}
	if err := b.Get(t.Context(), key, cm); err != nil {
		t.Fatal(err)
	}
	cm.Data["inventory"] = "edited"
	if err := b.Update(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * restPerNode)
	b.reconcile()
	if err := b.Get(t.Context(), key, cm); err != nil || cm.Data["inventory"] == "edited" {
		t.Errorf("the inventory is %q: %v", cm.Data["inventory"], err)
	}
}
