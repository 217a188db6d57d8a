package hosted

import (
	"context"
	"fmt"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/edpm-operators/edpm-operators/apis/common"
	hostedv1 "github.com/edpm-operators/edpm-operators/apis/common/hosted"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/names"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// Object is a service on one host. Its name is that of the node, unless nodes can have
// several of its kind (MultiInstance).
type Object interface {
	phase.Object
	GetLedger() *common.Ledger
	// Hosted returns what all services have in spec and status, to be changed in place.
	Hosted() (*hostedv1.ServiceSpec, *hostedv1.ServiceStatus)
}

// Service is what is special to one kind of services on hosts.
type Service struct {
	// Object of the kind, empty.
	Object Object
	// Name of the service in status.services of nodes.
	Name string
	// Identity says which options customServiceConfig cannot set.
	Identity identity.Service
	// Annotation on a node, or else on its role, gives the node the service, unless it
	// is empty. What the value means is for the kind to say.
	Annotation string
	// MultiInstance takes the place of Name and Annotation where objects of the kind are for
	// different services; nil where all are for the same.
	MultiInstance *MultiInstance
	// Finalizer by which objects are kept until the service is removed from the host.
	Finalizer string
	// Creator is the name of the controller that creates objects, and with prefix edpm-
	// the field manager of the fields that follow their nodes.
	Creator string
	// RunnerImage is the execution environment of objects that name none.
	RunnerImage string

	// Choose sets the fields of a new object that follow from the annotation, nil for none.
	Choose func(obj Object, value string)
	// Mismatch returns why an object cannot serve its node, given the annotation of the
	// node, as the condition InputReady of the object. nil if every value but the empty
	// one is fine.
	Mismatch func(obj Object, value string) *phase.Halt
	// Refusal returns what the node shows of a Mismatch; nil for its message.
	Refusal func(obj Object, value string) string
	// Reads returns what the kind reads next to the inputs of all services, nil for
	// nothing: each as "Secret/name" or "ConfigMap/name". Changes wake the object.
	Reads func(obj Object) []string

	// Notices are the conditions of which nodes show the first as long as an object has it and
	// is not Ready.
	Notices []condition.Type

	// EmptySince returns since when nothing of the service is on the host that a reboot would end,
	// zero if something is or that is not known; nil where nothing ever is.
	EmptySince func(Object) metav1.Time

	// Bind returns what the kind adds to the phases of one object.
	Bind func(*Scope) Parts
	// Watch adds indexes and watches to the controller of the objects, nil for none.
	Watch func(ctx context.Context, mgr ctrl.Manager, b *builder.Builder) error
	// Busy returns what the host of an object does that a step would interrupt (edpm.Owner),
	// nil if steps interrupt nothing.
	Busy func(context.Context, client.Object) edpm.Busy
	// Gone is called for an object that no longer exists, nil for nothing.
	Gone func(types.NamespacedName)
}

// Parts are what a kind adds to the phases of one object.
type Parts struct {
	// Cell of the object in metrics. Objects of different cells share no run.
	Cell string
	// Always are phases of what a service does elsewhere, for which nothing is run on the host: they are
	// run also while inputs of runs are missing. Vars are nil then unless they could be read.
	Always []phase.Phase
	// Inputs are phases before the service waits for its node.
	Inputs []phase.Phase
	// Config are phases that read more configuration, once customServiceConfig is checked.
	Config []phase.Func
	// Images of the object, which records them (images.Released); nil if it names all.
	Images func() map[string]images.Component
	// Steps that bring the service to the host, in order.
	Steps []Step
	// Vacate is called with the state of the steps, to which it can add: it has a host emptied
	// for a step that needs that, and given back afterwards. nil if none does.
	Vacate func(context.Context, *edpm.State) error
	// Deployed are phases once the steps have run.
	Deployed []phase.Phase

	// Drain are phases of a deleted object before its host is cleaned up. They see to it
	// that no one uses the service.
	Drain []phase.Func
	// Cleanup removes the service from the host.
	Cleanup Step
	// Leftovers on a host that cannot be cleaned up, for a message: "units a and b".
	Leftovers string
	// Leave are phases of a deleted object after its host is cleaned up, or is not to be.
	Leave []phase.Func
}

// Step of a service, which Complete gives variables and files; nil for none.
type Step struct {
	edpm.Step
	Complete func(*edpm.Target)
	// Optional reports whether the service is deployed although only such steps are still to be
	// run. A phase of the kind shows their state.
	Optional bool
	// Applies reports whether the step can be run as things are; nil if it always can.
	Applies func() bool
}

// ServiceClass is one service that nodes can have.
type ServiceClass struct {
	// Name of the service in status.services of nodes.
	Name string
	// Annotation on a node, or else on its role, gives the node the service.
	Annotation string
	// RunnerImage is the execution environment of objects that name none; empty for that
	// of the kind.
	RunnerImage string
	// Leftovers take the place of those in Parts unless empty.
	Leftovers string
	// Removed reports whether no further node gets the service.
	Removed bool
	// Unprotected reports whether what defines the service has no finalizer yet: it could be
	// deleted at once, and with it how the service is removed from hosts. No object of it
	// belongs to a node until then.
	Unprotected bool
}

// MultiInstance is for a kind whose objects are for different services: a node has one
// object for each of its services, named as ObjectName says. The value "false" of an
// annotation gives a node no service, and an object whose node is no longer selected
// is deleted.
type MultiInstance struct {
	// Definition is an empty object of the kind that defines a service. Nodes are looked
	// at again when one appears or goes, and when its finalizers change.
	Definition client.Object
	// All returns the services that are defined in a namespace.
	All func(ctx context.Context, namespace string) ([]ServiceClass, error)
	// Find returns a service by its name; a *phase.Halt if there is none.
	Find func(ctx context.Context, namespace, name string) (ServiceClass, error)
	// Of returns the name of the service that an object is for, and Assign sets it.
	Of     func(Object) string
	Assign func(obj Object, service string)
}

// ObjectName returns the name of the object of a service on a node, where nodes have
// several of a kind: <service>-<node>. One that is too long ends with a hash.
func ObjectName(service, node string) string {
	return names.Fit(service+"-"+node, names.MaxObject)
}

// namesOf steps.
func namesOf(steps ...Step) []string {
	var all []string
	for _, step := range steps {
		all = append(all, step.Name)
	}
	return all
}

// Shared is what the services on hosts share.
type Shared struct {
	client.Client
	// Live reads past the cache.
	Live   client.Reader
	Inputs *inputs.Reader
	Engine *edpm.Engine
}

// kind is a Service with what follows from its Object.
type kind struct {
	Shared
	Service
	name      string // of the kind
	list      func() client.ObjectList
	creations *creations
}

// Setup adds the controllers of a service to the manager.
func Setup(ctx context.Context, mgr ctrl.Manager, shared Shared, service Service) error {
	gvk, err := apiutil.GVKForObject(service.Object, mgr.GetScheme())
	if err != nil {
		return err
	}
	plural := gvk.GroupVersion().WithKind(gvk.Kind + "List")
	if _, err := mgr.GetScheme().New(plural); err != nil {
		return fmt.Errorf("the list of %s: %w", gvk.Kind, err)
	}
	k := &kind{Shared: shared, Service: service, name: gvk.Kind, creations: newCreations(), list: func() client.ObjectList {
		list, _ := mgr.GetScheme().New(plural) // it has just been made
		return list.(client.ObjectList)
	}}
	if err := (&creator{kind: k, events: mgr.GetEventRecorder(k.Creator)}).setup(mgr); err != nil {
		return err
	}
	runner := &phase.Runner{Client: shared.Client, Events: mgr.GetEventRecorder(strings.ToLower(k.name))}
	return (&deployer{kind: k, runner: runner}).setup(ctx, mgr)
}

// empty returns a new object of the kind.
func (k *kind) empty() Object { return k.Object.DeepCopyObject().(Object) }

// only is the service of a kind whose objects are all for the same.
func (k *kind) ownClass() ServiceClass { return ServiceClass{Name: k.Name, Annotation: k.Annotation} }

// classes are the services that nodes of a namespace can have.
func (k *kind) classes(ctx context.Context, namespace string) ([]ServiceClass, error) {
	if k.MultiInstance == nil {
		return []ServiceClass{k.ownClass()}, nil
	}
	return k.MultiInstance.All(ctx, namespace)
}

// serviceOf returns the name of the service that an object is for.
func (k *kind) serviceOf(obj Object) string {
	if k.MultiInstance == nil {
		return k.Name
	}
	return k.MultiInstance.Of(obj)
}

// objectName is the name of the object of a service on a node.
func (k *kind) objectName(service, node string) string {
	if k.MultiInstance == nil {
		return node
	}
	return ObjectName(service, node)
}

// value is by what the node has the service; empty if it has it not.
func (k *kind) value(node *dataplanev1.OpenStackDataPlaneNode, role *dataplanev1.OpenStackDataPlaneRole, o ServiceClass) string {
	value := inherit.Annotation(node, role, o.Annotation)
	if k.MultiInstance != nil && value == "false" {
		return ""
	}
	return value
}

// mismatch returns why the object cannot serve the node, nil if it can.
func (k *kind) mismatch(obj Object, o ServiceClass, value string) *phase.Halt {
	spec, _ := obj.Hosted()
	switch name := k.objectName(o.Name, spec.DataplaneNodeName); {
	case obj.GetName() != name:
		return phase.Stalled(condition.InputReadyCondition, hostedv1.InvalidSpecReason,
			"metadata.name must be %q, which is made of the service and spec.dataplaneNodeName: delete this object, and create it with that name", name)
	case k.Mismatch != nil:
		return k.Mismatch(obj, value)
	case value != "":
		return nil
	}
	return phase.Waiting(condition.InputReadyCondition, hostedv1.AnnotationMissingReason,
		"OpenStackDataPlaneNode %s is not to have this service: set annotation %s on it or on its role. Nothing is deployed on its host until then", spec.DataplaneNodeName, o.Annotation)
}
