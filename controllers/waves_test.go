package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakekube"
)

// setImage sets the image of the computes of a cell.
func setImage(cell *novav1.NovaCell, image string) {
	GinkgoHelper()
	change(cell, func(c *novav1.NovaCell) { c.Spec.NovaComputeContainerImage = image })
}

// counts waits until a cell counts its computes so.
func counts(cell *novav1.NovaCell, want novav1.ComputesStatus) {
	GinkgoHelper()
	Eventually(func(g Gomega) { g.Expect(get(g, cell).Status.Computes).To(HaveValue(Equal(want))) }).Should(Succeed())
}

// deployedImages are the images of the runs of step nova on a host, in their order.
func (w *world) deployedImages(host string) []any {
	var images []any
	for _, e := range w.did(host, novav1.NovaStep) {
		images = append(images, e.Vars["edpm_nova_compute_image"])
	}
	return images
}

var _ = Describe("Another image for the computes of a cell", func() {
	var w *world
	var cell *novav1.NovaCell
	hosts := []string{"n000", "n001", "n002"}

	BeforeEach(func() {
		w = newCloud()
		cell = MakeCell("cell1", w.ns).Obj()
		w.make(w.role("compute").Cell("cell1").Obj())
		w.makeNodes(len(hosts), "compute")
		w.computesReady(hosts...)
		counts(cell, novav1.ComputesStatus{Total: 3, Current: 3})
	})

	It("is brought to one first, and to the others one at a time once it works", func() {
		sick := w.sick(map[string]fakekube.Outcome{"n000/nova": fakekube.Failed})
		setImage(cell, "compute:2")
		w.halted(w.compute("n000"), condition.DeploymentReadyCondition, condition.Reason(edpm.Failed))
		counts(cell, novav1.ComputesStatus{Total: 3, Outdated: 3, Failed: 1})
		Expect(get(Default, cell).Status.ComputeUpdate).To(HaveValue(Equal(novav1.ComputeUpdate{Image: "compute:2", First: "n000"})))
		Consistently(func(g Gomega) {
			for _, name := range hosts[1:] {
				compute := get(g, w.compute(name))
				isReady(g, compute)
				g.Expect(compute.Status.Images).To(HaveKeyWithValue(novav1.ComputeComponent, "compute:1"))
			}
		}).Should(Succeed())

		By("repairing it")
		release := w.hosts.Hold()
		sick.heal("n000/nova")
		Eventually(func(g Gomega) {
			g.Expect(get(g, w.compute("n000")).Status.Conditions.Get(condition.DeploymentReadyCondition).Reason).To(Equal(condition.Reason(edpm.Running)))
		}).Should(Succeed())
		release()
		counts(cell, novav1.ComputesStatus{Total: 3, Current: 3})
		w.computesReady(hosts...)
		Expect(get(Default, cell).Status.ComputeUpdate).To(HaveValue(Equal(novav1.ComputeUpdate{Image: "compute:2", Verified: true})))
		for _, name := range hosts[1:] {
			Expect(w.deployedImages(name)).To(Equal([]any{"compute:1", "compute:2"}), "of %s", name)
			Expect(w.times(name, "libvirt")).To(Equal(1), "the image of nova-compute concerns no guest")
			Expect(get(Default, w.compute(name)).Spec.NovaComputeContainerImage).To(Equal("compute:2"))
		}
		first, second := w.did("n001", "nova")[1], w.did("n002", "nova")[1]
		Expect(first.Job).NotTo(Equal(second.Job), "one of them is unavailable at a time")
		w.calm()
		w.quiet()
	})

	It("is not brought to one whose image was chosen, which is named", func() {
		change(w.compute("n000"), func(c *novav1.NovaExternalCompute) { c.Spec.NovaComputeContainerImage = "mine:1" })
		counts(cell, novav1.ComputesStatus{Total: 3, Current: 2, Pinned: 1, PinnedNames: []string{"n000"}})
		setImage(cell, "compute:2")
		counts(cell, novav1.ComputesStatus{Total: 3, Current: 2, Pinned: 1, PinnedNames: []string{"n000"}})
		w.computesReady(hosts...)
		Expect(w.deployedImages("n000")).To(Equal([]any{"compute:1", "mine:1"}))

		By("giving it back")
		Expect(api.Patch(ctx, w.compute("n000"), jsonPatch(`{"spec":{"novaComputeContainerImage":null}}`))).To(Succeed())
		counts(cell, novav1.ComputesStatus{Total: 3, Current: 3})
		Expect(w.deployedImages("n000")).To(Equal([]any{"compute:1", "mine:1", "compute:2"}))
	})

	It("is brought to computes that an earlier version left behind only with the next one", func() {
		w.running.end()
		change(cell, func(c *novav1.NovaCell) { c.Spec.NovaComputeContainerImage = "compute:2" })
		Expect(api.Get(ctx, metaKey(cell), cell)).To(Succeed())
		cell.Status.Images[novav1.ComputeComponent] = "compute:2"
		Expect(api.Status().Update(ctx, cell)).To(Succeed())
		w.running = startManager(w.ns, w.opts)
		counts(cell, novav1.ComputesStatus{Total: 3, Outdated: 3})
		w.calm()
		for _, name := range hosts {
			Expect(w.deployedImages(name)).To(Equal([]any{"compute:1"}))
		}
		setImage(cell, "compute:3")
		counts(cell, novav1.ComputesStatus{Total: 3, Current: 3})
		for _, name := range hosts {
			Expect(w.deployedImages(name)).To(Equal([]any{"compute:1", "compute:3"}))
		}
	})

	It("continues where it was when the manager is restarted", func() {
		w.sick(map[string]fakekube.Outcome{"n000/nova": fakekube.Failed})
		setImage(cell, "compute:2")
		w.halted(w.compute("n000"), condition.DeploymentReadyCondition, condition.Reason(edpm.Failed))
		w.running.end()
		w.hosts.Decide(func(string, string) fakekube.Outcome { return fakekube.OK })
		w.running = startManager(w.ns, w.opts)
		counts(cell, novav1.ComputesStatus{Total: 3, Current: 3})
		Expect(w.deployedImages("n002")).To(Equal([]any{"compute:1", "compute:2"}))
	})
})

var _ = Describe("An update of a Nova", func() {
	It("is complete when its computes have followed", func() {
		w := newWorld()
		nova := MakeNova("nova", w.ns, "osp-secret", "cell1")
		w.make(MakeSecret("osp-secret", w.ns, "NovaPassword", "p"), MakeSecret("ssh-key", w.ns, "ssh-privatekey", "key-1"), nova, w.role("compute").Cell("nova-cell1").Obj())
		for _, c := range []string{"cell0", "cell1"} {
			w.make(MakeSecret("rabbitmq-transport-url-nova-"+c+"-transport", w.ns, "transport_url", "rabbit://"+c))
		}
		w.makeNodes(2, "compute")
		w.computesReady(nodeNames(2)...)
		cell := MakeCell("nova-cell1", w.ns).Obj()
		counts(cell, novav1.ComputesStatus{Total: 2, Current: 2})

		By("failing the second compute")
		sick := w.sick(map[string]fakekube.Outcome{"n001/nova": fakekube.Failed})
		change(nova, func(n *novav1.Nova) {
			t := n.Spec.CellTemplates["cell1"]
			t.NovaComputeContainerImage = "compute:2"
			n.Spec.CellTemplates["cell1"] = t
		})
		counts(cell, novav1.ComputesStatus{Total: 2, Current: 1, Outdated: 1, Failed: 1})
		w.condition(nova, novav1.UpdateReadyCondition, "False/Updating/Info", "no compute of NovaCell nova-cell1 is outdated")

		By("repairing it")
		sick.heal("n001/nova")
		counts(cell, novav1.ComputesStatus{Total: 2, Current: 2})
		Eventually(func(g Gomega) {
			g.Expect(get(g, nova).Status.Conditions.Get(novav1.UpdateReadyCondition)).To(BeNil())
			g.Expect(get(g, nova).Status.Deployed).To(BeNil())
		}).Should(Succeed())
		w.quiet()
	})
})
