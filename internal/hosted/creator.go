package hosted

import (
	"context"
	"errors"
	"fmt"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm"
	hostedv1 "github.com/edpm-operators/edpm-operators/apis/hosted"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/inherit"
	"github.com/edpm-operators/edpm-operators/internal/nodes"
	"github.com/edpm-operators/edpm-operators/internal/nodestatus"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplanenodes;openstackdataplaneroles,verbs=list;watch
// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplanenodes/status,verbs=patch
// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplanenodes/finalizers,verbs=update

// nodeLabel on an object names its node.
const nodeLabel = "openstackdataplanenode"

// creator makes an object of the kind for each node that is to have the service.
type creator struct {
	*kind
	events events.EventRecorder
}

// Reconcile creates, updates or deletes the object of one node, and shows its state
// on the node: it is the only writer of that entry. The entry is there before the
// object and is removed after it, so that the node cannot be deleted in between.
func (c *creator) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	node := &dataplanev1.OpenStackDataPlaneNode{}
	if err := c.Get(ctx, req.NamespacedName, node); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	obj, err := c.read(ctx, c.Client, node)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !node.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, c.remove(ctx, node, obj)
	}
	role, err := c.roleOf(ctx, node)
	if err != nil {
		return ctrl.Result{}, err
	}
	// Without its role the effective values of the node are unknown, which the node
	// reports: an object that exists stays as it is.
	if value := inherit.Annotation(node, role, c.Annotation); role != nil && value != "" {
		return ctrl.Result{}, c.ensure(ctx, node, role, obj, value)
	}
	return ctrl.Result{}, c.show(ctx, node, obj)
}

// setup adds the controller. The index on nodes is nodes.RoleIndex.
func (c *creator) setup(mgr ctrl.Manager) error {
	nodesOfRole := watch.Users(mgr.GetClient(), func() client.ObjectList { return &dataplanev1.OpenStackDataPlaneNodeList{} }, nodes.RoleIndex, watch.ByName)
	return ctrl.NewControllerManagedBy(mgr).
		Named(c.Creator).
		For(&dataplanev1.OpenStackDataPlaneNode{}, builder.WithPredicates(watch.SpecChanges)).
		// Named like its node, also when it belongs to something else.
		Watches(c.empty(), &handler.EnqueueRequestForObject{}, builder.WithPredicates(watch.SpecOr(stateOf))).
		Watches(&dataplanev1.OpenStackDataPlaneRole{}, handler.EnqueueRequestsFromMapFunc(nodesOfRole), builder.WithPredicates(watch.SpecChanges)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 8}).
		Complete(c)
}

// read returns the object of a node, nil if there is none.
func (c *creator) read(ctx context.Context, from client.Reader, node *dataplanev1.OpenStackDataPlaneNode) (Object, error) {
	obj := c.empty()
	err := from.Get(ctx, client.ObjectKeyFromObject(node), obj)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return obj, nil
}

// ensure applies the fields that follow the node. An object that a person created
// beforehand is adopted; one that cannot serve the node, or has another owner, is left
// alone, and the node says so.
func (c *creator) ensure(ctx context.Context, node *dataplanev1.OpenStackDataPlaneNode, role *dataplanev1.OpenStackDataPlaneRole, obj Object, value string) error {
	if obj != nil {
		if reason, message := c.unfit(node, obj, value); reason != "" {
			return c.refuse(ctx, node, reason, message)
		}
	}
	if !nodestatus.Has(node, c.Name) {
		if _, err := nodestatus.Apply(ctx, c.Client, node, c.entry(node, state{message: deploying})); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	if obj != nil && !obj.GetDeletionTimestamp().IsZero() {
		return c.show(ctx, node, obj)
	}
	applied := c.empty()
	err := apply.Child(ctx, c.Client, "edpm-"+c.Creator, node, c.desired(node, role, value), applied, apply.Adopt)
	var conflict *apply.ConflictError
	switch {
	case errors.As(err, &conflict):
		return c.refuse(ctx, node, edpmv1.ConflictReason, conflict.Error())
	case apierrors.IsInvalid(err):
		return c.refuse(ctx, node, hostedv1.InvalidSpecReason, err.Error())
	case err != nil:
		return err
	}
	return c.show(ctx, node, applied)
}

// unfit returns why the object cannot be that of the node, with an empty reason if it can.
func (c *creator) unfit(node *dataplanev1.OpenStackDataPlaneNode, obj Object, value string) (condition.Reason, string) {
	if spec, _ := obj.Hosted(); spec.DataplaneNodeName != node.Name {
		return edpmv1.ConflictReason, fmt.Sprintf(
			"%s %q is for node %q (spec.dataplaneNodeName): if nothing needs it, delete it, and one is created for this node", c.name, obj.GetName(), spec.DataplaneNodeName)
	}
	halt := c.mismatch(obj, value)
	switch {
	case halt == nil:
		return "", ""
	case c.Refusal != nil:
		return halt.Reason, c.Refusal(obj, value)
	}
	return halt.Reason, halt.Message
}

// desired has exactly the fields that follow the node.
func (c *creator) desired(node *dataplanev1.OpenStackDataPlaneNode, role *dataplanev1.OpenStackDataPlaneRole, value string) Object {
	obj := c.empty()
	obj.SetNamespace(node.Namespace)
	obj.SetName(node.Name)
	obj.SetLabels(map[string]string{nodeLabel: labelValue(node.Name)})
	spec, _ := obj.Hosted()
	*spec = hostedv1.ServiceSpec{
		DataplaneNodeName:      node.Name,
		InventoryConfigMapName: nodes.InventoryName(node.Name),
		SSHKeySecretName:       inherit.SSHKeySecret(node, role),
		NetworkAttachments:     inherit.NetworkAttachments(node, role),
		Deploy:                 ptr.To(inherit.Deploy(node, role)),
	}
	if c.Choose != nil {
		c.Choose(obj, value)
	}
	return obj
}

// labelValue cuts a name to the 63 characters of a label.
func labelValue(name string) string {
	if len(name) > 63 {
		return name[:63]
	}
	return name
}

// entry of the service in the status of the node.
func (c *creator) entry(node *dataplanev1.OpenStackDataPlaneNode, s state) dataplanev1.NodeServiceStatus {
	return dataplanev1.NodeServiceStatus{Name: c.Name, Ready: s.ready, Message: s.message, Kind: c.name, ObjectName: node.Name}
}

// refuse shows on the node why it has no object.
func (c *creator) refuse(ctx context.Context, node *dataplanev1.OpenStackDataPlaneNode, reason condition.Reason, message string) error {
	changed, err := nodestatus.Apply(ctx, c.Client, node, c.entry(node, state{message: message}))
	err = client.IgnoreNotFound(err)
	if changed && err == nil {
		c.events.Eventf(node, nil, corev1.EventTypeWarning, string(reason), "Reconciling", "%s", message)
	}
	return err
}

// show makes the node show the state of its object. Without one the node shows
// nothing, and is not held by it.
func (c *creator) show(ctx context.Context, node *dataplanev1.OpenStackDataPlaneNode, obj Object) error {
	if !holds(node, obj) {
		return c.forget(ctx, node)
	}
	s := stateOf(obj)
	if !metav1.IsControlledBy(obj, node) && !node.DeletionTimestamp.IsZero() {
		s.message = "it does not belong to this node but is on its host: delete the object, and the service is removed from the host"
	}
	_, err := nodestatus.Apply(ctx, c.Client, node, c.entry(node, s))
	return client.IgnoreNotFound(err)
}

// holds reports whether the service may be on the host of the node: the object
// belongs to the node, or has been deployed.
func holds(node *dataplanev1.OpenStackDataPlaneNode, obj Object) bool {
	return obj != nil && (metav1.IsControlledBy(obj, node) || len(obj.GetLedger().Runs) > 0)
}

// forget removes the entry from the node. The cache may not show an object that
// has just been created, so the API server is asked.
func (c *creator) forget(ctx context.Context, node *dataplanev1.OpenStackDataPlaneNode) error {
	if !nodestatus.Has(node, c.Name) {
		return nil
	}
	obj, err := c.read(ctx, c.Live, node)
	if err != nil || holds(node, obj) {
		return err // its event is on its way
	}
	_, err = nodestatus.Remove(ctx, c.Client, node, c.Name)
	return err
}

// remove deletes the object of a node that is being deleted. The node waits until
// it no longer shows the object.
func (c *creator) remove(ctx context.Context, node *dataplanev1.OpenStackDataPlaneNode, obj Object) error {
	if err := c.show(ctx, node, obj); err != nil {
		return err
	}
	if obj == nil {
		return nil
	}
	return apply.Delete(ctx, c.Client, node, obj)
}

// state is what the node shows of an object.
type state struct {
	ready   bool
	message string
}

const deploying = "being deployed"

// stateOf reports that an object is ready, what is wrong with it, or that it is in
// progress.
func stateOf(obj client.Object) state {
	ready := obj.(Object).GetConditions().Get(condition.ReadyCondition)
	switch deleting := !obj.GetDeletionTimestamp().IsZero(); {
	case ready != nil && (ready.Severity == condition.SeverityError || ready.Severity == condition.SeverityWarning):
		return state{message: string(ready.Reason) + ": see the conditions of the object"}
	case deleting:
		return state{message: "being removed"}
	case ready != nil && ready.Status == corev1.ConditionTrue:
		return state{ready: true}
	}
	return state{message: deploying}
}
