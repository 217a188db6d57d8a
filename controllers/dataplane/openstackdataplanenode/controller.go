// Package openstackdataplanenode takes each node through phase 0, once it has a host: the
// machines of phase -1 are those of package baremetalclaim.
package openstackdataplanenode

import (
	"context"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplanenodes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplanenodes/status,verbs=patch
// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplanenodes/finalizers,verbs=update
// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplaneroles;openstackdataplaneservices,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=list;watch;create;patch;delete

// Kind of the objects that this controller reconciles.
const Kind = "OpenStackDataPlaneNode"

// fieldManager of what this controller applies.
const fieldManager = "edpm-dataplane-node"

// Reconciler of OpenStackDataPlaneNode.
type Reconciler struct {
	client.Client
	Runner *phase.Runner
	Inputs *inputs.Reader
	Engine *edpm.Engine
	// Live reads past the cache.
	Live client.Reader
	// RunnerImage of services that name none.
	RunnerImage string
}

// scope is what one reconciliation works on.
type scope struct {
	*Reconciler
	node     *dataplanev1.OpenStackDataPlaneNode
	role     *dataplanev1.OpenStackDataPlaneRole
	eff      inherit.Effective
	vars     map[string]any
	services []dataplanev1.OpenStackDataPlaneService
	targets  []edpm.Target
	// jumpKey is a digest of the key of the jump host.
	jumpKey string
	// restored reports that the object had our finalizer and no status when it was read.
	restored bool
	// created reports that the object had no status when it was read.
	created bool
	// deploying reports whether phase 0 was reached.
	deploying bool
}

// Reconcile brings one node forward.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	node := &dataplanev1.OpenStackDataPlaneNode{}
	err := r.Get(ctx, req.NamespacedName, node)
	s := &scope{Reconciler: r, node: node}
	s.created = node.Status.ObservedGeneration == 0
	s.restored = dataplane.Restored(node)
	if apierrors.IsNotFound(err) {
		s.withdraw(req)
	}
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !node.DeletionTimestamp.IsZero() {
		defer s.withdraw(req)
		return r.Runner.Run(ctx, node, phase.Deleting(s.phases(), condition.DeploymentReadyCondition, s.detectRestore, s.keepInventory, s.remove)...)
	}
	return r.Runner.Run(ctx, node, phase.WhenHalted(s.phases(), func() { s.withdraw(req) })...)
}

// phases of a node. ProvisionReady is set by the last one, which knows what the host said,
// unless the node waits for its machine.
func (s *scope) phases() []phase.Phase {
	return []phase.Phase{
		phase.Of(condition.InputReadyCondition,
			s.detectRestore, s.lookUpRole, s.ensureFinalizer, s.inheritVars, s.validateReach, s.inventory, s.checkMachineConflict, s.sshKey, s.lookUpServices, s.buildTargets),
		phase.Of(dataplanev1.ProvisionReadyCondition),
		phase.OptionalOf(dataplanev1.ProvisionReadyCondition, s.awaitMachine),
		phase.OptionalOf(condition.TopologyReadyCondition, s.topology),
		phase.Of(condition.DeploymentReadyCondition, s.deploy),
		phase.NoticeOf(common.HostInSyncCondition),
	}
}

// withdraw takes back what the node waited for when it cannot say any more what
// it wants: nothing is run with inputs that are no longer valid.
func (s *scope) withdraw(req ctrl.Request) {
	if !s.deploying {
		s.Engine.Withdraw(Kind, req.Namespace, req.Name)
	}
}

// SetupWithManager adds the controller and its indexes.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	r.Engine.Register(edpm.Owner{
		Kind: Kind,
		New:  func() client.Object { return &dataplanev1.OpenStackDataPlaneNode{} },
		List: func() client.ObjectList { return &dataplanev1.OpenStackDataPlaneNodeList{} },
		Ledger: func(obj client.Object) *common.Ledger {
			return obj.(*dataplanev1.OpenStackDataPlaneNode).GetLedger()
		},
	})
	return ctrl.NewControllerManagedBy(mgr).
		For(&dataplanev1.OpenStackDataPlaneNode{}, builder.WithPredicates(nodeChanges)).
		Watches(&dataplanev1.OpenStackDataPlaneNode{}, r.Engine.Expecting(Kind, dataplane.Role, watch.Itself), builder.WithPredicates(arrivals)).
		Watches(&dataplanev1.OpenStackDataPlaneNode{}, watch.Gather(0, dataplane.Rivals(mgr.GetClient())), builder.WithPredicates(dataplane.MachineChanges)).
		Watches(&dataplanev1.OpenStackDataPlaneRole{}, watch.Gather(0, dataplane.Rivals(mgr.GetClient())), builder.WithPredicates(watch.SpecChanges)).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(nodeOfInventory), builder.OnlyMetadata).
		Watches(&dataplanev1.OpenStackDataPlaneRole{}, r.Engine.Expecting(Kind, watch.ByName, r.nodesOfRole), builder.WithPredicates(watch.SpecChanges)).
		Watches(&dataplanev1.OpenStackDataPlaneService{}, handler.EnqueueRequestsFromMapFunc(r.nodesOfService), builder.WithPredicates(watch.SpecChanges)).
		Watches(&topologyv1.Topology{}, handler.EnqueueRequestsFromMapFunc(r.nodesOfTopology), builder.WithPredicates(topology.Existence)).
		WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.usersOf("ConfigMap"))).
		Watches(&ansibleeev1.OpenStackAnsibleEE{}, r.Engine.OwnerHandler(Kind)).
		WatchesRawSource(r.Inputs.SecretChanges(handler.EnqueueRequestsFromMapFunc(r.usersOf("Secret")))).
		WatchesRawSource(r.Engine.Wakeups(Kind)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 8}).
		Complete(r)
}

// nodeChanges lets through what people change, what is reported of the machine, that services
// have emptied the host, and services that come and go on a node that is being deleted.
var nodeChanges = predicate.Or[client.Object](watch.SpecOr(machineState), watch.Changes(emptiness), predicate.NewPredicateFuncs(func(obj client.Object) bool {
	return !obj.GetDeletionTimestamp().IsZero()
}))

func machineState(obj client.Object) string {
	return dataplane.MachineState(obj.(*dataplanev1.OpenStackDataPlaneNode))
}

func emptiness(obj client.Object) int64 {
	return emptySince(obj.(*dataplanev1.OpenStackDataPlaneNode)).Unix()
}

// arrivals lets through nodes that are new, also to a manager that was started.
var arrivals = predicate.Funcs{
	UpdateFunc: func(event.UpdateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}
