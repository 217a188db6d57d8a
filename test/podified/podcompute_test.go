package podified_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"k8s.io/utils/ptr"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/fakenova"
)

// More stories are in controllers/podcomputes_test.go.
var _ = Describe("A NovaCompute of a Nova with an API", func() {
	var w world
	var server *fakenova.Server
	ironic := func() *novav1.NovaCompute { return &novav1.NovaCompute{ObjectMeta: w.meta("ironic")} }
	scale := func(n int32) {
		GinkgoHelper()
		change(ironic(), func(c *novav1.NovaCompute) { c.Spec.Replicas = ptr.To(n) })
	}
	computes := func() []string {
		var names []string
		for _, pod := range w.pods() {
			if name, _, _ := strings.Cut(pod, "@"); strings.HasPrefix(name, "ironic-") {
				names = append(names, name)
			}
		}
		return names
	}

	BeforeEach(func() {
		w = newWorld()
		server = fakenova.Start("p")
		DeferCleanup(server.Close)
		w.apply(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "osp-secret"}, "stringData": {"NovaPassword": "p", "NovaCellDatabasePassword": "d", "NovaAPIDatabasePassword": "a"}}`)
		w.apply(w.secret("bus0", "transport_url", "rabbit://bus0/") + "\n---\n" + w.secret("bus1", "transport_url", "rabbit://bus1/"))
		w.apply(`apiVersion: nova.openstack.org/v1beta1
kind: Nova
metadata: {name: nova}
spec:
  secret: osp-secret
  keystoneAuthURL: ` + server.URL + `
  apiServiceTemplate: {replicas: 1}
  cellTemplates:
    cell0: {cellMessageBusSecretName: bus0, hasAPIAccess: true}
    cell1: {cellMessageBusSecretName: bus1}
---
apiVersion: nova.openstack.org/v1beta1
kind: NovaCompute
metadata: {name: ironic}
spec: {cellName: nova-cell1, replicas: 3}`)
		Eventually(computes).Should(ConsistOf("ironic-0", "ironic-1", "ironic-2"))
		server.Register("ironic-0", "ironic-1", "ironic-2")
		server.DiscoverByService() // as the Job would, which has no program here
		ready(ironic())
	})

	It("keeps the pods that have instances when it is scaled down, and their services until the pods have ended", func() {
		births := w.births()
		server.Boot("ironic-1", 1)
		lost := w.pod("ironic-2").Spec.NodeName
		cluster.fail(lost, true)
		DeferCleanup(cluster.fail, lost, false)
		scale(1)
		shows(ironic(), novav1.ComputeServiceReadyCondition, "False/InstancesPresent/Error", "ironic-1 (1 instances)")
		Eventually(func(g Gomega) { g.Expect(*get(g, w.set("ironic")).Spec.Replicas).To(BeEquivalentTo(2)) }).Should(Succeed())
		Eventually(func() bool { return w.pod("ironic-2").DeletionTimestamp.IsZero() }).Should(BeFalse())
		quiet()
		Expect(server.Requests("DELETE")).To(BeZero(), "its pod may still run on the node that does not answer")
		Expect(server.Host("ironic-2")).To(Equal(fakenova.State{Service: true, Mapped: true, Disabled: true, Reason: "edpm-operators: the compute is being removed"}))

		By("the node coming back")
		server.Stop("ironic-2")
		cluster.fail(lost, false)
		Eventually(func() fakenova.State { return server.Host("ironic-2") }).Should(Equal(fakenova.State{}))

		By("the instance being deleted")
		server.Stop("ironic-1") // so it is reported by the time its pod has ended
		server.Boot("ironic-1", 0)
		Eventually(computes).Should(ConsistOf("ironic-0"))
		ready(ironic())
		Expect(server.Host("ironic-1")).To(Equal(fakenova.State{}))
		Expect(w.births()).To(HaveKeyWithValue("ironic-0", births["ironic-0"]))
	})

	It("keeps the services and mappings of pods that are replaced", func() {
		services := func(g Gomega) map[string]string {
			ids := map[string]string{}
			for _, h := range get(g, ironic()).Status.Hosts {
				g.Expect(h.ComputeService).NotTo(BeNil())
				ids[h.Name] = h.ComputeService.ID
			}
			return ids
		}
		before, births := services(Default), w.births()
		Expect(before).To(HaveLen(3))
		change(ironic(), func(c *novav1.NovaCompute) { c.Spec.CustomServiceConfig = "[DEFAULT]\ndebug = true\n" })
		Eventually(func(g Gomega) {
			for _, name := range []string{"ironic-0", "ironic-1", "ironic-2"} {
				g.Expect(w.births()[name]).NotTo(Or(BeEmpty(), Equal(births[name])))
			}
		}).Should(Succeed())
		ready(ironic())
		Expect(services(Default)).To(Equal(before))
		Expect(server.Requests("DELETE") + server.Requests("PUT")).To(BeZero())
		Expect(server.Host("ironic-1")).To(Equal(fakenova.State{Service: true, Mapped: true}))
	})

	It("ends its pods and deletes their services before it is deleted", func() {
		server.Boot("ironic-0", 1)
		server.Stop("ironic-1", "ironic-2")
		Expect(api.Delete(ctx, ironic())).To(Succeed())
		shows(ironic(), novav1.ComputeServiceReadyCondition, "False/InstancesPresent/Error", "Deleting: nova has instances on hosts ironic-0 (1 instances)")
		Eventually(computes).Should(ConsistOf("ironic-0"))
		shows(ironic(), condition.ReadyCondition, "False/InstancesPresent/Error")
		server.Stop("ironic-0")
		server.Boot("ironic-0", 0)
		Eventually(computes).Should(BeEmpty())
		Eventually(func() []fakenova.State {
			return []fakenova.State{server.Host("ironic-0"), server.Host("ironic-1"), server.Host("ironic-2")}
		}).Should(HaveEach(fakenova.State{}))
	})
})
