package hosted

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/edpm-operators/edpm-operators/apis/common"
	hostedv1 "github.com/edpm-operators/edpm-operators/apis/common/hosted"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/names"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplanenodes;openstackdataplaneroles,verbs=get;list;watch
// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplanenodes/status,verbs=patch
// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplanenodes/finalizers,verbs=update

// nodeLabel on an object names its node.
const nodeLabel = "openstackdataplanenode"

// creator makes an object of the kind for each node that is to have a service of it.
type creator struct {
	*kind
	events events.EventRecorder
}

// serviceOnNode is one service on one node.
type serviceOnNode struct {
	*creator
	ServiceClass
	node *dataplanev1.OpenStackDataPlaneNode
	role *dataplanev1.OpenStackDataPlaneRole
}

// Reconcile creates, updates or deletes the objects of one node, and shows their state
// on the node: it is the only writer of these entries. An entry is there before its
// object and is removed after it, so that the node, which has its finalizer before, cannot
// be deleted in between.
func (c *creator) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	node := &dataplanev1.OpenStackDataPlaneNode{}
	if err := c.Get(ctx, req.NamespacedName, node); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	role, err := c.roleOf(ctx, c.Client, node)
	if err != nil {
		return ctrl.Result{}, err
	}
	classes, err := c.concerned(ctx, node)
	for _, o := range classes {
		err = errors.Join(err, (&serviceOnNode{c, o, node, role}).reconcile(ctx))
	}
	return ctrl.Result{}, err
}

// reconcile brings the object of one service forward.
func (p *serviceOnNode) reconcile(ctx context.Context) error {
	obj, err := p.read(ctx, p.Client)
	if err != nil {
		return err
	}
	value := p.value(p.node, p.role, p.ServiceClass)
	switch {
	case !p.node.DeletionTimestamp.IsZero():
		return p.remove(ctx, obj)
	// Without its role the effective values of the node are unknown, which the node
	// reports: an object that exists stays as it is.
	case p.role != nil && value != "" && (obj != nil || !p.Removed):
		return p.ensure(ctx, obj, value)
	case p.deselects(value):
		return p.deselect(ctx, obj)
	}
	return p.show(ctx, obj)
}

// deselects reports whether the service is to be removed from a node because it is no
// longer selected.
func (p *serviceOnNode) deselects(value string) bool {
	return p.MultiInstance != nil && p.Annotation != "" && p.role != nil && value == ""
}

// concerned are the services that the node can have, and those that it has or shows
// although they are no longer defined.
func (c *creator) concerned(ctx context.Context, node *dataplanev1.OpenStackDataPlaneNode) ([]ServiceClass, error) {
	classes, err := c.classes(ctx, node.Namespace)
	if err != nil || c.MultiInstance == nil {
		return classes, err
	}
	objects, err := c.on(ctx, client.ObjectKeyFromObject(node))
	if err != nil {
		return nil, err
	}
	var services []string
	for _, obj := range objects {
		services = append(services, c.serviceOf(obj))
	}
	for _, s := range node.Status.Services {
		if s.Kind == c.name {
			services = append(services, s.Name)
		}
	}
	for _, name := range services {
		if !slices.ContainsFunc(classes, func(o ServiceClass) bool { return o.Name == name }) {
			classes = append(classes, ServiceClass{Name: name, Removed: true})
		}
	}
	return classes, nil
}

// setup adds the controller. The index on nodes is dataplane.RoleIndex.
func (c *creator) setup(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr).
		Named(c.Creator).
		For(&dataplanev1.OpenStackDataPlaneNode{}, builder.WithPredicates(watch.SpecOr(kept))).
		Watches(c.empty(), handler.EnqueueRequestsFromMapFunc(c.byNode), builder.WithPredicates(watch.SpecOr(c.stateOf))).
		Watches(&dataplanev1.OpenStackDataPlaneRole{}, handler.EnqueueRequestsFromMapFunc(nodesOfRole(mgr.GetClient())), builder.WithPredicates(watch.SpecChanges)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 8})
	if c.MultiInstance != nil {
		b.Watches(c.MultiInstance.Definition, handler.EnqueueRequestsFromMapFunc(c.nodesOfNamespace), builder.WithPredicates(existence))
	}
	return b.Complete(c)
}

// existence passes create and delete events, and updates that set deletionTimestamp or
// change finalizers.
var existence = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
			!slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers())
	},
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// on returns the objects of a node, where nodes have several of the kind.
func (k *kind) on(ctx context.Context, node client.ObjectKey) ([]Object, error) {
	list := k.list()
	if err := k.List(ctx, list, client.InNamespace(node.Namespace), client.MatchingFields{NodeIndex: node.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var objects []Object
	return objects, meta.EachListItem(list, func(item runtime.Object) error {
		objects = append(objects, item.(Object))
		return nil
	})
}

// read returns the object of the service on the node, nil if there is none.
func (p *serviceOnNode) read(ctx context.Context, from client.Reader) (Object, error) {
	obj := p.empty()
	err := from.Get(ctx, client.ObjectKey{Namespace: p.node.Namespace, Name: p.objectName(p.ServiceClass.Name, p.node.Name)}, obj)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return obj, nil
}

// ensure applies the fields that follow the node. An object that a person created
// beforehand is adopted; one that cannot serve the node, or has another owner, is left
// alone, and the node says so.
func (p *serviceOnNode) ensure(ctx context.Context, obj Object, value string) error {
	if obj != nil {
		if reason, message := p.unfit(obj, value); reason != "" {
			return p.refuse(ctx, reason, message)
		}
	}
	if !kept(p.node) || p.Unprotected && !p.owns(obj) {
		return nil
	}
	if !dataplane.HasServiceStatus(p.node, p.ServiceClass.Name) {
		if _, err := dataplane.SetServiceStatus(ctx, p.Client, p.node, p.entry(state{message: deploying})); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	if obj != nil && !obj.GetDeletionTimestamp().IsZero() {
		return p.show(ctx, obj)
	}
	applied, desired := p.empty(), p.desired(value)
	defer p.creations.begin(client.ObjectKeyFromObject(desired))()
	err := apply.Child(ctx, p.Client, "edpm-"+p.Creator, p.node, desired, applied, apply.Adopt, apply.Finalized(p.Finalizer, p.creations.note))
	var conflict *apply.ConflictError
	switch {
	case errors.As(err, &conflict):
		return p.refuse(ctx, common.ConflictReason, conflict.Error())
	case apierrors.IsInvalid(err):
		return p.refuse(ctx, hostedv1.InvalidSpecReason, err.Error())
	case err != nil:
		return err
	}
	return p.show(ctx, applied)
}

// owns reports whether the object belongs to the node.
func (p *serviceOnNode) owns(obj Object) bool {
	return obj != nil && metav1.IsControlledBy(obj, p.node)
}

// kept reports whether the node has its finalizer. A node without one is deleted at once,
// whatever its status, and its objects only after it, when the inventory that they need to
// clean up the host no longer exists.
func kept(node client.Object) bool {
	return controllerutil.ContainsFinalizer(node, dataplanev1.NodeFinalizer)
}

// unfit returns why the object cannot be that of the node, with an empty reason if it can.
func (p *serviceOnNode) unfit(obj Object, value string) (condition.Reason, string) {
	if spec, _ := obj.Hosted(); spec.DataplaneNodeName != p.node.Name {
		return common.ConflictReason, fmt.Sprintf(
			"%s %q belongs to node %q (spec.dataplaneNodeName). Delete it if unused; the operator then creates one for this node", p.name, obj.GetName(), spec.DataplaneNodeName)
	}
	if service := p.serviceOf(obj); service != p.ServiceClass.Name {
		return common.ConflictReason, fmt.Sprintf(
			"%s %q belongs to service %q. Delete it if unused; the operator then creates one for service %q", p.name, obj.GetName(), service, p.ServiceClass.Name)
	}
	halt := p.mismatch(obj, p.ServiceClass, value)
	switch {
	case halt == nil:
		return "", ""
	case p.Refusal != nil:
		return halt.Reason, p.Refusal(obj, value)
	}
	return halt.Reason, halt.Message
}

// desired has exactly the fields that follow the node.
func (p *serviceOnNode) desired(value string) Object {
	obj, node := p.empty(), p.node
	obj.SetNamespace(node.Namespace)
	obj.SetName(p.objectName(p.ServiceClass.Name, node.Name))
	obj.SetLabels(map[string]string{nodeLabel: names.Fit(node.Name, names.MaxLabel)})
	spec, _ := obj.Hosted()
	*spec = hostedv1.ServiceSpec{
		DataplaneNodeName:      node.Name,
		InventoryConfigMapName: dataplane.InventoryName(node.Name),
		SSHKeySecretName:       inherit.SSHKeySecret(node, p.role),
		JumpHost:               inherit.JumpHost(node, p.role),
		NetworkAttachments:     inherit.NetworkAttachments(node, p.role),
		Deploy:                 ptr.To(inherit.Deploy(node, p.role)),
	}
	if p.MultiInstance != nil {
		p.MultiInstance.Assign(obj, p.ServiceClass.Name)
	}
	if p.Choose != nil {
		p.Choose(obj, value)
	}
	return obj
}

// entry of the service in the status of the node.
func (p *serviceOnNode) entry(s state) dataplanev1.NodeServiceStatus {
	entry := dataplanev1.NodeServiceStatus{
		Name: p.ServiceClass.Name, Ready: s.ready, Message: s.message, Kind: p.name, ObjectName: p.objectName(p.ServiceClass.Name, p.node.Name),
	}
	if !s.emptySince.IsZero() {
		entry.EmptySince = &s.emptySince
	}
	return entry
}

// refuse shows on the node why it has no object.
func (p *serviceOnNode) refuse(ctx context.Context, reason condition.Reason, message string) error {
	changed, err := dataplane.SetServiceStatus(ctx, p.Client, p.node, p.entry(state{message: message}))
	err = client.IgnoreNotFound(err)
	if changed && err == nil {
		p.events.Eventf(p.node, nil, corev1.EventTypeWarning, string(reason), "Reconciling", "%s", message)
	}
	return err
}

// show makes the node show the state of its object. Without one the node shows
// nothing, and is not held by it.
func (p *serviceOnNode) show(ctx context.Context, obj Object) error {
	if !p.holds(obj) {
		return p.forget(ctx)
	}
	s := p.stateOf(obj)
	if !metav1.IsControlledBy(obj, p.node) && !p.node.DeletionTimestamp.IsZero() {
		s.message = "not owned by this node, but deployed on its host. Delete the object to remove the service"
	}
	_, err := dataplane.SetServiceStatus(ctx, p.Client, p.node, p.entry(s))
	return client.IgnoreNotFound(err)
}

// holds reports whether the service may be on the host of the node: the object is for it, and
// belongs to the node or has been deployed. That of service a on node b-c has the name of
// that of service a-b on node c.
func (p *serviceOnNode) holds(obj Object) bool {
	if obj == nil || nodeOf(obj) != p.node.Name || p.serviceOf(obj) != p.ServiceClass.Name {
		return false
	}
	return metav1.IsControlledBy(obj, p.node) || len(obj.GetLedger().Runs) > 0
}

// forget removes the entry from the node. The cache may not show an object that
// has just been created, so the API server is asked.
func (p *serviceOnNode) forget(ctx context.Context) error {
	if !dataplane.HasServiceStatus(p.node, p.ServiceClass.Name) {
		return nil
	}
	obj, err := p.read(ctx, p.Live)
	if err != nil || p.holds(obj) {
		return err // its event is on its way
	}
	_, err = dataplane.RemoveServiceStatus(ctx, p.Client, p.node, p.ServiceClass.Name)
	return err
}

// remove deletes the object of a node that is being deleted, or is no longer to have
// the service. A node waits until it no longer shows the object.
func (p *serviceOnNode) remove(ctx context.Context, obj Object) error {
	if err := p.show(ctx, obj); err != nil {
		return err
	}
	if obj == nil {
		return nil
	}
	return apply.Delete(ctx, p.Client, p.node, obj)
}

// deselect removes the service from a node that is no longer selected. That cannot be
// taken back, and the caches of nodes and roles are late, each by its own time: where the
// annotation moves from one to the other the API server is asked.
func (p *serviceOnNode) deselect(ctx context.Context, obj Object) error {
	if obj == nil || !obj.GetDeletionTimestamp().IsZero() {
		return p.remove(ctx, obj)
	}
	live := &dataplanev1.OpenStackDataPlaneNode{}
	if err := p.Live.Get(ctx, client.ObjectKeyFromObject(p.node), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	role, err := p.roleOf(ctx, p.Live, live)
	if err != nil {
		return err
	}
	if role == nil || p.value(live, role, p.ServiceClass) != "" {
		return apply.CacheBehind(live, "OpenStackDataPlaneNode")
	}
	return p.remove(ctx, obj)
}

// state is what the node shows of an object.
type state struct {
	ready      bool
	message    string
	emptySince metav1.Time
}

const (
	deploying     = "being deployed"
	seeConditions = ": see the conditions of the object"
)

// stateOf is what the node shows of an object.
func (k *kind) stateOf(obj client.Object) state {
	s := stateOf(obj)
	if s.message == deploying {
		s.message = cmp.Or(k.notice(obj.(Object)), deploying)
	}
	if k.EmptySince != nil {
		s.emptySince = k.EmptySince(obj.(Object))
	}
	return s
}

// notice is the first of the kind that an object has, empty for none. Nodes show it where the
// object is neither ready nor has a problem.
func (k *kind) notice(obj Object) string {
	for _, t := range k.Notices {
		switch notice := obj.GetConditions().Get(t); {
		case notice == nil:
		case notice.Status == corev1.ConditionTrue:
			return string(notice.Type) + seeConditions
		default:
			return string(notice.Reason) + seeConditions
		}
	}
	return ""
}

// stateOf reports that an object is ready, what is wrong with it, or that it is in
// progress.
func stateOf(obj client.Object) state {
	ready := obj.(Object).GetConditions().Get(condition.ReadyCondition)
	switch deleting := !obj.GetDeletionTimestamp().IsZero(); {
	case ready != nil && (ready.Severity == condition.SeverityError || ready.Severity == condition.SeverityWarning):
		return state{message: string(ready.Reason) + seeConditions}
	case deleting:
		return state{message: "being removed"}
	case ready != nil && ready.Status == corev1.ConditionTrue:
		return state{ready: true}
	}
	return state{message: deploying}
}
