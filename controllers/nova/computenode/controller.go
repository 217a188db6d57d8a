// Package computenode makes a NovaExternalCompute of each data plane node that
// is annotated with a cell, itself or through its role.
package computenode

import (
	"context"
	"errors"
	"fmt"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/inherit"
	"github.com/edpm-operators/edpm-operators/internal/nodes"
	"github.com/edpm-operators/edpm-operators/internal/nodestatus"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplanenodes;openstackdataplaneroles,verbs=list;watch
// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplanenodes/status,verbs=patch
// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplanenodes/finalizers,verbs=update
// +kubebuilder:rbac:groups=nova.openstack.org,resources=novaexternalcomputes,verbs=get;list;watch;create;patch;delete

// manager is the field manager of the fields that this controller owns.
const manager = "edpm-nova-computenode"

// Reconciler watches OpenStackDataPlaneNodes.
type Reconciler struct {
	client.Client
	// Live reads past the cache.
	Live   client.Reader
	Events events.EventRecorder
}

// Reconcile creates, updates or deletes the compute of one node, and shows on the
// node how it stands: it is the only writer of that entry. The entry is there
// before the compute and goes after it, so that the node cannot go in between.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	node := &dataplanev1.OpenStackDataPlaneNode{}
	if err := r.Get(ctx, req.NamespacedName, node); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	compute, err := read(ctx, r.Client, node)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !node.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.remove(ctx, node, compute)
	}
	role, err := r.role(ctx, node)
	if err != nil {
		return ctrl.Result{}, err
	}
	cell := inherit.Annotation(node, role, novav1.CellAnnotation)
	// Without its role the effective values of the node are unknown, which says so
	// itself: a compute that is there stays as it is.
	if role != nil && cell != "" {
		return ctrl.Result{}, r.ensure(ctx, node, role, compute, cell)
	}
	return ctrl.Result{}, r.show(ctx, node, compute)
}

// read returns the compute of a node, nil if there is none.
func read(ctx context.Context, c client.Reader, node *dataplanev1.OpenStackDataPlaneNode) (*novav1.NovaExternalCompute, error) {
	compute := &novav1.NovaExternalCompute{}
	err := c.Get(ctx, client.ObjectKeyFromObject(node), compute)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return compute, err
}

// SetupWithManager adds the controller. The index on nodes is nodes.RoleIndex.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	nodesOfRole := watch.Users(mgr.GetClient(), func() client.ObjectList { return &dataplanev1.OpenStackDataPlaneNodeList{} }, nodes.RoleIndex, watch.ByName)
	return ctrl.NewControllerManagedBy(mgr).
		Named("nova-computenode").
		For(&dataplanev1.OpenStackDataPlaneNode{}, builder.WithPredicates(watch.SpecChanges)).
		// Named like its node, also when it belongs to something else.
		Watches(&novav1.NovaExternalCompute{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(watch.SpecOr(stateOf))).
		Watches(&dataplanev1.OpenStackDataPlaneRole{}, handler.EnqueueRequestsFromMapFunc(nodesOfRole), builder.WithPredicates(watch.SpecChanges)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 8}).
		Complete(r)
}

func (r *Reconciler) role(ctx context.Context, node *dataplanev1.OpenStackDataPlaneNode) (*dataplanev1.OpenStackDataPlaneRole, error) {
	role := &dataplanev1.OpenStackDataPlaneRole{}
	err := r.Get(ctx, types.NamespacedName{Namespace: node.Namespace, Name: node.Spec.Role}, role)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return role, err
}

// ensure applies the fields that follow the node. A compute that a person made
// beforehand is adopted; one of another cell or owner is left alone, and the
// node says so.
func (r *Reconciler) ensure(ctx context.Context, node *dataplanev1.OpenStackDataPlaneNode, role *dataplanev1.OpenStackDataPlaneRole, compute *novav1.NovaExternalCompute, cell string) error {
	if compute != nil && compute.Spec.DataplaneNodeName != node.Name {
		return r.refuse(ctx, node, string(edpmv1.ConflictReason), fmt.Sprintf(
			"NovaExternalCompute %q is for node %q (spec.dataplaneNodeName): if nothing needs it, delete it, and one is created for this node", compute.Name, compute.Spec.DataplaneNodeName))
	}
	if compute != nil && compute.Spec.CellName != cell {
		return r.refuse(ctx, node, string(novav1.CellMismatchReason), fmt.Sprintf(
			"the annotation names cell %q, but NovaExternalCompute %s is in cell %q: nova cannot move a compute between cells; restore the annotation, or delete the node and create it again",
			cell, compute.Name, compute.Spec.CellName))
	}
	if !nodestatus.Has(node, nodestatus.Nova) {
		if _, err := nodestatus.Apply(ctx, r.Client, node, entry(node, "being deployed")); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	if compute != nil && !compute.DeletionTimestamp.IsZero() {
		return r.show(ctx, node, compute)
	}
	applied := &novav1.NovaExternalCompute{}
	err := apply.Child(ctx, r.Client, manager, node, desired(node, role, cell), applied, apply.Adopt)
	var conflict *apply.ConflictError
	switch {
	case errors.As(err, &conflict):
		return r.refuse(ctx, node, string(edpmv1.ConflictReason), conflict.Error())
	case apierrors.IsInvalid(err):
		return r.refuse(ctx, node, string(novav1.InvalidSpecReason), err.Error())
	case err != nil:
		return err
	}
	return r.show(ctx, node, applied)
}

// desired has exactly the fields that follow the node.
func desired(node *dataplanev1.OpenStackDataPlaneNode, role *dataplanev1.OpenStackDataPlaneRole, cell string) *novav1.NovaExternalCompute {
	return &novav1.NovaExternalCompute{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: node.Namespace, Name: node.Name,
			Labels: map[string]string{"openstackdataplanenode": labelValue(node.Name)},
		},
		Spec: novav1.NovaExternalComputeSpec{
			DataplaneNodeName: node.Name, CellName: cell,
			InventoryConfigMapName: nodes.InventoryName(node.Name),
			SSHKeySecretName:       inherit.SSHKeySecret(node, role),
			NetworkAttachments:     inherit.NetworkAttachments(node, role),
			Deploy:                 ptr.To(inherit.Deploy(node, role)),
		},
	}
}

// labelValue cuts a name to the 63 characters of a label.
func labelValue(name string) string {
	if len(name) > 63 {
		return name[:63]
	}
	return name
}

// entry of a compute that is not ready.
func entry(node *dataplanev1.OpenStackDataPlaneNode, message string) dataplanev1.NodeServiceStatus {
	return dataplanev1.NodeServiceStatus{Name: nodestatus.Nova, Message: message, Kind: "NovaExternalCompute", ObjectName: node.Name}
}

// refuse shows on the node why it has no compute.
func (r *Reconciler) refuse(ctx context.Context, node *dataplanev1.OpenStackDataPlaneNode, reason, message string) error {
	changed, err := nodestatus.Apply(ctx, r.Client, node, entry(node, message))
	err = client.IgnoreNotFound(err)
	if changed && err == nil {
		r.Events.Eventf(node, nil, corev1.EventTypeWarning, reason, "Reconciling", "%s", message)
	}
	return err
}

// show makes the node show how its compute stands. Without one the node shows
// nothing, and is not held by it.
func (r *Reconciler) show(ctx context.Context, node *dataplanev1.OpenStackDataPlaneNode, compute *novav1.NovaExternalCompute) error {
	if !holds(node, compute) {
		return r.forget(ctx, node)
	}
	e := entry(node, "")
	e.Ready, e.Message = stateOf(compute).ready, stateOf(compute).message
	if !metav1.IsControlledBy(compute, node) && !node.DeletionTimestamp.IsZero() {
		e.Message = "it does not belong to this node but is on its host: delete the object, and the service is removed from the host"
	}
	_, err := nodestatus.Apply(ctx, r.Client, node, e)
	return client.IgnoreNotFound(err)
}

// holds reports whether the compute may be on the host of the node: it belongs
// to the node, or has been deployed.
func holds(node *dataplanev1.OpenStackDataPlaneNode, compute *novav1.NovaExternalCompute) bool {
	return compute != nil && (metav1.IsControlledBy(compute, node) || len(compute.Status.Runs) > 0)
}

// forget removes the entry from the node. The cache may not show a compute that
// has just been created, so the API server is asked.
func (r *Reconciler) forget(ctx context.Context, node *dataplanev1.OpenStackDataPlaneNode) error {
	if !nodestatus.Has(node, nodestatus.Nova) {
		return nil
	}
	compute, err := read(ctx, r.Live, node)
	if err != nil || holds(node, compute) {
		return err // its event is on its way
	}
	_, err = nodestatus.Remove(ctx, r.Client, node, nodestatus.Nova)
	return err
}

// state is what the node shows of a compute.
type state struct {
	ready   bool
	message string
}

// stateOf reports that a compute is ready, what is wrong with it, or that it is
// in progress.
func stateOf(obj client.Object) state {
	ready := obj.(*novav1.NovaExternalCompute).Status.Conditions.Get(condition.ReadyCondition)
	switch deleting := !obj.GetDeletionTimestamp().IsZero(); {
	case ready != nil && (ready.Severity == condition.SeverityError || ready.Severity == condition.SeverityWarning):
		return state{message: string(ready.Reason) + ": see the conditions of the object"}
	case deleting:
		return state{message: "being removed"}
	case ready != nil && ready.Status == corev1.ConditionTrue:
		return state{ready: true}
	}
	return state{message: "being deployed"}
}

// remove deletes the compute of a node that is being deleted. The node waits
// until it no longer shows the compute.
func (r *Reconciler) remove(ctx context.Context, node *dataplanev1.OpenStackDataPlaneNode, compute *novav1.NovaExternalCompute) error {
	if err := r.show(ctx, node, compute); err != nil {
		return err
	}
	if compute == nil {
		return nil
	}
	return apply.Delete(ctx, r.Client, node, compute)
}
