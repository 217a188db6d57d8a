package controllers_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/metal"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakemetal"
	"github.com/edpm-operators/edpm-operators/test/fakenova"
)

const (
	fenceReason = "edpm-operators: the host is fenced"
	anna        = "anna: PDU port 7 is off"
)

// fence says that the host of a node is off, and unfence that no one says so any more.
func (w *world) fence(node, by string) {
	GinkgoHelper()
	annotate(w.node(node), common.FenceAnnotation, by)
}

func (w *world) unfence(node string) {
	GinkgoHelper()
	change(w.node(node), func(n *dataplanev1.OpenStackDataPlaneNode) { delete(n.Annotations, common.FenceAnnotation) })
}

func (w *world) evacuated(node, want string, parts ...string) {
	GinkgoHelper()
	w.condition(w.compute(node), novav1.EvacuatedCondition, want, parts...)
}

var _ = Describe("A host that is fenced", func() {
	var w *world
	var server *fakenova.Server

	BeforeEach(func() {
		w, server = newOpenStack(func(server *fakenova.Server, _ *batchv1.Job) { server.Discover() })
		w.makeNodes(2, "compute")
		server.Run("n000", "n001")
		w.computesReady("n000", "n001")
	})

	// dies has the host die with guests, of which one is locked, one is shut off and one in ERROR.
	dies := func() {
		for _, g := range []fakenova.Guest{{Name: "a"}, {Name: "b"}, {Name: "off", State: "stopped"}, {Name: "broken", State: "error"}, {Name: "locked", Locked: true}} {
			server.Add("n000", g)
		}
		server.Stop("n000")
	}
	// elsewhere expects that all but the locked one are on the other host, each by one evacuation.
	elsewhere := func() {
		GinkgoHelper()
		w.evacuated("n000", "False/GuestsRemain/Error", "Host n000 has guests: 1 that cannot be moved: locked 0000", "is locked: openstack server unlock 0000")
		for name, state := range map[string]string{"a": "active", "b": "active", "off": "stopped", "broken": "active"} {
			Expect(server.Guest(name)).To(And(HaveField("Host", "n001"), HaveField("Moves", 1), HaveField("State", state)), name)
		}
		Expect(server.Guest("locked").Moves).To(BeZero(), "nova would evacuate it")
		Expect(get(Default, w.compute("n000")).Status.Guests).To(Equal(&novav1.GuestsStatus{Total: 1, Remaining: 1}))
		Expect(server.AtOnce("n000")).To(BeNumerically("<=", 2))
		Expect(server.Doubled()).To(BeEmpty())
		Expect(server.Host("n000")).To(Equal(fakenova.State{Service: true, Mapped: true, Disabled: true, ForcedDown: true, Reason: fenceReason}))
	}
	// returns expects that the host is deployed once more, and that nova uses it only once its
	// nova-compute has started since and removed what was left there.
	returns := func(guests int, before []string) {
		GinkgoHelper()
		w.evacuated("n000", "False/HostReturning/Info", fmt.Sprintf("has removed what is left there of %d guests that were evacuated", guests))
		after := w.steps("n000")[len(before):]
		Expect(after[0]).To(Equal("evacuated"), "what was evacuated should be stopped before anything is started: %v", after)
		Expect(w.did("n000", "evacuated")[0].Vars["edpm_nova_evacuated"]).To(HaveLen(guests))
		Expect(after).To(ContainElements("libvirt", "nova"))
		Expect(server.Host("n000")).To(And(HaveField("ForcedDown", true), HaveField("Disabled", true)))
		server.Run("n000")
		w.computesReady("n000")
		Expect(server.Host("n000")).To(Equal(fakenova.State{Service: true, Mapped: true}))
		Expect(get(Default, w.compute("n000")).Status.Fence).To(BeNil())
		w.quiet()
		Expect(w.steps("n000")[len(before):]).To(Equal(after), "nothing more should be run")
	}

	It("is evacuated at a bounded rate, has nothing run, and returns once it is deployed and nova has finished", func() {
		dies()
		w.quiet()
		Expect(server.Requests("PUT")).To(BeZero(), "a host that does not answer is not fenced")
		before := w.steps("n000")
		w.fence("n000", anna)
		elsewhere()
		w.condition(w.compute("n000"), novav1.ComputeServiceReadyCondition, "False/HostFenced/Info", "is off, as "+anna+" says")

		By("unlocking the last one")
		server.Alter("locked", func(g *fakenova.Guest) { g.Locked = false })
		w.evacuated("n000", "True/HostEvacuated/", "nova has no instances on host n000: 5 guests were evacuated")
		Eventually(func(g Gomega) {
			g.Expect(w.entry(g, "n000").Message).To(Equal("Evacuated: see the conditions of the object"))
		}).Should(Succeed())

		By("changing what is deployed")
		change(w.compute("n000"), func(c *novav1.NovaExternalCompute) { c.Spec.CustomServiceConfig = "[DEFAULT]\ndebug = true" })
		w.condition(w.compute("n000"), condition.DeploymentReadyCondition, "False/HostFenced/Info", "Nothing is run on the host, which is off, as "+anna+" says")
		w.restart()
		w.quiet()
		Expect(w.steps("n000")).To(Equal(before))

		By("taking the statement back")
		w.unfence("n000")
		returns(5, before)
		Expect(w.hosts.Overlaps()).To(BeEmpty())
	})

	DescribeTable("is evacuated, and returns, with the same outcome whenever the manager is killed",
		func(write int, done bool) {
			dies()
			before := w.steps("n000")
			killed := server.KillAt(write, done)
			w.fence("n000", anna)
			Eventually(killed).Should(BeClosed())
			w.running.end()
			server.Revive()
			w.running = startManager(w.ns, w.opts)
			elsewhere()
			server.Alter("locked", func(g *fakenova.Guest) { g.Host = "n001" })
			w.evacuated("n000", "True/HostEvacuated/")
			w.unfence("n000")
			killed = server.KillAt(1, done)
			w.evacuated("n000", "False/HostReturning/Info", "has removed what is left")
			w.restart()
			returns4 := len(w.steps("n000"))
			server.Run("n000")
			Eventually(killed).Should(BeClosed())
			w.running.end()
			server.Revive()
			w.running = startManager(w.ns, w.opts)
			w.computesReady("n000")
			Expect(server.Host("n000")).To(Equal(fakenova.State{Service: true, Mapped: true}))
			w.quiet()
			Expect(w.steps("n000")).To(HaveLen(returns4), "nothing should be run twice")
			Expect(w.times("n000", "nova")).To(Equal(2))
			Expect(w.steps("n000")[len(before)]).To(Equal("evacuated"))
		},
		func(write int, done bool) string { return fmt.Sprintf("at write %d to nova, done: %v", write, done) },
		Entry(nil, 1, false), Entry(nil, 1, true), Entry(nil, 2, false), Entry(nil, 2, true), Entry(nil, 4, true), Entry(nil, 5, false),
	)

	It("is evacuated while inputs of its runs are missing, which needs none", func() {
		server.Add("n000", fakenova.Guest{Name: "a"})
		remove(MakeSecret("ssh-key", w.ns, "", ""))
		w.condition(w.compute("n000"), condition.InputReadyCondition, "False/SecretMissing/Warning")
		server.Stop("n000")
		w.fence("n000", anna)
		w.evacuated("n000", "True/HostEvacuated/", "1 guests were evacuated")
		w.condition(w.compute("n000"), condition.InputReadyCondition, "False/SecretMissing/Warning")
		Expect(server.Guest("a")).To(And(HaveField("Host", "n001"), HaveField("Moves", 1)))
	})

	It("names the guests whose evacuations do not end when it is to return, and what ends them", func() {
		server.Add("n000", fakenova.Guest{Name: "a"})
		server.Stop("n000")
		server.Takes(24 * time.Hour)
		w.fence("n000", anna)
		w.evacuated("n000", "False/Evacuating/Info", "1 being moved")
		w.unfence("n000")
		w.evacuated("n000", "False/HostReturning/Info", "waiting for 1 evacuations that have begun")
		server.Age(2 * time.Hour)
		w.evacuated("n000", "False/HostReturning/Error", "it cannot return before evacuations that have begun have ended: guest 0000", "has an evacuation that is accepted since", "nova-compute on n001", "openstack server delete")
		w.quiet()
		Expect(w.times("n000", "evacuated")).To(BeZero(), "nothing should be run on it")
		server.Destroy("a")
		Eventually(func() int { return w.times("n000", "nova") }).Should(Equal(2))
		server.Run("n000")
		w.computesReady("n000")
		Expect(server.Host("n000")).To(Equal(fakenova.State{Service: true, Mapped: true}))
	})

	It("is not evacuated while its nova-compute reports, which contradicts what was said", func() {
		server.Add("n000", fakenova.Guest{Name: "a"})
		w.fence("n000", anna)
		w.evacuated("n000", "False/FencedHostAlive/Error", anna+" says that host n000 is off, but its nova-compute reports to nova", "remove annotation "+common.FenceAnnotation)
		w.restart()
		w.evacuated("n000", "False/FencedHostAlive/Error")
		Expect(server.Requests("evacuate")).To(BeZero())
		Expect(server.Host("n000").ForcedDown).To(BeTrue())

		By("powering it off")
		server.Stop("n000")
		w.evacuated("n000", "True/HostEvacuated/", "1 guests were evacuated")
		Expect(server.Doubled()).To(BeEmpty())
	})

	It("is not evacuated further when it comes back by itself", func() {
		for i := range 4 {
			server.Add("n000", fakenova.Guest{Name: fmt.Sprintf("g%d", i)})
		}
		server.Stop("n000")
		release := server.HoldMigrations()
		w.fence("n000", anna)
		w.evacuated("n000", "False/Evacuating/Info", "2 being moved, 2 waiting")
		server.Run("n000")
		release()
		w.evacuated("n000", "False/FencedHostAlive/Error")
		w.quiet()
		Expect(server.Requests("evacuate ")).To(Equal(2))
		Expect(server.Doubled()).To(BeEmpty())
		Expect(w.times("n000", "nova")).To(Equal(1), "nothing should be run on it")
	})

	It("stays as it was if the statement is taken back before nova can be asked", func() {
		steps := w.steps("n000")
		server.Break(fakenova.NovaDown)
		w.fence("n000", anna)
		w.condition(w.compute("n000"), condition.DeploymentReadyCondition, "False/HostFenced/Info")
		w.unfence("n000")
		Eventually(func() bool { return get(Default, w.compute("n000")).Status.Fence.Ended }).Should(BeTrue())
		server.Break(fakenova.None)
		w.computesReady("n000")
		Expect(server.Host("n000")).To(Equal(fakenova.State{Service: true, Mapped: true}))
		w.quiet()
		Expect(w.steps("n000")).To(Equal(steps))
	})

	It("has no more guests evacuated once the statement is taken back, and returns after those that are", func() {
		for i := range 4 {
			server.Add("n000", fakenova.Guest{Name: fmt.Sprintf("g%d", i)})
		}
		server.Stop("n000")
		before, release := w.steps("n000"), server.HoldMigrations()
		w.fence("n000", anna)
		w.evacuated("n000", "False/Evacuating/Info", "2 being moved, 2 waiting")
		w.unfence("n000")
		w.evacuated("n000", "False/HostReturning/Info", "waiting for 2 evacuations that have begun")
		w.quiet()
		Expect(w.steps("n000")).To(Equal(before))
		release()
		returns(2, before)
		Expect(server.Requests("evacuate ")).To(Equal(2))
		Expect(server.Guest("g3").Host).To(Equal("n000"))
	})

	It("is disabled afterwards if another user has disabled it, or its node asks for it", func() {
		server.Disable("n000", true, "bad DIMM")
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.ServiceDisabledReason, "(bad DIMM)")
		server.Stop("n000")
		w.fence("n000", anna)
		w.evacuated("n000", "True/HostEvacuated/")
		Expect(server.Host("n000")).To(Equal(fakenova.State{Service: true, Mapped: true, Disabled: true, ForcedDown: true, Reason: "bad DIMM"}))
		server.Run("n000")
		w.unfence("n000")
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.ServiceDisabledReason, "(bad DIMM)")
		Expect(server.Host("n000")).To(Equal(fakenova.State{Service: true, Mapped: true, Disabled: true, Reason: "bad DIMM"}))

		By("its node")
		server.Disable("n001", true, "no guests")
		server.Stop("n001")
		annotate(w.node("n001"), common.DisableAnnotation, "no guests")
		w.fence("n001", anna)
		w.evacuated("n001", "True/HostEvacuated/")
		server.Run("n001")
		w.unfence("n001")
		w.halted(w.compute("n001"), novav1.ComputeServiceReadyCondition, novav1.ServiceDisabledReason, "annotation edpm.openstack.org/disable of the node disables its service (no guests)")
		Expect(server.Host("n001").ForcedDown).To(BeFalse())
	})

	It("names guests for which there is no other host in the cell, which are in ERROR then", func() {
		server.Add("n000", fakenova.Guest{Name: "a"})
		server.Add("n000", fakenova.Guest{Name: "napping", State: "suspended"})
		server.Disable("n001", true, "maintenance")
		server.Stop("n000")
		w.fence("n000", anna)
		w.evacuated("n000", "False/GuestsRemain/Error", "2 that cannot be moved",
			"could not be moved: No valid host was found. There are not enough hosts available.", "is tried again after 20",
			"is suspended, in which nova evacuates no guest: openstack server set --state error")
		Expect(server.Guest("a").State).To(Equal("error"))
		w.quiet()
		Expect(server.Guest("a").Moves).To(Equal(1))
	})

	It("says what is wrong with a statement that is not valid, and follows none", func() {
		w.fence("n000", " ")
		w.evacuated("n000", "False/InvalidSpec/Error", "metadata.annotations[edpm.openstack.org/fence]: Required value: name who says that the host is off")
		w.quiet()
		Expect(server.Requests("PUT")).To(BeZero())
	})

	It("is not cleaned up when its node is deleted, and let go of without that", func() {
		server.Add("n000", fakenova.Guest{Name: "a"})
		server.Stop("n000")
		remove(w.node("n000"))
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.InstancesPresentReason, "kubectl edpm fence n000 (annotation "+common.FenceAnnotation+")")
		w.fence("n000", anna)
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.HostFencedReason, "nova has nothing on host n000, which cannot be cleaned up as it is off, as "+anna+" says", common.SkipCleanupAnnotation)
		Expect(server.Guest("a")).To(And(HaveField("Host", "n001"), HaveField("Moves", 1)))
		w.quiet()
		Expect(w.times("n000", cleanup)).To(BeZero())
		annotate(w.node("n000"), common.SkipCleanupAnnotation, "true")
		gone(w.node("n000"))
		Expect(server.Host("n000")).To(Equal(fakenova.State{}), "nothing is left in nova")
	})

	It("is known when a new node gets it after its own was deleted with guests on it", func() {
		server.Add("n000", fakenova.Guest{Name: "a"})
		server.Add("n000", fakenova.Guest{Name: "locked", Locked: true})
		server.Stop("n000")
		w.fence("n000", anna)
		w.evacuated("n000", "False/GuestsRemain/Error", "1 that cannot be moved: locked")
		annotate(w.node("n000"), common.SkipCleanupAnnotation, "true")
		remove(w.node("n000"))
		gone(w.node("n000"))
		Expect(server.Host("n000")).To(And(HaveField("ForcedDown", true), HaveField("Disabled", true)))
		before := w.steps("n000")
		w.makeNodes(1, "compute")
		w.evacuated("n000", "False/HostReturning/Info", "of 1 guests that were evacuated")
		Expect(w.steps("n000")[len(before):]).To(ContainElements("evacuated", "libvirt", "nova"))
		server.Run("n000")
		w.computesReady("n000")
		Expect(server.Host("n000")).To(Equal(fakenova.State{Service: true, Mapped: true}))
	})
})

var _ = Describe("A host without an API of nova", func() {
	It("says that it cannot be evacuated, and has nothing run while it is fenced", func() {
		w := newCloud()
		w.make(w.role("compute").Cell("cell1").Obj(), MakeNode("n000", w.ns).Role("compute").Host("10.0.0.1").Obj())
		w.computesReady("n000")
		w.fence("n000", anna)
		w.evacuated("n000", "False/EvacuationNotPossible/Error", "apiServiceTemplate.replicas", "remove annotation "+common.FenceAnnotation)
		w.condition(w.compute("n000"), condition.DeploymentReadyCondition, "False/HostFenced/Info")
		w.unfence("n000")
		w.computesReady("n000")
	})
})

var _ = Describe("A machine that is powered off", func() {
	It("is evacuated when its BareMetalHost says so, unless its node is drained, and returns when it is on", func() {
		w, server := newOpenStack(func(server *fakenova.Server, _ *batchv1.Job) { server.Discover() })
		key, err := metal.NewHostKey()
		Expect(err).NotTo(HaveOccurred())
		w.setSecret("ssh-key", "ssh-privatekey", key.Private)
		operator := fakemetal.Start(GinkgoT(), api, w.ns)
		w.machine(operator, "m0", 0)
		role := w.metalRole("metal")
		role.Annotations = map[string]string{novav1.CellAnnotation: "nova-cell1"}
		w.make(role, MakeNode("n", w.ns).Role("metal").Obj())
		w.makeNodes(1, "compute")
		server.Run("n", "n000")
		w.computesReady("n", "n000")
		server.Add("n", fakenova.Guest{Name: "a"})
		power := func(on bool) {
			GinkgoHelper()
			change(w.host("m0"), func(h *metal3v1.BareMetalHost) { h.Spec.Online = on })
			if !on {
				server.Stop("n")
			}
			w.condition(w.node("n"), dataplanev1.ProvisionReadyCondition, map[bool]string{true: "True/Ready/", false: "False/BareMetalHostPoweredOff/Error"}[on])
		}

		By("maintenance")
		annotate(w.node("n"), common.DrainAnnotation, "stop")
		w.condition(w.compute("n"), novav1.DrainedCondition, "True/GuestsStopped/")
		power(false)
		w.quiet()
		Expect(server.Requests("evacuate")).To(BeZero())
		power(true)
		server.Run("n")
		change(w.node("n"), func(n *dataplanev1.OpenStackDataPlaneNode) { delete(n.Annotations, common.DrainAnnotation) })
		w.computesReady("n")

		By("its end")
		power(false)
		w.evacuated("n", "True/HostEvacuated/", "1 guests were evacuated")
		Expect(server.Guest("a").Host).To(Equal("n000"))
		Expect(get(Default, w.compute("n")).Status.Fence.By).To(Equal("BareMetalHost m0, whose power is off"))
		before := w.steps("n")
		power(true)
		w.evacuated("n", "False/HostReturning/Info", "of 1 guests that were evacuated")
		Expect(w.steps("n")[len(before):]).To(ContainElements("evacuated", "libvirt", "nova"))
		server.Run("n")
		w.computesReady("n")
	})
})
