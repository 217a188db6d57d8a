package osd

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

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

// Remaining returns the number of OSDs of a device set once Rook has made those that the
// spec asks for, given the claims that there are: Rook takes none away.
func Remaining(layout ocsv1.DeviceSetLayout, set *ocsv1.StorageDeviceSet, claims []*corev1.PersistentVolumeClaim) int {
	counts, total := Counts(layout, set), 0
	for i, name := range Names(layout, set) {
		osds := sets.New[string]()
		for _, claim := range claims {
			if claim.Labels[cephv1.DeviceSetLabel] == name {
				osds.Insert(claim.Labels[cephv1.SetIndexLabel])
			}
		}
		total += max(counts[i], osds.Len())
	}
	return total
}

// Unnamed returns the StorageClassDeviceSets that the annotation of a StorageCluster
// does not name, and that so have to keep their OSDs.
func Unnamed(cluster *ocsv1.StorageCluster, names []string) []string {
	named := namedIn(cluster, ocsv1.OrphanAnnotation)
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(named, name) })
}

// Replaced returns the device sets whose placement may be replaced, as the annotation
// of a StorageCluster says.
func Replaced(cluster *ocsv1.StorageCluster) []string {
	return namedIn(cluster, ocsv1.ReplacePlacementAnnotation)
}

func namedIn(cluster *ocsv1.StorageCluster, annotation string) []string {
	return strings.Split(strings.ReplaceAll(cluster.Annotations[annotation], " ", ""), ",")
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
