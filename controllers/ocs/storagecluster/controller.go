// Package storagecluster turns the device sets of each StorageCluster into those of
// a CephCluster, spread over failure domains (seeds/003), and shows where the OSDs
// are and would go. The rules are in internal/osd.
package storagecluster

import (
	"context"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/osd"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/placement"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// +kubebuilder:rbac:groups=ocs.openshift.io,resources=storageclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=ocs.openshift.io,resources=storageclusters/status,verbs=get;patch
// +kubebuilder:rbac:groups=ocs.openshift.io,resources=storageclusters/finalizers,verbs=update
// +kubebuilder:rbac:groups=ceph.rook.io,resources=cephclusters,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=cephclusters.ceph.rook.io,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods;persistentvolumeclaims,verbs=list;watch

const (
	controllerName = "storagecluster"
	// fieldManager owns what is written to CephClusters and to nodes.
	fieldManager = "edpm-storagecluster"
)

// Reconciler of StorageCluster.
type Reconciler struct {
	client.Client
	Runner    *phase.Runner
	Predictor *placement.Predictor

	// waiting are the OSDs that would find no node.
	waiting    placement.Waiting
	cache      cache.Cache
	controller controller.Controller
	// watched are the CephClusters, from when the kind is there.
	watched watch.Once
}

// scope is what one reconciliation works on. Nodes, pods and claims are those of the
// cache: not to be changed.
type scope struct {
	*Reconciler
	cluster *ocsv1.StorageCluster
	// before is what the status said of the device sets.
	before []ocsv1.DeviceSetStatus
	// nodes of the cluster, and those of them that OSDs go to.
	nodes, eligible []*corev1.Node
	// ceph is the CephCluster as it is, nil if there is none; rook reports whether
	// there is the kind.
	ceph *unstructured.Unstructured
	rook bool
	// pods and claims of OSDs.
	pods     []*corev1.Pod
	claims   []*corev1.PersistentVolumeClaim
	decision *osd.Decision
}

// Reconcile brings one storage cluster forward. A deleted one is left alone: a
// CephCluster that was made for it is collected with it, as Rook allows.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &ocsv1.StorageCluster{}
	if err := r.Get(ctx, req.NamespacedName, cluster); err != nil {
		r.waiting.Note(req.NamespacedName, "")
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !cluster.DeletionTimestamp.IsZero() {
		r.waiting.Note(req.NamespacedName, "")
		return ctrl.Result{}, nil
	}
	s := &scope{Reconciler: r, cluster: cluster, before: cluster.DeepCopy().Status.DeviceSets}
	return r.Runner.Run(ctx, cluster,
		phase.Of(condition.InputReadyCondition, s.inputs),
		phase.Of(ocsv1.NodesReadyCondition, s.findNodes),
		phase.Of(ocsv1.FailureDomainReadyCondition, s.failureDomain),
		phase.OptionalOf(ocsv1.CephClusterReadyCondition, s.look, s.decide),
		phase.Of(topologyv1.PlacementReadyCondition, s.project),
		phase.Of(ocsv1.CephClusterReadyCondition, s.write))
}
