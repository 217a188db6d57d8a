package controllers_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
	"github.com/edpm-operators/edpm-operators/internal/metal"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakekube"
	"github.com/edpm-operators/edpm-operators/test/fakemetal"
)

// replace sets the annotation that asks for another machine.
func (w *world) replace(node, token string) {
	GinkgoHelper()
	change(w.node(node), func(n *dataplanev1.OpenStackDataPlaneNode) {
		if n.Annotations == nil {
			n.Annotations = map[string]string{}
		}
		n.Annotations[common.ReplaceHostAnnotation] = token
	})
}

// moved waits until the node is Ready on another machine than the one given, and
// returns that.
func (w *world) moved(node, from string) *metal3v1.BareMetalHost {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		n := get(g, w.node(node))
		g.Expect(n.Status.BareMetalHost).NotTo(BeNil())
		g.Expect(n.Status.BareMetalHost.Name).NotTo(Or(Equal(from), BeEmpty()), "the status is %s", asText(n))
	}).Should(Succeed())
	return w.provisioned(node)
}

// hostKeyOf is the key by which the node knows its host.
func (w *world) hostKeyOf(node string) string {
	GinkgoHelper()
	return get(Default, w.node(node)).Status.HostKey
}

var _ = Describe("A machine that is replaced", func() {
	It("leaves clean, and another one runs every step once, with a key of its own", func() {
		w, operator := newMetal("m0", "m1")
		w.makeCell("cell1")
		change(MakeRole("compute", w.ns).Obj(), func(r *dataplanev1.OpenStackDataPlaneRole) {
			r.Annotations = map[string]string{"nova.openstack.org/cell": "cell1"}
		})
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		Expect(w.provisioned("n").Name).To(Equal("m0"))
		w.computesReady("n")
		before, key := w.steps("n"), w.hostKeyOf("n")

		w.replace("n", "1")
		Expect(w.moved("n", "m0").Name).To(Equal("m1"))
		w.computesReady("n")
		Expect(w.steps("n")).To(Equal(append(before, before...)), "every step should have run once on each machine")
		Expect(w.hostKeyOf("n")).NotTo(Or(BeEmpty(), Equal(key)))
		Expect(get(Default, w.node("n")).Status.BareMetalHost.Address).To(Equal(fakemetal.Hardware(1).NICs[0].IP))
		Expect(w.claims()).To(Equal(map[string]string{"m1": "n"}))
		Expect(operator.Deprovisioned()).To(Equal([]string{"m0"}))

		By("being asked for once only, also after a restart and without the annotation")
		w.restart()
		change(w.node("n"), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Annotations = nil })
		w.nodesReady("n")
		w.quiet()
		Expect(w.claims()).To(Equal(map[string]string{"m1": "n"}))
		Expect(w.steps("n")).To(Equal(append(before, before...)))
	})

	It("gives way to another one when it cannot be provisioned, which its node does not claim again", func() {
		w, operator := newMetal("m0")
		operator.Fail("m0", fakemetal.ProvisioningError, "the disk\x1b[2J is broken")
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		w.halted(w.node("n"), dataplanev1.ProvisionReadyCondition, dataplanev1.MetalErrorReason, "provisioning error: the disk [2J is broken", common.ReplaceHostAnnotation)
		w.replace("n", "1")
		w.halted(w.node("n"), dataplanev1.ProvisionReadyCondition, dataplanev1.MetalNoneFreeReason, "m0 is the machine that n had before")
		w.machine(operator, "m1", 1)
		Expect(w.provisioned("n").Name).To(Equal("m1"))
		Expect(operator.Provisioned()).To(Equal([]string{"m1"}))
		w.exactlyOnce()
	})

	It("returns installed again if the node names it", func() {
		w, operator := newMetal("m0", "m1")
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		w.provisioned("n")
		key := w.hostKeyOf("n")
		change(w.node("n"), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.BareMetalHost = "m0" })
		w.replace("n", "1")
		Eventually(operator.Provisioned).Should(Equal([]string{"m0", "m0"}))
		w.nodesReady("n")
		Expect(w.claims()).To(Equal(map[string]string{"m0": "n"}))
		Expect(w.hostKeyOf("n")).NotTo(Equal(key))
	})

	It("gives way to another one when its BareMetalHost is lost", func() {
		w, _ := newMetal("m0", "m1")
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		remove(w.provisioned("n"))
		w.halted(w.node("n"), dataplanev1.ProvisionReadyCondition, dataplanev1.MetalHostLostReason, common.ReplaceHostAnnotation)
		w.replace("n", "1")
		Expect(w.moved("n", "m0").Name).To(Equal("m1"))
	})

	DescribeTable("stays where it is, and the node says why",
		func(prepare func(w *world), says string) {
			w, operator := newMetal("m0", "m1")
			w.make(MakeNode("n", w.ns).Role("compute").Obj())
			w.provisioned("n")
			prepare(w)
			w.replace("n", "1")
			w.halted(w.node("n"), dataplanev1.ProvisionReadyCondition, dataplanev1.MetalReplaceRefusedReason, says)
			w.quiet()
			Expect(w.claims()).To(Equal(map[string]string{"m0": "n"}))
			Expect(operator.Deprovisioned()).To(BeEmpty())
		},
		Entry("because machines of the role are retained", func(w *world) {
			w.changeMetal(func(t *dataplanev1.BaremetalSetTemplate) { t.ReclaimPolicy = dataplanev1.ReclaimRetain })
		}, "reclaimPolicy of role compute is Retain"),
		Entry("because the role no longer provisions", func(w *world) {
			change(MakeRole("compute", w.ns).Obj(), func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.BaremetalSetTemplate = nil })
		}, "set baremetalSetTemplate"),
		Entry("because a user has set the key of the present one", func(w *world) {
			change(w.node("n"), func(n *dataplanev1.OpenStackDataPlaneNode) {
				n.Annotations = map[string]string{common.HostKeyAnnotation: n.Status.HostKey}
			})
		}, common.HostKeyAnnotation),
	)

	It("stays when a node is restored with an annotation that was followed before", func() {
		w, operator := newMetal("m0", "m1")
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		w.provisioned("n")
		w.replace("n", "1")
		w.moved("n", "m0")
		w.running.end()
		node := get(Default, w.node("n"))
		node.Status = dataplanev1.OpenStackDataPlaneNodeStatus{}
		Expect(api.Status().Update(ctx, node)).To(Succeed())
		w.running = startManager(w.ns, w.opts)
		w.nodesReady("n")
		w.quiet()
		Expect(w.claims()).To(Equal(map[string]string{"m1": "n"}))
		Expect(operator.Deprovisioned()).To(Equal([]string{"m0"}))
	})

})

var _ = Describe("A machine that is replaced while the manager dies at any write", func() {
	for _, answered := range []bool{true, false} {
		for n := 1; n <= 9; n++ {
			It(fmt.Sprintf("gives way to one machine, on which every step runs once (write %d, answered %v)", n, answered), func() {
				w, operator := newMetal("m0", "m1", "m2")
				w.make(MakeNode("n", w.ns).Role("compute").Obj())
				Expect(w.provisioned("n").Name).To(Equal("m0"))
				before := w.steps("n")
				cut := w.wire.cutAfter(n, answered)
				w.replace("n", "1")
				Eventually(cut).WithTimeout(soon).Should(BeClosed())
				w.restart()
				host := w.moved("n", "m0")
				Expect(w.claims()).To(Equal(map[string]string{host.Name: "n"}))
				Expect(operator.Provisioned()).To(Equal([]string{"m0", host.Name}))
				Expect(operator.Deprovisioned()).To(Equal([]string{"m0"}))
				Expect(w.steps("n")).To(Equal(append(before, before...)))
			})
		}
	}
})

var _ = Describe("The address that a machine reports", func() {
	It("counts only if it is valid and of no other node", func() {
		w, operator := newMetal()
		evil := fakemetal.Hardware(0)
		evil.NICs[0].IP = "{{ lookup('pipe', 'id') }}"
		operator.Register("m0", evil)
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		w.halted(w.node("n"), dataplanev1.ProvisionReadyCondition, dataplanev1.MetalAddressUnknownReason, "Set spec.ansibleHost")
		w.make(w.role("by-address").Obj(), MakeNode("here", w.ns).Role("by-address").Host("192.168.200.77").Obj())
		w.nodesReady("here")
		host := w.host("m0")
		patched := host.DeepCopy()
		patched.Status.Hardware.NICs[0].IP = "192.168.200.77"
		Expect(api.Status().Patch(ctx, patched, client.MergeFrom(host))).To(Succeed())
		w.halted(w.node("n"), dataplanev1.ProvisionReadyCondition, dataplanev1.MetalAddressUnknownReason, "192.168.200.77, which is that of OpenStackDataPlaneNode here")
		w.nodesReady("here")
		Expect(w.steps("n")).To(BeEmpty())
	})
})

var _ = Describe("A node that was restored without its status", func() {
	It("claims no machine because its role has a template since, unless a user asks for one", func() {
		w, _ := newMetal("m0")
		w.make(w.role("old").Obj(), MakeNode("n", w.ns).Role("old").Host("10.0.0.9").Obj())
		w.nodesReady("n")
		w.running.end()
		change(MakeRole("old", w.ns).Obj(), func(r *dataplanev1.OpenStackDataPlaneRole) {
			r.Spec = w.metalRole("x").Spec
		})
		node := get(Default, w.node("n"))
		node.Status = dataplanev1.OpenStackDataPlaneNodeStatus{}
		Expect(api.Status().Update(ctx, node)).To(Succeed())
		w.running = startManager(w.ns, w.opts)
		w.nodesReady("n")
		ill := w.sick(map[string]fakekube.Outcome{"n": fakekube.Unreachable})
		change(w.node("n"), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.AnsibleHost = "10.0.0.10" })
		w.condition(w.node("n"), dataplanev1.ProvisionReadyCondition, "False/HostUnreachable/Warning", "No BareMetalHost was claimed", common.ReplaceHostAnnotation)
		ill.heal("n")
		w.nodesReady("n")
		w.quiet()
		Expect(w.claims()).To(BeEmpty())
		w.replace("n", "1")
		Eventually(w.claims).Should(Equal(map[string]string{"m0": "n"}))
		Expect(get(Default, MakeSecret(metal.SecretName("n"), w.ns, "", "")).Data).NotTo(BeEmpty())
	})
})
