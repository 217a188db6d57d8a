package watch

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
)

type node = dataplanev1.OpenStackDataPlaneNode

// readyNode is a node as it is stored once its current spec has run.
func readyNode(changes ...func(*node)) *node {
	n := &node{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n", Generation: 2}}
	n.Status.ObservedGeneration = 2
	n.Status.Conditions.MarkTrue(condition.ReadyCondition, "x")
	for _, change := range changes {
		change(n)
	}
	return n
}

func TestSpecOrReadyChanges(t *testing.T) {
	unready := func(n *node) {
		n.Status.Conditions.MarkFalse(condition.ReadyCondition, "X", condition.SeverityInfo, "x")
	}
	for name, c := range map[string]struct {
		old, new         *node
		spec, orReadines bool
	}{
		"nothing, as in a resync": {readyNode(), readyNode(), false, false},
		"another message of a condition": {
			readyNode(), readyNode(func(n *node) { n.Status.Conditions.MarkTrue(condition.ReadyCondition, "y") }), false, false,
		},
		"labels": {readyNode(), readyNode(func(n *node) { n.Labels = map[string]string{"a": "b"} }), false, false},
		"the spec": {
			readyNode(), readyNode(func(n *node) { n.Generation = 3 }), true, true,
		},
		"annotations": {
			readyNode(), readyNode(func(n *node) { n.Annotations = map[string]string{"a": "b"} }), true, true,
		},
		"it becomes ready": {readyNode(unready), readyNode(), false, true},
		"it is ready no longer": {
			readyNode(), readyNode(unready), false, true,
		},
		"its status catches up with the spec, and ready stays true": {
			readyNode(func(n *node) { n.Generation = 3 }), readyNode(func(n *node) { n.Generation, n.Status.ObservedGeneration = 3, 3 }), false, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := event.UpdateEvent{ObjectOld: c.old, ObjectNew: c.new}
			if got := SpecChanges.Update(e); got != c.spec {
				t.Errorf("SpecChanges lets it through: %v; want %v", got, c.spec)
			}
			if got := SpecOrReadyChanges.Update(e); got != c.orReadines {
				t.Errorf("SpecOrReadyChanges lets it through: %v; want %v", got, c.orReadines)
			}
		})
	}
	if !SpecOrReadyChanges.Create(event.CreateEvent{Object: readyNode()}) || !SpecOrReadyChanges.Delete(event.DeleteEvent{Object: readyNode()}) {
		t.Error("creations and deletions are let through")
	}
}

func TestReadinessOfKindsThatOnlyHaveACondition(t *testing.T) {
	role := &dataplanev1.OpenStackDataPlaneRole{}
	before := readiness(role)
	role.Status.Conditions.MarkTrue(condition.ReadyCondition, "x")
	if after := readiness(role); after == before {
		t.Errorf("the readiness is %q before and after", after)
	}
	if got := readiness(&corev1.Pod{}); got != "" {
		t.Errorf("the readiness of a Pod is %q; want none", got)
	}
}

func newQueue() Queue {
	return workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
}

// A map function that waits for a cache must not hold up the end of the manager.
func TestGatherHandsOnTheContext(t *testing.T) {
	q := newQueue()
	defer q.ShutDown()
	ended, end := context.WithCancel(context.Background())
	end()
	heard := 0
	h := Gather(0, func(ctx context.Context, _ client.Object) []reconcile.Request {
		if ctx.Err() != nil {
			heard++
		}
		return nil
	})
	h.Create(ended, event.CreateEvent{Object: withRole("a")}, q)
	h.Update(ended, event.UpdateEvent{ObjectOld: withRole("a"), ObjectNew: withRole("b")}, q)
	h.Delete(ended, event.DeleteEvent{Object: withRole("a")}, q)
	if heard != 4 {
		t.Errorf("%d of 4 calls heard that the manager ends", heard)
	}
}

func TestGatherMakesOneRequestOfMany(t *testing.T) {
	q := newQueue()
	defer q.ShutDown()
	h := Gather(50*time.Millisecond, func(_ context.Context, obj client.Object) []reconcile.Request {
		return []reconcile.Request{Request("ns", obj.(*node).Spec.Role)}
	})
	for range 100 {
		h.Create(context.Background(), event.CreateEvent{Object: withRole("a")}, q)
		h.Delete(context.Background(), event.DeleteEvent{Object: withRole("a")}, q)
	}
	h.Update(context.Background(), event.UpdateEvent{ObjectOld: withRole("a"), ObjectNew: withRole("b")}, q)
	if q.Len() > 0 {
		t.Error("a request came before the delay")
	}
	var got []string
	for range 2 {
		r, _ := q.Get()
		got = append(got, r.Name)
		q.Done(r)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"a", "b"}, got); diff != "" {
		t.Errorf("the requests differ; a node that moves concerns both roles (-want +got):\n%s", diff)
	}
	time.Sleep(100 * time.Millisecond)
	if n := q.Len(); n > 0 {
		t.Errorf("%d more requests came; want one for each role", n)
	}
}

func withRole(role string) *node {
	return &node{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}, Spec: dataplanev1.OpenStackDataPlaneNodeSpec{Role: role}}
}

func TestUsersAreFoundThroughTheIndex(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := dataplanev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	named := func(ns, name, role string) client.Object {
		n := withRole(role)
		n.Namespace, n.Name = ns, name
		return n
	}
	build := func() *fake.ClientBuilder {
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(named("ns", "n1", "r"), named("ns", "n2", "r"), named("ns", "n3", "x"), named("other", "n4", "r"))
	}
	c := build().WithIndex(&node{}, "role", func(o client.Object) []string { return []string{o.(*node).Spec.Role} }).Build()
	list := func() client.ObjectList { return &dataplanev1.OpenStackDataPlaneNodeList{} }
	role := &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r"}}
	got := Users(c, list, "role", ByName)(context.Background(), role)
	if diff := cmp.Diff([]reconcile.Request{Request("ns", "n1"), Request("ns", "n2")}, got); diff != "" {
		t.Errorf("the users differ (-want +got):\n%s", diff)
	}
	if got := Users(build().Build(), list, "role", ByName)(context.Background(), role); len(got) > 0 {
		t.Errorf("without the index the users are %v; want none", got)
	}
}
