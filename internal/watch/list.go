package watch

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// requests names every object of a list.
func requests(list client.ObjectList) []reconcile.Request {
	out := make([]reconcile.Request, 0, meta.LenList(list))
	_ = meta.EachListItem(list, func(item runtime.Object) error { // the function never fails
		if obj, ok := item.(client.Object); ok {
			out = append(out, Request(obj.GetNamespace(), obj.GetName()))
		}
		return nil
	})
	return out
}

// ByName is the value of an index that holds plain names.
func ByName(obj client.Object) string { return obj.GetName() }

// Itself is the map function to the object of the same name.
func Itself(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{Request(obj.GetNamespace(), obj.GetName())}
}
