package controllers_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakenova"
)

var _ = Describe("Two Novas of one namespace whose cells have the same short names", func() {
	var w *world
	var server, otherServer *fakenova.Server
	var other *novav1.Nova

	// another is a Nova with a keystone and a message bus of its own.
	another := func(name string, server *fakenova.Server) *novav1.Nova {
		nova := MakeNova(name, w.ns, "osp-secret", "cell1")
		nova.Spec.KeystoneAuthURL = server.URL
		nova.Spec.APIServiceTemplate.Replicas = ptr.To[int32](1)
		nova.Spec.CellTemplates[novav1.Cell0Name] = novav1.NovaCellTemplate{HasAPIAccess: true}
		for _, cell := range []string{"cell0", "cell1"} {
			w.make(MakeSecret("rabbitmq-transport-url-"+name+"-"+cell+"-transport", w.ns, "transport_url", "rabbit://"+name+"-"+cell))
		}
		return nova
	}
	onOwnServers := func(nova *novav1.Nova) {
		nova.Spec.APIDatabaseInstance = nova.Name + "-api"
		for cell, template := range nova.Spec.CellTemplates {
			template.CellDatabaseInstance = nova.Name + "-" + cell
			nova.Spec.CellTemplates[cell] = template
		}
	}

	BeforeEach(func() {
		otherServer = fakenova.Start("p")
		DeferCleanup(otherServer.Close)
		w, server = newOpenStack(func(server *fakenova.Server, job *batchv1.Job) {
			switch {
			case strings.HasPrefix(job.Name, "other-discover-hosts"):
				otherServer.Discover()
			case strings.HasPrefix(job.Name, discovery):
				server.Discover()
			}
		})
		other = another("other", otherServer)
	})

	It("work independently", func() {
		onOwnServers(other)
		w.make(other, w.role("elsewhere").Cell("other-cell1").Obj())
		w.makeNodes(1, "compute")
		w.make(MakeNode("o000", w.ns).Role("elsewhere").Host("10.0.1.0").Obj())
		server.Run("n000")
		otherServer.Run("o000")
		w.computesReady("n000", "o000")
		Expect(server.Host("o000")).To(Equal(fakenova.State{}))
		Expect(otherServer.Host("n000")).To(Equal(fakenova.State{}))
		Expect(string(get(Default, MakeSecret("other-cell1-compute-config", w.ns, "", "")).Data["01-nova.conf"])).To(ContainSubstring("rabbit://other-cell1\n"))
		Expect(string(get(Default, MakeSecret("nova-cell1-compute-config", w.ns, "", "")).Data["01-nova.conf"])).To(ContainSubstring("rabbit://cell1\n"))
		Eventually(w.databases.times).Should(And(HaveLen(16), HaveEach(1)), "seven Jobs for the databases of each, and a discovery")

		By("one of them being unreachable")
		otherServer.Break(fakenova.NovaDown)
		w.condition(other, novav1.NovaComputeServicesReadyCondition, "False/NovaAPIUnreachable/Warning")
		w.condition(MakeNova("nova", w.ns, ""), novav1.NovaComputeServicesReadyCondition, "True/Ready/")
		server.Stop("n000")
		w.halted(w.compute("n000"), novav1.ComputeServiceReadyCondition, novav1.ServiceDownReason)
		server.Run("n000")
		otherServer.Break(fakenova.None)
		w.condition(other, novav1.NovaComputeServicesReadyCondition, "True/Ready/")
		w.computesReady("n000", "o000")

		By("a compute of one being removed")
		otherServer.Stop("o000")
		remove(w.node("o000"))
		gone(w.compute("o000"))
		Expect(otherServer.Host("o000")).To(Equal(fakenova.State{}))
		Expect(server.Host("n000")).To(Equal(fakenova.State{Service: true, Mapped: true}))
		Expect(server.Requests("DELETE")).To(BeZero())

		By("one of them being deleted")
		remove(other)
		gone(other)
		w.computesReady("n000")
		w.exactlyOnce()
		Expect(w.databases.times()).To(HaveLen(16))
	})

	It("refuse to share one database, which the one that was created later reports until it has its own", func() {
		w.make(other)
		w.halted(other, novav1.NovaAPIReadyCondition, novav1.DatabaseConflictReason, "is that of Nova nova: set spec.apiDatabaseName, and cellDatabaseName of each cell")
		w.condition(MakeNova("nova", w.ns, ""), novav1.NovaAPIReadyCondition, "True/Ready/")
		Expect(w.databases.times()).NotTo(HaveKey(HavePrefix("other-api-db-sync")))
		change(other, onOwnServers)
		w.condition(other, novav1.NovaAPIReadyCondition, "True/Ready/")

		By("two of its cells having one")
		change(other, func(n *novav1.Nova) {
			zero := n.Spec.CellTemplates[novav1.Cell0Name]
			zero.CellDatabaseInstance, zero.CellDatabaseName = "other-cell1", "nova_cell1"
			n.Spec.CellTemplates[novav1.Cell0Name] = zero
		})
		w.halted(other, novav1.NovaAPIReadyCondition, novav1.DatabaseConflictReason, "nova_cell1 on other-cell1", "is used twice by this Nova")
		change(other, onOwnServers)
		change(other, func(n *novav1.Nova) { n.Spec.APIDatabaseInstance = "openstack" })
		w.halted(other, novav1.NovaAPIReadyCondition, novav1.DatabaseConflictReason, "nova_api on openstack")

		By("the other one running no API, or being deleted")
		change(MakeNova("nova", w.ns, ""), func(n *novav1.Nova) { n.Spec.APIServiceTemplate.Replicas = nil })
		w.condition(other, novav1.NovaAPIReadyCondition, "True/Ready/")
	})
})
