// Package openstackcontrolplane creates the podified services of each control
// plane.
package openstackcontrolplane

import (
	"context"
	"errors"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	openstackv1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// +kubebuilder:rbac:groups=core.openstack.org,resources=openstackcontrolplanes,verbs=list;watch
// +kubebuilder:rbac:groups=core.openstack.org,resources=openstackcontrolplanes/status,verbs=patch
// +kubebuilder:rbac:groups=core.openstack.org,resources=openstackcontrolplanes/finalizers,verbs=update
// +kubebuilder:rbac:groups=glance.openstack.org,resources=glances,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=nova.openstack.org,resources=nova,verbs=list;watch;create;patch;delete

const fieldManager = "edpm-openstackcontrolplane"

// Reconciler of OpenStackControlPlane.
type Reconciler struct {
	client.Client
	Runner *phase.Runner
}

type scope struct {
	*Reconciler
	plane *openstackv1.OpenStackControlPlane
}

// Reconcile brings the services of one control plane up to date. One service
// that cannot be does not keep the others.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	plane := &openstackv1.OpenStackControlPlane{}
	if err := r.Get(ctx, req.NamespacedName, plane); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !plane.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	s := &scope{Reconciler: r, plane: plane}
	return r.Runner.Run(ctx, plane,
		phase.Of(openstackv1.GlanceReadyCondition), phase.Of(openstackv1.NovaReadyCondition),
		phase.OptionalOf(openstackv1.GlanceReadyCondition, s.services),
		phase.OptionalOf(condition.TopologyReadyCondition, s.topology))
}

// SetupWithManager adds the controller and its index.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	err := topology.IndexRefs(ctx, mgr.GetFieldIndexer(), &openstackv1.OpenStackControlPlane{}, func(obj client.Object) []string {
		return topology.NamesOf(obj.(*openstackv1.OpenStackControlPlane).Spec.TopologyRef)
	})
	if err != nil {
		return err
	}
	if err := watch.IndexGenerated(ctx, mgr.GetFieldIndexer(), &openstackv1.OpenStackControlPlane{}, generated); err != nil {
		return err
	}
	list := func() client.ObjectList { return &openstackv1.OpenStackControlPlaneList{} }
	users := topology.Users(mgr.GetClient(), list)
	return ctrl.NewControllerManagedBy(mgr).
		For(&openstackv1.OpenStackControlPlane{}, builder.WithPredicates(watch.SpecChanges)).
		Owns(&glancev1.Glance{}, builder.WithPredicates(watch.SpecOrMessageChanges)).
		Owns(&novav1.Nova{}, builder.WithPredicates(watch.SpecOrMessageChanges)).
		Watches(&glancev1.Glance{}, handler.EnqueueRequestsFromMapFunc(watch.GeneratorsOf(mgr.GetClient(), list, "Glance")), builder.WithPredicates(watch.Freed)).
		Watches(&novav1.Nova{}, handler.EnqueueRequestsFromMapFunc(watch.GeneratorsOf(mgr.GetClient(), list, "Nova")), builder.WithPredicates(watch.Freed)).
		Watches(&topologyv1.Topology{}, handler.EnqueueRequestsFromMapFunc(users), builder.WithPredicates(topology.Existence)).
		Complete(r)
}

// generated are the services of a control plane, whichever it has.
func generated(client.Object) []string {
	return []string{watch.Generated("Glance", openstackv1.GlanceName), watch.Generated("Nova", openstackv1.NovaName)}
}

// topology is the phase that says whether the Topology is there. Those who use
// it hold it; the services that refer to another continue without it.
func (s *scope) topology(ctx context.Context) error {
	t, err := topology.Get(ctx, s.Client, s.plane.Namespace, topology.Nearest(s.plane.Spec.TopologyRef))
	if err == nil && t != nil {
		s.plane.Status.Conditions.MarkTrue(condition.TopologyReadyCondition, "Services without a topologyRef of their own use Topology %s", t.Name)
	}
	return err
}

// services is the phase that creates, updates and removes the services.
func (s *scope) services(ctx context.Context) error {
	var faults error
	for _, run := range []phase.Func{s.glance, s.nova} {
		err := run(ctx)
		if halt := (*phase.Halt)(nil); errors.As(err, &halt) {
			s.plane.Status.Conditions.MarkFalse(halt.Type, halt.Reason, halt.Severity, "%s", halt.Message)
			continue
		}
		faults = errors.Join(faults, err)
	}
	return faults
}
