package topology

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplaneroles,verbs=list;watch
// +kubebuilder:rbac:groups=glance.openstack.org,resources=glanceapis,verbs=list;watch
// +kubebuilder:rbac:groups=nova.openstack.org,resources=novacells;novacomputes,verbs=list;watch

// holders are the kinds that hold Topologies, each object by a finalizer of its own.
// A cluster need not have all of them.
// Those of nodes are ended by the controller of nodes.
var holders = []struct {
	object client.Object
	list   func() client.ObjectList
}{
	{&dataplanev1.OpenStackDataPlaneRole{}, func() client.ObjectList { return &dataplanev1.OpenStackDataPlaneRoleList{} }},
	{&glancev1.GlanceAPI{}, func() client.ObjectList { return &glancev1.GlanceAPIList{} }},
	{&novav1.NovaCell{}, func() client.ObjectList { return &novav1.NovaCellList{} }},
	{&novav1.NovaCompute{}, func() client.ObjectList { return &novav1.NovaComputeList{} }},
}

// orphans is the phase that ends the holds of consumers that no longer exist: their
// own finalizer was removed by hand, or they were not restored with the Topology.
// The cache may be late, so the API server is asked before anything is removed. A
// consumer that comes just then is woken by the removal, and holds it again.
func (s *scope) orphans(ctx context.Context) error {
	var lost []string
	for _, kind := range holders {
		absent, err := s.absent(ctx, s.Client, kind.list(), s.heldBy(kind.object))
		if err == nil {
			absent, err = s.absent(ctx, s.Live, kind.list(), absent)
		}
		if err != nil {
			return err
		}
		lost = append(lost, absent...)
	}
	if len(lost) == 0 {
		return nil
	}
	if err := apply.Finalizer(ctx, s.Client, s.topology, "", without(lost)); err != nil {
		return err
	}
	s.Runner.Events.Eventf(s.topology, nil, corev1.EventTypeNormal, "HoldReleased", "Reconciling",
		"The finalizers %s are removed: the objects that held the Topology by them no longer exist", strings.Join(lost[:min(len(lost), maxNamed)], ", "))
	return nil
}

// heldBy returns the finalizers by which objects of the kind hold the Topology.
func (s *scope) heldBy(object client.Object) []string {
	who, _ := topology.ConsumerOf(s.Scheme(), object) // the client knows its kinds
	prefix := topology.Consumer{Kind: who.Kind}.Finalizer()
	return slices.DeleteFunc(slices.Clone(s.topology.Finalizers), func(f string) bool { return !strings.HasPrefix(f, prefix) })
}

// absent returns those of the finalizers that are no object's of the list.
func (s *scope) absent(ctx context.Context, c client.Reader, list client.ObjectList, finalizers []string) ([]string, error) {
	if len(finalizers) == 0 {
		return nil, nil
	}
	err := c.List(ctx, list, client.InNamespace(s.topology.Namespace), client.UnsafeDisableDeepCopy)
	if meta.IsNoMatchError(err) {
		return finalizers, nil // with the definition of a kind its objects are gone
	}
	if err != nil {
		return nil, fmt.Errorf("listing the holders of Topology %s: %w", s.topology.Name, err)
	}
	present := map[string]bool{}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		who, err := topology.ConsumerOf(s.Scheme(), item.(client.Object))
		present[who.Finalizer()] = true
		return err
	})
	return slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return present[f] }), err
}

// without returns a change that removes finalizers.
func without(finalizers []string) func(client.Object, string) bool {
	return func(obj client.Object, _ string) bool {
		obj.SetFinalizers(slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return slices.Contains(finalizers, f) }))
		return true
	}
}

// watchHolders adds the kinds that exist. The manager is restarted when that changes
// (internal/coexistence).
func (r *Reconciler) watchHolders(mgr ctrl.Manager, b *builder.Builder) error {
	for _, kind := range holders {
		gvk, err := mgr.GetClient().GroupVersionKindFor(kind.object)
		if err != nil {
			return err
		}
		_, err = mgr.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("looking for kind %s: %w", gvk.Kind, err)
		}
		b.Watches(kind.object, watch.Gather(r.Gather, r.heldTopologies), builder.WithPredicates(deleted))
	}
	return nil
}

// deleted lets through that an object is gone.
var deleted = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(event.UpdateEvent) bool { return false },
}

// heldTopologies returns the Topologies that an object holds.
func (r *Reconciler) heldTopologies(ctx context.Context, obj client.Object) []reconcile.Request {
	who, err := topology.ConsumerOf(r.Scheme(), obj)
	if err != nil {
		return nil
	}
	return r.topologies(ctx, holds(who.Finalizer()), client.InNamespace(obj.GetNamespace()))
}
