// Package baremetalclaim is phase -1 of nodes from bare metal: it claims a BareMetalHost
// of Metal3 for each, follows it until it runs its image, and releases it when the node
// is deleted or has its machine replaced. Its stories are in controllers/metal_test.go and
// controllers/metal_replace_test.go.
//
// It shares the objects with the controller of nodes, and no fields: it writes
// status.bareMetalHost, status.provisioning and the finalizer of machines, and, with a
// machine that it claims, recalls or releases, what the ledger has of the machine before. Each
// write is one to the version that was read.
package baremetalclaim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/metal"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplanenodes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplanenodes/status,verbs=patch
// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplaneroles,verbs=list;watch
// +kubebuilder:rbac:groups=metal3.io,resources=baremetalhosts,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=baremetalhosts.metal3.io,verbs=list;watch
// +kubebuilder:rbac:groups="",roleName=manager-secrets-role,resources=secrets,verbs=create;patch

// fieldManager of what this controller writes to BareMetalHosts and Secrets.
const fieldManager = "edpm-baremetal-claim"

// conflictDelay is how long the cache is given to show a newer node.
const conflictDelay = 100 * time.Millisecond

// errNoted ends a reconciliation that has changed the node, or that waits for its
// controller: the event of the next version continues it.
var errNoted = errors.New("continues with the next version of the node")

// Reconciler claims, follows and releases the machines of nodes.
type Reconciler struct {
	client.Client
	// Live reads past the cache.
	Live   client.Reader
	Inputs *inputs.Reader
	Clock  clock.PassiveClock
	// Events says what is left of machines.
	Events events.EventRecorder

	metal *metalHosts
}

// scope is what one reconciliation works on.
type scope struct {
	*Reconciler
	node *dataplanev1.OpenStackDataPlaneNode
	// role is nil if it does not exist.
	role *dataplanev1.OpenStackDataPlaneRole
	eff  inherit.Effective
}

// Reconcile brings the machine of one node forward.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	node := &dataplanev1.OpenStackDataPlaneNode{}
	if err := r.Get(ctx, req.NamespacedName, node); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s, before := &scope{Reconciler: r, node: node}, node.DeepCopy()
	return s.report(ctx, before, s.reconcile(ctx))
}

func (s *scope) reconcile(ctx context.Context) error {
	if err := s.lookUpRole(ctx); err != nil {
		return err
	}
	if !s.node.DeletionTimestamp.IsZero() {
		return s.releaseMachine(ctx)
	}
	return s.provision(ctx)
}

// lookUpRole finds the role, whose absence the node reports.
func (s *scope) lookUpRole(ctx context.Context) error {
	role := &dataplanev1.OpenStackDataPlaneRole{}
	err := s.Get(ctx, types.NamespacedName{Namespace: s.node.Namespace, Name: s.node.Spec.Role}, role)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil {
		s.role = role
	}
	s.eff, _ = inherit.EffectiveOf(s.node, s.role) // the node reports what is wrong with its variables
	return nil
}

// report notes how the reconciliation ended, in one write to the node as it was read.
func (s *scope) report(ctx context.Context, before *dataplanev1.OpenStackDataPlaneNode, err error) (ctrl.Result, error) {
	var halt *phase.Halt
	result := ctrl.Result{}
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	case errors.Is(err, errNoted):
		err = nil
	case errors.As(err, &halt):
		s.node.Status.Provisioning = &dataplanev1.ProvisioningStatus{Reason: string(halt.Reason), Severity: string(halt.Severity), Message: halt.Message}
		result.RequeueAfter, err = halt.After, nil
	case err != nil:
		s.node.Status.Provisioning = &dataplanev1.ProvisioningStatus{
			Reason: string(condition.ErrorReason), Severity: string(condition.SeverityWarning), Message: fmt.Sprintf("Retrying after an error: %v", err),
		}
	case s.hasMachine() || metal.Asked(s.role):
		s.node.Status.Provisioning = &dataplanev1.ProvisioningStatus{}
	default:
		s.node.Status.Provisioning = nil
	}
	werr := s.write(ctx, before)
	if apierrors.IsConflict(werr) && err == nil {
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	return result, errors.Join(err, werr)
}

// write patches the status if it changed.
func (s *scope) write(ctx context.Context, before *dataplanev1.OpenStackDataPlaneNode) error {
	if equality.Semantic.DeepEqual(s.node.Status, before.Status) {
		return nil
	}
	err := s.Status().Patch(ctx, s.node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}

// inputsReady reports whether the controller of the node has found its inputs valid, no
// other node with its address, and has its finalizer.
func (s *scope) inputsReady() bool {
	status := &s.node.Status
	return status.ObservedGeneration == s.node.Generation && status.Conditions.IsTrue(condition.InputReadyCondition) &&
		controllerutil.ContainsFinalizer(s.node, dataplanev1.NodeFinalizer)
}

// SetupWithManager adds the controller and its indexes.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	var err error
	if r.metal, err = newMetalHosts(mgr); err != nil {
		return err
	}
	rivals := func() handler.EventHandler { return watch.Gather(0, dataplane.Rivals(mgr.GetClient())) }
	r.metal.controller, err = ctrl.NewControllerManagedBy(mgr).
		Named("baremetalclaim").
		For(&dataplanev1.OpenStackDataPlaneNode{}, builder.WithPredicates(watch.SpecOr(nodeFacts))).
		Watches(&dataplanev1.OpenStackDataPlaneNode{}, rivals(), builder.WithPredicates(dataplane.MachineChanges)).
		Watches(&dataplanev1.OpenStackDataPlaneNode{}, handler.EnqueueRequestsFromMapFunc(r.nodesWaiting), builder.WithPredicates(departures)).
		Watches(&dataplanev1.OpenStackDataPlaneRole{}, rivals(), builder.WithPredicates(watch.SpecChanges)).
		Watches(&dataplanev1.OpenStackDataPlaneRole{}, handler.EnqueueRequestsFromMapFunc(r.nodesOfRole), builder.WithPredicates(watch.SpecChanges)).
		WatchesRawSource(r.Inputs.SecretChanges(handler.EnqueueRequestsFromMapFunc(r.nodesOfSecret))).
		WatchesRawSource(r.metal.appears(r.nodesWithoutKind)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 8}).
		Build(r)
	return err
}
