package watch

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Scheduling adds watches on everything that a prediction of package placement looks
// at: room is for pods that leave a node, or take less room there, and concerned for
// what matters to some pods only.
func Scheduling(b *builder.Builder, room, concerned handler.EventHandler) *builder.Builder {
	b = b.Watches(&corev1.Pod{}, room, builder.WithPredicates(roomMade))
	for _, looked := range []struct {
		kind client.Object
		at   predicate.Predicate
	}{
		{&corev1.Pod{}, neighbours}, {&corev1.Node{}, NodeChanges}, {&corev1.Namespace{}, NamespaceChanges},
		{&corev1.PersistentVolume{}, VolumeChanges}, {&corev1.PersistentVolumeClaim{}, ClaimChanges},
		{&storagev1.StorageClass{}, ClassChanges}, {&storagev1.CSINode{}, CSINodeChanges},
		{&storagev1.CSIDriver{}, CSIDriverChanges}, {&storagev1.CSIStorageCapacity{}, CapacityChanges},
		{&corev1.LimitRange{}, LimitRangeChanges}, {&corev1.ResourceQuota{}, QuotaChanges},
	} {
		b = b.Watches(looked.kind, concerned, builder.WithPredicates(looked.at))
	}
	return b
}

// roomMade lets through that a pod leaves its node, or takes less room there.
var roomMade = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	DeleteFunc: func(e event.DeleteEvent) bool { return running(e.Object.(*corev1.Pod)) },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
		resized := before.Generation != after.Generation && terminating(before) == terminating(after)
		return running(before) && (!running(after) || resized)
	},
}

// neighbours lets through that a pod gets a node, has other labels there, or begins
// to leave: rules between pods count it from then on, or no longer.
var neighbours = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return running(e.Object.(*corev1.Pod)) },
	DeleteFunc: func(event.DeleteEvent) bool { return false }, // roomMade
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
		return running(after) && (!running(before) || terminating(before) != terminating(after) || !maps.Equal(before.Labels, after.Labels))
	},
}

// running reports whether a pod takes room on a node.
func running(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" && !Ended(pod) }

// Ended reports whether a pod runs no more, and never will again.
func Ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func terminating(pod *corev1.Pod) bool { return !pod.DeletionTimestamp.IsZero() }

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
var ClaimChanges = changes(func(c *corev1.PersistentVolumeClaim) any { return c.Spec.VolumeName })

// VolumeChanges lets through that a volume comes, goes, becomes free, or can be
// reached from other nodes.
var VolumeChanges = changes(func(v *corev1.PersistentVolume) any { return []any{v.Labels, v.Spec, v.Status.Phase} })

// NamespaceChanges lets through that a Namespace comes, goes, or has other labels.
var NamespaceChanges = changes(func(n *corev1.Namespace) any { return n.Labels })

// ClassChanges lets through that a StorageClass comes, goes, or becomes the default.
var ClassChanges = changes(func(c *storagev1.StorageClass) any {
	return []any{c.Annotations, c.AllowedTopologies}
})

// CSINodeChanges lets through that a node gets or loses a driver, or takes more volumes.
var CSINodeChanges = changes(func(n *storagev1.CSINode) any { return n.Spec })

// CSIDriverChanges lets through that a driver comes, goes, or works in another way.
var CSIDriverChanges = changes(func(d *storagev1.CSIDriver) any { return d.Spec })

// CapacityChanges lets through that there is room for volumes, or another amount of it.
var CapacityChanges = changes(func(c *storagev1.CSIStorageCapacity) any {
	return []any{c.NodeTopology, c.Capacity, c.MaximumVolumeSize}
})

// changes lets through that an object comes, goes, or has another value of what the
// function takes from it.
func changes[T client.Object](of func(T) any) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !equality.Semantic.DeepEqual(of(e.ObjectOld.(T)), of(e.ObjectNew.(T)))
	}}
}
