// Package openstackdataplane creates the roles and nodes that a data plane describes.
package openstackdataplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplanes,verbs=list;watch
// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplanes/status,verbs=patch
// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplanes/finalizers,verbs=update
// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplaneroles;openstackdataplanenodes,verbs=create;patch;delete

const fieldManager = "edpm-dataplane"

// Reconciler of OpenStackDataPlane.
type Reconciler struct {
	client.Client
	Runner *phase.Runner
	// Gather is how long changes of roles and nodes are gathered into one summary.
	Gather time.Duration
}

type scope struct {
	*Reconciler
	plane *dataplanev1.OpenStackDataPlane
	nodes []*dataplanev1.OpenStackDataPlaneNode
	rejections
}

// Reconcile brings the roles and nodes of one data plane up to date. Those that
// it no longer describes are deleted; a node then has its services removed.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	plane := &dataplanev1.OpenStackDataPlane{}
	if err := r.Get(ctx, req.NamespacedName, plane); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !plane.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	s := &scope{Reconciler: r, plane: plane}
	return r.Runner.Run(ctx, plane,
		phase.Of(condition.InputReadyCondition, s.applyRoles, s.applyNodes, s.removeOthers, s.count, s.inputs),
		phase.Of(dataplanev1.NodesReadyCondition, s.ready))
}

// SetupWithManager adds the controller and its index.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	for _, obj := range []client.Object{&dataplanev1.OpenStackDataPlaneNode{}, &dataplanev1.OpenStackDataPlaneRole{}} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, obj, ownerIndex, owner); err != nil {
			return err
		}
	}
	toOwner := func(_ context.Context, obj client.Object) []reconcile.Request {
		var out []reconcile.Request
		for _, name := range owner(obj) {
			out = append(out, watch.Request(obj.GetNamespace(), name))
		}
		return out
	}
	if err := watch.IndexGenerated(ctx, mgr.GetFieldIndexer(), &dataplanev1.OpenStackDataPlane{}, generated); err != nil {
		return err
	}
	list := func() client.ObjectList { return &dataplanev1.OpenStackDataPlaneList{} }
	generators := func(kind string) handler.EventHandler {
		return watch.Gather(r.Gather, watch.GeneratorsOf(mgr.GetClient(), list, kind))
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&dataplanev1.OpenStackDataPlane{}, builder.WithPredicates(watch.SpecChanges)).
		Owns(&dataplanev1.OpenStackDataPlaneRole{}, builder.WithPredicates(watch.SpecChanges)).
		Watches(&dataplanev1.OpenStackDataPlaneNode{}, watch.Gather(r.Gather, toOwner), builder.WithPredicates(watch.SpecOrReadyChanges)).
		Watches(&dataplanev1.OpenStackDataPlaneRole{}, generators("OpenStackDataPlaneRole"), builder.WithPredicates(watch.Freed)).
		Watches(&dataplanev1.OpenStackDataPlaneNode{}, generators("OpenStackDataPlaneNode"), builder.WithPredicates(watch.Freed)).
		Complete(r)
}

// generated are the roles and nodes of a data plane.
func generated(obj client.Object) []string {
	plane, entries := obj.(*dataplanev1.OpenStackDataPlane), []string{}
	for name := range plane.Spec.Roles {
		entries = append(entries, watch.Generated("OpenStackDataPlaneRole", name))
	}
	for name := range plane.Spec.Nodes {
		entries = append(entries, watch.Generated("OpenStackDataPlaneNode", name))
	}
	return entries
}

// ownerIndex holds the name of the data plane that controls a role or node.
const ownerIndex = "dataplane.owner"

func owner(obj client.Object) []string {
	ref := metav1.GetControllerOf(obj)
	if ref == nil || ref.Kind != "OpenStackDataPlane" {
		return nil
	}
	return []string{ref.Name}
}

func (s *scope) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.plane.Namespace, Name: name, Labels: map[string]string{"openstackdataplane": s.plane.Name}}
}

// applyRoles is the phase that creates and updates the roles.
func (s *scope) applyRoles(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(s.plane.Spec.Roles)) {
		role := &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: s.meta(name), Spec: s.plane.Spec.Roles[name]}
		role.Spec.DataPlane = s.plane.Name
		role.Spec.DeployStrategy = inherit.MergeStrategy(role.Spec.DeployStrategy, s.plane.Spec.DeployStrategy)
		s.pause(&role.Spec.DeployStrategy)
		if err := s.apply(ctx, role, &dataplanev1.OpenStackDataPlaneRole{}); err != nil {
			return err
		}
	}
	return nil
}

// applyNodes is the phase that creates and updates the nodes.
func (s *scope) applyNodes(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(s.plane.Spec.Nodes)) {
		node := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: s.meta(name), Spec: s.plane.Spec.Nodes[name]}
		if node.Spec.HostName == "" {
			node.Spec.HostName = name
		}
		s.pause(&node.Spec.DeployStrategy)
		present := &dataplanev1.OpenStackDataPlaneNode{}
		if err := s.apply(ctx, node, present); err != nil {
			return err
		}
		s.nodes = append(s.nodes, present)
	}
	return nil
}

// pause carries deploy: false of the data plane to a role or node.
func (s *scope) pause(d *dataplanev1.DeployStrategySection) {
	if deploy := s.plane.Spec.DeployStrategy.Deploy; deploy != nil && !*deploy {
		d.Deploy = ptr.To(false)
	}
}

// apply brings a role or node up to date. One that the API server rejects, or
// that belongs to something else, is noted and keeps nothing else from its turn.
func (s *scope) apply(ctx context.Context, desired, present client.Object) error {
	err := apply.Child(ctx, s.Client, fieldManager, s.plane, desired, present)
	if s.note(err) {
		return nil
	}
	return err
}

// inputs is the phase that reports every rejected role and node.
func (s *scope) inputs(context.Context) error {
	if halt := s.halt(len(s.plane.Spec.Roles) + len(s.plane.Spec.Nodes)); halt != nil {
		return halt
	}
	return nil
}

// removeOthers is the phase that deletes roles and nodes that the data plane
// created and no longer describes.
func (s *scope) removeOthers(ctx context.Context) error {
	mine := client.MatchingFields{ownerIndex: s.plane.Name}
	nodes, roles := &dataplanev1.OpenStackDataPlaneNodeList{}, &dataplanev1.OpenStackDataPlaneRoleList{}
	if err := errors.Join(s.List(ctx, nodes, client.InNamespace(s.plane.Namespace), mine), s.List(ctx, roles, client.InNamespace(s.plane.Namespace), mine)); err != nil {
		return fmt.Errorf("listing roles and nodes: %w", err)
	}
	var old []client.Object
	for i := range nodes.Items {
		if _, ok := s.plane.Spec.Nodes[nodes.Items[i].Name]; !ok {
			old = append(old, &nodes.Items[i])
		}
	}
	for i := range roles.Items {
		if _, ok := s.plane.Spec.Roles[roles.Items[i].Name]; !ok {
			old = append(old, &roles.Items[i])
		}
	}
	for _, obj := range old {
		if err := apply.Delete(ctx, s.Client, s.plane, obj); err != nil && !s.note(err) {
			return err
		}
	}
	return nil
}

// count is the phase that counts ready nodes.
func (s *scope) count(context.Context) error {
	ready := 0
	for _, n := range s.nodes {
		if n.IsReady() {
			ready++
		}
	}
	s.plane.Status.NodesSummary = fmt.Sprintf("%d/%d", ready, len(s.plane.Spec.Nodes))
	return nil
}

// ready is the phase that says whether every node is.
func (s *scope) ready(context.Context) error {
	for _, n := range s.nodes {
		if !n.IsReady() {
			return phase.Waiting(dataplanev1.NodesReadyCondition, dataplanev1.NodesNotReadyReason,
				"%s nodes are Ready; %s is not: see its conditions", s.plane.Status.NodesSummary, n.Name)
		}
	}
	s.plane.Status.Conditions.MarkTrue(dataplanev1.NodesReadyCondition, "%s nodes are Ready", s.plane.Status.NodesSummary)
	return nil
}
