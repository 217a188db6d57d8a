package podified

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/internal/placement"
)

// predictions are what was predicted last for each StatefulSet of a Deployer. They
// are only in memory: every object is reconciled when a manager starts. The zero
// value is ready for use.
type predictions struct {
	waiting placement.Waiting
	bySet   sync.Map
}

// prediction is that on one StatefulSet.
type prediction struct {
	owner    types.NamespacedName
	problems []placement.Problem
}

// note remembers a prediction, and the workload if its pods would find no place.
func (v *predictions) note(p *deployment, problems []placement.Problem, waits ...placement.Workload) {
	owner := client.ObjectKeyFromObject(p.owner)
	v.bySet.Store(types.NamespacedName{Namespace: owner.Namespace, Name: p.Name}, prediction{owner, problems})
	v.waiting.Note(owner, p.Name, waits...)
}

// of returns the problems that were predicted last, and whether there was a prediction.
func (v *predictions) of(p *deployment) ([]placement.Problem, bool) {
	last, known := v.bySet.Load(types.NamespacedName{Namespace: p.owner.GetNamespace(), Name: p.Name})
	if !known {
		return nil, false
	}
	return last.(prediction).problems, true
}

func (v *predictions) forget(namespace, set string) {
	if last, known := v.bySet.LoadAndDelete(types.NamespacedName{Namespace: namespace, Name: set}); known {
		v.waiting.Note(last.(prediction).owner, set)
	}
}
