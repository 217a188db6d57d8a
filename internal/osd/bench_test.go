package osd

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// BenchmarkProject plays the first OSDs of a large cluster, and none of one that runs.
func BenchmarkProject(b *testing.B) {
	spec := specOf(makeSet("a", 100, 3))
	snapshot := snapshotOf(inZones(33, 33, 34))
	planned := decide(b, spec, Ceph{}).DeviceSets
	run := func(b *testing.B, pods []*corev1.Pod, claims []*corev1.PersistentVolumeClaim) {
		snapshot := snapshot
		snapshot.Pods, snapshot.PersistentVolumeClaims = pods, claims
		for b.Loop() {
			got, err := Project(b.Context(), predictIn(snapshot), observed(snapshot, snapshot.Nodes), Placements(spec)["all"], planned)
			if err != nil || got[0].Skew() > 3 {
				b.Fatal(got, err)
			}
		}
	}
	b.Run("100 nodes, 300 OSDs to come", func(b *testing.B) { run(b, nil, nil) })
	var pods []*corev1.Pod
	var claims []*corev1.PersistentVolumeClaim
	for i := range 300 {
		claim := makeClaim(fmt.Sprintf("a-%d", i%3), i/3)
		claims, pods = append(claims, claim), append(pods, makeOSD(fmt.Sprint(i), claim, snapshot.Nodes[i%100].Name))
	}
	b.Run("100 nodes, 300 OSDs that run", func(b *testing.B) { run(b, pods, claims) })
	b.Run("100 nodes, 300 OSDs that lost their nodes", func(b *testing.B) { run(b, nil, claims) })
}
