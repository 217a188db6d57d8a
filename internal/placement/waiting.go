package placement

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Waiting are the workloads of the objects of one controller whose pods would be
// unschedulable: changes of the cluster that concern them call for another prediction, and
// all others cost nothing. The zero value is ready for use.
type Waiting struct{ byPart sync.Map }

// part is one workload of an object with several, such as one of its StatefulSets.
type part struct {
	object types.NamespacedName
	name   string
}

// Note replaces the workloads of a part of an object; none means that it does not wait.
func (w *Waiting) Note(object types.NamespacedName, name string, workloads ...Workload) {
	if len(workloads) == 0 {
		w.byPart.Delete(part{object, name})
		return
	}
	w.byPart.Store(part{object, name}, workloads)
}

// All are the objects that wait. It is a map function for what makes room on a node.
func (w *Waiting) All(context.Context, client.Object) []reconcile.Request {
	return w.requestsOf(func(Workload) bool { return true })
}

// Concerned are the objects that wait and that the given one can matter to.
func (w *Waiting) Concerned(_ context.Context, obj client.Object) []reconcile.Request {
	return w.requestsOf(func(workload Workload) bool { return workload.Concerns(obj) })
}

func (w *Waiting) requestsOf(matters func(Workload) bool) []reconcile.Request {
	var requests []reconcile.Request
	w.byPart.Range(func(of, workloads any) bool {
		if slices.ContainsFunc(workloads.([]Workload), matters) {
			requests = append(requests, reconcile.Request{NamespacedName: of.(part).object})
		}
		return true
	})
	return requests
}
