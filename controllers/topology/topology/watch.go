package topology

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

func topologyOf(pod client.Object) []string {
	if name := pod.GetAnnotations()[topologyv1.NameAnnotation]; name != "" {
		return []string{name}
	}
	return nil
}

func itself(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{watch.Request(obj.GetNamespace(), obj.GetName())}
}

// finalizerChanges lets through that finalizers come and go, which For does not.
var finalizerChanges = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers())
	},
}

// podChanges lets through that a pod comes, goes, ends, gets a node or becomes
// another user's. The many other writes to its status do not count.
var podChanges = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
		return before.Spec.NodeName != after.Spec.NodeName || watch.Ended(before) != watch.Ended(after) ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			!maps.Equal(before.Labels, after.Labels) || !slices.Equal(topologyOf(before), topologyOf(after))
	},
}

// nodeChanges lets through that a node comes, goes, or counts in another way. A
// node that is not ready or cordoned has a taint. Heartbeats do not count.
var nodeChanges = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*corev1.Node), e.ObjectNew.(*corev1.Node)
		return !maps.Equal(before.Labels, after.Labels) || !equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints)
	},
}

// topologiesOfPod returns the Topologies that count a pod: that which it was made
// with, and those of the namespace with a constraint that selects it.
func (r *Reconciler) topologiesOfPod(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.topologies(ctx, func(t *topologyv1.Topology) bool {
		return obj.GetAnnotations()[topologyv1.NameAnnotation] == t.Name || selects(t, obj.GetLabels())
	}, client.InNamespace(obj.GetNamespace()))
}

// topologiesOfNode returns all that have constraints: a node is in their domains,
// or lacks their keys.
func (r *Reconciler) topologiesOfNode(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.topologies(ctx, func(t *topologyv1.Topology) bool { return len(t.Spec.TopologySpreadConstraints) > 0 })
}

func (r *Reconciler) topologies(ctx context.Context, concerned func(*topologyv1.Topology) bool, opts ...client.ListOption) []reconcile.Request {
	list := &topologyv1.TopologyList{}
	if err := r.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list Topologies")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if t := &list.Items[i]; concerned(t) {
			requests = append(requests, watch.Request(t.Namespace, t.Name))
		}
	}
	return requests
}

func selects(t *topologyv1.Topology, of map[string]string) bool {
	return slices.ContainsFunc(t.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
		return err == nil && selector.Matches(labels.Set(of))
	})
}
