package topology

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// RefIndex is a field index on kinds that refer to a Topology.
const RefIndex = "spec.topologyRef"

// IndexRefs adds RefIndex to a kind. The function returns the names of the
// Topologies that an object refers to; NamesOf makes them of references.
func IndexRefs(ctx context.Context, indexer client.FieldIndexer, kind client.Object, names client.IndexerFunc) error {
	return indexer.IndexField(ctx, kind, RefIndex, names)
}

// NamesOf returns the names of the references that name a Topology.
func NamesOf(refs ...*topologyv1.TopologyRef) []string {
	var names []string
	for _, ref := range refs {
		if name := NameOf(ref); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Users returns a map function from a Topology to the objects of a kind that
// refer to it, by RefIndex. list returns an empty list of the kind.
func Users(c client.Reader, list func() client.ObjectList) handler.MapFunc {
	return watch.Users(c, list, RefIndex, watch.ByName)
}

// Unheld returns a handler that wakes those of the users of a Topology that do not
// hold it, when somebody lets go of it: either it was theirs that was taken away, by
// hand or because they seemed to be gone, or there is room for them now. kind is
// that of the users.
func Unheld(kind string, users handler.MapFunc) handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watch.Queue) {
		now := e.ObjectNew.GetFinalizers()
		if !slices.ContainsFunc(e.ObjectOld.GetFinalizers(), func(f string) bool { return !slices.Contains(now, f) }) {
			return
		}
		for _, user := range users(ctx, e.ObjectNew) {
			if !slices.Contains(now, Consumer{kind, user.Name}.Finalizer()) {
				q.Add(user)
			}
		}
	}}
}

// Changes lets through what matters to consumers whose pods follow a Topology:
// that it comes, goes or says something else, and not who else holds it.
var Changes predicate.Predicate = predicate.GenerationChangedPredicate{}

// Existence lets through that a Topology comes or goes, or that one which was full
// takes consumers again, for consumers that use it only when they start something.
var Existence predicate.Predicate = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return len(e.ObjectOld.GetFinalizers()) >= MaxHolders && len(e.ObjectNew.GetFinalizers()) < MaxHolders
}}
