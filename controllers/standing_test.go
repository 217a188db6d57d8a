package controllers_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/fakenova"
)

var _ = Describe("A migration that a person has started", func() {
	const progressing = novav1.MigrationsProgressingCondition
	var w *world
	var server *fakenova.Server

	BeforeEach(func() {
		w, server = newOpenStack(func(server *fakenova.Server, _ *batchv1.Job) { server.Discover() })
		w.makePeers(0, 2, "compute")
		server.Run("n000", "n001")
		w.peersReady("n000", "n001")
	})

	// stands waits until a compute names a migration that stands still, by which it stays Ready.
	stands := func(node string, parts ...string) {
		GinkgoHelper()
		w.condition(w.compute(node), progressing, "False/MigrationsStuck/Error", parts...)
		w.computesReady(node)
	}
	// silent expects that a compute says nothing of migrations.
	silent := func(node string) {
		GinkgoHelper()
		Eventually(func(g Gomega) { g.Expect(get(g, w.compute(node)).Status.Conditions.Get(progressing)).To(BeNil()) }).Should(Succeed())
	}
	// counted waits until so many computes are counted for it.
	counted := func(computes float64) {
		GinkgoHelper()
		const gauge = "edpm_computes_with_stuck_guests{MigrationsProgressing,MigrationsStuck}"
		Eventually(func(g Gomega) { g.Expect(gauges(g)[gauge]).To(Equal(computes)) }).Should(Succeed())
	}
	// looked waits until nova has been asked for migrations once more.
	looked := func() {
		GinkgoHelper()
		before := server.Requests("GET /v2.1/os-migrations")
		Eventually(func() int { return server.Requests("GET /v2.1/os-migrations") }).Should(BeNumerically(">=", before+9))
	}

	It("is named by its compute once nothing changes of it, counted, and forgotten when it has ended", func() {
		complete, end := server.Move("n000"), server.Resize("n001", "n000")
		looked()
		silent("n000")
		server.Age(2 * time.Hour)
		stands("n000", "Migrations from or to host n000 stand still: guest 0000", "has a migration that is running since 20", "see the log of nova-compute on n000, and openstack server migration abort",
			"has a migration that is migrating since 20", "see the logs of nova-compute on n001 and n000, and openstack server set --state")
		stands("n001", "Migrations from or to host n001 stand still: guest 0000", "that is migrating since 20")
		counted(2)
		w.quiet()

		By("restarting the manager, which writes nothing")
		before := get(Default, w.compute("n000"))
		w.restart()
		looked()
		w.quiet()
		Expect(get(Default, w.compute("n000")).ResourceVersion).To(Equal(before.ResourceVersion))

		By("ending them: the resize waits for its confirmation, which is the matter of others")
		complete()
		end()
		silent("n000")
		silent("n001")
		counted(0)
	})

	It("is named when it waits for its confirmation", func() {
		server.MigrateCold("n000", "n001")
		server.Age(2 * time.Hour)
		for _, node := range []string{"n000", "n001"} {
			stands(node, "has a migration from n000 to n001 that was not confirmed: openstack server resize confirm or revert 0000")
		}
	})

	It("is forgotten by a manager that was not there when it ended", func() {
		complete := server.Move("n000")
		server.Age(2 * time.Hour)
		stands("n000", "that is running since")
		w.running.end()
		complete()
		w.running = startManager(w.ns, w.opts)
		silent("n000")
	})

	It("is named by the drain instead, as long as the host is drained", func() {
		server.Move("n000")
		server.Age(2 * time.Hour)
		stands("n000", "that is running since")
		annotate(w.node("n000"), common.DrainAnnotation, "live")
		w.condition(w.compute("n000"), novav1.DrainedCondition, "False/GuestsRemain/Error", "that is running since")
		silent("n000")
		change(w.node("n000"), func(n *dataplanev1.OpenStackDataPlaneNode) { delete(n.Annotations, common.DrainAnnotation) })
		stands("n000", "that is running since")
	})

	It("of many is named with four others", func() {
		for range 7 {
			server.Move("n000")
		}
		server.Age(2 * time.Hour)
		stands("n000", "; and 2 more")
	})
})
