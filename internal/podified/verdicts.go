package podified

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/edpm-operators/edpm-operators/internal/placement"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// verdicts are what was predicted last for each StatefulSet of a Deployer. They
// are only in memory: every object is reconciled when a manager starts. The zero
// value is ready for use.
type verdicts struct{ bySet sync.Map }

// verdict is that on one StatefulSet.
type verdict struct {
	owner    string
	problems []placement.Problem
	// waits is the workload whose pods would find no place, nil if there is none:
	// changes of the cluster that concern it call for another prediction, and all
	// others cost nothing.
	waits *placement.Workload
}

func (v *verdicts) note(p *deployment, waits *placement.Workload, problems []placement.Problem) {
	v.bySet.Store(types.NamespacedName{Namespace: p.owner.GetNamespace(), Name: p.Name}, verdict{p.owner.GetName(), problems, waits})
}

// of returns the problems that were predicted last, and whether there was a prediction.
func (v *verdicts) of(p *deployment) ([]placement.Problem, bool) {
	last, known := v.bySet.Load(types.NamespacedName{Namespace: p.owner.GetNamespace(), Name: p.Name})
	if !known {
		return nil, false
	}
	return last.(verdict).problems, true
}

func (v *verdicts) forget(namespace, set string) {
	v.bySet.Delete(types.NamespacedName{Namespace: namespace, Name: set})
}

// waiting returns the objects whose pods would find no place, if the change can
// matter to them.
func (v *verdicts) waiting(matters func(placement.Workload) bool) []reconcile.Request {
	var requests []reconcile.Request
	v.bySet.Range(func(set, last any) bool {
		if last := last.(verdict); last.waits != nil && matters(*last.waits) {
			requests = append(requests, watch.Request(set.(types.NamespacedName).Namespace, last.owner))
		}
		return true
	})
	return requests
}

// all are the objects whose pods would find no place.
func (v *verdicts) all(context.Context, client.Object) []reconcile.Request {
	return v.waiting(func(placement.Workload) bool { return true })
}

// concerned are those of them that the object can matter to.
func (v *verdicts) concerned(_ context.Context, obj client.Object) []reconcile.Request {
	return v.waiting(func(w placement.Workload) bool { return w.Concerns(obj) })
}
