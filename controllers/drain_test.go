package controllers_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakenova"
)

const drainReason = "edpm-operators: the host is being drained"

var _ = Describe("A host that is drained", func() {
	var w *world
	var server *fakenova.Server

	BeforeEach(func() {
		w, server = newOpenStack(func(server *fakenova.Server, _ *batchv1.Job) { server.Discover() })
		w.makePeers(0, 2, "compute")
		server.Run("n000", "n001")
		w.peersReady("n000", "n001")
	})

	drain := func(node, mode string) { GinkgoHelper(); annotate(w.node(node), common.DrainAnnotation, mode) }
	undrain := func(node string) {
		GinkgoHelper()
		change(w.node(node), func(n *dataplanev1.OpenStackDataPlaneNode) { delete(n.Annotations, common.DrainAnnotation) })
	}
	drained := func(node, want string, parts ...string) {
		GinkgoHelper()
		w.condition(w.compute(node), novav1.DrainedCondition, want, parts...)
	}
	// shows waits until the node says something of its service nova.
	shows := func(node, message string) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			services := get(g, w.node(node)).Status.Services
			g.Expect(services).To(HaveLen(1))
			g.Expect(services[0].Message).To(Equal(message))
		}).Should(Succeed())
	}

	// five guests, of which one is locked and one is shut off.
	five := func() {
		for _, name := range []string{"a", "b", "c"} {
			server.Add("n000", fakenova.Guest{Name: name})
		}
		server.Add("n000", fakenova.Guest{Name: "off", State: "stopped"})
		server.Add("n000", fakenova.Guest{Name: "locked", Locked: true})
	}
	// moved expects that all but the locked one are on the other host, each in one move.
	moved := func() {
		GinkgoHelper()
		drained("n000", "False/GuestsRemain/Error", "Host n000 has guests: 1 that cannot be moved: locked 0000", "is locked: openstack server unlock 0000")
		for name, state := range map[string]string{"a": "active", "b": "active", "c": "active", "off": "stopped"} {
			g := server.Guest(name)
			Expect(g.Host).To(Equal("n001"), name)
			Expect(g.Moves).To(Equal(1), "%s should be moved once", name)
			Expect(g.State).To(Equal(state), "%s should be as before, and its move confirmed", name)
		}
		Expect(server.Guest("locked").Moves).To(BeZero(), "nova would move it")
		Expect(server.AtOnce("n000")).To(BeNumerically("<=", 2))
		Expect(server.Host("n000")).To(Equal(fakenova.State{Service: true, Mapped: true, Disabled: true, Reason: drainReason}))
	}

	It("is emptied, names the guest that cannot be moved, and takes guests again afterwards", func() {
		five()
		drain("n000", "live")
		moved()
		Expect(server.Requests("os-migrateLive off")).To(BeZero(), "nova refuses that of a guest that is shut off")
		Expect(get(Default, w.compute("n000")).Status.Guests).To(Equal(&novav1.GuestsStatus{Total: 1, Remaining: 1}))
		Expect(get(Default, w.compute("n001")).Status.Guests).To(BeNil(), "nova is not asked for those of a host that is not drained")
		shows("n000", "GuestsRemain: see the conditions of the object")
		w.halted(w.compute("n000"), novav1.DrainedCondition, novav1.GuestsRemainReason)

		By("unlocking it")
		server.Alter("locked", func(g *fakenova.Guest) { g.Locked = false })
		drained("n000", "True/HostEmpty/", "nova has no instances on host n000")
		Expect(get(Default, w.compute("n000")).Status.Guests).To(Equal(&novav1.GuestsStatus{}))
		shows("n000", "Drained: see the conditions of the object")
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.HostDrainedReason, "annotation edpm.openstack.org/drain of the node")

		By("ending the drain")
		undrain("n000")
		w.computesReady("n000")
		Expect(server.Host("n000")).To(Equal(fakenova.State{Service: true, Mapped: true}))
		Expect(get(Default, w.compute("n000")).Status).To(And(HaveField("Guests", BeNil()), HaveField("Conditions", Not(ContainElement(HaveField("Type", novav1.DrainedCondition))))))
	})

	DescribeTable("is emptied with the same outcome, and without moving a guest twice, whenever the manager is killed",
		func(write int, done bool) {
			five()
			killed := server.KillAt(write, done)
			drain("n000", "live")
			Eventually(killed).Should(BeClosed())
			w.running.end()
			server.Revive()
			w.running = startManager(w.ns, w.opts)
			moved()
		},
		func(write int, done bool) string { return fmt.Sprintf("at write %d to nova, done: %v", write, done) },
		Entry(nil, 1, false), Entry(nil, 1, true), Entry(nil, 2, true), Entry(nil, 3, false), Entry(nil, 3, true),
		Entry(nil, 4, true), Entry(nil, 5, true), Entry(nil, 6, false), Entry(nil, 6, true),
	)

	It("stays as it is, and writes nothing, when a manager has just started", func() {
		server.Add("n000", fakenova.Guest{Name: "locked", Locked: true})
		server.Add("n000", fakenova.Guest{Name: "tpm", Refusal: "Operation 'live-migration' not supported for vTPM-enabled instance"})
		drain("n000", "live")
		drained("n000", "False/GuestsRemain/Error", "2 that cannot be moved: ", "nova refuses to live-migrate it: Operation 'live-migration' not supported for vTPM-enabled instance (is tried again")
		w.quiet()
		before, refused := get(Default, w.compute("n000")), server.Requests("os-migrateLive tpm")
		w.quiet()
		Expect(server.Requests("os-migrateLive tpm")).To(Equal(refused), "it should not be tried again at once")
		Expect(get(Default, w.compute("n000")).ResourceVersion).To(Equal(before.ResourceVersion))
	})

	It("names why guests cannot be moved", func() {
		server.Add("n001", fakenova.Guest{Name: "sibling", Group: "pair"})
		server.Add("n000", fakenova.Guest{Name: "apart", Group: "pair"})
		server.Add("n000", fakenova.Guest{Name: "broken", State: "error"})
		server.Add("n000", fakenova.Guest{Name: "device", Failure: "Live migration of instance with PCI devices is not supported"})
		server.Add("n000", fakenova.Guest{Name: "sleeper", State: "suspended"})
		drain("n000", "live")
		drained("n000", "False/GuestsRemain/Error", "4 that cannot be moved: ",
			"could not be moved: No valid host was found. There are not enough hosts available. No other host has room for it, or is allowed by its server group pair (anti-affinity)",
			"is in ERROR: see its fault",
			"could not be moved: Live migration of instance with PCI devices is not supported (is tried again after 20",
			"is suspended: openstack server resume")
		Expect(server.Guest("device").Moves).To(Equal(1))
		Expect(server.Guest("apart").Moves).To(Equal(1))
	})

	It("is emptied by cold migrations, which are completed also when the drain has ended", func() {
		server.Add("n000", fakenova.Guest{Name: "a"})
		drain("n000", "cold")
		drained("n000", "True/HostEmpty/")
		Expect(server.Guest("a")).To(And(HaveField("Host", "n001"), HaveField("State", "active"), HaveField("Moves", 1)))
		Expect(server.Requests("os-migrateLive")).To(BeZero())

		By("ending the drain of the other host in the middle")
		undrain("n000")
		w.computesReady("n000")
		release := server.HoldMigrations()
		drain("n001", "cold")
		drained("n001", "False/Draining/Info", "Host n001 has guests: 1 being moved")
		undrain("n001")
		Eventually(func() bool { return server.Host("n001").Disabled }).Should(BeFalse())
		release()
		Eventually(func() fakenova.Guest { return server.Guest("a") }).Should(And(HaveField("Host", "n000"), HaveField("State", "active")))
		w.computesReady("n001")
	})

	It("confirms no resize of another user, and waits for it", func() {
		confirm := server.Migrate("n000")
		drain("n000", "live")
		drained("n000", "False/GuestsRemain/Error", "has a resize from n000 to elsewhere that was not confirmed: openstack server resize confirm or revert")
		w.quiet()
		Expect(server.Requests("confirmResize")).To(BeZero())
		confirm()
		drained("n000", "True/HostEmpty/")
	})

	It("keeps its guests, shut off, if that is what its node asks for", func() {
		server.Add("n000", fakenova.Guest{Name: "a"})
		server.Add("n000", fakenova.Guest{Name: "off", State: "stopped"})
		drain("n000", "stop")
		drained("n000", "True/GuestsStopped/", "All 2 guests of host n000 are shut off, and stay there")
		Expect(server.Guest("a")).To(And(HaveField("Host", "n000"), HaveField("State", "stopped")))
		Expect(server.Requests("os-stop")).To(Equal(1))
	})

	It("stays disabled afterwards if another user has disabled it", func() {
		server.Disable("n000", true, "bad DIMM")
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.ServiceDisabledReason, "(bad DIMM)")
		server.Add("n000", fakenova.Guest{Name: "a"})
		drain("n000", "live")
		drained("n000", "True/HostEmpty/")
		undrain("n000")
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.ServiceDisabledReason, "(bad DIMM)")
		Expect(server.Requests("PUT")).To(BeZero())
	})

	It("is emptied while another one is, each at its own rate", func() {
		w.makePeers(2, 3, "compute")
		server.Run("n002")
		w.peersReady("n000", "n001", "n002")
		annotate(w.node("n000"), common.DrainParallelAnnotation, "3")
		for i := range 6 {
			server.Add("n000", fakenova.Guest{Name: fmt.Sprintf("a%d", i)})
			server.Add("n001", fakenova.Guest{Name: fmt.Sprintf("b%d", i)})
		}
		server.Disable("n001", true, "maintenance") // or guests of one go to the other
		drain("n000", "live")
		drain("n001", "live")
		drained("n000", "True/HostEmpty/")
		drained("n001", "True/HostEmpty/")
		for i := range 6 {
			Expect(server.Guest(fmt.Sprintf("a%d", i))).To(And(HaveField("Host", "n002"), HaveField("Moves", 1)))
			Expect(server.Guest(fmt.Sprintf("b%d", i))).To(And(HaveField("Host", "n002"), HaveField("Moves", 1)))
		}
		Expect(server.AtOnce("n000")).To(Equal(3))
		Expect(server.AtOnce("n001")).To(Equal(2))
	})

	It("says that nova does not answer, and continues when it does", func() {
		release := server.HoldMigrations()
		server.Add("n000", fakenova.Guest{Name: "a"})
		drain("n000", "live")
		drained("n000", "False/Draining/Info", "1 being moved")
		server.Break(fakenova.NovaDown)
		release()
		drained("n000", "False/NovaAPIUnreachable/Warning", "Guests wait to be moved: nova's API")
		server.Break(fakenova.None)
		drained("n000", "True/HostEmpty/")
	})

	It("is not taken for empty while nova does not reach the database of its cell", func() {
		server.Add("n000", fakenova.Guest{Name: "a", Locked: true})
		drain("n000", "live")
		drained("n000", "False/GuestsRemain/Error")
		server.Break(fakenova.CellDown)
		drained("n000", "False/CellDatabaseUnreachable/Warning", "does not reach the database of the cell of host n000")
		w.quiet()
		drained("n000", "False/CellDatabaseUnreachable/Warning")
	})

	It("keeps its guests while its nova-compute is down, and says so", func() {
		server.Add("n000", fakenova.Guest{Name: "a"})
		server.Stop("n000")
		drain("n000", "live")
		drained("n000", "False/ComputeServiceDown/Warning", "Host n000 has 1 guests, which nova cannot move because its nova-compute is down")
		Expect(server.Guest("a").Moves).To(BeZero())
	})

	It("moves no guest in a way that does not exist", func() {
		server.Add("n000", fakenova.Guest{Name: "a"})
		drain("n000", "evacuate")
		drained("n000", "False/InvalidSpec/Error", `metadata.annotations[edpm.openstack.org/drain]: Unsupported value: "evacuate": supported values: "live", "cold", "stop"`)
		Expect(server.Guest("a").Moves).To(BeZero())
	})

	It("keeps the guests that run while it reaches no other host over TLS, and says so", func() {
		w.hosts.Note("n000", "Not reached over TLS: n001 (no answer)")
		annotate(w.compute("n000"), common.RerunAnnotation, "1")
		w.condition(w.compute("n000"), novav1.LiveMigrationReadyCondition, "False/PeerUnreachable/Warning")
		server.Add("n000", fakenova.Guest{Name: "a"})
		server.Add("n000", fakenova.Guest{Name: "off", State: "stopped"})
		drain("n000", "live")
		drained("n000", "False/GuestsRemain/Error", "1 that cannot be moved: a 0000", "cannot be migrated while it runs. Live migration from the host is not possible: The host does not reach libvirt over TLS on n001 (no answer)",
			"kubectl edpm drain n000 --cold")
		w.restart()
		w.quiet()
		drained("n000", "False/GuestsRemain/Error", "on n001 (no answer)")
		Expect(server.Requests("os-migrateLive")).To(BeZero())
		Expect(server.Guest("off").Host).To(Equal("n001"), "one that is shut off needs no TLS")

		By("repairing the other one")
		annotate(w.compute("n001"), common.RerunAnnotation, "fixed")
		drained("n000", "True/HostEmpty/")
		Expect(server.Guest("a")).To(And(HaveField("Host", "n001"), HaveField("Moves", 1)))
	})

	It("keeps the guests that would be migrated cold while no other host takes disks, and says so", func() {
		By("having an earlier version deploy the other host")
		w.running.end()
		Expect(api.Status().Patch(ctx, w.compute("n001"), jsonPatch(`{"status":{"coldMigration":null}}`))).To(Succeed())
		w.running = startManager(w.ns, w.opts)
		server.Add("n000", fakenova.Guest{Name: "a"})
		server.Add("n000", fakenova.Guest{Name: "off", State: "stopped"})
		drain("n000", "cold")
		const why = "Cold migration from the host is not possible: of the 1 hosts that nova may choose none takes disks. Host n001: an earlier version of the operators has deployed the host. kubectl edpm rerun n001 configures it"
		drained("n000", "False/GuestsRemain/Error", "Host n000 has guests: 2 that cannot be moved: a 0000", "migrated cold", why)
		w.quiet()
		Expect(server.Requests("migrate")).To(BeZero(), "nova would accept it, and nova-compute fail")

		By("moving those that run while they do")
		drain("n000", "live")
		drained("n000", "False/GuestsRemain/Error", "1 that cannot be moved: off 0000", why)
		Eventually(server.Guest).WithArguments("a").Should(And(HaveField("Host", "n001"), HaveField("Moves", 1)))

		By("running the steps of the other one again")
		annotate(w.node("n001"), common.RerunAnnotation, "now")
		drained("n000", "True/HostEmpty/")
		Expect(server.Guest("off")).To(And(HaveField("Host", "n001"), HaveField("State", "stopped"), HaveField("Moves", 1)))
	})

	It("keeps the guests that would be migrated cold while no one knows the key of its host, and says so", func() {
		w.makePeers(2, 3, "compute")
		w.hosts.Show("n002", "")
		server.Run("n002")
		w.peersReady("n002")
		server.Add("n002", fakenova.Guest{Name: "a"})
		drain("n002", "cold")
		drained("n002", "False/GuestsRemain/Error", "Cold migration from the host is not possible: the key of the host is not known. Set annotation edpm.openstack.org/host-key on OpenStackDataPlaneNode n002")
		w.hosts.Show("n002", hostKey("n002"))
		annotate(w.node("n002"), common.HostKeyAnnotation, hostKey("n002"))
		drained("n002", "True/HostEmpty/")
		Expect(server.Guest("a").Moves).To(Equal(1))
	})

	It("is emptied although it does not reach one of the other hosts", func() {
		w.makePeers(2, 3, "compute")
		server.Run("n002")
		w.peersReady("n000", "n001", "n002")
		w.hosts.Note("n000", "Not reached over TLS: n001 (no answer)")
		annotate(w.compute("n000"), common.RerunAnnotation, "1")
		w.condition(w.compute("n000"), novav1.LiveMigrationReadyCondition, "False/PeerUnreachable/Warning")
		server.Add("n000", fakenova.Guest{Name: "a"})
		drain("n000", "live")
		drained("n000", "True/HostEmpty/")
	})

	It("has its cold migrations completed after the drain also while inputs of its runs are missing", func() {
		server.Add("n000", fakenova.Guest{Name: "a"})
		release := server.HoldMigrations()
		drain("n000", "cold")
		drained("n000", "False/Draining/Info", "1 being moved")
		remove(MakeSecret("ssh-key", w.ns, "", ""))
		w.condition(w.compute("n000"), condition.InputReadyCondition, "False/SecretMissing/Warning")
		drained("n000", "False/Draining/Info", "1 being moved")
		undrain("n000")
		Eventually(func() bool { return server.Host("n000").Disabled }).Should(BeFalse())
		w.quiet()
		release()
		Eventually(func() fakenova.Guest { return server.Guest("a") }).Should(And(HaveField("Host", "n001"), HaveField("State", "active")))
	})

	It("has its cold migrations completed when its node is deleted after the drain", func() {
		server.Add("n000", fakenova.Guest{Name: "a"})
		release := server.HoldMigrations()
		drain("n000", "cold")
		drained("n000", "False/Draining/Info", "1 being moved")
		undrain("n000")
		drained("n000", "False/Draining/Info", "The drain has ended, but its cold migrations are not complete yet")
		remove(w.node("n000"))
		w.condition(w.compute("n000"), novav1.ComputeServiceReadyCondition, "False/InstancesPresent/Error")
		release()
		Eventually(func() fakenova.Guest { return server.Guest("a") }).Should(And(HaveField("Host", "n001"), HaveField("State", "active")))
		server.Stop("n000")
		gone(w.node("n000"))
	})

	It("is emptied, and then cleaned up, when its node is deleted", func() {
		server.Add("n000", fakenova.Guest{Name: "a"})
		server.Add("n000", fakenova.Guest{Name: "off", State: "stopped"})
		remove(w.node("n000"))
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.InstancesPresentReason, "host n000 has 2 instances", "Move them with kubectl edpm drain n000")
		Expect(get(Default, w.compute("n000")).Status.Guests).To(Equal(&novav1.GuestsStatus{Total: 2}))
		release := w.hosts.Hold()
		DeferCleanup(release)
		confirm := server.Migrate("n000")
		drain("n000", "live")
		w.condition(w.compute("n000"), novav1.ComputeServiceReadyCondition, "False/InstancesPresent/Error", "host n000 has 0 instances", "1 that cannot be moved: ", "was not confirmed")
		w.quiet()
		Expect(w.times("n000", cleanup)).To(BeZero(), "nova-compute is needed for the confirmation")
		confirm()
		Eventually(func() int { return w.times("n000", cleanup) }).Should(Equal(1))
		Expect(server.Guest("off")).To(And(HaveField("Host", "n001"), HaveField("State", "stopped")), "its move should be confirmed before nova-compute is removed")
		Expect(server.Guest("a")).To(And(HaveField("Host", "n001"), HaveField("Moves", 1)))
		server.Stop("n000")
		release()
		gone(w.node("n000"))
		Expect(server.Host("n000")).To(Equal(fakenova.State{}))
	})
})

var _ = Describe("A host in a cell without an API of nova", func() {
	It("says that it cannot be drained, and what helps", func() {
		w := newCloud()
		w.make(w.role("compute").Cell("cell1").Obj(), MakeNode("n000", w.ns).Role("compute").Host("10.0.0.1").Obj())
		w.computesReady("n000")
		annotate(w.node("n000"), common.DrainAnnotation, "live")
		w.halted(w.compute("n000"), novav1.DrainedCondition, novav1.DrainNotPossibleReason, "apiServiceTemplate.replicas", "remove annotation edpm.openstack.org/drain")
		w.condition(w.compute("n000"), condition.DeploymentReadyCondition, "True/Ready/")
		change(w.node("n000"), func(n *dataplanev1.OpenStackDataPlaneNode) { delete(n.Annotations, common.DrainAnnotation) })
		w.computesReady("n000")
	})
})
