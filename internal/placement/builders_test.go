package placement

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
)

const ns = "openstack"

// labelled makes labels of alternating keys and values.
func labelled(pairs ...string) map[string]string {
	labels := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		labels[pairs[i]] = pairs[i+1]
	}
	return labels
}

// makeNode returns a node with room, and its hostname among its labels.
func makeNode(name string, labels ...string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labelled(labels...)}}
	node.Labels[corev1.LabelHostname] = name
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	node.Status.Capacity = node.Status.Allocatable
	return node
}

func cordoned(node *corev1.Node) *corev1.Node {
	node.Spec.Unschedulable = true
	return node
}

func tainted(node *corev1.Node, effect corev1.TaintEffect) *corev1.Node {
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "dedicated", Value: "storage", Effect: effect})
	return node
}

// makePod returns a pod that is Ready on a node, or has none if its name is empty.
func makePod(name, node string, labels ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: labelled(labels...)}}
	pod.Spec.NodeName = node
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "none"}}
	if node != "" {
		setReady(pod, corev1.ConditionTrue)
	}
	return pod
}

// setReady gives a pod the status of one that runs and is Ready or not.
func setReady(pod *corev1.Pod, ready corev1.ConditionStatus) {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
}

// podsOn returns so many pods with the labels on each named node.
func podsOn(counts map[string]int, labels ...string) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, node := range slices.Sorted(maps.Keys(counts)) {
		for i := range counts[node] {
			pods = append(pods, makePod(fmt.Sprintf("p-%s-%d", node, i), node, labels...))
		}
	}
	return pods
}

// spreadBy is the constraint of seeds/001 on pods with the labels.
func spreadBy(key string, labels ...string) corev1.TopologySpreadConstraint {
	return corev1.TopologySpreadConstraint{
		MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: labelled(labels...)},
	}
}

// makeWorkload returns the StatefulSet glance-default-external-api of the seeds.
func makeWorkload(replicas int32, constraints ...corev1.TopologySpreadConstraint) Workload {
	return Workload{
		Namespace: ns, Name: "glance-default-external-api", Replicas: replicas,
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labelled("service", "glance")},
			Spec: corev1.PodSpec{
				Containers:                []corev1.Container{{Name: "glance-api", Image: "none"}},
				TopologySpreadConstraints: constraints,
			},
		},
	}
}

// withClaims gives each pod a claim of the class for the staging area.
func withClaims(w Workload, class string) Workload {
	w.ClaimTemplates = []corev1.PersistentVolumeClaim{*makeClaim("glance", class, "1Gi")}
	return w
}

func makeClaim(name, class, size string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	if class != "" {
		claim.Spec.StorageClassName = &class
	}
	return claim
}

// makeVolume returns a volume that nodes with the label can reach; all, if the
// key is empty.
func makeVolume(name, class, size, key, value string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pv.Spec = corev1.PersistentVolumeSpec{
		StorageClassName: class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
		PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/mnt/" + name}},
		NodeAffinity:           reachedFrom(key, value),
	}
	pv.Status.Phase = corev1.VolumeAvailable
	return pv
}

func reachedFrom(key, value string) *corev1.VolumeNodeAffinity {
	requirement := corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}
	if key == "" {
		requirement = corev1.NodeSelectorRequirement{Key: "no-such-label", Operator: corev1.NodeSelectorOpDoesNotExist}
	}
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{requirement}}},
	}}
}

// bind binds a claim and a volume as the controller of volumes does.
func bind(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
	claim.Spec.VolumeName = pv.Name
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnBindCompleted, "yes")
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name}
	pv.Status.Phase = corev1.VolumeBound
}

// bindTo gives the pod of an ordinal a volume on one node.
func (w *Snapshot) bindTo(workload Workload, ordinal int32, node string) {
	claim := workload.claims(ordinal)[0]
	pv := makeVolume("pvc-"+claim.Name, *claim.Spec.StorageClassName, "1Gi", corev1.LabelHostname, node)
	bind(claim, pv)
	w.PersistentVolumeClaims = append(w.PersistentVolumeClaims, claim)
	w.PersistentVolumes = append(w.PersistentVolumes, pv)
}

func makeClass(name, provisioner string, mode storagev1.VolumeBindingMode) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: ptr.To(mode),
	}
}

// makeCSINode returns the CSINode of a node that takes so many volumes of a driver.
func makeCSINode(name, driver string, limit int32) *storagev1.CSINode {
	csi := &storagev1.CSINode{}
	csi.Name = name
	csi.Spec.Drivers = []storagev1.CSINodeDriver{{Name: driver, NodeID: name, Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To(limit)}}}
	return csi
}

// sevenNodes are those of seeds/001, with the zones as they are labelled there.
func sevenNodes() []*corev1.Node {
	return []*corev1.Node{
		makeNode("master-0", "zone", "zoneA"), makeNode("worker-0", "zone", "zoneA"), makeNode("worker-3", "zone", "zoneA"),
		makeNode("master-1", "zone", "zoneB"), makeNode("worker-1", "zone", "zoneB"),
		makeNode("master-2", "zone", "zoneC"), makeNode("worker-2", "zone", "zoneC"),
	}
}
