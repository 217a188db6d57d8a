// Package openstackdataplanerole sums up the nodes of each role and publishes
// their common inventory.
package openstackdataplanerole

import (
	"context"
	"fmt"
	"sort"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplaneroles,verbs=list;watch;patch
// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplaneroles/status,verbs=patch
// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplaneroles/finalizers,verbs=update

const fieldManager = "edpm-dataplane-role"

// Reconciler of OpenStackDataPlaneRole.
type Reconciler struct {
	client.Client
	Runner *phase.Runner
	// Gather is how long changes of nodes are gathered into one summary.
	Gather time.Duration
	// published is what was rendered last, by role. One worker reads and writes it.
	published map[types.NamespacedName]published
}

type scope struct {
	*Reconciler
	role  *dataplanev1.OpenStackDataPlaneRole
	nodes []dataplanev1.OpenStackDataPlaneNode
	// again is when the inventory is to be rendered; zero means when something changes.
	again time.Duration
}

// Reconcile sums one role up.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	role := &dataplanev1.OpenStackDataPlaneRole{}
	if err := r.Get(ctx, req.NamespacedName, role); err != nil {
		delete(r.published, req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := apply.Finalizer(ctx, r.Client, role, dataplanev1.OldRoleFinalizer, controllerutil.RemoveFinalizer); err != nil || !role.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := &scope{Reconciler: r, role: role}
	result, err := r.Runner.Run(ctx, role,
		phase.OptionalOf(dataplanev1.NodesReadyCondition, s.listNodes, s.count),
		phase.OptionalOf(condition.TopologyReadyCondition, s.topology),
		phase.Of(condition.InputReadyCondition, s.inventory),
		phase.Of(dataplanev1.NodesReadyCondition, s.ready))
	if err == nil && result.RequeueAfter == 0 {
		result.RequeueAfter = s.again
	}
	return result, err
}

// SetupWithManager adds the controller. The indexes are those of the node
// controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	roleOf := func(_ context.Context, obj client.Object) []reconcile.Request {
		name := obj.(*dataplanev1.OpenStackDataPlaneNode).Spec.Role
		if name == "" {
			return nil
		}
		return []reconcile.Request{watch.Request(obj.GetNamespace(), name)}
	}
	usersOf := topology.Users(mgr.GetClient(), func() client.ObjectList { return &dataplanev1.OpenStackDataPlaneRoleList{} })
	r.published = map[types.NamespacedName]published{}
	return ctrl.NewControllerManagedBy(mgr).
		For(&dataplanev1.OpenStackDataPlaneRole{}, builder.WithPredicates(watch.SpecChanges)).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(roleOfInventory), builder.OnlyMetadata).
		Watches(&topologyv1.Topology{}, handler.EnqueueRequestsFromMapFunc(usersOf), builder.WithPredicates(topology.Existence)).
		Watches(&dataplanev1.OpenStackDataPlaneNode{}, watch.Gather(r.Gather, roleOf), builder.WithPredicates(watch.SpecOrReadyChanges)).
		Complete(r)
}

func (s *scope) listNodes(ctx context.Context) error {
	members, err := dataplane.NodesOfRole(ctx, s.Client, s.role.Namespace, s.role.Name)
	sort.Slice(members, func(i, j int) bool { return members[i].Name < members[j].Name })
	s.nodes = members
	return err
}

// count is the phase that counts nodes and ready nodes.
func (s *scope) count(context.Context) error {
	status := &s.role.Status
	status.Nodes, status.ReadyNodes = int32(len(s.nodes)), 0
	for i := range s.nodes {
		if s.nodes[i].IsReady() {
			status.ReadyNodes++
		}
	}
	status.NodesSummary = fmt.Sprintf("%d/%d", status.ReadyNodes, status.Nodes)
	return nil
}

// ready is the phase that says whether every node is.
func (s *scope) ready(context.Context) error {
	status := &s.role.Status
	for i := range s.nodes {
		if !s.nodes[i].IsReady() {
			return phase.Waiting(dataplanev1.NodesReadyCondition, dataplanev1.NodesNotReadyReason,
				"%s nodes are Ready; %s is not: see its conditions", status.NodesSummary, s.nodes[i].Name)
		}
	}
	status.Conditions.MarkTrue(dataplanev1.NodesReadyCondition, "%s nodes are Ready", status.NodesSummary)
	return nil
}
