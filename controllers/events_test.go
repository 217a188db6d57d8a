package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	. "github.com/edpm-operators/edpm-operators/test/builders"
)

var _ = Describe("A repeated event", func() {
	It("increases a count with the permissions of the manager, and adds no other event", func() {
		w := newWorld()
		cell := MakeCell("cell1", w.ns).Obj()
		w.make(cell)
		manager, err := kubernetes.NewForConfig(managerConfig)
		Expect(err).NotTo(HaveOccurred())
		broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: manager.EventsV1()})
		DeferCleanup(broadcaster.Shutdown)
		Expect(broadcaster.StartRecordingToSinkWithContext(ctx)).To(Succeed())
		recorder := broadcaster.NewRecorder(env.Scheme, "again")
		for range 2 {
			recorder.Eventf(cell, nil, corev1.EventTypeNormal, "Again", "Reconciling", "It comes again")
		}
		Eventually(func(g Gomega) []int32 {
			list := &eventsv1.EventList{}
			g.Expect(api.List(ctx, list, client.InNamespace(w.ns))).To(Succeed())
			var counts []int32
			for _, e := range list.Items {
				if e.Reason == "Again" && e.Series != nil {
					counts = append(counts, e.Series.Count)
				}
			}
			return counts
		}).Should(Equal([]int32{2}))
	})
})
