package placement

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

func TestNewVolumesWithImmediateBindingCountForTheDriversLimit(t *testing.T) {
	w := withClaims(makeWorkload(2), attachedAtOnce)
	snapshot := Snapshot{Nodes: []*corev1.Node{makeNode("n0")}, StorageClasses: drawnClasses(), CSIDrivers: drawnDrivers()}
	for limit, fit := range []int{0, 1, 2} {
		snapshot.CSINodes = []*storagev1.CSINode{makeCSINode("n0", attached, int32(limit))}
		v := predict(t, snapshot, w)
		fits := len(filter(v.Pods, func(p PodPrediction) bool { return p.Fits }))
		if fits != fit {
			t.Errorf("%d pods fit where the node takes %d volumes: %+v", fits, limit, v.Problems)
		}
	}
	t.Run("and need the driver if it says so", func(t *testing.T) {
		class := makeClass("strict-at-once", strict, storagev1.VolumeBindingImmediate)
		snapshot.StorageClasses = append(snapshot.StorageClasses, class)
		v := predict(t, snapshot, withClaims(makeWorkload(1), class.Name))
		if v.Fits() || !strings.Contains(v.Pods[0].Message, "strict.example.com CSI driver is not installed") {
			t.Errorf("got %+v", v)
		}
	})
}
