package placement

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups="",resources=nodes;pods;namespaces;persistentvolumes;persistentvolumeclaims;limitranges;resourcequotas,verbs=list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses;csinodes;csidrivers;csistoragecapacities,verbs=list;watch

// Snapshot is what the scheduler looks at: the whole cluster at one moment. Nothing
// in this package changes the objects, so they may be those of a cache.
type Snapshot struct {
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
	// LimitRanges and ResourceQuotas say which pods may be created at all.
	LimitRanges    []*corev1.LimitRange
	ResourceQuotas []*corev1.ResourceQuota

	// infos are those of the nodes and pods, or of some like them.
	infos *nodeInfos
}

// Read returns the cluster as the reader sees it. It lists whole kinds, as the
// scheduler does; controllers share a [Predictor] instead. The error names the kind
// that could not be listed.
func Read(ctx context.Context, c client.Reader) (Snapshot, error) {
	return read(func(_ client.Object, list client.ObjectList, each func(any)) error {
		return eachListed(ctx, c, list, each)
	})
}

// lister calls a function with every object of a kind.
type lister func(object client.Object, list client.ObjectList, each func(any)) error

func eachListed(ctx context.Context, c client.Reader, list client.ObjectList, each func(any)) error {
	if err := c.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	return meta.EachListItem(list, func(o runtime.Object) error { each(o); return nil })
}

func read(from lister) (Snapshot, error) {
	var w Snapshot
	for _, err := range []error{
		into(&w.Nodes, from, &corev1.Node{}, &corev1.NodeList{}),
		into(&w.Pods, from, &corev1.Pod{}, &corev1.PodList{}),
		into(&w.PersistentVolumes, from, &corev1.PersistentVolume{}, &corev1.PersistentVolumeList{}),
		into(&w.PersistentVolumeClaims, from, &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaimList{}),
		into(&w.Namespaces, from, &corev1.Namespace{}, &corev1.NamespaceList{}),
		into(&w.StorageClasses, from, &storagev1.StorageClass{}, &storagev1.StorageClassList{}),
		into(&w.CSINodes, from, &storagev1.CSINode{}, &storagev1.CSINodeList{}),
		into(&w.CSIDrivers, from, &storagev1.CSIDriver{}, &storagev1.CSIDriverList{}),
		into(&w.CSIStorageCapacities, from, &storagev1.CSIStorageCapacity{}, &storagev1.CSIStorageCapacityList{}),
		into(&w.LimitRanges, from, &corev1.LimitRange{}, &corev1.LimitRangeList{}),
		into(&w.ResourceQuotas, from, &corev1.ResourceQuota{}, &corev1.ResourceQuotaList{}),
	} {
		if err != nil {
			return Snapshot{}, err
		}
	}
	return w, nil
}

func into[T client.Object](all *[]T, from lister, object T, list client.ObjectList) error {
	if err := from(object, list, func(o any) { *all = append(*all, o.(T)) }); err != nil {
		return fmt.Errorf("listing %T for the placement prediction: %w", object, err)
	}
	return nil
}

// Trim drops from an object of a [Snapshot] what [Predict] and [Measure] do not
// read: managed fields; of pods the command lines, environments and probes, volumes
// that only their containers see, and the addresses and images of their status; of
// nodes the images, addresses and volumes of their status. It is a transform for a
// cache (nodes and pods are most of the memory); other kinds are returned as they
// are. It never fails.
func Trim(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	switch o := obj.(type) {
	case *corev1.Pod:
		trimPod(o)
	case *corev1.Node:
		trimNode(o)
	}
	return obj, nil
}

func trimPod(pod *corev1.Pod) {
	pod.Spec.Containers = trimContainers(pod.Spec.Containers)
	pod.Spec.InitContainers = trimContainers(pod.Spec.InitContainers)
	pod.Spec.EphemeralContainers = nil
	pod.Spec.Volumes = filter(pod.Spec.Volumes, func(v corev1.Volume) bool { return !containerOnly(v) })
	pod.Status = corev1.PodStatus{
		Phase: pod.Status.Phase, Conditions: pod.Status.Conditions, StartTime: pod.Status.StartTime,
		NominatedNodeName: pod.Status.NominatedNodeName, Resize: pod.Status.Resize,
		ContainerStatuses: resourcesOf(pod.Status.ContainerStatuses), InitContainerStatuses: resourcesOf(pod.Status.InitContainerStatuses),
	}
}

// trimNode keeps of the status of a node what it offers, and its conditions.
func trimNode(node *corev1.Node) {
	node.Status = corev1.NodeStatus{
		Allocatable: node.Status.Allocatable, Conditions: node.Status.Conditions,
		DeclaredFeatures: node.Status.DeclaredFeatures, Features: node.Status.Features, RuntimeHandlers: node.Status.RuntimeHandlers,
	}
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

// occupiesNode reports whether a pod is on a node and has not ended. The scheduler
// holds no others.
func occupiesNode(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && !podutil.IsPodTerminal(pod)
}
