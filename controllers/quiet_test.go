package controllers_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers"
	. "github.com/edpm-operators/edpm-operators/test/builders"
)

var _ = Describe("A quiet cluster", func() {
	It("writes nothing in resyncs of 200 nodes", long, func() {
		w := newCloud(func(o *controllers.Options) {
			o.Engine.Debounce, o.Engine.Patience = 500*time.Millisecond, 20*time.Second
		})
		w.make(MakeNova("nova", w.ns, "osp-secret"), MakeSecret("osp-secret", w.ns, "NovaPassword", "p"), MakeSecret("nova-bus", w.ns, "transport_url", "x"))
		names := nodeNames(200)
		plane := MakeDataPlane("plane", w.ns)
		spec := w.role("").Mount("mounted").Vars(`{"a": {"b": [1, 2.5, true, null, "x"]}}`).Networks("net").Obj().Spec
		spec.DataPlane, spec.NodeTemplate.Networks = "plane", []dataplanev1.NetworkSection{{Network: "ctlplane", DefaultRoute: ptr.To(true)}}
		spec.NetworkAttachments = nil
		plane.Spec.Roles["compute"] = spec
		for _, n := range names {
			plane.Spec.Nodes[n] = dataplanev1.OpenStackDataPlaneNodeSpec{Role: "compute", AnsibleHost: "10.0.0." + n[1:]}
		}
		w.make(MakeSecret("mounted", w.ns, "k", "v"), plane)
		annotate(w.role("compute").Obj(), "nova.openstack.org/cell", "cell1")
		w.computesReady(names...)
		w.ready(plane)
		steps := func() map[string]int {
			done := map[string]int{}
			for _, e := range w.hosts.Book() {
				done[e.Step]++
			}
			return done
		}
		// Half of the addresses are none: they have a leading zero. live-migration runs again for
		// computes that have joined during the first runs.
		Eventually(steps).Should(And(HaveLen(5), HaveKeyWithValue("install-os", 200), HaveKeyWithValue("libvirt-tls", 100), HaveKeyWithValue("libvirt", 200),
			HaveKeyWithValue("nova", 200), HaveKeyWithValue("live-migration", And(BeNumerically(">=", 100), BeNumerically("<=", 200)))))
		for _, n := range names {
			w.ready(w.compute(n))
		}
		w.exactlyOnce()
		Expect(w.hosts.Pods()).To(BeNumerically("<=", 4*8), "runs of up to 50 hosts")
		w.quiet()

		for range 2 {
			w.resync()
			Expect(w.wire.Since(0)).To(BeEmpty(), "what a resync writes")
		}
	})
})
