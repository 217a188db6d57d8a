package controllers_test

import (
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakenova"
)

// observing makes nova be asked often enough for a story.
func observing(o *controllers.Options) {
	o.Services = computeservice.Options{Interval: 400 * time.Millisecond, Soon: 100 * time.Millisecond, Timeout: 5 * time.Second, Loopback: true}
	o.Images.NovaAPI, o.Images.NovaConductor, o.Images.NovaScheduler = "api:1", "conductor:1", "scheduler:1"
}

// newOpenStack makes a world with keystone, a Nova with an API and cell1, and a role
// compute in it. Jobs succeed once they have done what the functions do.
func newOpenStack(does ...func(*fakenova.Server, *batchv1.Job)) (*world, *fakenova.Server) {
	GinkgoHelper()
	return openStackIn(newWorld(observing), does...)
}

// openStackIn makes the same in a world that is observing.
func openStackIn(w *world, does ...func(*fakenova.Server, *batchv1.Job)) (*world, *fakenova.Server) {
	GinkgoHelper()
	server := fakenova.Start("p")
	DeferCleanup(server.Close)
	w.databases = startDatabases(w.ns, func(job *batchv1.Job) {
		for _, do := range does {
			do(server, job)
		}
	})
	nova := MakeNova("nova", w.ns, "osp-secret", "cell1")
	nova.Spec.KeystoneAuthURL = server.URL
	nova.Spec.APIServiceTemplate.Replicas = ptr.To[int32](1)
	nova.Spec.CellTemplates[novav1.Cell0Name] = novav1.NovaCellTemplate{HasAPIAccess: true}
	secret := MakeSecret("osp-secret", w.ns, "NovaPassword", "p")
	secret.Data["NovaAPIDatabasePassword"], secret.Data["NovaCellDatabasePassword"] = []byte("a"), []byte("d")
	w.make(secret, nova, MakeSecret("ssh-key", w.ns, "ssh-privatekey", "key-1"), w.role("compute").Cell("nova-cell1").Obj())
	for _, cell := range []string{"cell0", "cell1"} {
		w.make(MakeSecret("rabbitmq-transport-url-nova-"+cell+"-transport", w.ns, "transport_url", "rabbit://"+cell))
	}
	return w, server
}

// discoveries are the Jobs that have mapped hosts.
func (w *world) discoveries() int {
	n := 0
	for name, times := range w.databases.times() {
		if strings.HasPrefix(name, discovery) {
			n += times
		}
	}
	return n
}

// setPassword changes the password that the Nova has.
func setPassword(w *world, password string) {
	GinkgoHelper()
	change(MakeSecret("osp-secret", w.ns, "", ""), func(s *corev1.Secret) { s.Data["NovaPassword"] = []byte(password) })
}

// setVars changes the variables of a node.
func setVars(w *world, node, vars string) {
	GinkgoHelper()
	change(w.node(node), func(n *dataplanev1.OpenStackDataPlaneNode) {
		n.Spec.Node.AnsibleVars = JSON(vars)
	})
}

// discovery is the name of the Jobs that map hosts.
const discovery = "nova-discover-hosts"

// up has nova-compute run on hosts that are mapped.
func up(server *fakenova.Server, hosts ...string) {
	server.Run(hosts...)
	server.Discover()
}

var _ = Describe("The service of a compute in nova", func() {
	service := novav1.ComputeServiceReadyCondition

	It("makes the compute Ready once it has reported and is mapped", func() {
		w, server := newOpenStack()
		w.makeNodes(1, "compute")
		w.halted(w.compute("n000"), service, novav1.ServiceNotReportedReason, "report to nova as host n000", "edpm_nova_host")
		server.Run("n000")
		server.Discover()
		w.computesReady("n000")
		got := get(Default, w.compute("n000")).Status.ComputeService
		Expect(*got).To(Equal(novav1.ComputeServiceStatus{ID: got.ID, ComputeID: server.NodeID("n000"), Host: "n000", Up: true, Mapped: true}))
		w.condition(MakeNova("nova", w.ns, ""), novav1.NovaComputeServicesReadyCondition, "True/Ready/")
		w.exactlyOnce()
	})

	It("stays unobserved where no API is run, and lets computes be Ready", func() {
		w := newCloud(observing)
		w.make(w.role("compute").Cell("cell1").Obj())
		w.makeNodes(1, "compute")
		w.computesReady("n000")
		w.condition(w.compute("n000"), service, "True/NotObserved/", "no Nova with an API manages NovaCell cell1")
		Expect(get(Default, w.compute("n000")).Status.ComputeService).To(BeNil())
	})

	It("gets observed as soon as the Nova runs an API, and no longer when it runs none", func() {
		w, server := newOpenStack()
		nova := MakeNova("nova", w.ns, "")
		change(nova, func(n *novav1.Nova) { n.Spec.APIServiceTemplate.Replicas = nil })
		w.makeNodes(1, "compute")
		w.computesReady("n000")
		w.condition(w.compute("n000"), service, "True/NotObserved/")
		time.Sleep(still)
		Expect(server.Requests("")).To(BeZero(), "no one should be asked")

		change(nova, func(n *novav1.Nova) { n.Spec.APIServiceTemplate.Replicas = ptr.To[int32](1) })
		w.halted(w.compute("n000"), service, novav1.ServiceNotReportedReason)
		up(server, "n000")
		w.computesReady("n000")
		change(nova, func(n *novav1.Nova) { n.Spec.APIServiceTemplate.Replicas = ptr.To[int32](0) })
		w.condition(w.compute("n000"), service, "True/NotObserved/")
		Expect(get(Default, w.compute("n000")).Status.ComputeService).To(BeNil())
		time.Sleep(still)
		asked := server.Requests("")
		Consistently(func() int { return server.Requests("") }).Should(Equal(asked))
		w.exactlyOnce()
	})

	It("shows since when it is down after it stops, and nothing is run", func() {
		w, server := newOpenStack()
		w.makeNodes(2, "compute")
		up(server, "n000", "n001")
		w.computesReady("n000", "n001")
		server.Stop("n001")
		w.halted(w.compute("n001"), service, novav1.ServiceDownReason, "nova-compute on host n001 has not reported to nova since 2", "NovaCell nova-cell1 is not Ready")
		got := get(Default, w.compute("n001")).Status.ComputeService
		Expect(got.Up).To(BeFalse())
		Expect(got.DownSince.Time).To(BeTemporally("~", time.Now(), 30*time.Second))
		Eventually(func() []string { return w.events("n001") }).Should(ContainElement(ContainSubstring("Warning ComputeServiceDown ComputeServiceReady: nova-compute on host n001 has not reported")))
		Eventually(gauges).Should(And(
			HaveKeyWithValue("edpm_compute_services{nova-cell1,down}", 1.0), HaveKeyWithValue("edpm_compute_services{nova-cell1,up}", 1.0)))
		w.computesReady("n000")
		w.calm()
		w.exactlyOnce()

		By("starting it again")
		server.Run("n001")
		w.computesReady("n001")
		Expect(get(Default, w.compute("n001")).Status.ComputeService.DownSince).To(BeNil())
		Eventually(gauges).ShouldNot(HaveKey("edpm_compute_services{nova-cell1,down}"))
		w.exactlyOnce()
	})

	DescribeTable("stays unknown while nova cannot be asked, which the waiting compute and the Nova report, and heals",
		func(fault fakenova.Fault, password string, reason condition.Reason, says string) {
			w, server := newOpenStack()
			server.Break(fault)
			setPassword(w, password)
			w.makeNodes(1, "compute")
			w.halted(w.compute("n000"), service, reason, says)
			w.condition(MakeNova("nova", w.ns, ""), novav1.NovaComputeServicesReadyCondition, "False/"+string(reason)+"/Warning", says)
			Expect(asText(get(Default, w.compute("n000")))).NotTo(Or(ContainSubstring("hunter2"), ContainSubstring("fake-token")))
			Expect(strings.Join(w.events("n000"), "\n")).NotTo(ContainSubstring("hunter2"))
			Expect(server.Astray()).To(BeZero(), "the token should go to nova only")
			w.quiet()
			server.Break(fakenova.None)
			up(server, "n000")
			setPassword(w, "p")
			w.computesReady("n000")
			w.condition(MakeNova("nova", w.ns, ""), novav1.NovaComputeServicesReadyCondition, "True/Ready/")
		},
		Entry("a wrong password", fakenova.None, "hunter2", novav1.KeystoneAccessDeniedReason, "refuses user nova in project service: correct the password"),
		Entry("keystone is down", fakenova.KeystoneDown, "p", novav1.KeystoneUnreachableReason, "it answers 503"),
		Entry("no endpoint", fakenova.NoEndpoint, "p", novav1.EndpointMissingReason, "no internal endpoint of type compute in region regionOne"),
		Entry("no placement", fakenova.NoPlacement, "p", novav1.PlacementMissingReason, "no internal endpoint of type placement in region regionOne"),
		Entry("nova is down", fakenova.NovaDown, "p", novav1.APIUnreachableReason, "it answers 503"),
		Entry("nova refuses", fakenova.NovaRefuses, "p", novav1.APIAccessDeniedReason, "give the user the role admin"),
		Entry("nova redirects", fakenova.Redirect, "p", novav1.APIUnreachableReason, "it answers 307"),
	)

	DescribeTable("keeps its last known state, which only the Nova reports, while", func(fault fakenova.Fault, reason condition.Reason, says string) {
		w, server := newOpenStack()
		w.makeNodes(3, "compute")
		up(server, nodeNames(3)...)
		w.computesReady(nodeNames(3)...)
		w.quiet()
		server.Break(fault)
		w.condition(MakeNova("nova", w.ns, ""), novav1.NovaComputeServicesReadyCondition, "False/"+string(reason)+"/Warning", says)
		w.condition(MakeNova("nova", w.ns, ""), novav1.NovaComputeServicesReadyCondition, "False/"+string(reason)+"/Warning", "shown as they were")
		w.resync()
		Expect(w.wire.Since(0)).NotTo(ContainElement(Or(HaveSuffix("/status"), HaveSuffix("/events"))), "what a new manager writes while nova is down")
		w.computesReady(nodeNames(3)...)
		server.Break(fakenova.None)
		w.condition(MakeNova("nova", w.ns, ""), novav1.NovaComputeServicesReadyCondition, "True/Ready/")
	},
		Entry("the API is down", fakenova.NovaDown, novav1.APIUnreachableReason, "it answers 503"),
		Entry("the database of its cell is down", fakenova.CellDown, novav1.CellUnreachableReason, "does not reach the database of the cell of host n000"),
	)

	It("comes from one list for all computes, at a bounded rate, and causes writes only when it changes", func() {
		w, server := newOpenStack()
		names := w.makeNodes(30, "compute")
		up(server, names...)
		w.computesReady(names...)
		w.quiet()
		lists, hypervisors, logins := server.Requests("GET /v2.1/os-services"), server.Requests("GET /v2.1/os-hypervisors"), server.Requests("POST")
		written := len(w.wire.Since(0))
		time.Sleep(2 * time.Second)
		Expect(server.Requests("GET /v2.1/os-services")-lists).To(BeNumerically("<=", 6), "lists in 2 s with an interval of 400 ms")
		Expect(server.Requests("GET /v2.1/os-services") - lists).To(BeNumerically(">=", 2))
		Expect(server.Requests("GET /v2.1/os-hypervisors")).To(Equal(hypervisors), "all computes are known to be mapped")
		Expect(server.Requests("POST")).To(Equal(logins), "a token is used until it ends")
		Expect(w.wire.Since(written)).To(BeEmpty())

		By("deleting the nodes")
		for _, n := range names {
			server.Stop(n)
			remove(w.node(n))
		}
		for _, n := range names {
			gone(w.compute(n))
		}
		time.Sleep(still)
		asked := server.Requests("")
		Consistently(func() int { return server.Requests("") }).Should(Equal(asked), "a Nova without computes is not asked")
	})

	It("shares the Job that maps its host with all that wait", func() {
		w, server := newOpenStack(func(server *fakenova.Server, job *batchv1.Job) {
			if strings.HasPrefix(job.Name, discovery) {
				server.Discover()
			}
		})
		names := w.makeNodes(12, "compute")
		for _, n := range names {
			w.halted(w.compute(n), service, novav1.ServiceNotReportedReason)
		}
		server.Run(names...)
		w.computesReady(names...)
		Expect(w.discoveries()).To(Equal(1))
		w.quiet()
		Expect(w.discoveries()).To(Equal(1), "there is nothing to map")
		Expect(get(Default, MakeNova("nova", w.ns, "")).Status.Jobs).To(HaveLen(5), "nova is what remembers mapped hosts")

		By("starting the manager again")
		w.resync()
		Expect(w.discoveries()).To(Equal(1))
		Expect(w.wire.Since(0)).NotTo(ContainElement(HaveSuffix("/status")))
	})

	It("waits for a later Job that maps its host when it comes too late for the first", func() {
		gate := make(chan struct{})
		w, server := newOpenStack(func(server *fakenova.Server, job *batchv1.Job) {
			if strings.HasPrefix(job.Name, discovery) {
				server.Discover()
				<-gate
			}
		})
		w.makeNodes(2, "compute")
		server.Register("n000")
		w.halted(w.compute("n000"), service, novav1.HostNotMappedReason, "host n000", "condition NovaComputeServicesReady of Nova nova")
		w.condition(MakeNova("nova", w.ns, ""), novav1.NovaComputeServicesReadyCondition, "True/Ready/", "to map 1 hosts to their cells")

		By("another one coming while the Job runs, and the first one being through")
		server.Run("n000", "n001")
		w.halted(w.compute("n001"), service, novav1.HostNotMappedReason)
		Consistently(func(g Gomega) {
			jobs := &batchv1.JobList{}
			g.Expect(api.List(ctx, jobs, client.InNamespace(w.ns))).To(Succeed())
			g.Expect(slices.DeleteFunc(jobs.Items, func(j batchv1.Job) bool { return !strings.HasPrefix(j.Name, discovery) })).To(HaveLen(1))
		}).Should(Succeed())
		close(gate)
		w.computesReady("n000", "n001")
		Expect(w.discoveries()).To(BeNumerically("<=", 3))
		w.exactlyOnce()
	})

	It("follows edpm_nova_host if the node sets it", func() {
		w, server := newOpenStack()
		w.make(MakeNode("n000", w.ns).Role("compute").Host("10.0.0.1").Vars(`{"edpm_nova_host": "other"}`).Obj())
		up(server, "n000")
		w.halted(w.compute("n000"), service, novav1.ServiceNotReportedReason, "as host other.")
		up(server, "other")
		w.computesReady("n000")
		Expect(get(Default, w.compute("n000")).Status.ComputeService.Host).To(Equal("other"))
	})

	It("stays that of its host when the node names another one", func() {
		w, server := newOpenStack()
		w.makeNodes(2, "compute")
		up(server, "n000", "n001")
		w.computesReady("n000", "n001")
		Expect(get(Default, w.compute("n000")).Status.NovaHost).To(Equal("n000"))
		setVars(w, "n000", `{"edpm_nova_host": "n001"}`)
		w.quiet()
		Expect(get(Default, w.compute("n000")).Status.ComputeService.Host).To(Equal("n000"))

		By("disabling and deleting it")
		annotate(w.node("n000"), common.DisableAnnotation, "new memory")
		Eventually(func() string { return server.Host("n000").Reason }).Should(Equal("new memory"))
		server.Boot("n000", 1)
		remove(w.node("n000"))
		w.halted(w.compute("n000"), service, novav1.InstancesPresentReason, "host n000 has 1 instances")
		server.Stop("n000")
		server.Boot("n000", 0)
		gone(w.compute("n000"))
		Expect(server.Host("n000")).To(Equal(fakenova.State{}))
		Expect(server.Host("n001")).To(Equal(fakenova.State{Service: true, Mapped: true}))
	})

	It("stays as it is when another compute takes its name", func() {
		w, server := newOpenStack()
		w.makeNodes(1, "compute")
		up(server, "n000")
		w.computesReady("n000")
		w.make(MakeNode("n001", w.ns).Role("compute").Host("10.0.0.1").Vars(`{"edpm_nova_host": "n000"}`).Obj())
		w.halted(w.compute("n001"), service, novav1.ServiceConflictReason, "n001 and n000 both register host n000 in nova", "Fix edpm_nova_host")
		annotate(w.node("n001"), common.DisableAnnotation, "new memory")
		w.quiet()
		w.computesReady("n000")
		Expect(server.Requests("PUT")).To(BeZero())

		By("correcting the name")
		up(server, "n001")
		setVars(w, "n001", `{"edpm_nova_host": "n001"}`)
		Eventually(func() string { return server.Host("n001").Reason }).Should(Equal("new memory"))
		Expect(server.Host("n000")).To(Equal(fakenova.State{Service: true, Mapped: true}))
	})

	It("stays when another compute that takes its name is deleted", func() {
		w, server := newOpenStack()
		w.makeNodes(1, "compute")
		up(server, "n000")
		w.computesReady("n000")
		w.make(MakeNode("n001", w.ns).Role("compute").Host("10.0.0.1").Vars(`{"edpm_nova_host": "n000"}`).Obj())
		w.halted(w.compute("n001"), service, novav1.ServiceConflictReason)
		Eventually(func() int { return w.times("n001", "nova") }).Should(Equal(1))
		remove(w.node("n001"))
		w.halted(w.compute("n001"), service, novav1.ServiceConflictReason, "Deleting: ", "n001 and n000 both register host n000", common.SkipCleanupAnnotation)
		annotate(w.node("n001"), common.SkipCleanupAnnotation, "true")
		gone(w.compute("n001"))
		Eventually(func() []string { return w.events("n001") }).Should(ContainElement(And(
			ContainSubstring("Warning ComputeServiceLeft The service nova-compute of the host was left in nova as it is: "), Not(ContainSubstring("service delete")))))
		Expect(server.Host("n000")).To(Equal(fakenova.State{Service: true, Mapped: true}))
	})

	It("keeps its compute from being Ready while it is disabled, and says why", func() {
		w, server := newOpenStack()
		w.makeNodes(1, "compute")
		up(server, "n000")
		w.computesReady("n000")
		server.Disable("n000", true, "new fans")
		w.halted(w.compute("n000"), service, novav1.ServiceDisabledReason, "its service is disabled (new fans)")
		Eventually(gauges).Should(HaveKeyWithValue("edpm_compute_services{nova-cell1,disabled}", 1.0))
		Expect(w.events("n000")).NotTo(ContainElement(ContainSubstring("ComputeServiceDisabled")))
		server.Disable("n000", false, "")
		w.computesReady("n000")
	})
})
