// Package edpmserviceclass sums up the nodes that have the service of a class, and keeps
// the class while there are any. The stories are in controllers/classes_test.go.
package edpmserviceclass

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers/edpm/edpmservice"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	rules "github.com/edpm-operators/edpm-operators/internal/edpmservice"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/names"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// +kubebuilder:rbac:groups=edpm.openstack.org,resources=edpmserviceclasses,verbs=list;watch;patch
// +kubebuilder:rbac:groups=edpm.openstack.org,resources=edpmserviceclasses/status,verbs=patch

// maxNamed is the most nodes that a message names.
const maxNamed = 10

// Reconciler of EDPMServiceClass.
type Reconciler struct {
	client.Client
	// Live reads past the cache.
	Live   client.Reader
	Runner *phase.Runner
	Inputs *inputs.Reader
	// Gather is how long changes of services are gathered into one summary.
	Gather time.Duration
}

// scope is one class in one reconciliation.
type scope struct {
	*Reconciler
	class    *edpmv1.EDPMServiceClass
	services []edpmv1.EDPMService
}

// Reconcile sums one class up.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	class := &edpmv1.EDPMServiceClass{}
	if err := r.Get(ctx, req.NamespacedName, class); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := &scope{Reconciler: r, class: class}
	if !class.DeletionTimestamp.IsZero() {
		return r.Runner.Run(ctx, class, phase.Deleting(s.phases(), edpmv1.ServicesReadyCondition, s.count, s.release)...)
	}
	return r.Runner.Run(ctx, class, s.phases()...)
}

func (s *scope) phases() []phase.Phase {
	return []phase.Phase{
		phase.Of(edpmv1.ServicesReadyCondition, s.ensureFinalizer, s.count, s.ready),
		phase.Of(condition.InputReadyCondition, s.input),
	}
}

// SetupWithManager adds the controller. The indexes are those of package edpmservice.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&edpmv1.EDPMServiceClass{}, builder.WithPredicates(watch.SpecChanges)).
		Watches(&edpmv1.EDPMService{}, watch.Gather(r.Gather, classOf), builder.WithPredicates(watch.SpecOr(stateOf))).
		Watches(&edpmv1.EDPMServiceClass{}, handler.EnqueueRequestsFromMapFunc(r.neighbours), builder.WithPredicates(watch.SpecChanges)).
		WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(edpmservice.ClassesOf(mgr.GetClient(), "ConfigMap"))).
		WatchesRawSource(r.Inputs.SecretChanges(handler.EnqueueRequestsFromMapFunc(edpmservice.ClassesOf(mgr.GetClient(), "Secret")))).
		Complete(r)
}

func classOf(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{watch.Request(obj.GetNamespace(), obj.(*edpmv1.EDPMService).Spec.ClassName)}
}

// neighbours maps a class to those of its namespace that come after others: a change of
// one can make a cycle of them, or end one.
func (r *Reconciler) neighbours(ctx context.Context, obj client.Object) []reconcile.Request {
	classes := &edpmv1.EDPMServiceClassList{}
	if err := r.List(ctx, classes, client.InNamespace(obj.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has stopped
	}
	var requests []reconcile.Request
	for i := range classes.Items {
		if len(classes.Items[i].Spec.After) > 0 {
			requests = append(requests, watch.Request(classes.Items[i].Namespace, classes.Items[i].Name))
		}
	}
	return requests
}

// ensureFinalizer makes sure that a class cannot go while nodes have its service.
func (s *scope) ensureFinalizer(ctx context.Context) error {
	return apply.Finalizer(ctx, s.Client, s.class, edpmv1.EDPMServiceClassFinalizer, controllerutil.AddFinalizer)
}

// count is the phase that counts the nodes that have the service.
func (s *scope) count(ctx context.Context) error {
	services := &edpmv1.EDPMServiceList{}
	err := s.List(ctx, services, client.InNamespace(s.class.Namespace), client.MatchingFields{edpmservice.ClassIndex: s.class.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	s.services = services.Items
	slices.SortFunc(s.services, func(a, b edpmv1.EDPMService) int { return strings.Compare(a.Name, b.Name) })
	status := &s.class.Status
	status.Nodes, status.ReadyNodes = int32(len(s.services)), 0 //nolint:gosec // bounded by the nodes of a namespace
	for i := range s.services {
		if s.has(&s.services[i]) {
			status.ReadyNodes++
		}
	}
	status.NodesSummary = fmt.Sprintf("%d/%d", status.ReadyNodes, status.Nodes)
	return nil
}

// has reports whether the node has the service as the object and the class say now.
func (s *scope) has(service *edpmv1.EDPMService) bool {
	return stateOf(service) == state{true, service.Generation, s.class.Generation}
}

// state is what a class sums up: whether a service is Ready, and for which generation of its
// object and of its class.
type state struct {
	ready          bool
	service, class int64
}

func stateOf(obj client.Object) state {
	status := obj.(*edpmv1.EDPMService).Status
	return state{status.Conditions.IsTrue(condition.ReadyCondition), status.ObservedGeneration, status.ObservedClassGeneration}
}

// input is the phase that checks what the class says and names.
func (s *scope) input(ctx context.Context) error {
	if errs := rules.ClassErrors(s.class); len(errs) > 0 {
		return phase.Stalled(condition.InputReadyCondition, edpmv1.InvalidClassReason, "%v", errs.ToAggregate())
	}
	path, err := edpmservice.CycleOf(ctx, s.Client, s.class)
	if err != nil {
		return err
	}
	if path != nil {
		return phase.Stalled(condition.InputReadyCondition, edpmv1.AfterCycleReason, "%s", edpmservice.CycleMessage(path))
	}
	if _, err := rules.Files(ctx, s.Inputs, s.class); err != nil {
		return inputs.Halt(condition.InputReadyCondition, err)
	}
	return nil
}

// ready is the phase that says whether the service is Ready on every node. It ends
// nothing: the inputs are looked at in any case.
func (s *scope) ready(context.Context) error {
	status := &s.class.Status
	for i := range s.services {
		if service := &s.services[i]; !s.has(service) {
			status.Conditions.MarkFalse(edpmv1.ServicesReadyCondition, edpmv1.ServicesNotReadyReason, condition.SeverityInfo,
				"The service is Ready on %s nodes; on %s it is not: see the conditions of EDPMService %s", status.NodesSummary, service.Spec.DataplaneNodeName, service.Name)
			return nil
		}
	}
	if status.Nodes == 0 {
		status.Conditions.MarkTrue(edpmv1.ServicesReadyCondition, "No node or role has annotation %s", s.class.Spec.Annotation)
		return nil
	}
	status.Conditions.MarkTrue(edpmv1.ServicesReadyCondition, "The service is Ready on %s nodes", status.NodesSummary)
	return nil
}

// release is the phase of a deleted class that removes the finalizer once no node has
// its service. The cache may be late, so the API server is asked before that.
func (s *scope) release(ctx context.Context) error {
	if len(s.services) == 0 {
		live := &edpmv1.EDPMServiceList{}
		if err := s.Live.List(ctx, live, client.InNamespace(s.class.Namespace), client.MatchingFields{edpmservice.ClassIndex: s.class.Name}); err != nil {
			return err
		}
		s.services = live.Items
	}
	if len(s.services) == 0 {
		return client.IgnoreNotFound(apply.Finalizer(ctx, s.Client, s.class, edpmv1.EDPMServiceClassFinalizer, controllerutil.RemoveFinalizer))
	}
	return phase.Failing(edpmv1.ServicesReadyCondition, edpmv1.ClassInUseReason,
		"Deleting: %d nodes have the service: %s. The class says how it is removed from them. Remove annotation %s from these nodes and their roles, or set it to \"false\": the service is removed from their hosts, and then the class",
		len(s.services), s.named(), s.class.Spec.Annotation)
}

// named are the nodes that have the service, the first of them.
func (s *scope) named() string {
	var nodes []string
	for i := range s.services {
		nodes = append(nodes, s.services[i].Spec.DataplaneNodeName)
	}
	return names.List(nodes, maxNamed)
}
