package podified_test

import (
	"fmt"
	"maps"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	k8scorev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// near is a Topology with enforcement Hold whose pods only run where a pod with
// app=db runs. more goes into the affinity term.
func near(more string) string {
	return `apiVersion: topology.openstack.org/v1beta1
kind: Topology
metadata: {name: near}
spec:
  enforcement: Hold
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: zone
        labelSelector: {matchLabels: {app: db}}` + more
}

var _ = Describe("Enforcement Hold", func() {
	const holder = "GlanceAPI/glance-azone-edge"
	var (
		w    world
		edge *glancev1.GlanceAPI
	)
	BeforeEach(func() {
		w = newWorld()
		edge = w.api("glance-azone-edge")
	})
	// run starts the pods, which follow the Topology a.
	run := func(replicas int) {
		w.apply(pin("a", "zoneA") + "\n  enforcement: Hold\n---\n" + glance(fmt.Sprintf(`
  storage: {external: true}
  glanceAPIs: {azone: {type: edge, replicas: %d, topologyRef: {name: a}}}`, replicas)))
		ready(edge)
	}
	edit := func(f func(*glancev1.GlanceAPITemplate)) {
		change(w.glance(), func(g *glancev1.Glance) {
			template := g.Spec.GlanceAPIs["azone"]
			f(&template)
			g.Spec.GlanceAPIs["azone"] = template
		})
	}
	follow := func(name string) {
		edit(func(t *glancev1.GlanceAPITemplate) { t.TopologyRef = &topologyv1.TopologyRef{Name: name} })
	}
	holders := func(name string) func() []string {
		return func() []string { return w.users(name) }
	}
	held := func(parts ...string) {
		GinkgoHelper()
		shows(edge, topologyv1.PlacementReadyCondition, "False/Unsatisfiable/Error", append(parts, "enforcement Hold")...)
		shows(edge, condition.DeploymentReadyCondition, "False/Held/Warning")
	}

	It("keeps the Topology that the pods follow while another is held back, and takes the way back", func() {
		run(2)
		before := w.births()
		w.apply(pin("b", "nowhere") + "\n  enforcement: Hold")
		follow("b")
		held()
		shows(edge, condition.TopologyReadyCondition, "False/TopologyHeld/Warning", "use Topology a;", "Topology b is held back", "PlacementReady")
		Eventually(holders("a")).Should(ConsistOf(holder), "what the pods follow stays held")
		Eventually(holders("b")).Should(ConsistOf(holder), "and what they are to follow as well")
		Expect(get(Default, edge).Status.LastAppliedTopology).To(HaveField("Name", "a"))
		Expect(api.Delete(ctx, w.topology("a"))).To(Succeed())
		Consistently(w.births).Should(Equal(before))
		quiet()
		follow("a")
		ready(edge)
		shows(edge, condition.TopologyReadyCondition, "True/Ready/", "use Topology a")
		Eventually(holders("b")).Should(BeEmpty())
		Eventually(holders("a")).Should(ConsistOf(holder), "a was deleted, and its pods are there")
		Expect(w.births()).To(Equal(before), "nothing was made again")
	})

	It("changes from one Topology to the next when that becomes possible, and only then releases the former", func() {
		run(2)
		before := w.births()
		w.apply(pin("b", "zoneX") + "\n  enforcement: Hold")
		follow("b")
		held()
		w.apply(pin("c", "zoneX") + "\n  enforcement: Hold")
		follow("c")
		shows(edge, condition.TopologyReadyCondition, "False/TopologyHeld/Warning", "use Topology a;", "Topology c is held back")
		Eventually(holders("b")).Should(BeEmpty(), "no one wants b any more")
		Eventually(holders("a")).Should(ConsistOf(holder))
		label("worker-1", "zone", "zoneX")
		Eventually(w.births).ShouldNot(Equal(before))
		ready(edge)
		Expect(w.on("worker-1")).To(HaveLen(2))
		Eventually(holders("a")).Should(BeEmpty())
		Expect(get(Default, edge).Status.LastAppliedTopology).To(HaveField("Name", "c"))
	})

	It("says so when it is an edit of the Topology that is held back", func() {
		run(1)
		w.apply(pin("a", "nowhere") + "\n  enforcement: Hold")
		held()
		shows(edge, condition.TopologyReadyCondition, "False/TopologyHeld/Warning", "use Topology a as it was before")
		w.apply(pin("a", "zoneA") + "\n  enforcement: Hold")
		ready(edge)
	})

	It("scales down and up while a change is held, with pods as they run", func() {
		run(2)
		before := w.births()
		w.apply(pin("b", "nowhere") + "\n  enforcement: Hold")
		follow("b")
		held()
		edit(func(t *glancev1.GlanceAPITemplate) { t.Replicas = ptr.To[int32](1) })
		Eventually(w.births).Should(HaveLen(1))
		Expect(w.births()).To(HaveKeyWithValue("glance-azone-edge-api-0", before["glance-azone-edge-api-0"]))
		edit(func(t *glancev1.GlanceAPITemplate) { t.Replicas = ptr.To[int32](3) })
		Eventually(func() map[string]int { return w.perZone("glance-azone") }).Should(Equal(map[string]int{"zoneA": 3}))
		Expect(w.births()).To(HaveKeyWithValue("glance-azone-edge-api-0", before["glance-azone-edge-api-0"]))
		shows(edge, condition.DeploymentReadyCondition, "False/Held/Warning", "3 of 3 pods")
		quiet()
		before = w.births()
		follow("a")
		ready(edge)
		Expect(w.births()).To(Equal(before), "the way back makes nothing again")
	})

	It("judges a scale-up by the pods that are added", func() {
		w.apply(spread("spread", "zone", "enforcement: Hold") + "\n---\n" + glance(`
  storage: {storageRequest: 1G, storageClass: `+storageClass+`}
  glanceAPIs: {azone: {type: edge, replicas: 3, topologyRef: {name: spread}}}`))
		ready(edge)
		before := w.births()
		// The pod could not be made again there, and its volume keeps it there.
		label(w.pod("glance-azone-edge-api-0").Spec.NodeName, "zone", "")
		mark := len(w.events("glance-azone-edge"))
		edit(func(t *glancev1.GlanceAPITemplate) { t.Replicas = ptr.To[int32](4) })
		Eventually(w.births).Should(HaveLen(4))
		ready(edge)
		after := w.births()
		maps.DeleteFunc(after, func(name, _ string) bool { return before[name] == "" })
		Expect(after).To(Equal(before))
		Expect(w.events("glance-azone-edge")[mark:]).NotTo(ContainElement(HavePrefix("Warning ")), "the pods that run are not in question")
	})

	Context("when it waits for what does not exist", func() {
		var before map[string]string
		BeforeEach(func() {
			run(1)
			before = w.births()
		})
		db := func(namespace string, labels map[string]string) *k8scorev1.Pod {
			pod := &k8scorev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db", Labels: labels},
				Spec:       k8scorev1.PodSpec{Containers: []k8scorev1.Container{{Name: "c", Image: "i"}}, NodeSelector: map[string]string{"zone": "zoneB"}},
			}
			Expect(api.Create(ctx, pod)).To(Succeed())
			DeferCleanup(func() { _ = api.Delete(ctx, pod, client.GracePeriodSeconds(0)) })
			return pod
		}
		rolled := func() {
			GinkgoHelper()
			Eventually(func() map[string]int { return w.perZone("glance-azone") }).Should(Equal(map[string]int{"zoneB": 1}))
			ready(edge)
			Expect(w.births()["glance-azone-edge-api-0"]).NotTo(Equal(before["glance-azone-edge-api-0"]))
		}

		It("continues because of a pod", func() {
			w.apply(near(""))
			follow("near")
			held()
			quiet()
			db(string(w), map[string]string{"app": "db"})
			rolled()
		})

		It("continues because of a pod that gets another label", func() {
			pod := db(string(w), map[string]string{"app": "other"})
			w.apply(near(""))
			follow("near")
			held()
			quiet()
			change(pod, func(p *k8scorev1.Pod) { p.Labels = map[string]string{"app": "db"} })
			rolled()
		})

		It("continues because of a LimitRange that is deleted", func() {
			db(string(w), map[string]string{"app": "db"})
			limits := &k8scorev1.LimitRange{
				ObjectMeta: metav1.ObjectMeta{Namespace: string(w), Name: "huge"},
				Spec: k8scorev1.LimitRangeSpec{Limits: []k8scorev1.LimitRangeItem{{
					Type: k8scorev1.LimitTypeContainer, Min: k8scorev1.ResourceList{k8scorev1.ResourceCPU: resource.MustParse("1000")},
				}}},
			}
			Expect(api.Create(ctx, limits)).To(Succeed())
			w.apply(near(""))
			follow("near")
			held()
			quiet()
			Expect(api.Delete(ctx, limits)).To(Succeed())
			rolled()
		})

		It("continues because of the label of a Namespace", func() {
			other := newWorld()
			db(string(other), map[string]string{"app": "db"})
			w.apply(near("\n        namespaceSelector: {matchLabels: {team: " + string(w) + "}}"))
			follow("near")
			held()
			quiet()
			namespace := &k8scorev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: string(other)}}
			change(namespace, func(n *k8scorev1.Namespace) { n.Labels["team"] = string(w) })
			rolled()
		})

		It("continues because of a StorageClass", func() {
			class := "late-" + string(w)
			edit(func(t *glancev1.GlanceAPITemplate) {
				t.Storage = glancev1.Storage{StorageClass: class, StorageRequest: ptr.To(resource.MustParse("1G")), External: ptr.To(false)}
			})
			held("unbound immediate PersistentVolumeClaims")
			Consistently(w.births).Should(Equal(before))
			quiet()
			Expect(api.Create(ctx, &storagev1.StorageClass{
				ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "example.org/local",
				VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
			})).To(Succeed())
			shows(edge, topologyv1.PlacementReadyCondition, "True/Ready/")
			Eventually(w.births).ShouldNot(Equal(before))
			ready(edge)
		})
	})
})
