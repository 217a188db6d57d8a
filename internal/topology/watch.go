package topology

import (
	"context"

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
// Topologies that an object refers to: Referred for the Kinds.
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

// Changes lets through what matters to consumers whose pods follow a Topology:
// that it comes, goes or says something else, and not who else uses it.
var Changes predicate.Predicate = predicate.GenerationChangedPredicate{}

// Existence lets through that a Topology comes or goes, for consumers that use it only
// when they start something.
var Existence predicate.Predicate = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
