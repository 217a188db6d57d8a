package controllers_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakemetal"
	"github.com/edpm-operators/edpm-operators/test/story"
)

// refuse has the API server refuse writes to BareMetalHosts of the namespace that the expression is
// false for, until the returned function is called.
func (w *world) refuse(expression string) (accept func()) {
	GinkgoHelper()
	return story.Refuse(w.ns, "metal3.io", "baremetalhosts", fmt.Sprintf("object.metadata.namespace == %q", w.ns), expression)
}

// silence has the API server ask a webhook that does not answer before each write to a
// BareMetalHost of the namespace.
func (w *world) silence() { GinkgoHelper(); story.Silence(w.ns, "metal3.io", "baremetalhosts") }

// awaitRefusal returns once writes to a host are refused.
func (w *world) awaitRefusal(host string) {
	GinkgoHelper()
	Eventually(func() error {
		probe := w.host(host)
		probe.Spec.Architecture = "probe"
		return api.Update(ctx, probe, client.DryRunAll)
	}).ShouldNot(Succeed())
}

// skipCleanup sets the annotation on a node.
func (w *world) skipCleanup(node string) {
	GinkgoHelper()
	change(w.node(node), func(n *dataplanev1.OpenStackDataPlaneNode) {
		n.Annotations = map[string]string{common.SkipCleanupAnnotation: "true"}
	})
}

var _ = Describe("A machine that is never powered off", func() {
	It("leaves its deleted node, and stays on", func() {
		w, operator := newMetal("m0")
		change(w.host("m0"), func(h *metal3v1.BareMetalHost) { h.Spec.Online = false })
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		change(w.provisioned("n"), func(h *metal3v1.BareMetalHost) { h.Spec.DisablePowerOff = true })
		remove(w.node("n"))
		gone(w.node("n"))
		host := w.host("m0")
		Expect(host.Spec.ConsumerRef).To(BeNil())
		Expect(host.Spec.Image).To(BeNil())
		Expect(host.Spec.Online).To(BeTrue())
		Expect(operator.Deprovisioned()).To(Equal([]string{"m0"}))
	})
})

var _ = Describe("A machine whose release is refused", func() {
	It("shows a remedy, and leaves its node when the release is accepted", func() {
		w, operator := newMetal("m0")
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		w.provisioned("n")
		accept := w.refuse("has(object.spec.image)")
		Eventually(func() error {
			probe := w.host("m0")
			probe.Spec.Image = nil
			return api.Update(ctx, probe, client.DryRunAll)
		}).ShouldNot(Succeed())
		remove(w.node("n"))
		w.halted(w.node("n"), dataplanev1.ProvisionReadyCondition, dataplanev1.MetalWriteRefusedReason, "Releasing BareMetalHost m0 is refused", "not with this object", common.SkipCleanupAnnotation)
		Expect(w.claims()).To(HaveLen(1))
		Expect(operator.Deprovisioned()).To(BeEmpty())
		accept()
		Eventually(func(g Gomega) { // which wakes the node
			host := w.bmh(g, "m0")
			host.Labels = map[string]string{"corrected": time.Now().Format("150405.000000000")}
			g.Expect(api.Update(ctx, host)).To(Succeed())
			g.Expect(w.claims()).To(BeEmpty())
		}).Should(Succeed())
		gone(w.node("n"))
	})

	It("becomes free with its image if only that cannot be removed, once the node skips clean-up", func() {
		w, _ := newMetal("m0")
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		w.provisioned("n")
		w.refuse("has(object.spec.image)")
		Eventually(func() error {
			probe := w.host("m0")
			probe.Spec.Image = nil
			return api.Update(ctx, probe, client.DryRunAll)
		}).ShouldNot(Succeed())
		w.skipCleanup("n")
		remove(w.node("n"))
		gone(w.node("n"))
		Expect(w.claims()).To(BeEmpty())
		Expect(w.host("m0").Spec.Image).NotTo(BeNil())
		Eventually(func() []string { return w.events("n") }).Should(ContainElement(And(ContainSubstring("BareMetalHost m0 is left as it is"), ContainSubstring("its image is still there"))))
	})

	DescribeTable("stays claimed once the node skips clean-up, which is deleted and says so",
		func(obstruct func(w *world), says string) {
			w, _ := newMetal("m0")
			w.make(MakeNode("n", w.ns).Role("compute").Obj())
			w.provisioned("n")
			obstruct(w)
			w.awaitRefusal("m0")
			remove(w.node("n"))
			w.halted(w.node("n"), dataplanev1.ProvisionReadyCondition, dataplanev1.MetalWriteRefusedReason, says, common.SkipCleanupAnnotation)
			w.skipCleanup("n")
			gone(w.node("n"))
			Expect(w.claims()).To(Equal(map[string]string{"m0": "n"}))
			Eventually(func() []string { return w.events("n") }).Should(ContainElement(And(ContainSubstring("BareMetalHost m0 is left as it is"), ContainSubstring("It stays claimed"), ContainSubstring(says))))
		},
		Entry("when every write is refused", func(w *world) { w.refuse("false") }, "not with this object"),
		Entry("when a webhook does not answer", func(w *world) { w.silence() }, "failed calling webhook"),
	)

	It("stays claimed when it is to be replaced, since the node would find it again", func() {
		w, operator := newMetal("m0", "m1")
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		w.provisioned("n")
		w.refuse("object.metadata.name != 'm0'")
		w.awaitRefusal("m0")
		w.skipCleanup("n")
		change(w.node("n"), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Annotations[common.ReplaceHostAnnotation] = "1" })
		w.halted(w.node("n"), dataplanev1.ProvisionReadyCondition, dataplanev1.MetalWriteRefusedReason, "Correct the BareMetalHost, or delete it")
		w.quiet()
		Expect(w.claims()).To(Equal(map[string]string{"m0": "n"}))
		Expect(operator.Deprovisioned()).To(BeEmpty())
	})
})

var _ = Describe("A machine whose claim is refused", func() {
	It("gives way to another one", func() {
		w, _ := newMetal("m0", "m1")
		w.refuse("object.metadata.name != 'm0'")
		w.awaitRefusal("m0")
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		Expect(w.provisioned("n").Name).To(Equal("m1"))
		Expect(w.claims()).To(Equal(map[string]string{"m1": "n"}))
	})

	It("shows a remedy if there is no other one, and is claimed when it is corrected", func() {
		w, _ := newMetal("m0")
		accept := w.refuse("object.metadata.name != 'm0'")
		w.awaitRefusal("m0")
		node := MakeNode("n", w.ns).Role("compute").Obj()
		node.Spec.BareMetalHost = "m0"
		w.make(node)
		w.halted(w.node("n"), dataplanev1.ProvisionReadyCondition, dataplanev1.MetalWriteRefusedReason, "Claiming BareMetalHost m0 is refused", "not with this object", "name another host in spec.bareMetalHost of the node")
		Expect(w.claims()).To(BeEmpty())
		Expect(get(Default, w.node("n")).Status.BareMetalHost).To(BeNil())
		accept()
		Eventually(func(g Gomega) { // which wakes the node
			host := w.bmh(g, "m0")
			host.Labels = map[string]string{"corrected": time.Now().Format("150405.000000000")}
			g.Expect(api.Update(ctx, host)).To(Succeed())
			g.Expect(w.claims()).To(HaveLen(1))
		}).Should(Succeed())
		Expect(w.provisioned("n").Name).To(Equal("m0"))
	})

	It("gives way to another one if rootDeviceHints meet a root volume in software RAID", func() {
		w, operator := newMetal()
		operator.Register("m0", fakemetal.Hardware(0))
		change(w.host("m0"), func(h *metal3v1.BareMetalHost) {
			h.Spec.RAID = &metal3v1.RAIDConfig{SoftwareRAIDVolumes: []metal3v1.RAIDVolume{{Level: "1", RootVolume: true}}}
		})
		w.changeMetal(func(t *dataplanev1.BaremetalSetTemplate) {
			t.RootDeviceHints = &metal3v1.RootDeviceHints{MinSizeGigabytes: 100}
		})
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		w.halted(w.node("n"), dataplanev1.ProvisionReadyCondition, dataplanev1.MetalNoneFreeReason, "m0 has a software RAID volume with rootVolume: true")
		w.machine(operator, "m1", 1)
		Expect(w.provisioned("n").Name).To(Equal("m1"))
	})
})

var _ = DescribeTable("The rules of baremetal-operator in these stories",
	func(change func(*metal3v1.BareMetalHost), refusal string) {
		host := &metal3v1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "rules"}, Spec: metal3v1.BareMetalHostSpec{Online: true}}
		host.Spec.Image = &metal3v1.Image{URL: "http://images.example/edpm.qcow2", Checksum: "abc", ChecksumType: "auto"}
		host.Spec.UserData = &corev1.SecretReference{Namespace: "default", Name: "s"}
		host.Spec.NetworkData = host.Spec.UserData
		change(host)
		err := api.Create(ctx, host, client.DryRunAll)
		if refusal == "" {
			Expect(err).NotTo(HaveOccurred())
			return
		}
		Expect(err).To(MatchError(ContainSubstring(refusal)))
	},
	Entry("accept a claim", func(*metal3v1.BareMetalHost) {}, ""),
	Entry("accept a checksum URL and a format", func(h *metal3v1.BareMetalHost) {
		h.Spec.Image = &metal3v1.Image{URL: "https://images.example/edpm.raw", Checksum: "https://images.example/SHA256SUMS", Format: "raw"}
	}, ""),
	Entry("accept an image of a registry", func(h *metal3v1.BareMetalHost) { h.Spec.Image = &metal3v1.Image{URL: "oci://registry.example/edpm:1"} }, ""),
	Entry("accept hints", func(h *metal3v1.BareMetalHost) {
		h.Spec.RootDeviceHints = &metal3v1.RootDeviceHints{DeviceName: "/dev/nvme0n1", SerialNumber: "abc"}
	}, ""),
	Entry("accept a link by path", func(h *metal3v1.BareMetalHost) {
		h.Spec.RootDeviceHints = &metal3v1.RootDeviceHints{DeviceName: "/dev/disk/by-path/pci-0000:00:1f.2-ata-1"}
	}, ""),
	Entry("refuse to power off what is never powered off", func(h *metal3v1.BareMetalHost) { h.Spec.Online, h.Spec.DisablePowerOff = false, true }, "power off disabled"),
	Entry("refuse a name that is no path", func(h *metal3v1.BareMetalHost) { h.Spec.RootDeviceHints = &metal3v1.RootDeviceHints{DeviceName: "sda"} }, "must be a /dev/ path"),
	Entry("refuse a link by ID", func(h *metal3v1.BareMetalHost) {
		h.Spec.RootDeviceHints = &metal3v1.RootDeviceHints{DeviceName: "/dev/disk/by-id/wwn-0x5000c500"}
	}, "/dev/disk/by-path/"),
	Entry("refuse hints next to a root volume", func(h *metal3v1.BareMetalHost) {
		h.Spec.RootDeviceHints = &metal3v1.RootDeviceHints{MinSizeGigabytes: 100}
		h.Spec.RAID = &metal3v1.RAIDConfig{SoftwareRAIDVolumes: []metal3v1.RAIDVolume{{Level: "1", RootVolume: true}}}
	}, "rootVolume and rootDeviceHints can not be set at the same time"),
	Entry("refuse a root volume of another level", func(h *metal3v1.BareMetalHost) {
		h.Spec.RAID = &metal3v1.RAIDConfig{SoftwareRAIDVolumes: []metal3v1.RAIDVolume{{Level: "0", RootVolume: true}}}
	}, "must use RAID level 1"),
	Entry("refuse an image without checksum", func(h *metal3v1.BareMetalHost) { h.Spec.Image.Checksum = "" }, "checksum is required"),
	Entry("refuse an image of a registry with one", func(h *metal3v1.BareMetalHost) { h.Spec.Image.URL = "oci://x/y" }, "must be empty for OCI"),
	Entry("refuse another scheme", func(h *metal3v1.BareMetalHost) { h.Spec.Image.URL = "file:///x" }, "image URL is invalid"),
	Entry("refuse a Secret of another namespace", func(h *metal3v1.BareMetalHost) {
		h.Spec.MetaData = &corev1.SecretReference{Namespace: "kube-system", Name: "s"}
	}, "cross-namespace"),
	Entry("refuse a UUID as the name", func(h *metal3v1.BareMetalHost) { h.Name = "0f0c8bfb-6a40-4c8a-8a3e-2c4c2f6b9f00" }, "cannot be a UUID"),
)
