package topology_test

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

func TestUsersWithoutAHoldAreWokenWhenOneIsLetGo(t *testing.T) {
	users := func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{watch.Request(namespace, "holder"), watch.Request(namespace, "waiting")}
	}
	held := func(names ...string) *topologyv1.Topology {
		topo := &topologyv1.Topology{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "t"}}
		for _, name := range names {
			topo.Finalizers = append(topo.Finalizers, finalizerOf(name))
		}
		return topo
	}
	for name, c := range map[string]struct {
		before, after *topologyv1.Topology
		want          []string
	}{
		"nothing, as in a resync":                 {held("holder", "other"), held("holder", "other"), nil},
		"another holds it as well":                {held("holder"), held("holder", "other"), nil},
		"another lets go: there is room":          {held("holder", "other"), held("holder"), []string{"waiting"}},
		"the hold of a user is taken away":        {held("holder", "waiting"), held("waiting"), []string{"holder"}},
		"one is taken away and another put there": {held("holder"), held("waiting"), []string{"holder"}},
	} {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		topology.Unheld("ConfigMap", users).Update(t.Context(), event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}, q)
		var got []string
		for range q.Len() {
			r, _ := q.Get()
			got = append(got, r.Name)
		}
		q.ShutDown()
		if !slices.Equal(got, c.want) {
			t.Errorf("%s wakes %v; want %v", name, got, c.want)
		}
	}
}

// What is refused with TopologyFull, such as a node of a data plane, waits for this.
func TestRoomInAFullTopologyIsLetThrough(t *testing.T) {
	held := func(n int) *topologyv1.Topology {
		return &topologyv1.Topology{ObjectMeta: metav1.ObjectMeta{Finalizers: slices.Repeat([]string{"one"}, n)}}
	}
	for name, c := range map[string]struct {
		before, after int
		want          bool
	}{
		"a full one takes one more again": {topology.MaxHolders, topology.MaxHolders - 1, true},
		"it becomes full":                 {topology.MaxHolders - 1, topology.MaxHolders, false},
		"there was room before":           {topology.MaxHolders - 1, topology.MaxHolders - 2, false},
		"it stays full":                   {topology.MaxHolders, topology.MaxHolders, false},
	} {
		if got := topology.Existence.Update(event.UpdateEvent{ObjectOld: held(c.before), ObjectNew: held(c.after)}); got != c.want {
			t.Errorf("%s: %v; want %v", name, got, c.want)
		}
	}
}
