package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakekube"
)

const (
	keyOne = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
	keyTwo = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAcNHqIYJrB8OtlhnG2w1bDeHDgPDVgPPIoqxDyRIKy8"
)

var _ = Describe("Two nodes that are one machine", func() {
	var w *world
	const skip = common.SkipCleanupAnnotation

	BeforeEach(func() {
		w = newCloud()
		w.make(w.role("compute").Cell("cell1").Obj())
	})

	// moveTo gives a node another address.
	moveTo := func(name, address string) {
		GinkgoHelper()
		change(w.node(name), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.AnsibleHost = address })
	}
	conflict := func(name string, parts ...string) {
		GinkgoHelper()
		w.halted(w.node(name), condition.InputReadyCondition, dataplanev1.MachineConflictReason, parts...)
	}

	It("both report the conflict and run nothing, until one of them has another address", func() {
		w.make(MakeNode("a", w.ns).Role("compute").Host("edpm-0.example.com").Obj())
		w.computesReady("a")
		w.make(MakeNode("b", w.ns).Role("compute").Host("EDPM-0.example.com.").Obj())
		conflict("a", "OpenStackDataPlaneNode b is the same machine: both have address edpm-0.example.com:22", "Nothing is run for either", skip)
		conflict("b", "OpenStackDataPlaneNode a is the same machine")
		annotate(w.role("compute").Obj(), common.RerunAnnotation, "all")
		w.nothingRuns()
		Expect(w.steps("b")).To(BeEmpty())

		moveTo("b", "edpm-1.example.com")
		w.computesReady("a", "b")
		Expect(w.hosts.Overlaps()).To(BeEmpty())
	})

	It("run independently behind different ports of one gateway", func() {
		b := MakeNode("b", w.ns).Role("compute").Host("10.0.0.1").Obj()
		b.Spec.Node.AnsiblePort = 2222
		w.make(MakeNode("a", w.ns).Role("compute").Host("10.0.0.1").Obj(), b)
		w.computesReady("a", "b")
	})

	It("run independently behind two jump hosts, whose networks can have the same addresses", func() {
		jump := func(address string) *common.JumpHost { return MakeJumpHost(address, "ssh-key") }
		w.make(MakeNode("a", w.ns).Role("compute").Host("10.0.0.1").JumpHost(jump("bastion-a")).Obj(),
			MakeNode("b", w.ns).Role("compute").Host("10.0.0.1").JumpHost(jump("bastion-b")).Obj(),
			MakeNode("c", w.ns).Role("compute").Host("10.0.0.1").Obj())
		w.computesReady("a", "b", "c")

		change(w.node("b"), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.Node.JumpHost.Address = "BASTION-A" })
		conflict("a", "OpenStackDataPlaneNode b is the same machine: both have address 10.0.0.1:22 through bastion-a:22")
		conflict("b", "OpenStackDataPlaneNode a is the same machine")
		Expect(get(Default, w.node("c")).IsReady()).To(BeTrue(), "c is reached directly")
	})

	It("report the conflict also when the variables of their role name the machine", func() {
		role := w.role("one").Vars(`{"ansible_host": "10.0.0.9"}`).Obj()
		w.make(MakeNode("a", w.ns).Role("compute").Host("10.0.0.9").Obj())
		w.computesReady("a")
		w.make(role, MakeNode("b", w.ns).Role("one").Host("10.0.0.1").Obj())
		conflict("a", "OpenStackDataPlaneNode b is the same machine")
		conflict("b", "OpenStackDataPlaneNode a is the same machine")
		change(role, func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.NodeTemplate.AnsibleVars = nil })
		w.nodesReady("a", "b")
	})

	It("report the conflict when their host shows one key under two addresses", func() {
		w.hosts.Show("a", keyOne)
		w.hosts.Show("b", keyOne)
		w.make(MakeNode("a", w.ns).Role("compute").Host("10.0.0.1").Obj())
		w.computesReady("a")
		w.make(MakeNode("b", w.ns).Role("compute").Host("10.0.0.2").Obj())
		conflict("a", "OpenStackDataPlaneNode b is the same machine: both have host key SHA256:")
		conflict("b", "OpenStackDataPlaneNode a is the same machine: both have host key SHA256:")
		Expect(w.times("b", "nova")).To(BeZero())
		annotate(w.node("b"), common.HostKeyAnnotation, keyTwo)
		w.hosts.Show("b", keyTwo)
		w.computesReady("a", "b")
	})

	// The host of a node is down, the node is deleted, and the host is added again
	// under another name.
	Context("when one is being deleted and could not be cleaned up", func() {
		var ill *sick

		BeforeEach(func() {
			w.make(MakeNode("a", w.ns).Role("compute").Host("10.0.0.1").Obj())
			w.computesReady("a")
			ill = w.sick(map[string]fakekube.Outcome{"a": fakekube.Unreachable})
			remove(w.node("a"))
			w.condition(w.compute("a"), condition.DeploymentReadyCondition, "False/CleanupFailed/Error", "attempt 5, the last")
		})

		It("keep the other waiting, and the clean-up comes before its services", func() {
			ill.heal("a")
			w.make(MakeNode("b", w.ns).Role("compute").Host("10.0.0.1").Obj())
			conflict("b", "OpenStackDataPlaneNode a, which is being deleted, is the same machine: both have address 10.0.0.1:22", skip)
			w.nothingRuns()
			w.setSecret("ssh-key", "ssh-privatekey", "key-2")
			gone(w.node("a"))
			w.computesReady("b")
			Expect(w.times("a", cleanup)).To(Equal(6))
			last := w.did("a", cleanup)[5]
			for _, e := range w.hosts.Book() {
				Expect(e.Host == "b" && e.Start.Before(last.End)).To(BeFalse(), "%s of b should follow the clean-up of a", e.Step)
			}
		})

		It("continue when clean-up is skipped", func() {
			ill.heal("a")
			w.make(MakeNode("b", w.ns).Role("compute").Host("10.0.0.1").Obj())
			conflict("b", "which is being deleted")
			annotate(w.node("a"), skip, "true")
			gone(w.node("a"))
			w.computesReady("b")
			Expect(w.times("a", cleanup)).To(Equal(5))
		})

		It("clean up nothing once the other is deployed there", func() {
			w.make(MakeNode("b", w.ns).Role("compute").Host("10.0.0.2").Obj())
			w.computesReady("b")
			moveTo("b", "10.0.0.1")
			conflict("b", "which is being deleted")
			w.halted(w.compute("a"), condition.DeploymentReadyCondition, novav1.MachineConflictReason,
				"OpenStackDataPlaneNode b is deployed on the same machine (both have address 10.0.0.1:22)", skip)
			ill.heal("a")
			w.setSecret("ssh-key", "ssh-privatekey", "key-2")
			annotate(w.node("a"), common.RerunAnnotation, "again")
			w.nothingRuns()
			Expect(w.times("a", cleanup)).To(Equal(5))

			By("removing the other node")
			remove(w.node("b"))
			gone(w.node("b"))
			gone(w.node("a"))
		})
	})
})
