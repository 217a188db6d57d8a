package osd

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
)

// makeClaim is a claim of an OSD as Rook makes it.
func makeClaim(set string, index int) *corev1.PersistentVolumeClaim {
	name := fmt.Sprintf("%s-data-%d", set, index)
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name + "x", Labels: map[string]string{
		"ceph.rook.io/DeviceSet": set, "ceph.rook.io/DeviceSetPVCId": name, "ceph.rook.io/setIndex": fmt.Sprint(index),
	}}}
}

// makeOSD is the daemon on a claim.
func makeOSD(id string, claim *corev1.PersistentVolumeClaim, node string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "rook-ceph-osd-" + id, Labels: map[string]string{
		"app": osds, "ceph-osd-id": id, "ceph.rook.io/pvc": claim.Name, "ceph.rook.io/DeviceSet": claim.Labels["ceph.rook.io/DeviceSet"],
	}}}
	pod.Spec.NodeName = node
	return pod
}

func TestDryRun(t *testing.T) {
	claims := []*corev1.PersistentVolumeClaim{makeClaim("a-1", 0), makeClaim("a-0", 0), makeClaim("theirs-0", 0), {ObjectMeta: metav1.ObjectMeta{Name: "not-ceph"}}}
	pods := []*corev1.Pod{makeOSD("1", claims[0], "n"), makeOSD("0", claims[1], "n"), makeOSD("2", claims[2], "n")}
	single := []*corev1.PersistentVolumeClaim{makeClaim("a", 0)}
	for name, c := range map[string]struct {
		layout ocsv1.DeviceSetLayout
		claims []*corev1.PersistentVolumeClaim
		want   ocsv1.LayoutSwitchStatus
	}{
		"nothing for a new cluster": {"Split", nil, ocsv1.LayoutSwitchStatus{To: "Single"}},
		"claims and OSDs of the sets, and of no others": {
			"Split", claims, ocsv1.LayoutSwitchStatus{To: "Single", OrphanedPVCs: []string{"a-0-data-0x", "a-1-data-0x"}, OrphanedOSDs: []string{"0", "1"}, OrphanedPVCCount: 2},
		},
		"and back":                         {"Single", single, ocsv1.LayoutSwitchStatus{To: "Split", OrphanedPVCs: []string{"a-data-0x"}, OrphanedPVCCount: 1}},
		"no layout is Split":               {"", nil, ocsv1.LayoutSwitchStatus{To: "Single"}},
		"claims that would be found again": {"Single", claims, ocsv1.LayoutSwitchStatus{To: "Split"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := specOf(makeSet("a", 1, 3))
			spec.DeviceSetLayout = c.layout
			if diff := cmp.Diff(&c.want, DryRun(spec, c.claims, pods)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestADryRunNamesTheFirstHundred(t *testing.T) {
	var claims []*corev1.PersistentVolumeClaim
	var pods []*corev1.Pod
	for i := range 150 {
		claims = append(claims, makeClaim("a-0", i))
		pods = append(pods, makeOSD(fmt.Sprintf("%03d", i), claims[i], "n"))
	}
	got := DryRun(specOf(makeSet("a", 150, 1)), claims, pods)
	if got.OrphanedPVCCount != 150 || len(got.OrphanedPVCs) != 100 || len(got.OrphanedOSDs) != 100 || got.OrphanedOSDs[99] != "099" {
		t.Errorf("%d claims, of which %d are named, and %d OSDs", got.OrphanedPVCCount, len(got.OrphanedPVCs), len(got.OrphanedOSDs))
	}
}

func TestOrphansOfLayout(t *testing.T) {
	spec := specOf(makeSet("a", 1, 3))
	claims := []*corev1.PersistentVolumeClaim{makeClaim("a-0", 0), makeClaim("a", 0)}
	if diff := cmp.Diff([]string{"a-data-0x"}, OrphansOfLayout(spec, claims)); diff != "" {
		t.Errorf("in Split (-want +got):\n%s", diff)
	}
	spec.DeviceSetLayout = ocsv1.LayoutSingle
	if diff := cmp.Diff([]string{"a-0-data-0x"}, OrphansOfLayout(spec, claims)); diff != "" {
		t.Errorf("in Single (-want +got):\n%s", diff)
	}
	// A name that both layouts give is no one's orphan.
	spec.StorageDeviceSets = append(spec.StorageDeviceSets, makeSet("a-0", 1, 3))
	if diff := cmp.Diff([]string(nil), OrphansOfLayout(spec, claims)); diff != "" {
		t.Errorf("with a set named like another's part (-want +got):\n%s", diff)
	}
}

func TestOSDsThatRemain(t *testing.T) {
	var claims []*corev1.PersistentVolumeClaim
	for i := range 6 {
		claims = append(claims, makeClaim(fmt.Sprintf("a-%d", i%3), i/3))
	}
	claims = append(claims, makeClaim("other-0", 0), makeClaim("a-0", 1)) // the second is of a metadata device
	for name, c := range map[string]struct {
		count, replica int32
		want           int
	}{
		"as many as there are":                      {2, 3, 6},
		"more of each":                              {3, 3, 9},
		"fewer of each, which stay":                 {1, 3, 6},
		"as many in more sets, which are made":      {1, 6, 9},
		"as many in fewer sets, without the orphan": {3, 2, 6},
	} {
		set := makeSet("a", c.count, c.replica)
		if got := Remaining(ocsv1.LayoutSplit, &set, claims); got != c.want {
			t.Errorf("%s: there are %d OSDs; want %d", name, got, c.want)
		}
	}
}
