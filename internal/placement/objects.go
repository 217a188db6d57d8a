package placement

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
)

// objects is a snapshot as the scheduler's plugins read it: informers that are
// filled by hand and never run.
type objects struct {
	informers.SharedInformerFactory
	snapshot *Snapshot
}

func newObjects(snapshot *Snapshot) (objects, error) {
	o, err := objects{informers.NewSharedInformerFactory(nil, 0), snapshot}, error(nil)
	for _, fill := range []func() error{
		func() error { return addAll(o, snapshot.PersistentVolumes) },
		func() error { return addAll(o, snapshot.PersistentVolumeClaims) },
		func() error { return addAll(o, snapshot.Namespaces) },
		func() error { return addAll(o, snapshot.StorageClasses) },
		func() error { return addAll(o, snapshot.CSINodes) },
		func() error { return addAll(o, snapshot.CSIDrivers) },
		func() error { return addAll(o, snapshot.CSIStorageCapacities) },
	} {
		if err == nil {
			err = fill()
		}
	}
	return o, err
}

func addAll[T any](o objects, all []T) error {
	for _, object := range all {
		if err := o.add(object); err != nil {
			return err
		}
	}
	return nil
}

// add adds an object, or replaces it.
func (o objects) add(object any) error {
	informer, err := o.informer(object)
	if err != nil {
		return err
	}
	return informer.GetIndexer().Add(object)
}

func (o objects) informer(object any) (cache.SharedIndexInformer, error) {
	core, storage := o.Core().V1(), o.Storage().V1()
	switch object.(type) {
	case *corev1.PersistentVolume:
		return core.PersistentVolumes().Informer(), nil
	case *corev1.PersistentVolumeClaim:
		return core.PersistentVolumeClaims().Informer(), nil
	case *corev1.Namespace:
		return core.Namespaces().Informer(), nil
	case *storagev1.StorageClass:
		return storage.StorageClasses().Informer(), nil
	case *storagev1.CSINode:
		return storage.CSINodes().Informer(), nil
	case *storagev1.CSIDriver:
		return storage.CSIDrivers().Informer(), nil
	case *storagev1.CSIStorageCapacity:
		return storage.CSIStorageCapacities().Informer(), nil
	case *appsv1.StatefulSet:
		return o.Apps().V1().StatefulSets().Informer(), nil
	}
	return nil, fmt.Errorf("no informer for %T", object)
}

func (o objects) claims() corelisters.PersistentVolumeClaimLister {
	return o.Core().V1().PersistentVolumeClaims().Lister()
}

func (o objects) classes() storagelisters.StorageClassLister {
	return o.Storage().V1().StorageClasses().Lister()
}

// volumes returns all volumes by name, those that were added later too.
func (o objects) volumes() []*corev1.PersistentVolume {
	items := o.Core().V1().PersistentVolumes().Informer().GetIndexer().List()
	volumes := make([]*corev1.PersistentVolume, len(items))
	for i := range items {
		volumes[i] = items[i].(*corev1.PersistentVolume)
	}
	slices.SortFunc(volumes, func(a, b *corev1.PersistentVolume) int { return strings.Compare(a.Name, b.Name) })
	return volumes
}

// reach is the same for pods whose volumes can be on the same nodes: of volumes that
// are still to be chosen it has what their claims ask for.
func (o objects) reach(pod *corev1.Pod) string {
	var reach strings.Builder
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		claim, err := o.claims().PersistentVolumeClaims(pod.Namespace).Get(v.PersistentVolumeClaim.ClaimName)
		if err != nil {
			fmt.Fprintf(&reach, "/%s", v.PersistentVolumeClaim.ClaimName)
			continue
		}
		if pv, err := o.Core().V1().PersistentVolumes().Lister().Get(claim.Spec.VolumeName); err == nil {
			fmt.Fprintf(&reach, "/%v %v", pv.Spec.NodeAffinity, pv.Labels)
			continue
		}
		fmt.Fprintf(&reach, "/%v", claim.Spec)
	}
	return reach.String()
}
