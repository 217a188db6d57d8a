package osd

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	"github.com/edpm-operators/edpm-operators/internal/placement"
)

func withClass(class string) func(*ocsv1.StorageDeviceSet) {
	return func(s *ocsv1.StorageDeviceSet) { s.DeviceClass = class }
}

// running adds an OSD of a StorageClassDeviceSet to a snapshot.
func running(s *placement.Snapshot, set string, index int, node string) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: ns, Name: fmt.Sprintf("%s-data-%d", set, index), Labels: map[string]string{cephv1.DeviceSetLabel: set, cephv1.SetIndexLabel: fmt.Sprint(index)},
	}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: ns, Name: "osd-" + claim.Name, Labels: map[string]string{cephv1.AppLabel: cephv1.AppOSD, cephv1.PVCLabel: claim.Name, deviceClassLabel: "ssd"},
	}}
	pod.Spec.NodeName = node
	pod.Spec.Containers = []corev1.Container{{Name: "osd", Image: "ceph"}}
	s.Pods, s.PersistentVolumeClaims = append(s.Pods, pod), append(s.PersistentVolumeClaims, claim)
}

// Four OSDs of one class run, two of them in the last zone, and three of another come
// (rook#6146).
func TestAZoneWithoutAClassIsNamed(t *testing.T) {
	for _, c := range []struct {
		name  string
		mode  ocsv1.OSDPlacementMode
		sets  []ocsv1.StorageDeviceSet
		wants string
	}{
		{"of classes that are spread together", ocsv1.OSDPlacementSeedPhase1, []ocsv1.StorageDeviceSet{makeSet("ssd", 4, 0, withClass("ssd")), makeSet("hdd", 3, 0, withClass("hdd"))},
			zone + " zone2 has no OSD of device class hdd (zone0 2, zone1 1, zone2 0)"},
		{"none if each class is spread by itself", ocsv1.OSDPlacementFailureDomain, []ocsv1.StorageDeviceSet{makeSet("ssd", 4, 0, withClass("ssd")), makeSet("hdd", 3, 0, withClass("hdd"))}, ""},
		{"none of a class with fewer OSDs than zones", ocsv1.OSDPlacementSeedPhase1, []ocsv1.StorageDeviceSet{makeSet("ssd", 4, 0, withClass("ssd")), makeSet("hdd", 1, 0, withClass("hdd"))}, ""},
		{"none of one class in two device sets", ocsv1.OSDPlacementSeedPhase1, []ocsv1.StorageDeviceSet{makeSet("ssd", 4, 0, withClass("ssd")), makeSet("more", 3, 0, withClass("ssd"))}, ""},
		{"of OSDs without a class", ocsv1.OSDPlacementSeedPhase1, []ocsv1.StorageDeviceSet{makeSet("ssd", 4, 0, withClass("ssd")), makeSet("any", 3, 0)},
			zone + " zone2 has no OSD without a device class (zone0 2, zone1 1, zone2 0)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := inMode(c.mode)
			spec.StorageDeviceSets = c.sets
			s := snapshotOf(inZones(3, 3, 3))
			running(&s, "ssd-0", 0, "z0-n0")
			running(&s, "ssd-1", 0, "z1-n0")
			running(&s, "ssd-2", 0, "z2-n0")
			running(&s, "ssd-0", 1, "z2-n1")
			d, err := Decide(spec, zone, Ceph{}, Record{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(UnevenClasses(d.DeviceSets, project(t, s, spec, zone)), "; "); got != c.wants {
				t.Errorf("got %q, want %q", got, c.wants)
			}
		})
	}
}
