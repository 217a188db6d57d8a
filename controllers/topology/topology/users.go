package topology

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplaneroles;openstackdataplanenodes,verbs=list;watch
// +kubebuilder:rbac:groups=glance.openstack.org,resources=glanceapis,verbs=list;watch
// +kubebuilder:rbac:groups=nova.openstack.org,resources=nova;novacells;novacomputes,verbs=list;watch
// +kubebuilder:rbac:groups=topology.openstack.org,resources=topologies,verbs=patch

// usedIndex has the Topologies that an object uses.
const usedIndex = "topology.used"

// watchUsers adds the kinds whose objects use Topologies and that exist, with their
// index. The manager is restarted when that changes (internal/coexistence).
func (r *Reconciler) watchUsers(ctx context.Context, mgr ctrl.Manager, b *builder.Builder) error {
	for _, kind := range topology.Kinds {
		gvk, err := mgr.GetClient().GroupVersionKindFor(kind.Object())
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
		if err := mgr.GetFieldIndexer().IndexField(ctx, kind.Object(), usedIndex, topology.Used); err != nil {
			return err
		}
		r.kinds = append(r.kinds, kind)
		b.Watches(kind.Object(), watch.Gather(r.Gather, usedTopologies), builder.WithPredicates(useChanges))
	}
	return nil
}

func usedTopologies(_ context.Context, obj client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range topology.Used(obj) {
		requests = append(requests, watch.Request(obj.GetNamespace(), name))
	}
	return requests
}

// useChanges lets through that an object comes, goes, or uses other Topologies.
var useChanges = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !slices.Equal(topology.Used(e.ObjectOld), topology.Used(e.ObjectNew))
	},
}

// findUsers is the phase that finds who uses the Topology.
func (s *scope) findUsers(ctx context.Context) error {
	users, err := s.users(ctx, s.Client, client.MatchingFields{usedIndex: s.topology.Name})
	s.used = users
	return err
}

// users returns those of the objects that a reader lists that use the Topology: each
// consumer once.
func (s *scope) users(ctx context.Context, reader client.Reader, opts ...client.ListOption) (map[topology.Consumer]bool, error) {
	users := map[topology.Consumer]bool{}
	opts = append(opts, client.InNamespace(s.topology.Namespace), client.UnsafeDisableDeepCopy)
	for _, kind := range s.kinds {
		list := kind.List()
		err := reader.List(ctx, list, opts...)
		if meta.IsNoMatchError(err) {
			continue // with the definition of a kind its objects are gone
		}
		if err != nil {
			return nil, fmt.Errorf("listing the users of Topology %s: %w", s.topology.Name, err)
		}
		err = meta.EachListItem(list, func(item runtime.Object) error {
			obj := item.(client.Object)
			who, err := topology.ConsumerOf(s.Scheme(), obj)
			if err == nil && slices.Contains(topology.Used(obj), s.topology.Name) {
				users[who] = true
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return users, nil
}

// protect is the phase that keeps the Topology while it is used: the finalizer is added
// if it was removed manually, and removed from one that is being deleted once no object
// uses it. The cache can be stale, so the API server is asked before that. What versions up to
// 0.1 set goes with the object that it was for; each user replaces its own (topology.Use).
func (s *scope) protect(ctx context.Context) error {
	t := s.topology
	if t.DeletionTimestamp.IsZero() {
		kept := slices.DeleteFunc(slices.Clone(t.Finalizers), func(f string) bool { return topology.IsStale(f, s.used) })
		if len(s.used) > 0 && !slices.Contains(kept, topologyv1.Finalizer) {
			kept = append(kept, topologyv1.Finalizer)
		}
		return s.setFinalizers(ctx, kept)
	}
	if len(s.used) > 0 || !slices.ContainsFunc(t.Finalizers, topology.IsOurs) {
		return nil
	}
	var err error
	if s.used, err = s.users(ctx, s.Live); err != nil || len(s.used) > 0 {
		return err
	}
	return s.setFinalizers(ctx, slices.DeleteFunc(slices.Clone(t.Finalizers), topology.IsOurs))
}

func (s *scope) setFinalizers(ctx context.Context, finalizers []string) error {
	return client.IgnoreNotFound(apply.Finalizer(ctx, s.Client, s.topology, topologyv1.Finalizer, func(obj client.Object, _ string) bool {
		changed := !slices.Equal(obj.GetFinalizers(), finalizers)
		obj.SetFinalizers(finalizers)
		return changed
	}))
}
