package controllers_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/test/fakekube"
	"github.com/edpm-operators/edpm-operators/test/fakenova"
)

var _ = Describe("A step that needs an empty host", func() {
	var w *world
	var server *fakenova.Server
	var guests []string
	// needy is the step that does not run while guests are on the host. broken is whether it
	// fails then, stray whether guests are there that nova does not know. together reports whether
	// two hosts were drained at the same time.
	var broken, stray, together atomic.Bool
	var needy atomic.Value

	// No retry comes in time: the step is run when the host is empty.
	later := edpm.Backoff{Base: time.Hour, Max: time.Hour}

	BeforeEach(func() {
		w, server = newOpenStack(func(server *fakenova.Server, _ *batchv1.Job) { server.Discover() })
		guests = nil
		needy.Store("libvirt")
		broken.Store(false)
		stray.Store(false)
		together.Store(false)
		server.Takes(1500 * time.Millisecond) // conditions and runs have times in seconds
		w.hosts.Decide(func(host, step string) fakekube.Outcome {
			together.Store(together.Load() || server.Host("n000").Disabled && server.Host("n001").Disabled)
			switch {
			case step != needy.Load():
				return fakekube.OK
			case stray.Load() || slices.ContainsFunc(guests, func(name string) bool { return server.Guest(name).Host == host }):
				return fakekube.Occupied
			case broken.Load():
				return fakekube.Failed
			}
			return fakekube.OK
		})
		w.makePeers(0, 3, "compute")
		server.Run("n000", "n001", "n002")
		w.peersReady("n000", "n001", "n002")
		w.opts.Engine.Backoff = later
		w.restart()
	})

	permit := func(policy dataplanev1.DrainPolicy) {
		GinkgoHelper()
		w.changeRole(func(r *dataplanev1.OpenStackDataPlaneRole) {
			r.Spec.DeployStrategy.Drain, r.Spec.DeployStrategy.MaxUnavailable = policy, ptr.To(intstr.FromInt32(1))
		})
	}
	add := func(host string, g fakenova.Guest) {
		guests = append(guests, g.Name)
		server.Add(host, g)
	}
	renew := func(hosts ...string) {
		GinkgoHelper()
		for _, host := range hosts {
			change(w.compute(host), func(c *novav1.NovaExternalCompute) { c.Spec.NovaLibvirtContainerImage = "libvirt:2" })
		}
	}
	deployed := func(host, want string, parts ...string) {
		GinkgoHelper()
		w.condition(w.compute(host), condition.DeploymentReadyCondition, want, parts...)
	}
	drained := func(host, want string, parts ...string) {
		GinkgoHelper()
		w.condition(w.compute(host), novav1.DrainedCondition, want, parts...)
	}
	successes := func(host string) int {
		n := 0
		for _, e := range w.did(host, "libvirt") {
			if e.Outcome == fakekube.OK {
				n++
			}
		}
		return n
	}
	lastRun := func(host string) fakekube.Execution {
		all := w.did(host, "libvirt")
		return all[len(all)-1]
	}
	// free expects that a host is given back, and that nothing says any more that it was drained.
	free := func(host string) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			g.Expect(server.Host(host)).To(Equal(fakenova.State{Service: true, Mapped: true}))
			status := get(g, w.compute(host)).Status
			g.Expect(status.Drain).To(BeNil())
			g.Expect(status.Conditions.Get(novav1.DrainedCondition)).To(BeNil())
			g.Expect(get(g, w.node(host)).Status.Services).To(HaveEach(HaveField("EmptySince", BeNil())))
		}).Should(Succeed())
	}
	// returned expects that a host has been renewed once, and is used by nova again.
	returned := func(hosts ...string) {
		GinkgoHelper()
		w.computesReady(hosts...)
		for _, host := range hosts {
			Expect(successes(host)).To(Equal(2), "the step should have been run once more on %s", host)
			free(host)
		}
	}

	It("has one host after the other drained, runs on each, and gives it back", func() {
		// A host to which a guest is being moved is asked again after this delay whether it is busy.
		w.opts.Engine.Backoff.Base = 5 * time.Second
		w.restart()
		permit("live")
		add("n000", fakenova.Guest{Name: "a"})
		add("n001", fakenova.Guest{Name: "b"})
		renew("n000", "n001")
		returned("n000", "n001")
		Expect(lastRun("n000").Vars).To(HaveKeyWithValue("edpm_libvirt_drain", true))
		Expect(together.Load()).To(BeFalse(), "maxUnavailable is 1")
		w.quiet()
	})

	DescribeTable("has the same outcome whenever the manager is killed",
		func(write int, done bool) {
			permit("live")
			add("n000", fakenova.Guest{Name: "a"})
			killed := server.KillAt(write, done)
			renew("n000")
			Eventually(killed).Should(BeClosed())
			w.running.end()
			server.Revive()
			w.running = startManager(w.ns, w.opts)
			returned("n000")
			Expect(server.Guest("a").Moves).To(Equal(1))
		},
		func(write int, done bool) string { return fmt.Sprintf("at write %d to nova, done: %v", write, done) },
		Entry(nil, 1, false), Entry(nil, 1, true), Entry(nil, 2, false), Entry(nil, 2, true), Entry(nil, 3, false), Entry(nil, 3, true),
	)

	It("waits, and says for what, where the role does not permit to drain hosts", func() {
		add("n000", fakenova.Guest{Name: "a"})
		renew("n000")
		deployed("n000", "False/HostNotEmpty/Info", "Step libvirt waits for an empty host, as compute-libvirt", "1 guests run",
			"Run kubectl edpm drain n000, or set deployStrategy.drain of the node or its role")
		w.quiet()
		Expect(server.Host("n000").Disabled).To(BeFalse())
		Expect(lastRun("n000").Vars).NotTo(HaveKey("edpm_libvirt_drain"), "a restart that is pending is no reason to wait then")

		By("draining it as a person")
		annotate(w.node("n000"), common.DrainAnnotation, "live")
		drained("n000", "True/HostEmpty/")
		deployed("n000", "True/Ready/")
		Expect(successes("n000")).To(Equal(2))
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.HostDrainedReason, "annotation edpm.openstack.org/drain of the node")
		w.quiet()
		Expect(server.Host("n000").Disabled).To(BeTrue(), "the drain of a person is not taken back")
		change(w.node("n000"), func(n *dataplanev1.OpenStackDataPlaneNode) { delete(n.Annotations, common.DrainAnnotation) })
		returned("n000")
	})

	It("keeps its drain when a person ends another one, and gives up when the role no longer permits it", func() {
		permit("live")
		add("n000", fakenova.Guest{Name: "locked", Locked: true})
		renew("n000")
		drained("n000", "False/GuestsRemain/Error", "is locked")
		deployed("n000", "False/HostNotEmpty/Info", "The host is being drained: see condition Drained")
		Expect(get(Default, w.compute("n000")).Status.Drain).To(And(HaveField("Step", "libvirt"), HaveField("Role", "compute")))
		annotate(w.node("n000"), common.DrainAnnotation, "cold")
		w.quiet()
		change(w.node("n000"), func(n *dataplanev1.OpenStackDataPlaneNode) { delete(n.Annotations, common.DrainAnnotation) })
		w.quiet()
		drained("n000", "False/GuestsRemain/Error", "is locked")
		Expect(server.Host("n000").Disabled).To(BeTrue())

		By("withdrawing the permission")
		permit("none")
		deployed("n000", "False/HostNotEmpty/Info", "Run kubectl edpm drain n000")
		Eventually(func() bool { return server.Host("n000").Disabled }).Should(BeFalse())
		Expect(server.Guest("locked").Moves).To(BeZero())
		w.quiet()
	})

	It("keeps a host drained on which it fails then, and says so", func() {
		permit("cold")
		broken.Store(true)
		add("n000", fakenova.Guest{Name: "a"})
		renew("n000")
		deployed("n000", "False/Failed/Warning", "boom on n000", "The host stays drained until the step has run")
		drained("n000", "True/HostEmpty/")
		w.quiet()
		Expect(server.Host("n000").Disabled).To(BeTrue())
		broken.Store(false)
		annotate(w.compute("n000"), common.RerunAnnotation, "fixed")
		returned("n000")
	})

	It("is tried again after a while only where guests are not nova's", func() {
		permit("live")
		stray.Store(true)
		renew("n000")
		deployed("n000", "False/HostNotEmpty/Info", "The host is drained, so these guests are not nova's")
		tried := w.times("n000", "libvirt")
		w.quiet()
		Expect(w.times("n000", "libvirt")).To(Equal(tried), "it should not be run before its retry")
		Expect(tried).To(BeNumerically("<=", 3))
	})

	Context("is one of the node, such as a reboot,", func() {
		BeforeEach(func() { needy.Store("install-os") })

		// rebooted has the step of the nodes run again.
		rebooted := func() {
			GinkgoHelper()
			w.changeRole(func(r *dataplanev1.OpenStackDataPlaneRole) { r.Annotations[common.RerunAnnotation] = "kernel" })
		}

		It("has one host after the other drained, runs on each, and gives it back", func() {
			permit("live")
			add("n000", fakenova.Guest{Name: "a"})
			add("n001", fakenova.Guest{Name: "b"})
			w.changeRole(func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.DeployStrategy.MaxUnavailable = nil }) // all begin
			rebooted()
			Eventually(func(g Gomega) {
				for _, n := range nodeNames(3) {
					g.Expect(w.times(n, "install-os")).To(BeNumerically(">", 1), n)
				}
			}).Should(Succeed())
			w.nodesReady("n000", "n001", "n002")
			w.computesReady("n000", "n001", "n002")
			Expect(together.Load()).To(BeFalse(), "one of 3 hosts at a time by default")
			free("n000")
			free("n001")
			w.quiet()
		})

		DescribeTable("has the same outcome whenever the manager is killed",
			func(write int, done bool) {
				permit("live")
				add("n000", fakenova.Guest{Name: "a"})
				killed := server.KillAt(write, done)
				annotate(w.node("n000"), common.RerunAnnotation, "kernel")
				Eventually(killed).Should(BeClosed())
				w.running.end()
				server.Revive()
				w.running = startManager(w.ns, w.opts)
				w.computesReady("n000")
				free("n000")
				Expect(server.Guest("a").Moves).To(Equal(1))
			},
			func(write int, done bool) string { return fmt.Sprintf("at write %d to nova, done: %v", write, done) },
			Entry(nil, 1, true), Entry(nil, 2, false), Entry(nil, 2, true), Entry(nil, 3, false), Entry(nil, 3, true),
		)

		It("waits, and says for what, where that is not permitted, and when runs are paused", func() {
			add("n000", fakenova.Guest{Name: "locked", Locked: true})
			rebooted()
			w.condition(w.node("n000"), condition.DeploymentReadyCondition, "False/HostNotEmpty/Info", "Step install-os waits for an empty host", "Run kubectl edpm drain n000")
			w.quiet()
			Expect(server.Host("n000").Disabled).To(BeFalse())

			By("permitting it")
			permit("live")
			w.condition(w.node("n000"), condition.DeploymentReadyCondition, "False/HostNotEmpty/Info", "see status.services")
			drained("n000", "False/GuestsRemain/Error", "is locked")
			w.restart()
			w.quiet()
			drained("n000", "False/GuestsRemain/Error", "is locked")

			By("pausing the node")
			change(w.node("n000"), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.DeployStrategy.Deploy = ptr.To(false) })
			Eventually(func() bool { return server.Host("n000").Disabled }).Should(BeFalse())
			change(w.node("n000"), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.DeployStrategy.Deploy = nil })
			Eventually(func() bool { return server.Host("n000").Disabled }).Should(BeTrue())
			server.Alter("locked", func(g *fakenova.Guest) { g.Locked = false })
			w.computesReady("n000")
			Expect(server.Guest("locked").Moves).To(Equal(1))
		})
	})
})
