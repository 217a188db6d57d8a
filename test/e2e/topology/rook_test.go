package topology

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
)

// rook plays Rook, which cannot run here for want of Ceph: what it does for the
// device sets of a CephCluster as far as the scheduler sees it
// (rook/rook pkg/operator/ceph/cluster/osd). For each OSD that is missing it makes
// a claim, then a pod that prepares the device, with the preparePlacement of the set
// on top of the placement of all daemons; once that has ended, the daemon, with the
// placement of the set on top of that of all, and kept in the topology in which the
// device was prepared. Neither is changed or moved afterwards.
//
// Rook makes a Job and a Deployment where this makes pods, so that a story says when
// a preparation ends.
type rook struct {
	// oneByOne lets each preparation end before the next begins, so that it is no
	// longer there to be counted. Otherwise all begin together.
	oneByOne bool
}

// preparing is a pod that prepares the device on a claim.
type preparing struct {
	set   *cephv1.StorageClassDeviceSet
	claim string
	pod   *corev1.Pod
}

// provision makes the OSDs that the CephCluster asks for and that are not there.
func (r rook) provision(ctx context.Context, ceph *cephv1.CephCluster) {
	GinkgoHelper()
	all := ceph.Spec.Placement[cephv1.PlacementAll]
	var begun []preparing
	for i := range ceph.Spec.Storage.StorageClassDeviceSets {
		set := &ceph.Spec.Storage.StorageClassDeviceSets[i]
		for index := range missing(ctx, set) {
			begun = append(begun, begin(ctx, all, set, index))
			if r.oneByOne {
				end(ctx, all, begun[len(begun)-1])
				begun = nil
			}
		}
	}
	for _, p := range begun {
		Eventually(nodeOf).WithContext(ctx).WithArguments(p.pod.Name).ShouldNot(BeEmpty(), "%s finds a node", p.pod.Name)
	}
	for _, p := range begun {
		end(ctx, all, p)
	}
}

// missing returns the indexes of the claims that the set lacks, after those that it has.
func missing(ctx context.Context, set *cephv1.StorageClassDeviceSet) func(func(int) bool) {
	GinkgoHelper()
	claims := &corev1.PersistentVolumeClaimList{}
	Expect(k8s.List(ctx, claims, client.InNamespace(storageNamespace), client.MatchingLabels{cephv1.DeviceSetLabel: set.Name})).To(Succeed())
	next := 0
	for _, claim := range claims.Items {
		index, err := strconv.Atoi(claim.Labels[cephv1.SetIndexLabel])
		Expect(err).NotTo(HaveOccurred())
		next = max(next, index+1)
	}
	return func(yield func(int) bool) {
		for i := range set.Count - len(claims.Items) {
			if !yield(next + i) {
				return
			}
		}
	}
}

// begin makes the claim of an OSD, and the pod that prepares it.
func begin(ctx context.Context, all cephv1.Placement, set *cephv1.StorageClassDeviceSet, index int) preparing {
	GinkgoHelper()
	template := set.VolumeClaimTemplates[0]
	name := template.Name
	if name == "" {
		name = cephv1.DataTemplate
	}
	id := fmt.Sprintf("%s-%s-%d", set.Name, name, index)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: storageNamespace, GenerateName: id, Annotations: template.Annotations,
		Labels: map[string]string{cephv1.DeviceSetLabel: set.Name, cephv1.DeviceSetPVCIDLabel: id, cephv1.SetIndexLabel: strconv.Itoa(index)},
	}, Spec: template.Spec}
	Expect(k8s.Create(ctx, claim)).To(Succeed())
	pod := osdPod(cephv1.AppOSDPrepare, set, claim.Name)
	place(&pod.Spec, all)
	place(&pod.Spec, preparePlacement(set))
	Expect(k8s.Create(ctx, pod)).To(Succeed())
	return preparing{set: set, claim: claim.Name, pod: pod}
}

func preparePlacement(set *cephv1.StorageClassDeviceSet) cephv1.Placement {
	if set.PreparePlacement != nil {
		return *set.PreparePlacement
	}
	return set.Placement
}

// end lets a preparation end, and makes the daemon.
func end(ctx context.Context, all cephv1.Placement, p preparing) {
	GinkgoHelper()
	Eventually(nodeOf).WithContext(ctx).WithArguments(p.pod.Name).ShouldNot(BeEmpty(), "%s finds a node", p.pod.Name)
	prepared := osdOf(ctx, p.pod.Name)
	host := node(prepared.Spec.NodeName)
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(host), host)).To(Succeed())
	before := prepared.DeepCopy()
	prepared.Status.Phase = corev1.PodSucceeded
	Expect(k8s.Status().Patch(ctx, prepared, client.MergeFrom(before))).To(Succeed())

	daemon := osdPod(cephv1.AppOSD, p.set, p.claim)
	daemon.Labels[cephv1.DeviceSetLabel] = p.set.Name
	place(&daemon.Spec, all)
	place(&daemon.Spec, p.set.Placement)
	if p.set.Portable {
		place(&daemon.Spec, cephv1.Placement{NodeAffinity: topologyAffinity(host)})
	} else {
		daemon.Spec.NodeSelector = map[string]string{corev1.LabelHostname: host.Labels[corev1.LabelHostname]}
	}
	Expect(k8s.Create(ctx, daemon)).To(Succeed())
	Eventually(nodeOf).WithContext(ctx).WithArguments(daemon.Name).ShouldNot(BeEmpty(), "%s finds a node", daemon.Name)
}

// osdPod is a pod on the claim of an OSD. Its number would be the next of Ceph.
func osdPod(app string, set *cephv1.StorageClassDeviceSet, claim string) *corev1.Pod {
	class := set.VolumeClaimTemplates[0].Annotations[cephv1.CrushDeviceClassAnnotation]
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: storageNamespace, Name: app + "-" + claim, Labels: map[string]string{cephv1.AppLabel: app, cephv1.PVCLabel: claim, "device-class": class},
	}}
	pod.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name: "osd", Image: "ceph", Resources: set.Resources,
			VolumeDevices: []corev1.VolumeDevice{{Name: "device", DevicePath: "/mnt/device"}},
		}},
		Volumes: []corev1.Volume{{Name: "device", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}},
	}
	return pod
}

// place does to a pod what Rook's Placement.ApplyToPodSpec does. It is not that of
// internal/osd, which the stories are to hold against the scheduler.
func place(pod *corev1.PodSpec, p cephv1.Placement) {
	if pod.Affinity == nil {
		pod.Affinity = &corev1.Affinity{}
	}
	if p.NodeAffinity != nil {
		own := p.NodeAffinity.DeepCopy()
		if present := pod.Affinity.NodeAffinity; present != nil {
			terms := own.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
			terms[0].MatchExpressions = slices.Concat(present.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions, terms[0].MatchExpressions)
		}
		pod.Affinity.NodeAffinity = own
	}
	if p.PodAffinity != nil {
		pod.Affinity.PodAffinity = p.PodAffinity.DeepCopy()
	}
	if p.PodAntiAffinity != nil {
		pod.Affinity.PodAntiAffinity = p.PodAntiAffinity.DeepCopy()
	}
	if p.TopologySpreadConstraints != nil {
		pod.TopologySpreadConstraints = p.TopologySpreadConstraints
	}
	pod.Tolerations = append(pod.Tolerations, p.Tolerations...)
}

// topologyAffinity keeps an OSD in the smallest topology of a node that is larger
// than the node itself (rook, ExtractOSDTopologyFromLabels).
func topologyAffinity(host *corev1.Node) *corev1.NodeAffinity {
	for _, key := range []string{"topology.rook.io/rack", corev1.LabelTopologyZone, corev1.LabelTopologyRegion} {
		if value, ok := host.Labels[key]; ok {
			return requires(key, value)
		}
	}
	return nil
}

func requires(key string, values ...string) *corev1.NodeAffinity {
	return &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}},
	}}}}
}

func osdOf(ctx context.Context, name string) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: storageNamespace, Name: name}}
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
	return pod
}

// nodeOf returns where a pod of an OSD is, empty while it is nowhere.
func nodeOf(ctx context.Context, name string) (string, error) {
	pod := &corev1.Pod{}
	err := k8s.Get(ctx, client.ObjectKey{Namespace: storageNamespace, Name: name}, pod)
	return pod.Spec.NodeName, err
}
