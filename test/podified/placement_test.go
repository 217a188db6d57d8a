package podified_test

import (
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	k8scorev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common/podified"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

var _ = Describe("Placement", func() {
	var w world
	BeforeEach(func() { w = newWorld() })

	It("says which label the nodes lack, before and after the roll-out, and heals when the constraint is softer", func() {
		w.apply(spread("default-sample", "topology.kubernetes.io/zone") + "\n---\n" + glance(`
  storage: {external: true}
  glanceAPIs: {default: {topologyRef: {name: default-sample}}}`))
		single := w.api("glance-default-single")
		shows(single, topologyv1.PlacementReadyCondition, "False/MissingNodeLabel/Warning", "topology.kubernetes.io/zone", "kubectl label node", "ScheduleAnyway")
		shows(single, condition.DeploymentReadyCondition, "False/PodsPending/Warning", "0/7 nodes are available", "missing required label")
		Eventually(func() []string { return w.events("glance-default-single") }).Should(ContainElement(HavePrefix("Warning MissingNodeLabel PlacementReady:")))
		w.apply(strings.ReplaceAll(spread("default-sample", "topology.kubernetes.io/zone"), "DoNotSchedule", "ScheduleAnyway"))
		ready(single)
		shows(single, topologyv1.PlacementReadyCondition, "True/Ready/")
		quiet()
	})

	It("heals when a node gets the label", func() {
		w.apply(spread("default-sample", "rack") + "\n---\n" + glance(`
  glanceAPIs: {default: {topologyRef: {name: default-sample}}}`))
		single := w.api("glance-default-single")
		shows(single, topologyv1.PlacementReadyCondition, "False/MissingNodeLabel/Warning", "rack")
		label("worker-1", "rack", "r1")
		ready(single)
	})

	It("reports a constraint that selects none of the pods, although they run", func() {
		w.apply(strings.ReplaceAll(spread("inert", "zone"), "service: glance", "glanceAPI: glance-czone-edge") + "\n---\n" + glance(`
  glanceAPIs: {czone: {type: edge, replicas: 3, topologyRef: {name: inert}}}`))
		shows(w.api("glance-czone-edge"), topologyv1.PlacementReadyCondition, "False/InertSelector/Warning", "spreads nothing", "fix the labelSelector")
		shows(w.api("glance-czone-edge"), condition.DeploymentReadyCondition, "True/Ready/", "3 of 3")
		quiet()
		w.apply(strings.ReplaceAll(spread("inert", "zone"), "service: glance", "glanceAPI: czone"))
		ready(w.api("glance-czone-edge"))
		Expect(w.perZone("glance-czone")).To(Equal(map[string]int{"zoneA": 1, "zoneB": 1, "zoneC": 1}))
	})

	Context("with volumes on a worker that lacks the label", func() {
		// The trap of seeds/001: a pod gets its volume on worker-3, which is in no
		// zone, and then a constraint that needs one.
		var single *glancev1.GlanceAPI
		BeforeEach(func() {
			single = w.api("glance-default-single")
			label("worker-3", "zone", "")
			w.apply(glance(`
  storage: {storageRequest: 1G, storageClass: ` + storageClass + `}
  nodeSelector: {kubernetes.io/hostname: worker-3}
  glanceAPIs: {default: {}}`))
			ready(w.glance())
			change(w.glance(), func(g *glancev1.Glance) { g.Spec.NodeSelector = nil })
			ready(w.glance())
		})
		follow := func() {
			change(w.glance(), func(g *glancev1.Glance) { g.Spec.TopologyRef = &topologyv1.TopologyRef{Name: "spread"} })
		}

		It("holds the roll-out with Hold: pods are not touched, and it continues when the node gets the label", func() {
			before := w.births()
			w.apply(spread("spread", "zone", "enforcement: Hold"))
			follow()
			shows(single, topologyv1.PlacementReadyCondition, "False/VolumeNodeAffinityConflict/Error",
				"glance-default-single-0", "PersistentVolume pvc-", "worker-3", "zone", "storage.external: true", "enforcement Hold")
			shows(single, condition.DeploymentReadyCondition, "False/Held/Warning")
			Consistently(w.births).Should(Equal(before))
			quiet()
			label("worker-3", "zone", "zoneA")
			Eventually(w.births).ShouldNot(Equal(before))
			ready(single)
		})

		It("reproduces the Pending pod with Warn, and storage.external fixes it", func() {
			before := w.births()
			w.apply(spread("spread", "zone"))
			follow()
			shows(single, topologyv1.PlacementReadyCondition, "False/VolumeNodeAffinityConflict/Warning", "worker-3", "zone")
			shows(single, condition.DeploymentReadyCondition, "False/PodsPending/Warning", "glance-default-single-0", "missing required label", "PersistentVolume's node affinity")
			Expect(w.births()).NotTo(Equal(before))
			change(w.glance(), func(g *glancev1.Glance) { g.Spec.Storage.External = ptr.To(true) })
			ready(single)
			Expect(w.pod("glance-default-single-0").Spec.Volumes).NotTo(ContainElement(HaveField("PersistentVolumeClaim", Not(BeNil()))))
			Expect(w.claims()).To(ConsistOf("glance-glance-default-single-0"), "claims are kept")
			Eventually(func() []string { return w.events("glance-default-single") }).Should(ContainElement(ContainSubstring("being recreated, because its volumeClaimTemplates cannot be changed")))
			quiet()
		})
	})

	It("reports nothing of pods that have to wait for each other, as those with retained claims do", Serial, func() {
		cordonAllBut := func(open ...string) {
			nodes := &k8scorev1.NodeList{}
			Expect(api.List(ctx, nodes)).To(Succeed())
			for i := range nodes.Items {
				change(&nodes.Items[i], func(n *k8scorev1.Node) { n.Spec.Unschedulable = len(open) > 0 && !slices.Contains(open, n.Name) })
			}
		}
		DeferCleanup(func() { cordonAllBut() })
		four := func(replicas int, more string) string {
			return glance(fmt.Sprintf(`
  storage: {storageRequest: 1G, storageClass: %s}
  glanceAPIs: {azone: {type: edge, replicas: %d%s}}`, storageClass, replicas, more))
		}
		edge := w.api("glance-azone-edge")
		for i, node := range []string{"master-0", "worker-0", "master-1", "master-2"} { // zones A, A, B, C
			cordonAllBut(node)
			w.apply(four(i+1, ""))
			Eventually(func() int { return len(w.births()) }).Should(Equal(i + 1))
			ready(edge)
		}
		cordonAllBut()
		Expect(api.Delete(ctx, w.glance())).To(Succeed())
		Eventually(w.pods).Should(BeEmpty())
		Expect(w.claims()).To(HaveLen(4), "claims are kept")
		w.apply(spread("spread", "zone", "enforcement: Hold") + "\n---\n" + four(4, ", topologyRef: {name: spread}"))
		ready(edge)
		shows(edge, topologyv1.PlacementReadyCondition, "True/Ready/")
		Expect(w.events("glance-azone-edge")).NotTo(ContainElement(ContainSubstring("PlacementReady")))
	})

	It("leaves no pod behind when it is deleted while its StatefulSet is recreated", func() {
		w.apply(glance(`
  storage: {storageRequest: 1G, storageClass: ` + storageClass + `, external: true}
  glanceAPIs: {default: {replicas: 3}}`))
		ready(w.glance())
		change(w.api("glance-default-single"), func(a *glancev1.GlanceAPI) { a.Spec.Storage.External = ptr.To(false) })
		Expect(api.Delete(ctx, w.glance())).To(Succeed())
		Eventually(w.births).Should(BeEmpty())
		Consistently(w.births).Should(BeEmpty())
	})

	It("changes between claims and none one pod at a time, to either side, and an API can say false under true", func() {
		w.apply(glance(`
  storage: {storageRequest: 1G, storageClass: ` + storageClass + `, external: true}
  glanceAPIs: {default: {replicas: 3}, other: {storage: {external: false}}}`))
		ready(w.glance())
		Expect(w.claims()).To(ConsistOf("glance-glance-other-single-0"))
		turn := func(external *bool) {
			before := w.births()
			change(w.glance(), func(g *glancev1.Glance) {
				a := g.Spec.GlanceAPIs["default"]
				a.Storage.External = external
				g.Spec.GlanceAPIs["default"] = a
			})
			least := 3
			Eventually(func(g Gomega) {
				least = min(least, w.up("glance-default-single"))
				for i, name := range []string{"glance-default-single-0", "glance-default-single-1", "glance-default-single-2"} {
					g.Expect(w.births()).NotTo(HaveKeyWithValue(name, before[name]), "pod %d should be again", i)
				}
			}).Should(Succeed())
			Expect(least).To(BeNumerically(">=", 2), "one pod at a time")
			ready(w.api("glance-default-single"))
		}
		turn(ptr.To(false))
		Expect(w.claims()).To(HaveLen(4))
		turn(nil)
		Expect(w.claims()).To(HaveLen(4), "claims are kept")
		quiet()
	})
})

// claims are the names of the claims of the namespace.
func (w world) claims() []string {
	list := &k8scorev1.PersistentVolumeClaimList{}
	Expect(api.List(ctx, list, client.InNamespace(string(w)))).To(Succeed())
	var names []string
	for _, c := range list.Items {
		names = append(names, c.Name)
	}
	return names
}

// up is the number of ready pods whose names begin so.
func (w world) up(prefix string) int {
	list := &k8scorev1.PodList{}
	Expect(api.List(ctx, list, client.InNamespace(string(w)))).To(Succeed())
	n := 0
	for _, pod := range list.Items {
		for _, c := range pod.Status.Conditions {
			if strings.HasPrefix(pod.Name, prefix) && pod.DeletionTimestamp.IsZero() && c.Type == k8scorev1.PodReady && c.Status == k8scorev1.ConditionTrue {
				n++
			}
		}
	}
	return n
}

var _ = Describe("An unreachable node", func() {
	It("shows in a condition with its pods and remedies, and recovers when it returns", func() {
		w := newWorld()
		w.apply(pin("azone", "zoneA") + "\n---\n" + glance(`
  storage: {external: true}
  glanceAPIs: {azone: {type: edge, replicas: 3, topologyRef: {name: azone}}}`))
		edge := w.api("glance-azone-edge")
		ready(edge)
		lost := w.pod("glance-azone-edge-api-0").Spec.NodeName
		cluster.fail(lost, true)
		DeferCleanup(func() { cluster.fail(lost, false) })
		shows(edge, podified.PodNodesReadyCondition, "False/NodeNotReady/Warning", lost, "NotReady since", "glance-azone-edge-api-0")

		By("evicting its pods")
		for _, name := range w.on(lost) {
			Expect(api.Delete(ctx, w.pod(name))).To(Succeed())
		}
		shows(edge, podified.PodNodesReadyCondition, "False/PodsTerminating/Warning", lost, "Terminating since", "bring node "+lost+" back",
			"node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", "kubectl delete pod --force --grace-period=0 glance-azone-edge-api-0")
		Eventually(func() []string { return w.events("glance-azone-edge") }).Should(ContainElement(HavePrefix("Warning PodsTerminating PodNodesReady:")))
		before := w.births()
		Consistently(w.births).Should(Equal(before), "nothing is forced")
		quiet()

		By("forcing one")
		Expect(api.Delete(ctx, w.pod("glance-azone-edge-api-0"), client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(w.births).Should(And(HaveLen(3), Not(HaveKeyWithValue("glance-azone-edge-api-0", before["glance-azone-edge-api-0"]))))

		By("bringing the node back")
		cluster.fail(lost, false)
		ready(edge)
		shows(edge, podified.PodNodesReadyCondition, "True/Ready/")
		Expect(w.perZone("glance-azone")).To(Equal(map[string]int{"zoneA": 3}))
	})
})

// on are the names of the pods on a node.
func (w world) on(node string) []string {
	list := &k8scorev1.PodList{}
	Expect(api.List(ctx, list, client.InNamespace(string(w)))).To(Succeed())
	var names []string
	for _, pod := range list.Items {
		if pod.Spec.NodeName == node {
			names = append(names, pod.Name)
		}
	}
	return names
}
