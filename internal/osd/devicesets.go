package osd

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
)

// cephClusterSuffix is what ocs-operator adds to the name of a StorageCluster.
const cephClusterSuffix = "-cephcluster"

// CephClusterName returns the name of the CephCluster of a StorageCluster.
func CephClusterName(storageCluster string) string { return storageCluster + cephClusterSuffix }

// StorageClusterName returns the name of the StorageCluster of a CephCluster. False
// means that its name is not that of one.
func StorageClusterName(cephCluster string) (string, bool) {
	return strings.CutSuffix(cephCluster, cephClusterSuffix)
}

// Total returns the number of OSDs of a device set: with replica, count in each of
// that many StorageClassDeviceSets; without, count is all of them.
func Total(set *ocsv1.StorageDeviceSet) int { return int(set.Count) * max(int(set.Replica), 1) }

// Counts returns the number of OSDs of each StorageClassDeviceSet of a device set,
// all at least 1, as Rook demands. The sum is Total.
//
// Without replica, count is shared by three, and a remainder goes to the first of
// them: 5 are 2, 2 and 1, and 1 is one set only. (ocs-operator gives each a third,
// rounded down, so that 5 are three OSDs and 2 are none.)
func Counts(layout ocsv1.DeviceSetLayout, set *ocsv1.StorageDeviceSet) []int {
	total, parts := Total(set), int(set.Replica)
	if parts == 0 {
		parts = min(ocsv1.DefaultReplica, total)
	}
	if layout == ocsv1.LayoutSingle {
		parts = 1
	}
	counts := make([]int, parts)
	for i := range counts {
		counts[i] = (total + parts - 1 - i) / parts
	}
	return counts
}

// Names returns the names of the StorageClassDeviceSets of a device set: <set>-0,
// <set>-1, ... as ocs-operator gives them, or the name of the device set in layout
// Single.
func Names(layout ocsv1.DeviceSetLayout, set *ocsv1.StorageDeviceSet) []string {
	if layout == ocsv1.LayoutSingle {
		return []string{set.Name}
	}
	var names []string
	for i := range Counts(layout, set) {
		names = append(names, fmt.Sprintf("%s-%d", set.Name, i))
	}
	return names
}

// AllNames returns the names of the StorageClassDeviceSets of all device sets.
func AllNames(layout ocsv1.DeviceSetLayout, sets []ocsv1.StorageDeviceSet) []string {
	var names []string
	for i := range sets {
		names = append(names, Names(layout, &sets[i])...)
	}
	return names
}

// TopologyKey returns the label of nodes that the prepare Jobs of a device set are
// spread over: its topologyKey, which may also be the name of a failure domain, or
// else the key of the failure domain of the cluster.
func TopologyKey(set *ocsv1.StorageDeviceSet, domainKey string) string {
	if key := Key(ocsv1.FailureDomain(set.TopologyKey)); key != "" {
		return key
	}
	if set.TopologyKey != "" {
		return set.TopologyKey
	}
	return domainKey
}

// deviceSets returns the StorageClassDeviceSets of a device set. Their placements
// are all the same: each may have OSDs in any domain (seeds/003, phase 1).
func deviceSets(spec *ocsv1.StorageClusterSpec, set *ocsv1.StorageDeviceSet, domainKey string, base cephv1.Placement) []cephv1.StorageClassDeviceSet {
	counts := Counts(spec.DeviceSetLayout, set)
	var result []cephv1.StorageClassDeviceSet
	for i, name := range Names(spec.DeviceSetLayout, set) {
		osds, prepare := forSet(spec, set, TopologyKey(set, domainKey), base)
		slow, fast := tuning(set.DeviceType)
		result = append(result, cephv1.StorageClassDeviceSet{
			Name: name, Count: counts[i], Portable: set.Portable, Resources: *set.Resources.DeepCopy(),
			Placement: osds, PreparePlacement: &prepare, VolumeClaimTemplates: []cephv1.VolumeClaimTemplate{claimTemplate(set)},
			TuneSlowDeviceClass: slow, TuneFastDeviceClass: fast, Encrypted: Encrypted(spec, set),
		})
	}
	return result
}

func claimTemplate(set *ocsv1.StorageDeviceSet) cephv1.VolumeClaimTemplate {
	claim := set.DataPVCTemplate.DeepCopy()
	annotations := maps.Clone(claim.Annotations)
	if class := crushClass(set); class != "" {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[cephv1.CrushDeviceClassAnnotation] = class
	}
	template := cephv1.VolumeClaimTemplate{Spec: claim.Spec}
	template.Name, template.Labels, template.Annotations = claim.Name, claim.Labels, annotations
	return template
}

// crushClass returns the class of the devices in the CRUSH map, empty if Ceph is to
// find it out.
func crushClass(set *ocsv1.StorageDeviceSet) string {
	if set.DeviceClass != "" {
		return set.DeviceClass
	}
	return set.DeviceType
}

// tuning reports whether Rook is to adapt OSDs to slow or to fast devices
// (ocs-operator, checkTuneStorageDevices).
func tuning(deviceType string) (slow, fast bool) {
	switch strings.ToLower(deviceType) {
	case "hdd":
		return true, false
	case "ssd", "nvme":
		return false, true
	}
	return false, false
}

// PrepareTemplate returns the pod of a prepare Job as far as the scheduler looks at
// it: what Rook makes of the placement of all daemons and of preparePlacement, or
// of placement where that is missing (rook, getPreparePlacement). It has the resources
// that the Job needs and that the daemon needs, whichever is more: the daemon stays
// where the Job ran.
func PrepareTemplate(all cephv1.Placement, set *cephv1.StorageClassDeviceSet, prepare corev1.ResourceRequirements) corev1.PodTemplateSpec {
	own := set.Placement
	if set.PreparePlacement != nil {
		own = *set.PreparePlacement
	}
	container := corev1.Container{Name: "provision", Image: "ceph", Resources: larger(set.Resources, prepare)}
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}
	template.Labels = map[string]string{cephv1.AppLabel: cephv1.AppOSDPrepare, cephv1.PVCLabel: ""}
	if class := deviceClassOf(set); class != "" {
		template.Labels[deviceClassLabel] = class
	}
	for _, p := range []cephv1.Placement{all, own} {
		ApplyToPodSpec(p, &template.Spec)
	}
	return template
}

// deviceClassOf returns the class that the claims of a set have, empty if none.
func deviceClassOf(set *cephv1.StorageClassDeviceSet) string {
	class := ""
	for _, t := range set.VolumeClaimTemplates {
		if c := t.Annotations[cephv1.CrushDeviceClassAnnotation]; c != "" {
			class = c
		}
	}
	return class
}

// larger returns the larger request and limit of each resource. What is limited and not
// requested is requested, as by the API server. No limit is below the request.
func larger(all ...corev1.ResourceRequirements) corev1.ResourceRequirements {
	result := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for _, r := range all {
		requests := maps.Clone(r.Limits)
		if requests == nil {
			requests = corev1.ResourceList{}
		}
		maps.Copy(requests, r.Requests)
		raise(result.Requests, requests)
		raise(result.Limits, r.Limits)
	}
	for name := range result.Limits {
		raise(result.Limits, corev1.ResourceList{name: result.Requests[name]})
	}
	return result
}

// raise replaces quantities by larger ones.
func raise(to, by corev1.ResourceList) {
	for name, quantity := range by {
		if present, found := to[name]; !found || quantity.Cmp(present) > 0 {
			to[name] = quantity
		}
	}
}

// ApplyToPodSpec does to a pod what Rook does (rook, Placement.ApplyToPodSpec):
// required node affinities are combined, of which Rook only takes the first term
// of each; pod affinities and constraints replace those that are there;
// tolerations add up.
func ApplyToPodSpec(p cephv1.Placement, pod *corev1.PodSpec) {
	p = *p.DeepCopy()
	if pod.Affinity == nil {
		pod.Affinity = &corev1.Affinity{}
	}
	if p.NodeAffinity != nil {
		pod.Affinity.NodeAffinity = combine(pod.Affinity.NodeAffinity, p.NodeAffinity)
	}
	if p.PodAffinity != nil {
		pod.Affinity.PodAffinity = p.PodAffinity
	}
	if p.PodAntiAffinity != nil {
		pod.Affinity.PodAntiAffinity = p.PodAntiAffinity
	}
	if p.TopologySpreadConstraints != nil {
		pod.TopologySpreadConstraints = p.TopologySpreadConstraints
	}
	pod.Tolerations = append(pod.Tolerations, p.Tolerations...)
}

func combine(present, own *corev1.NodeAffinity) *corev1.NodeAffinity {
	switch {
	case present == nil:
		return own
	case own == nil:
		return present
	}
	result := &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution:  own.RequiredDuringSchedulingIgnoredDuringExecution,
		PreferredDuringSchedulingIgnoredDuringExecution: slices.Concat(present.PreferredDuringSchedulingIgnoredDuringExecution, own.PreferredDuringSchedulingIgnoredDuringExecution),
	}
	before := present.RequiredDuringSchedulingIgnoredDuringExecution
	switch required := own.RequiredDuringSchedulingIgnoredDuringExecution; {
	case before == nil || len(before.NodeSelectorTerms) == 0:
	case required == nil || len(required.NodeSelectorTerms) == 0:
		result.RequiredDuringSchedulingIgnoredDuringExecution = before
	default:
		both := slices.Concat(before.NodeSelectorTerms[0].MatchExpressions, required.NodeSelectorTerms[0].MatchExpressions)
		result.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: both}}}
	}
	return result
}
