package openstackdataplanenode

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// heldIndex has the Topologies that a node holds, or may hold.
const heldIndex = "topology.held"

// topologiesOf returns the Topology that the node refers to, and the one that it
// held before and may follow still.
func topologiesOf(node *dataplanev1.OpenStackDataPlaneNode) []string {
	return slices.Compact(topology.NamesOf(node.Spec.TopologyRef, node.Status.LastAppliedTopology))
}

// releaseTopologies adds the controller that releases Topologies which no node
// holds any more. It is the only one that removes finalizers of nodes.
func (r *Reconciler) releaseTopologies(mgr ctrl.Manager) error {
	held := func(_ context.Context, obj client.Object) []reconcile.Request {
		var requests []reconcile.Request
		for _, name := range topologiesOf(obj.(*dataplanev1.OpenStackDataPlaneNode)) {
			requests = append(requests, watch.Request(obj.GetNamespace(), name))
		}
		return requests
	}
	return ctrl.NewControllerManagedBy(mgr).Named("dataplane-node-topologies").
		For(&topologyv1.Topology{}, builder.WithPredicates(holdChanges)).
		Watches(&dataplanev1.OpenStackDataPlaneNode{}, watch.Gather(r.Gather, held), builder.WithPredicates(heldChanges)).
		Complete(reconcile.Func(r.releaseTopology))
}

func (r *Reconciler) releaseTopology(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	t := &topologyv1.Topology{}
	if err := r.Get(ctx, req.NamespacedName, t); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	err := r.topologies.Release(ctx, r.Client, t, func() (map[string]string, error) {
		list := &dataplanev1.OpenStackDataPlaneNodeList{}
		err := r.List(ctx, list, client.InNamespace(req.Namespace), client.MatchingFields{heldIndex: req.Name}, client.UnsafeDisableDeepCopy)
		roles := map[string]string{}
		for i := range list.Items {
			roles[list.Items[i].Name] = list.Items[i].Spec.Role
		}
		return roles, err
	})
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: r.Gather}, nil // the cache is late
	}
	return ctrl.Result{}, err
}

// holdChanges lets through that a Topology is there, is held by others than
// before, or is deleted.
var holdChanges = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return !slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers()) || e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
}}

// heldChanges lets through that a node goes, or holds something else. One that
// is new releases nothing.
var heldChanges = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*dataplanev1.OpenStackDataPlaneNode), e.ObjectNew.(*dataplanev1.OpenStackDataPlaneNode)
		return before.Spec.Role != after.Spec.Role || !slices.Equal(topologiesOf(before), topologiesOf(after))
	},
}
