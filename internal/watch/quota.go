package watch

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// LimitRangeChanges lets through that other limits hold.
var LimitRangeChanges = predicate.GenerationChangedPredicate{}

// QuotaChanges lets through that a quota comes, goes, or leaves more room. Each pod
// that is created in the namespace uses it up, which helps no one.
var QuotaChanges = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*corev1.ResourceQuota).Status, e.ObjectNew.(*corev1.ResourceQuota).Status
		if !equality.Semantic.DeepEqual(before.Hard, after.Hard) {
			return true
		}
		for name, used := range before.Used {
			if now := after.Used[name]; now.Cmp(used) < 0 {
				return true
			}
		}
		return false
	},
}
