package watch

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// NodeChanges lets through what decides which pods a node takes. One that is not
// ready or is cordoned has a taint. Heartbeats do not count.
var NodeChanges = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*corev1.Node), e.ObjectNew.(*corev1.Node)
		return !maps.Equal(before.Labels, after.Labels) || !equality.Semantic.DeepEqual(before.Spec, after.Spec) ||
			!equality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable)
	},
}

// ClaimChanges lets through that a claim comes, goes, or gets its volume.
var ClaimChanges = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.(*corev1.PersistentVolumeClaim).Spec.VolumeName != e.ObjectNew.(*corev1.PersistentVolumeClaim).Spec.VolumeName
	},
}
