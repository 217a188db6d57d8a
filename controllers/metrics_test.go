package controllers_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	. "github.com/edpm-operators/edpm-operators/test/builders"
)

// gauges are the values of the gauges of edpm-operators, as name{value,...} of the labels in
// the order of their names.
func gauges(g Gomega) map[string]float64 {
	families, err := metrics.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if m.GetGauge() == nil || !strings.HasPrefix(f.GetName(), "edpm_") {
				continue
			}
			var values []string
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}
			out[fmt.Sprintf("%s{%s}", f.GetName(), strings.Join(values, ","))] = m.GetGauge().GetValue()
		}
	}
	return out
}

var _ = Describe("Metrics", func() {
	It("report runs and deletions as long as they last", func() {
		w := newCloud()
		release := w.hosts.Hold()
		DeferCleanup(release)
		started := float64(time.Now().Add(-time.Minute).Unix())
		w.make(w.role("r").Obj(), MakeNode("n", w.ns).Role("r").Obj())
		Eventually(func(g Gomega) {
			now := gauges(g)
			g.Expect(now).To(HaveKeyWithValue("edpm_hosts{,Running,install-os}", 1.0))
			g.Expect(now).To(HaveKeyWithValue("edpm_runs_unfinished{install-os}", 1.0))
			g.Expect(now).To(HaveKeyWithValue("edpm_oldest_run_timestamp_seconds{install-os}", BeNumerically(">", started)))
			g.Expect(now).To(HaveKeyWithValue("edpm_objects{OpenStackDataPlaneNode,False}", 1.0))
			g.Expect(now).To(HaveKeyWithValue("edpm_objects{NovaCell,True}", 1.0))
			g.Expect(now).NotTo(HaveKey("edpm_objects_deleting{OpenStackDataPlaneNode}"))
		}).Should(Succeed())

		By("deleting a compute whose host is busy")
		annotate(w.role("r").Obj(), "nova.openstack.org/cell", "cell1")
		release()
		w.computesReady("n")
		again := w.hosts.Hold()
		DeferCleanup(again)
		Expect(api.Delete(ctx, w.node("n"))).To(Succeed())
		Eventually(func(g Gomega) {
			now := gauges(g)
			g.Expect(now).To(HaveKeyWithValue("edpm_objects_deleting{OpenStackDataPlaneNode}", 1.0))
			g.Expect(now).To(HaveKeyWithValue("edpm_objects_deleting{NovaExternalCompute}", 1.0))
			g.Expect(now).To(HaveKeyWithValue("edpm_oldest_deletion_timestamp_seconds{OpenStackDataPlaneNode}", BeNumerically(">", started)))
		}).Should(Succeed())

		By("letting it go")
		again()
		Eventually(func(g Gomega) {
			for name := range gauges(g) {
				g.Expect(name).NotTo(HavePrefix("edpm_objects_deleting"))
				g.Expect(name).NotTo(HavePrefix("edpm_oldest_"))
				g.Expect(name).NotTo(HavePrefix("edpm_runs_unfinished"))
				g.Expect(name).NotTo(HavePrefix("edpm_hosts"))
			}
		}).Should(Succeed())
	})
})
