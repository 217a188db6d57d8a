package placement

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups="",resources=nodes;pods;namespaces;persistentvolumes;persistentvolumeclaims,verbs=list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses;csinodes;csidrivers;csistoragecapacities,verbs=list;watch

// World is what the scheduler looks at: the whole cluster at one moment. Nothing
// in this package changes the objects, so they may be those of a cache.
type World struct {
	Nodes []*corev1.Node
	// Pods of all namespaces: all of them take room, and spreading and affinity
	// look at their labels.
	Pods                   []*corev1.Pod
	PersistentVolumes      []*corev1.PersistentVolume
	PersistentVolumeClaims []*corev1.PersistentVolumeClaim
	StorageClasses         []*storagev1.StorageClass
	// Namespaces matter to affinity terms with a namespaceSelector.
	Namespaces []*corev1.Namespace
	// CSINodes, CSIDrivers and CSIStorageCapacities say how many volumes a node
	// takes and where there is room for new ones.
	CSINodes             []*storagev1.CSINode
	CSIDrivers           []*storagev1.CSIDriver
	CSIStorageCapacities []*storagev1.CSIStorageCapacity
}

// Read returns the cluster as the reader sees it. It lists whole kinds, as the
// scheduler does, so the reader should be a cache; objects are not copied. The
// error names the kind that could not be listed.
func Read(ctx context.Context, c client.Reader) (World, error) {
	var w World
	for _, read := range []func() error{
		func() error { return list(ctx, c, &corev1.NodeList{}, &w.Nodes) },
		func() error { return list(ctx, c, &corev1.PodList{}, &w.Pods) },
		func() error { return list(ctx, c, &corev1.PersistentVolumeList{}, &w.PersistentVolumes) },
		func() error { return list(ctx, c, &corev1.PersistentVolumeClaimList{}, &w.PersistentVolumeClaims) },
		func() error { return list(ctx, c, &corev1.NamespaceList{}, &w.Namespaces) },
		func() error { return list(ctx, c, &storagev1.StorageClassList{}, &w.StorageClasses) },
		func() error { return list(ctx, c, &storagev1.CSINodeList{}, &w.CSINodes) },
		func() error { return list(ctx, c, &storagev1.CSIDriverList{}, &w.CSIDrivers) },
		func() error { return list(ctx, c, &storagev1.CSIStorageCapacityList{}, &w.CSIStorageCapacities) },
	} {
		if err := read(); err != nil {
			return World{}, err
		}
	}
	return w, nil
}

func list[T client.Object](ctx context.Context, c client.Reader, objects client.ObjectList, into *[]T) error {
	if err := c.List(ctx, objects, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing %T for the placement what-if: %w", *new(T), err)
	}
	*into = make([]T, 0, meta.LenList(objects))
	return meta.EachListItem(objects, func(o runtime.Object) error {
		*into = append(*into, o.(T))
		return nil
	})
}

// Trim drops from an object of a [World] what [Predict] and [Measure] do not
// read: managed fields, the command lines, environments and probes of pods, volumes
// that only their containers see, the addresses and images of their status. It is a transform for a cache (pods are
// most of the memory); other kinds are returned as they are. It never fails.
func Trim(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	pod.Spec.Containers = trimContainers(pod.Spec.Containers)
	pod.Spec.InitContainers = trimContainers(pod.Spec.InitContainers)
	pod.Spec.EphemeralContainers = nil
	pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, containerOnly)
	pod.Status = corev1.PodStatus{
		Phase: pod.Status.Phase, Conditions: pod.Status.Conditions, StartTime: pod.Status.StartTime,
		NominatedNodeName: pod.Status.NominatedNodeName, Resize: pod.Status.Resize,
		ContainerStatuses: resourcesOf(pod.Status.ContainerStatuses), InitContainerStatuses: resourcesOf(pod.Status.InitContainerStatuses),
	}
	return pod, nil
}

// containerOnly reports whether a volume matters to no plugin of the scheduler: it
// is made on whatever node the pod runs on.
func containerOnly(v corev1.Volume) bool {
	return v.ConfigMap != nil || v.Secret != nil || v.Projected != nil || v.DownwardAPI != nil || v.EmptyDir != nil
}

func trimContainers(containers []corev1.Container) []corev1.Container {
	var trimmed []corev1.Container
	for _, c := range containers {
		trimmed = append(trimmed, corev1.Container{
			Name: c.Name, Image: c.Image, Ports: c.Ports, Resources: c.Resources, RestartPolicy: c.RestartPolicy,
		})
	}
	return trimmed
}

// resourcesOf keeps what a resize in place has given to containers: the
// scheduler counts that where it is more than what the spec asks for.
func resourcesOf(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var trimmed []corev1.ContainerStatus
	for _, s := range statuses {
		if s.AllocatedResources != nil || s.Resources != nil {
			trimmed = append(trimmed, corev1.ContainerStatus{
				Name: s.Name, AllocatedResources: s.AllocatedResources, Resources: s.Resources,
			})
		}
	}
	return trimmed
}

// placed returns the pods that take room: those on a node that have not ended,
// which are also the only ones that the scheduler holds.
func placed(pods []*corev1.Pod) []*corev1.Pod {
	var result []*corev1.Pod
	for _, pod := range pods {
		if pod.Spec.NodeName != "" && !ended(pod) {
			result = append(result, pod)
		}
	}
	return result
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
