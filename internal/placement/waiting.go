package placement

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Waiting are the workloads of the objects of one controller whose pods would find
// no place: changes of the cluster that concern them call for another prediction, and
// all others cost nothing. The zero value is ready for use.
type Waiting struct{ byObject sync.Map }

// Note replaces the workloads of an object; none means that it does not wait.
func (w *Waiting) Note(object types.NamespacedName, workloads ...Workload) {
	if len(workloads) == 0 {
		w.byObject.Delete(object)
		return
	}
	w.byObject.Store(object, workloads)
}

// All are the objects that wait. It is a map function for what makes room on a node.
func (w *Waiting) All(context.Context, client.Object) []reconcile.Request {
	return w.those(func(Workload) bool { return true })
}

// Concerned are the objects that wait and that the given one can matter to.
func (w *Waiting) Concerned(_ context.Context, obj client.Object) []reconcile.Request {
	return w.those(func(workload Workload) bool { return workload.Concerns(obj) })
}

func (w *Waiting) those(matters func(Workload) bool) []reconcile.Request {
	var requests []reconcile.Request
	w.byObject.Range(func(object, workloads any) bool {
		if slices.ContainsFunc(workloads.([]Workload), matters) {
			requests = append(requests, reconcile.Request{NamespacedName: object.(types.NamespacedName)})
		}
		return true
	})
	return requests
}
