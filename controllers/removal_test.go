package controllers_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakenova"
)

var _ = Describe("A compute that nova knows", func() {
	var w *world
	var server *fakenova.Server

	BeforeEach(func() {
		w, server = newOpenStack(func(server *fakenova.Server, _ *batchv1.Job) { server.Discover() })
		w.makeNodes(1, "compute")
		server.Run("n000")
		w.computesReady("n000")
	})

	It("disappears from nova once its host is cleaned up, and its name can come back", func() {
		release := w.hosts.Hold()
		DeferCleanup(release)
		remove(w.node("n000"))
		Eventually(func() int { return w.times("n000", cleanup) }).Should(Equal(1))
		Expect(server.Host("n000")).To(Equal(fakenova.State{Service: true, Mapped: true, Disabled: true, Reason: "edpm-operators: the compute is being removed"}))
		Expect(server.Requests("DELETE")).To(BeZero(), "nova-compute still runs")
		server.Stop("n000")
		release()
		gone(w.compute("n000"))
		gone(w.node("n000"))
		Expect(server.Host("n000")).To(Equal(fakenova.State{}), "nothing is left in nova")
		Expect(server.Requests("DELETE")).To(Equal(1))
		Expect(server.Requests("PUT")).To(Equal(1))

		By("adding a node of that name")
		w.makeNodes(1, "compute")
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.ServiceNotReportedReason)
		server.Run("n000")
		w.computesReady("n000")
		Expect(server.Host("n000")).To(Equal(fakenova.State{Service: true, Mapped: true}))
	})

	It("stays as long as nova has instances on it, and says how many", func() {
		server.Boot("n000", 2)
		remove(w.node("n000"))
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.InstancesPresentReason, "host n000 has 2 instances", common.FenceAnnotation)
		Expect(server.Host("n000").Disabled).To(BeTrue())
		w.quiet()
		Expect(w.times("n000", cleanup)).To(BeZero(), "nothing should be removed from the host")
		server.Boot("n000", 1)
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.InstancesPresentReason, "host n000 has 1 instances")
		server.Stop("n000")
		server.Boot("n000", 0)
		gone(w.compute("n000"))
		Expect(w.times("n000", cleanup)).To(Equal(1))
		Expect(server.Host("n000")).To(Equal(fakenova.State{}))
	})

	It("stays while migrations from or to it have not ended, and names what ends them", func() {
		confirm, abort := server.Migrate("n000"), server.Approach("n000")
		remove(w.node("n000"))
		w.condition(w.compute("n000"), novav1.ComputeServiceReadyCondition, "False/InstancesPresent/Error", "Deleting: migrations from or to host n000 have not ended, which need its nova-compute: guest 0000",
			"has a resize from n000 to elsewhere that was not confirmed: openstack server resize confirm or revert 0000", "has a live-migration from elsewhere to n000 that is running: wait until it has ended")
		w.quiet()
		Expect(w.times("n000", cleanup)).To(BeZero(), "nova-compute is needed for the confirmation")
		Expect(server.Requests("DELETE")).To(BeZero())
		confirm()
		w.condition(w.compute("n000"), novav1.ComputeServiceReadyCondition, "False/InstancesPresent/Info", "has a live-migration from elsewhere to n000 that is running")
		w.quiet()
		Expect(w.times("n000", cleanup)).To(BeZero())
		server.Stop("n000")
		abort()
		gone(w.compute("n000"))
		Expect(w.times("n000", cleanup)).To(Equal(1))
		Expect(server.Host("n000")).To(Equal(fakenova.State{}))
	})

	It("stays while nova does not reach the database of its cell, which may have instances on it", func() {
		server.Boot("n000", 2)
		server.Break(fakenova.CellDown)
		remove(w.node("n000"))
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.CellUnreachableReason, "does not reach the database of the cell of host n000")
		w.quiet()
		Expect(w.times("n000", cleanup)).To(BeZero(), "nothing should be removed from the host")
		server.Break(fakenova.None)
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.InstancesPresentReason, "host n000 has 2 instances")
	})

	// left is the service of a compute that was deleted without clean-up: nothing was said of the host.
	left := fakenova.State{Service: true, Mapped: true, Disabled: true, Reason: "edpm-operators: the compute is being removed"}

	It("leaves its service in nova when it is deleted without clean-up with guests, which says nothing about its host", func() {
		server.Boot("n000", 3)
		server.Stop("n000")
		remove(w.node("n000"))
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.InstancesPresentReason)
		annotate(w.node("n000"), common.SkipCleanupAnnotation, "true")
		gone(w.compute("n000"))
		gone(w.node("n000"))
		Expect(server.Host("n000")).To(Equal(left))
		Expect(server.Requests("DELETE")).To(BeZero())
		Expect(w.times("n000", cleanup)).To(BeZero())
		Eventually(func() []string { return w.events("n000") }).Should(ContainElement(And(
			ContainSubstring("Warning ComputeServiceLeft nova keeps the service nova-compute of host n000 (3 instances)"), ContainSubstring("openstack compute service delete 0000"))))

		By("replacing the host")
		server.Boot("n000", 0)
		w.makeNodes(1, "compute")
		Eventually(func() fakenova.State { return server.Host("n000") }).Should(Equal(fakenova.State{Service: true, Mapped: true}))
		server.Run("n000")
		w.computesReady("n000")
	})

	It("stays when a manager has just started, which writes nothing", func() {
		server.Boot("n000", 2)
		remove(w.node("n000"))
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.InstancesPresentReason, "host n000 has 2 instances")
		w.quiet()
		before := w.compute("n000").ResourceVersion
		for range 3 {
			w.restart()
			w.quiet()
			Expect(w.compute("n000").ResourceVersion).To(Equal(before))
		}
	})

	It("leaves its service when it is deleted without clean-up with guests also if the manager has just started", func() {
		server.Boot("n000", 3)
		server.Stop("n000")
		remove(w.node("n000"))
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.InstancesPresentReason)
		w.running.end()
		annotate(w.node("n000"), common.SkipCleanupAnnotation, "true")
		w.running = startManager(w.ns, w.opts)
		gone(w.compute("n000"))
		Expect(server.Host("n000")).To(Equal(left))
	})

	It("disappears from nova without clean-up when its host is dead and empty", func() {
		server.Stop("n000")
		annotate(w.node("n000"), common.SkipCleanupAnnotation, "true")
		remove(w.node("n000"))
		gone(w.node("n000"))
		Expect(server.Host("n000")).To(Equal(fakenova.State{}))
		Expect(w.times("n000", cleanup)).To(BeZero())
	})

	It("leaves its service when its host has just died, before nova has noticed", func() {
		server.DownAfter(time.Minute)
		server.Boot("n000", 3)
		server.Stop("n000")
		annotate(w.node("n000"), common.SkipCleanupAnnotation, "true")
		remove(w.node("n000"))
		gone(w.node("n000"))
		Expect(server.Host("n000")).To(Equal(left))
		Eventually(func() []string { return w.events("n000") }).Should(ContainElement(
			ContainSubstring("Warning ComputeServiceLeft nova keeps the service nova-compute of host n000 (3 instances)")))
	})

	It("lets no one evacuate guests that run, and leaves no ghost, when it is deleted without clean-up while nova-compute runs", func() {
		server.Boot("n000", 2)
		annotate(w.node("n000"), common.SkipCleanupAnnotation, "true")
		remove(w.node("n000"))
		gone(w.node("n000"))
		Expect(server.Host("n000")).To(Equal(left))
	})

	It("leaves no ghost when another user has forced the service down", func() {
		server.Disable("n000", true, "mine")
		server.ForceDown("n000")
		annotate(w.node("n000"), common.SkipCleanupAnnotation, "true")
		remove(w.node("n000"))
		gone(w.node("n000"))
		Expect(server.Host("n000").Service).To(BeTrue(), "nova-compute may still run")
		Eventually(func() []string { return w.events("n000") }).Should(ContainElement(ContainSubstring("Warning ComputeServiceLeft nova keeps the service")))
		Expect(server.Host("n000").Ghosts).To(BeZero())
	})

	It("leaves no ghost when its node has disabled it and another user has forced it down", func() {
		annotate(w.node("n000"), common.DisableAnnotation, "scale-in")
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.ServiceDisabledReason)
		server.ForceDown("n000")
		annotate(w.node("n000"), common.SkipCleanupAnnotation, "true")
		remove(w.node("n000"))
		gone(w.node("n000"))
		state := server.Host("n000")
		Expect(state.Service && state.ForcedDown).To(BeTrue(), "nova-compute still runs: %+v", state)
		Expect(state.Ghosts).To(BeZero())
		Expect(state.Reason).To(Equal("edpm-operators: the compute is being removed"), "by which the service is enabled when the host comes back")
	})

	It("leaves its service when its host is dead and nova refuses to delete it", func() {
		server.Migrate("n000")
		server.Stop("n000")
		annotate(w.node("n000"), common.SkipCleanupAnnotation, "true")
		remove(w.node("n000"))
		gone(w.node("n000"))
		Expect(server.Host("n000")).To(Equal(left))
		Eventually(func() []string { return w.events("n000") }).Should(ContainElement(ContainSubstring("Warning ComputeServiceLeft nova keeps the service nova-compute of host n000")))
	})

	It("waits with its deletion while nova cannot be asked, unless clean-up is skipped", func() {
		server.Break(fakenova.KeystoneDown)
		w.restart() // the token is lost
		remove(w.node("n000"))
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.KeystoneUnreachableReason, "Deleting: the service cannot be disabled and deleted in nova: keystone", common.SkipCleanupAnnotation)
		Expect(w.times("n000", cleanup)).To(BeZero())
		annotate(w.node("n000"), common.SkipCleanupAnnotation, "true")
		gone(w.node("n000"))
		Eventually(func() []string { return w.events("n000") }).Should(ContainElement(ContainSubstring("was left in nova as it is: keystone")))
	})

	It("disables its service with the reason of its node, and enables only what it disabled itself", func() {
		annotate(w.node("n000"), common.DisableAnnotation, "new memory")
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.ServiceDisabledReason, "annotation edpm.openstack.org/disable of the node disables its service (new memory)")
		Expect(server.Host("n000").Reason).To(Equal("new memory"))
		annotate(w.node("n000"), common.DisableAnnotation, "newer memory")
		Eventually(func() string { return server.Host("n000").Reason }).Should(Equal("newer memory"))
		w.quiet()
		writes := server.Requests("PUT")
		w.resync()
		Expect(server.Requests("PUT")).To(Equal(writes))
		enable := func() {
			GinkgoHelper()
			change(w.node("n000"), func(n *dataplanev1.OpenStackDataPlaneNode) { delete(n.Annotations, common.DisableAnnotation) })
		}
		enable()
		w.computesReady("n000")
		Expect(server.Host("n000")).To(Equal(fakenova.State{Service: true, Mapped: true}))

		By("a user disabling it before and after")
		server.Disable("n000", true, "mine")
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.ServiceDisabledReason, "(mine)", "compute service set --enable n000")
		writes = server.Requests("PUT")
		annotate(w.node("n000"), common.DisableAnnotation, "maintenance")
		w.quiet()
		enable()
		w.quiet()
		Expect(server.Host("n000").Reason).To(Equal("mine"))
		Expect(server.Requests("PUT")).To(Equal(writes), "what others have disabled is theirs")
	})

	It("stays disabled by a user who was faster than the next list", func() {
		w.opts.Services.Interval = time.Hour
		w.restart()
		w.computesReady("n000")
		annotate(w.node("n000"), common.DisableAnnotation, "new memory")
		Eventually(func() string { return server.Host("n000").Reason }).Should(Equal("new memory"))
		w.quiet()
		server.Disable("n000", true, "bad DIMM")
		change(w.node("n000"), func(n *dataplanev1.OpenStackDataPlaneNode) { delete(n.Annotations, common.DisableAnnotation) })
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.ServiceDisabledReason, "its service is disabled (bad DIMM)")
		Expect(server.Host("n000")).To(Equal(fakenova.State{Service: true, Mapped: true, Disabled: true, Reason: "bad DIMM"}))
	})

	It("disables its service as soon as nova answers again, also while nothing is deployed, and says so", func() {
		change(w.node("n000"), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.DeployStrategy.Deploy = ptr.To(false) })
		change(w.compute("n000"), func(c *novav1.NovaExternalCompute) { c.Spec.CustomServiceConfig = "[DEFAULT]\ndebug = true" })
		w.condition(w.compute("n000"), condition.DeploymentReadyCondition, "False/DeployDisabled/Info")
		server.Break(fakenova.NovaDown)
		annotate(w.node("n000"), common.DisableAnnotation, "new memory")
		w.condition(w.compute("n000"), novav1.ComputeServiceReadyCondition, "False/NovaAPIUnreachable/Warning", "The service cannot be disabled or enabled: nova's API")
		server.Break(fakenova.None)
		Eventually(func() string { return server.Host("n000").Reason }).Should(Equal("new memory"))
	})

	It("stays itself in nova when its machine is replaced, or installed again", func() {
		known := get(Default, w.compute("n000")).Status.ComputeService
		Expect(known.ComputeID).NotTo(BeEmpty())
		server.Boot("n000", 1)
		server.Stop("n000")
		annotate(w.node("n000"), common.HostKeyAnnotation, keyTwo)
		annotate(w.node("n000"), common.RerunAnnotation, "installed again")
		Eventually(func() int { return w.times("n000", "nova") }).Should(Equal(2))
		told := w.did("n000", "nova")[1].Vars
		Expect(told).To(And(HaveKeyWithValue("edpm_nova_known_host", "n000"), Not(HaveKey("edpm_nova_in_use"))))
		Expect(server.RunAs("n000", "")).To(BeFalse(), "nova-compute refuses to start where its identity is lost")
		Expect(server.RunAs("n000", told["edpm_nova_compute_id"].(string))).To(BeTrue())
		w.computesReady("n000")
		now := get(Default, w.compute("n000")).Status.ComputeService
		Expect([]string{now.ID, now.ComputeID}).To(Equal([]string{known.ID, known.ComputeID}))
		Expect(server.Guest("guest-0").Host).To(Equal("n000"))
		Expect(server.Requests("DELETE")).To(BeZero())
	})

	It("has its host look whether it is the one that is up under its name", func() {
		up(server, "n001")
		w.make(MakeNode("n001", w.ns).Role("compute").Deploy(false).Obj())
		Eventually(func(g Gomega) { // the preparation of a real host takes longer
			service := get(g, w.compute("n001")).Status.ComputeService
			g.Expect(service).NotTo(BeNil())
			g.Expect(service.ComputeID).To(Equal(server.NodeID("n001")))
		}).Should(Succeed())
		change(w.node("n001"), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.DeployStrategy.Deploy = nil })
		w.computesReady("n001")
		Expect(w.did("n001", "nova")[0].Vars).To(And(HaveKeyWithValue("edpm_nova_in_use", "n001"), HaveKeyWithValue("edpm_nova_compute_id", server.NodeID("n001"))))
	})

	It("leaves the service of another compute alone when it never ran on its host", func() {
		up(server, "n001")
		w.make(MakeNode("n001", w.ns).Role("compute").Deploy(false).Obj())
		w.halted(w.compute("n001"), novav1.DataPlaneNodeReadyCondition, novav1.NodeNotReadyReason)
		writes := server.Requests("PUT")
		remove(w.node("n001"))
		gone(w.node("n001"))
		Expect(server.Requests("PUT")).To(Equal(writes))
		Expect(server.Host("n001")).To(Equal(fakenova.State{Service: true, Mapped: true}))
	})
})
