package watch

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// generatedIndex holds the objects that an object generates, as kind/name,
// whether they exist or not, and whosever they are.
const generatedIndex = "generated"

// Generated returns the entry of a generated object.
func Generated(kind, name string) string { return kind + "/" + name }

// IndexGenerated adds the index that GeneratorsOf uses. names returns an entry
// for each object that an object generates.
func IndexGenerated(ctx context.Context, indexer client.FieldIndexer, obj client.Object, names func(client.Object) []string) error {
	return indexer.IndexField(ctx, obj, generatedIndex, names)
}

// GeneratorsOf returns a map function from an object of the kind to those that
// generate one of its name. With Freed it wakes who could not have the name.
func GeneratorsOf(c client.Reader, list func() client.ObjectList, kind string) handler.MapFunc {
	return Users(c, list, generatedIndex, func(obj client.Object) string { return Generated(kind, obj.GetName()) })
}

// Freed lets through that an object is deleted or given to another owner: its
// name may be free for those who waited for it.
var Freed = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !equality.Semantic.DeepEqual(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences()) ||
			!maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
	},
}
