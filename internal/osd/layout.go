package osd

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
)

// OtherLayout returns the layout that is not this one.
func OtherLayout(layout ocsv1.DeviceSetLayout) ocsv1.DeviceSetLayout {
	if layout == ocsv1.LayoutSingle {
		return ocsv1.LayoutSplit
	}
	return ocsv1.LayoutSingle
}

// Orphans returns the claims that belong to StorageClassDeviceSets which are among
// the names before and not among those after, by name. Rook finds the claims of a
// set by its name: it would make other claims, and other OSDs, and no longer look
// after these.
func Orphans(before, after []string, claims []*corev1.PersistentVolumeClaim) []string {
	var names []string
	for _, claim := range claims {
		set := claim.Labels[cephv1.DeviceSetLabel]
		if set != "" && slices.Contains(before, set) && !slices.Contains(after, set) {
			names = append(names, claim.Name)
		}
	}
	slices.Sort(names)
	return names
}

// OrphansOfLayout returns the claims, by name, that the spec's layout leaves without
// a StorageClassDeviceSet: those of sets with the names of the other layout.
func OrphansOfLayout(spec *ocsv1.StorageClusterSpec, claims []*corev1.PersistentVolumeClaim) []string {
	return Orphans(AllNames(OtherLayout(spec.DeviceSetLayout), spec.StorageDeviceSets), AllNames(spec.DeviceSetLayout, spec.StorageDeviceSets), claims)
}

// DryRun returns what a switch to the other layout would orphan: claims, and the
// numbers of the OSDs on them as far as they have pods. Lists are cut to MaxOrphans.
func DryRun(spec *ocsv1.StorageClusterSpec, claims []*corev1.PersistentVolumeClaim, pods []*corev1.Pod) *ocsv1.LayoutSwitchStatus {
	switched := *spec
	switched.DeviceSetLayout = OtherLayout(spec.DeviceSetLayout)
	orphans := OrphansOfLayout(&switched, claims)
	var osds []string
	for _, pod := range pods {
		if id := pod.Labels[cephv1.OSDIDLabel]; id != "" && slices.Contains(orphans, pod.Labels[cephv1.PVCLabel]) {
			osds = append(osds, id)
		}
	}
	slices.Sort(osds)
	osds = slices.Compact(osds)
	return &ocsv1.LayoutSwitchStatus{
		To: switched.DeviceSetLayout, OrphanedPVCCount: int32(len(orphans)),
		OrphanedPVCs: orphans[:min(len(orphans), ocsv1.MaxOrphans)], OrphanedOSDs: osds[:min(len(osds), ocsv1.MaxOrphans)],
	}
}
