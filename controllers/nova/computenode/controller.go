// Package computenode makes a NovaExternalCompute of each data plane node that
// is annotated with a cell, itself or through its role.
package computenode

import (
	"context"
	"errors"
	"fmt"

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
// +kubebuilder:rbac:groups=nova.openstack.org,resources=novaexternalcomputes,verbs=list;watch;create;patch;delete

// manager is the field manager of the fields that this controller owns.
const manager = "edpm-nova-computenode"

// Reconciler watches OpenStackDataPlaneNodes.
type Reconciler struct {
	client.Client
	Events events.EventRecorder
}

// Reconcile creates, updates or deletes the compute of one node.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	node := &dataplanev1.OpenStackDataPlaneNode{}
	if err := r.Get(ctx, req.NamespacedName, node); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !node.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.remove(ctx, node)
	}
	role, err := r.role(ctx, node)
	if err != nil || role == nil {
		// Without its role nobody knows what is in force for the node, which says
		// so itself: a compute that is there stays as it is.
		return ctrl.Result{}, err
	}
	cell := inherit.Annotation(node, role, novav1.CellAnnotation)
	if cell == "" {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.ensure(ctx, node, role, cell)
}

// SetupWithManager adds the controller. The index on nodes is nodes.RoleIndex.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	nodesOfRole := watch.Users(mgr.GetClient(), func() client.ObjectList { return &dataplanev1.OpenStackDataPlaneNodeList{} }, nodes.RoleIndex, watch.ByName)
	return ctrl.NewControllerManagedBy(mgr).
		Named("nova-computenode").
		For(&dataplanev1.OpenStackDataPlaneNode{}, builder.WithPredicates(watch.SpecChanges)).
		// Named like its node, also when it belongs to something else.
		Watches(&novav1.NovaExternalCompute{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(watch.SpecChanges)).
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
func (r *Reconciler) ensure(ctx context.Context, node *dataplanev1.OpenStackDataPlaneNode, role *dataplanev1.OpenStackDataPlaneRole, cell string) error {
	present := &novav1.NovaExternalCompute{}
	err := r.Get(ctx, client.ObjectKeyFromObject(node), present)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && present.Spec.CellName != cell {
		return r.refuse(ctx, node, string(novav1.CellMismatchReason), fmt.Sprintf(
			"the annotations say cell %q, but NovaExternalCompute %s is in cell %q: nova cannot move a compute between cells; restore the annotation, or delete the node and create it anew",
			cell, present.Name, present.Spec.CellName))
	}
	err = apply.Child(ctx, r.Client, manager, node, desired(node, role, cell), &novav1.NovaExternalCompute{})
	var conflict *apply.ConflictError
	switch {
	case errors.As(err, &conflict):
		return r.refuse(ctx, node, string(novav1.ConflictReason), conflict.Error())
	case apierrors.IsInvalid(err):
		return r.refuse(ctx, node, string(novav1.InvalidSpecReason), err.Error())
	}
	return err
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

// refuse shows on the node why it has no compute.
func (r *Reconciler) refuse(ctx context.Context, node *dataplanev1.OpenStackDataPlaneNode, reason, message string) error {
	entry := dataplanev1.NodeServiceStatus{Name: nodestatus.Nova, Message: message, Kind: "NovaExternalCompute", ObjectName: node.Name}
	changed, err := nodestatus.Apply(ctx, r.Client, node, entry)
	err = client.IgnoreNotFound(err)
	if changed && err == nil {
		r.Events.Eventf(node, nil, corev1.EventTypeWarning, reason, "Reconciling", "%s", message)
	}
	return err
}

// remove deletes the compute of a node that is being deleted. The node waits
// until the compute has left its list of services.
func (r *Reconciler) remove(ctx context.Context, node *dataplanev1.OpenStackDataPlaneNode) error {
	compute := &novav1.NovaExternalCompute{}
	err := r.Get(ctx, client.ObjectKeyFromObject(node), compute)
	if apierrors.IsNotFound(err) || (err == nil && !metav1.IsControlledBy(compute, node)) {
		_, err := nodestatus.Remove(ctx, r.Client, node, nodestatus.Nova)
		return err
	}
	if err != nil || !compute.DeletionTimestamp.IsZero() {
		return err
	}
	if err := client.IgnoreNotFound(r.Delete(ctx, compute)); err != nil {
		return fmt.Errorf("deleting NovaExternalCompute %s: %w", compute.Name, err)
	}
	return nil
}
