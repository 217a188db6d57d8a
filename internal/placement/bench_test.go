package placement

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// BenchmarkPredict plays the roll-out of three pods with one constraint in a
// cluster of the size of a large control plane.
func BenchmarkPredict(b *testing.B) {
	snapshot, w := largeSnapshot(100, 1000), makeWorkload(3, spreadBy("zone", "service", "glance"))
	b.Run("100 nodes, 1000 pods", func(b *testing.B) {
		for b.Loop() {
			if v, err := Predict(b.Context(), snapshot, w); err != nil || !v.Fits() {
				b.Fatal(v, err)
			}
		}
	})
	w.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64")}
	b.Run("100 nodes, 1000 pods, nothing fits", func(b *testing.B) {
		for b.Loop() {
			if v, err := Predict(b.Context(), snapshot, w); err != nil || v.Fits() {
				b.Fatal(v, err)
			}
		}
	})
}

// BenchmarkPredictor plays the same in the largest cluster, with what a prediction
// takes from the one before: all but a few pods, or nothing. It reports what is kept
// in memory: the cluster as a cache has it, and the view that predictions share.
func BenchmarkPredictor(b *testing.B) {
	before := liveHeap()
	snapshot := newFilledCache(largeSnapshot(5000, 50000))
	cached := liveHeap() - before
	fits := makeWorkload(3, spreadBy("zone", "service", "glance"))
	full := requesting(fits, resources("cpu", "64"), nil)
	for _, c := range []struct {
		name     string
		workload Workload
		keep     bool
	}{{"fits", fits, true}, {"fits nowhere", full, true}, {"fits nowhere, first", full, false}} {
		b.Run(c.name, func(b *testing.B) {
			p := NewPredictor(snapshot, gather)
			play := func() {
				if !c.keep {
					p.infos = nil
				}
				p.unfit = map[Key]*unfit{}
				if v, err := p.Predict(b.Context(), Key{}, c.workload); err != nil || v.Fits() != (c.name == "fits") {
					b.Fatal(v, err)
				}
			}
			play()
			b.ReportAllocs()
			start := processorTime()
			for b.Loop() {
				play()
			}
			b.ReportMetric(float64(processorTime()-start)/float64(time.Millisecond)/float64(b.N), "cpu-ms/op")
			b.ReportMetric(mib(cached), "cached-MiB")
			b.ReportMetric(mib(liveHeap()-cached-before), "view-MiB")
			runtime.KeepAlive(p)
		})
	}
	runtime.KeepAlive(snapshot)
}

func liveHeap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func mib(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

// processorTime of this process: the time of a prediction says little on a machine
// that others use too.
func processorTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // cannot fail for the process itself
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func BenchmarkMeasure(b *testing.B) {
	snapshot, constraint := largeSnapshot(100, 1000), spreadBy("zone", "service", "glance")
	self := makePod("self", "", "service", "glance")
	for b.Loop() {
		if _, err := Measure(constraint, self, snapshot.Nodes, snapshot.Pods); err != nil {
			b.Fatal(err)
		}
	}
}

func largeSnapshot(nodes, pods int) Snapshot {
	var w Snapshot
	for i := range nodes {
		w.Nodes = append(w.Nodes, makeNode(fmt.Sprintf("n%d", i), "zone", fmt.Sprintf("z%d", i%3)))
	}
	for i := range pods {
		pod := makePod(fmt.Sprintf("p%d", i), w.Nodes[i%nodes].Name, "service", fmt.Sprintf("s%d", i%20))
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
		pod.UID = types.UID(pod.Name)
		w.Pods = append(w.Pods, pod)
	}
	return w
}
