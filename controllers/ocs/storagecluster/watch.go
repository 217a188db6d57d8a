package storagecluster

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	"github.com/edpm-operators/edpm-operators/internal/osd"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// osdIndex has the pods and claims of OSDs.
const osdIndex = "ocs.osd"

// SetupWithManager adds the controller and its indexes. CephClusters are watched
// from when their kind is there; until then its definition is.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	for _, kind := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, kind, osdIndex, indexOSD); err != nil {
			return err
		}
	}
	here, everywhere := watch.Gather(r.Predictor.Gather, r.inNamespace), watch.Gather(r.Predictor.Gather, r.all)
	r.cache = mgr.GetCache()
	var err error
	b := ctrl.NewControllerManagedBy(mgr).
		For(&ocsv1.StorageCluster{}, builder.WithPredicates(watch.SpecChanges)).
		Watches(&corev1.Node{}, everywhere, builder.WithPredicates(watch.NodeChanges)).
		Watches(&corev1.Pod{}, here, builder.WithPredicates(ofOSD, podChanges)).
		Watches(&corev1.PersistentVolumeClaim{}, here, builder.WithPredicates(ofOSD, watch.ClaimChanges)).
		WatchesMetadata(watch.Definition(), handler.EnqueueRequestsFromMapFunc(r.all), builder.WithPredicates(ofCephCluster)).
		WatchesRawSource(r.Predictor.Wakes(controllerName))
	b = watch.Scheduling(b, watch.Gather(r.Predictor.Gather, r.waiting.All), watch.Gather(r.Predictor.Gather, r.waiting.Concerned))
	r.controller, err = b.Build(r)
	return err
}

// watchCephClusters watches CephClusters from now on. What Rook writes to their status
// does not count.
func (r *Reconciler) watchCephClusters(ctx context.Context) error {
	ceph := &metav1.PartialObjectMetadata{}
	ceph.SetGroupVersionKind(cephv1.GroupVersion.WithKind("CephCluster"))
	events := source.Kind[client.Object](r.cache, ceph, handler.EnqueueRequestsFromMapFunc(clusterOf), predicate.Or(watch.SpecChanges, watch.Freed))
	if err := r.watched.Begin(ctx, r.controller, events); err != nil {
		return fmt.Errorf("CephClusters: %w", err)
	}
	return nil
}

// clusterOf returns the StorageCluster that a CephCluster has the name of.
func clusterOf(_ context.Context, ceph client.Object) []reconcile.Request {
	if name, ok := osd.StorageClusterName(ceph.GetName()); ok {
		return []reconcile.Request{watch.Request(ceph.GetNamespace(), name)}
	}
	return nil
}

func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.clusters(ctx)
}

func (r *Reconciler) inNamespace(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.clusters(ctx, client.InNamespace(obj.GetNamespace()))
}

func (r *Reconciler) clusters(ctx context.Context, opts ...client.ListOption) []reconcile.Request {
	list := &ocsv1.StorageClusterList{}
	if err := r.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list StorageClusters")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, watch.Request(list.Items[i].Namespace, list.Items[i].Name))
	}
	return requests
}

// indexOSD indexes the pods and the claims of OSDs, by Rook's labels.
func indexOSD(obj client.Object) []string {
	labels := obj.GetLabels()
	if app := labels[cephv1.AppLabel]; app == cephv1.AppOSD || app == cephv1.AppOSDPrepare || labels[cephv1.DeviceSetLabel] != "" {
		return []string{"true"}
	}
	return nil
}

var ofOSD = predicate.NewPredicateFuncs(func(obj client.Object) bool { return len(indexOSD(obj)) > 0 })

var ofCephCluster = predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetName() == cephv1.CephClusterCRD })

// podChanges lets through that a pod comes, goes, ends, gets a node or other labels.
var podChanges = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
		return before.Spec.NodeName != after.Spec.NodeName || before.Status.Phase != after.Status.Phase || !maps.Equal(before.Labels, after.Labels)
	},
}
