package baremetalclaim

import (
	"context"
	"errors"
	"fmt"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/metal"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// inputIndex has the Secrets that a node or role names for the first boot, metalIndex has the BareMetalHost of a node, and metalWaiting for one that would
// claim any.
const (
	inputIndex   = "baremetal.inputs"
	metalIndex   = "dataplane.metal"
	metalWaiting = "waiting"
)

func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	node, role := &dataplanev1.OpenStackDataPlaneNode{}, &dataplanev1.OpenStackDataPlaneRole{}
	return errors.Join(
		indexer.IndexField(ctx, node, metalIndex, indexMetal),
		indexer.IndexField(ctx, node, inputIndex, func(o client.Object) []string {
			node := o.(*dataplanev1.OpenStackDataPlaneNode)
			names := sectionInputs(node.Spec.Node)
			if node.Status.BareMetalHost != nil {
				names = append(names, metal.SecretName(node.Name)) // whose name another user may have taken
			}
			return names
		}),
		indexer.IndexField(ctx, role, inputIndex, func(o client.Object) []string {
			role := o.(*dataplanev1.OpenStackDataPlaneRole)
			return append(sectionInputs(role.Spec.NodeTemplate), templateInputs(role.Spec.BaremetalSetTemplate)...)
		}),
	)
}

func metalHost(name string) string { return "host/" + name }

// indexMetal is the value of metalIndex for a node. Which nodes wait is derived from
// what they have, not from their condition: that is written after they looked, and
// a host that is freed in between would wake no one.
func indexMetal(obj client.Object) []string {
	node := obj.(*dataplanev1.OpenStackDataPlaneNode)
	claimed := node.Status.BareMetalHost
	switch {
	case claimed == nil && dataplane.Deployed(node) && node.Annotations[common.ReplaceHostAnnotation] == "":
		return nil
	case claimed == nil || claimed.Name == "":
		return []string{metalWaiting}
	case !claimed.Claimed:
		return []string{metalHost(claimed.Name), metalWaiting}
	}
	return []string{metalHost(claimed.Name)}
}

// metalHosts watches BareMetalHosts from when their kind is there; until then its
// definition is watched. A manager in a cluster without Metal3 works as without them.
type metalHosts struct {
	cache cache.Cache
	// definitions has the resource definition of BareMetalHost and nothing else: the
	// cache of the manager can have that of one kind only.
	definitions cache.Cache
	controller  controller.Controller
	watched     watch.Once
}

func newMetalHosts(mgr ctrl.Manager) (*metalHosts, error) {
	definitions, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{watch.Definition(): {Field: fields.OneTermEqualSelector("metadata.name", metal3v1.BareMetalHostCRD)}},
	})
	if err != nil {
		return nil, fmt.Errorf("making a cache for the definition of BareMetalHost: %w", err)
	}
	return &metalHosts{cache: mgr.GetCache(), definitions: definitions}, mgr.Add(definitions)
}

// appears is a source of the events of the definition, which wake who waits.
func (m *metalHosts) appears(toRequests handler.MapFunc) source.Source {
	return source.Kind[client.Object](m.definitions, watch.Definition(), handler.EnqueueRequestsFromMapFunc(toRequests))
}

// defined reports whether there is a kind BareMetalHost.
func (m *metalHosts) defined(ctx context.Context) (bool, error) {
	return watch.IsDefined(ctx, m.definitions, metal3v1.BareMetalHostCRD)
}

// watchHosts watches BareMetalHosts from now on. The error is one of the kind not
// being served yet, too.
func (m *metalHosts) watchHosts(ctx context.Context, toRequests handler.MapFunc) error {
	if err := m.served(ctx); err != nil {
		return err
	}
	events := source.Kind[client.Object](m.cache, &metal3v1.BareMetalHost{}, handler.EnqueueRequestsFromMapFunc(toRequests), watch.SpecOr(hostFacts))
	if err := m.watched.Begin(ctx, m.controller, events); err != nil {
		return fmt.Errorf("BareMetalHosts: %w", err)
	}
	return nil
}

// served is an error if the kind is not served: its definition is there a moment
// before. A watch would be tried for ever.
func (m *metalHosts) served(ctx context.Context) error {
	_, err := m.cache.GetInformer(ctx, &metal3v1.BareMetalHost{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("reading BareMetalHosts: %w", err)
	}
	return nil
}

// hostFacts is what is looked at of a BareMetalHost in addition to its spec and annotations.
func hostFacts(obj client.Object) string {
	host := obj.(*metal3v1.BareMetalHost)
	status, hardware := host.Status, metal3v1.HardwareDetails{}
	if status.Hardware != nil {
		hardware = *status.Hardware
	}
	return fmt.Sprintf("%v %v %v %v %v %v %v %+v", host.Labels, host.DeletionTimestamp.IsZero(),
		status.Provisioning.State, status.OperationalStatus, status.ErrorType, status.ErrorMessage, status.PoweredOn, hardware)
}

// nodesOfHost maps a BareMetalHost to the node that it is claimed by or that has
// noted it, and if it may be free to those that wait for one.
func (r *Reconciler) nodesOfHost(ctx context.Context, obj client.Object) []reconcile.Request {
	host := obj.(*metal3v1.BareMetalHost)
	requests := r.namedInMetal(ctx, host.Namespace, metalHost(host.Name))
	if consumer := metal.Consumer(host); consumer != "" {
		return append(requests, watch.Request(host.Namespace, consumer))
	}
	return append(requests, r.namedInMetal(ctx, host.Namespace, metalWaiting)...)
}

// nodesWaiting maps a node that no longer exists to those that wait for a machine:
// it may have been reached at an address of one.
func (r *Reconciler) nodesWaiting(ctx context.Context, node client.Object) []reconcile.Request {
	return r.namedInMetal(ctx, node.GetNamespace(), metalWaiting)
}

// departures lets through nodes that no longer exist.
var departures = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(event.UpdateEvent) bool { return false },
}

// nodesWithoutKind maps the definition of BareMetalHost, which changes rarely, to all
// nodes: those that have a machine wait for it too.
func (r *Reconciler) nodesWithoutKind(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.metalNodes(ctx)
}

// namedInMetal returns the nodes of a namespace with a value of metalIndex.
func (r *Reconciler) namedInMetal(ctx context.Context, namespace, value string) []reconcile.Request {
	return r.metalNodes(ctx, client.InNamespace(namespace), client.MatchingFields{metalIndex: value})
}

func (r *Reconciler) metalNodes(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	list := &dataplanev1.OpenStackDataPlaneNodeList{}
	if err := r.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list the nodes of a BareMetalHost")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, watch.Request(list.Items[i].Namespace, list.Items[i].Name))
	}
	return requests
}

// nodesOfRole maps a role to its nodes.
func (r *Reconciler) nodesOfRole(ctx context.Context, role client.Object) []reconcile.Request {
	members, err := dataplane.NodesOfRole(ctx, r.Client, role.GetNamespace(), role.GetName())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list the nodes of a role")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(members))
	for i := range members {
		requests = append(requests, watch.Request(role.GetNamespace(), members[i].Name))
	}
	return requests
}

// nodesOfSecret maps a Secret to the nodes whose machines boot with it.
func (r *Reconciler) nodesOfSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	in, index := client.InNamespace(secret.GetNamespace()), client.MatchingFields{inputIndex: secret.GetName()}
	requests := r.metalNodes(ctx, in, index)
	roles := &dataplanev1.OpenStackDataPlaneRoleList{}
	if err := r.List(ctx, roles, in, index, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list the roles with a Secret")
		return requests
	}
	for i := range roles.Items {
		requests = append(requests, r.nodesOfRole(ctx, &roles.Items[i])...)
	}
	return requests
}

// nodeFacts is what is looked at of a node in addition to its spec and annotations: what this
// controller waits for, and its own state.
func nodeFacts(obj client.Object) string {
	node := obj.(*dataplanev1.OpenStackDataPlaneNode)
	status := &node.Status
	return fmt.Sprintln(dataplane.MachineState(node), status.ObservedGeneration == node.Generation, status.Conditions.IsTrue(condition.InputReadyCondition),
		len(status.Services), dataplane.Deployed(node), status.Unknown(), node.DeletionTimestamp.IsZero(), node.Finalizers)
}

// sectionInputs are the Secrets that a section names for the first boot.
func sectionInputs(section dataplanev1.NodeSection) []string {
	names := secretNames(section.UserData, section.NetworkData)
	if section.AnsibleSSHPrivateKeySecret != "" {
		names = append(names, section.AnsibleSSHPrivateKeySecret)
	}
	return names
}

// templateInputs are the Secrets that a template names.
func templateInputs(t *dataplanev1.BaremetalSetTemplate) []string {
	if t == nil {
		return nil
	}
	sections := []dataplanev1.BaremetalHost{{UserData: t.UserData, NetworkData: t.NetworkData}}
	for _, entry := range t.BaremetalHosts {
		sections = append(sections, entry)
	}
	var names []string
	for _, s := range sections {
		names = append(names, secretNames(s.UserData, s.NetworkData)...)
	}
	if t.CABundleSecretName != "" {
		names = append(names, t.CABundleSecretName)
	}
	return names
}

func secretNames(refs ...*corev1.SecretReference) []string {
	var names []string
	for _, ref := range refs {
		if ref != nil {
			names = append(names, ref.Name)
		}
	}
	return names
}
