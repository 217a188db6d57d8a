package hosted

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	hostedv1 "github.com/edpm-operators/edpm-operators/apis/common/hosted"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// creationDelay is how long the answer to the creation of an object is given to come.
const creationDelay = 50 * time.Millisecond

// inputIndex holds the Secrets and ConfigMaps that an object names.
const inputIndex = "hosted.inputs"

// deployer brings the services of a kind to their hosts.
type deployer struct {
	*kind
	runner *phase.Runner
}

// Scope is one object in one reconciliation.
type Scope struct {
	*deployer
	Object Object
	// Node and Role of the object; nil when they do not exist.
	Node *dataplanev1.OpenStackDataPlaneNode
	Role *dataplanev1.OpenStackDataPlaneRole
	// Vars of the host in the inventory; nil until they have been read.
	Vars map[string]any

	spec                 *hostedv1.ServiceSpec
	status               *hostedv1.ServiceStatus
	parts                Parts
	class                ServiceClass
	keyHash, jumpKeyHash string
	strategy             edpm.Strategy
	// environment has digests of what runs take from the environment of the namespace.
	environment map[string]string
	// inputsError is why what all services need could not be read.
	inputsError error
	// restored reports that the object may have been restored from a backup without its status.
	restored bool
	// created reports that the object had no status when it was read.
	created bool
	// state of the steps.
	state edpm.State
	// converging reports whether the engine knows what is wanted.
	converging bool
}

// Reconcile brings one object forward.
func (d *deployer) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := d.empty()
	err := d.Get(ctx, req.NamespacedName, obj)
	if apierrors.IsNotFound(err) {
		if d.Gone != nil {
			d.Gone(req.NamespacedName)
		}
		return ctrl.Result{}, d.withoutObject(ctx, req)
	}
	if err == nil && d.creations.undecided(obj, d.Finalizer) {
		return ctrl.Result{RequeueAfter: creationDelay}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	s := d.scope(obj)
	if !obj.GetDeletionTimestamp().IsZero() {
		defer s.withdraw(req)
		return d.runner.Run(ctx, obj, phase.Deleting(s.phases(), condition.DeploymentReadyCondition, s.detectRestore, s.lookUpNode, s.lookUpService, s.release)...)
	}
	return d.runner.Run(ctx, obj, phase.WhenHalted(s.phases(), func() { s.withdraw(req) })...)
}

func (d *deployer) scope(obj Object) *Scope {
	s := &Scope{deployer: d, Object: obj}
	s.spec, s.status = obj.Hosted()
	s.restored = d.creations.restored(obj, d.Finalizer)
	s.created = s.status.ObservedGeneration == 0
	s.class = d.ownClass()
	s.class.Name = d.serviceOf(obj)
	s.parts = d.Bind(s)
	return s
}

func (s *Scope) phases() []phase.Phase {
	return slices.Concat(
		[]phase.Phase{phase.OptionalOf(condition.InputReadyCondition, s.detectRestore, s.ensureFinalizer, s.lookUpNode, s.lookUpService, s.nodeExists, s.tryInputs)}, s.parts.Always,
		[]phase.Phase{phase.Of(condition.InputReadyCondition, s.inputsReady)}, s.parts.Inputs, s.images(),
		[]phase.Phase{
			phase.Of(hostedv1.DataPlaneNodeReadyCondition, s.nodeReady),
			phase.Of(condition.ServiceConfigReadyCondition, append([]phase.Func{s.serviceConfig}, s.parts.Config...)...),
			phase.Of(condition.DeploymentReadyCondition, s.deploy),
			phase.NoticeOf(common.HostInSyncCondition),
		}, s.parts.Deployed)
}

// withdraw takes back what the object waited for when it cannot say any more what
// it wants, for example while its node is not Ready.
func (s *Scope) withdraw(req ctrl.Request) {
	if !s.converging {
		s.Engine.Withdraw(s.name, req.Namespace, req.Name)
	}
}

// withoutObject takes back what an object waited for that does not exist any more.
// Where one is about to be created, the hosts of its role wait for it: nodes that
// are annotated together share their runs.
func (d *deployer) withoutObject(ctx context.Context, req ctrl.Request) error {
	awaited, err := d.awaited(ctx, req)
	if awaited {
		d.Engine.Await(d.name, req.Namespace, req.Name)
	} else {
		d.Engine.Withdraw(d.name, req.Namespace, req.Name)
	}
	return err
}

// awaited reports whether an object of the name is about to be created.
func (d *deployer) awaited(ctx context.Context, req ctrl.Request) (bool, error) {
	classes, err := d.classes(ctx, req.Namespace)
	if err != nil {
		return false, err
	}
	for _, o := range classes {
		node := req.Name
		if d.MultiInstance != nil {
			node = strings.TrimPrefix(req.Name, o.Name+"-")
		}
		if d.objectName(o.Name, node) != req.Name {
			continue
		}
		if wanted, err := d.wanted(ctx, client.ObjectKey{Namespace: req.Namespace, Name: node}, o); err != nil || wanted {
			return wanted, err
		}
	}
	return false, nil
}

// wanted reports whether a node is to have a service.
func (d *deployer) wanted(ctx context.Context, key client.ObjectKey, o ServiceClass) (bool, error) {
	node := &dataplanev1.OpenStackDataPlaneNode{}
	if err := d.Get(ctx, key, node); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	role, err := d.roleOf(ctx, d.Client, node)
	return d.selects(node, role, o), err
}

// selects reports whether a service gets an object for the node if there is none yet.
func (k *kind) selects(node *dataplanev1.OpenStackDataPlaneNode, role *dataplanev1.OpenStackDataPlaneRole, o ServiceClass) bool {
	return role != nil && node.DeletionTimestamp.IsZero() && !o.Removed && k.value(node, role, o) != ""
}

// roleOf returns the role of a node, nil if it does not exist.
func (k *kind) roleOf(ctx context.Context, from client.Reader, node *dataplanev1.OpenStackDataPlaneNode) (*dataplanev1.OpenStackDataPlaneRole, error) {
	role := &dataplanev1.OpenStackDataPlaneRole{}
	if err := from.Get(ctx, client.ObjectKey{Namespace: node.Namespace, Name: node.Spec.Role}, role); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return role, nil
}

// setup adds the controller and its index, and makes the kind known to the engine.
func (d *deployer) setup(ctx context.Context, mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, d.empty(), inputIndex, d.inputsOf); err != nil {
		return err
	}
	owner := edpm.Owner{
		Kind: d.name, List: d.list,
		New:    func() client.Object { return d.empty() },
		Ledger: func(obj client.Object) *common.Ledger { return obj.(Object).GetLedger() },
		Busy:   d.busy,
	}
	if d.MultiInstance != nil {
		owner.Host, owner.HostIndex = nodeOf, NodeIndex
		if err := mgr.GetFieldIndexer().IndexField(ctx, d.empty(), NodeIndex, indexNode); err != nil {
			return err
		}
	}
	d.Engine.Register(owner)
	users := func(kind string) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(watch.Users(mgr.GetClient(), d.list, inputIndex, func(o client.Object) string { return kind + "/" + o.GetName() }))
	}
	b := ctrl.NewControllerManagedBy(mgr).
		For(d.empty(), builder.WithPredicates(watch.SpecChanges)).
		Watches(&dataplanev1.OpenStackDataPlaneNode{}, d.Engine.Following(d.name, dataplane.Role, d.ofNode(watch.Itself), becameReady), builder.WithPredicates(nodeChanges)).
		Watches(&dataplanev1.OpenStackDataPlaneNode{}, watch.Gather(0, d.ofNode(dataplane.Rivals(mgr.GetClient()))), builder.WithPredicates(dataplane.MachineChanges)).
		Watches(&dataplanev1.OpenStackDataPlaneRole{}, d.Engine.Expecting(d.name, watch.ByName, d.ofNode(nodesOfRole(mgr.GetClient()))), builder.WithPredicates(watch.SpecChanges)).
		WatchesMetadata(&corev1.ConfigMap{}, users("ConfigMap")).
		Watches(&ansibleeev1.OpenStackAnsibleEE{}, d.Engine.OwnerHandler(d.name)).
		WatchesRawSource(d.Inputs.SecretChanges(users("Secret"))).
		WatchesRawSource(d.Engine.Wakeups(d.name)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 8})
	if d.Watch != nil {
		if err := d.Watch(ctx, mgr, b); err != nil {
			return err
		}
	}
	return b.Complete(d)
}

// busy returns what the host of an object does that its steps would interrupt, unless a person
// has them do so.
func (d *deployer) busy(ctx context.Context, obj client.Object) edpm.Busy {
	if d.Busy == nil || obj.GetAnnotations()[common.IgnoreBusyAnnotation] == "true" {
		return edpm.Busy{}
	}
	return d.Busy(ctx, obj)
}

// nodeChanges lets through what objects read of their node: what people change, Ready, and the
// recorded key of the host, by which others know it also while the node is not Ready.
var nodeChanges = predicate.Or(watch.SpecOrReadyChanges, watch.Changes(func(obj client.Object) string {
	return obj.(*dataplanev1.OpenStackDataPlaneNode).Status.HostKey
}))

// becameReady reports whether phase 0 of a node has ended, so that services can follow.
func becameReady(before, after client.Object) bool {
	return !before.(*dataplanev1.OpenStackDataPlaneNode).IsReady() && after.(*dataplanev1.OpenStackDataPlaneNode).IsReady()
}

func (d *deployer) inputsOf(obj client.Object) []string {
	spec, _ := obj.(Object).Hosted()
	all := []string{"ConfigMap/" + spec.InventoryConfigMapName, "Secret/" + spec.SSHKeySecretName, "ConfigMap/" + ansibleeev1.DefaultEnvConfigMap}
	all = append(all, dataplane.JumpInputs(spec.JumpHost)...)
	if d.Reads != nil {
		all = append(all, d.Reads(obj.(Object))...)
	}
	return all
}

// ensureFinalizer makes sure that an object cannot go while its service is on the host.
// Those that the creator makes have it from the start. One that a person makes has a status
// before: a manager that dies in between must not leave a new object that looks like a
// restored one.
func (s *Scope) ensureFinalizer(ctx context.Context) error {
	if s.created && !controllerutil.ContainsFinalizer(s.Object, s.Finalizer) {
		if err := s.writeFirstStatus(ctx); err != nil {
			return err
		}
	}
	return apply.Finalizer(ctx, s.Client, s.Object, s.Finalizer, controllerutil.AddFinalizer)
}

// writeFirstStatus writes that the object was seen, and that it is not Ready.
func (s *Scope) writeFirstStatus(ctx context.Context) error {
	before, first := s.Object.DeepCopyObject().(Object), s.Object.DeepCopyObject().(Object)
	before.SetObservedGeneration(0)
	*before.GetConditions(), *first.GetConditions() = nil, nil
	first.GetConditions().Set(condition.UnknownCondition(condition.ReadyCondition, condition.InitReason, condition.ReadyInitMessage))
	if err := s.Status().Patch(ctx, first, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the first status: %w", err)
	}
	s.Object.SetResourceVersion(first.GetResourceVersion())
	return nil
}
