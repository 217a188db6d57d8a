package podified_test

import (
	"fmt"
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	appsv1 "k8s.io/api/apps/v1"
	k8scorev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	openstackv1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// swift is a backend that allows the layout split.
const swift = `
  customServiceConfig: |
    [DEFAULT]
    enabled_backends = default_backend:swift
`

func glance(spec string) string {
	return "apiVersion: glance.openstack.org/v1beta1\nkind: Glance\nmetadata: {name: glance}\nspec:" + spec
}

// spread is the Topology of seeds/001.
func spread(name, key string, more ...string) string {
	text := fmt.Sprintf(`apiVersion: topology.openstack.org/v1beta1
kind: Topology
metadata: {name: %s}
spec:
  topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: %s
    whenUnsatisfiable: DoNotSchedule
    labelSelector: {matchLabels: {service: glance}}`, name, key)
	for _, m := range more {
		text += "\n  " + m
	}
	return text
}

func pin(name, zone string) string {
	return fmt.Sprintf(`apiVersion: topology.openstack.org/v1beta1
kind: Topology
metadata: {name: %s}
spec:
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: zone, operator: In, values: [%s]}]`, name, zone)
}

var _ = Describe("A Glance", func() {
	var w world
	BeforeEach(func() { w = newWorld() })

	It("gets for each layout the pods, Services and labels of the seeds", func() {
		w.apply(glance(swift + `
  storage: {external: true}
  glanceAPIs:
    azone: {type: edge, replicas: 2}
    default: {replicas: 1}
    own: {type: single, customServiceConfig: "[DEFAULT]\ndebug = true\n"}`))
		ready(w.glance())
		Expect(slices.Collect(maps.Keys(w.births()))).To(ConsistOf("glance-azone-edge-api-0", "glance-azone-edge-api-1",
			"glance-default-external-api-0", "glance-default-internal-api-0", "glance-own-single-0"))
		pod := w.pod("glance-azone-edge-api-1")
		for key, value := range map[string]string{"service": "glance", "component": "glance-api", "glanceAPI": "azone", "owner": "glance-azone-edge"} {
			Expect(pod.Labels).To(HaveKeyWithValue(key, value))
		}
		services := &k8scorev1.ServiceList{}
		Expect(api.List(ctx, services, client.InNamespace(string(w)))).To(Succeed())
		got := map[string]string{}
		for _, s := range services.Items {
			got[s.Name] = s.Spec.Selector["owner"]
		}
		Expect(got).To(Equal(map[string]string{
			"glance-azone-edge-api": "glance-azone-edge", "glance-azone-internal": "glance-azone-edge",
			"glance-default-external-api": "glance-default-external", "glance-default-public": "glance-default-external",
			"glance-default-internal-api": "glance-default-internal", "glance-default-internal": "glance-default-internal",
			"glance-own-single": "glance-own-single", "glance-own-public": "glance-own-single", "glance-own-internal": "glance-own-single",
		}))
		g := get(Default, w.glance())
		Expect(g.Spec.GlanceAPIs["default"].Type).To(Equal(glancev1.LayoutSplit), "the layout is noted, so that another backend does not change it")
		Expect(g.Status.GlanceAPIReadyCounts).To(Equal(map[string]int32{"azone": 2, "default": 2, "own": 1}))
		Expect(g.Status.APIsSummary).To(Equal("4/4"))
		quiet()
	})

	It("gives pods what restricts them, the configuration, and the default anti-affinity next to a constraint", func() {
		w.apply(spread("spread", "zone") + "\n---\n" + glance(`
  glanceAPIs: {default: {customServiceConfig: "[DEFAULT]\ndebug = true\n", topologyRef: {name: spread}}}`))
		ready(w.glance())
		pod := w.pod("glance-default-single-0")
		Expect(pod.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution).To(HaveLen(1))
		Expect(pod.Spec.TopologySpreadConstraints).To(HaveLen(1))
		Expect(*pod.Spec.SecurityContext.RunAsNonRoot).To(BeTrue())
		Expect(*pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation).To(BeFalse())
		Expect(pod.Spec.Containers[0].Image).To(Equal("glance:1"))
		config := &k8scorev1.Secret{ObjectMeta: w.meta("glance-default-single-config-data")}
		Expect(api.Get(ctx, client.ObjectKeyFromObject(config), config)).To(Succeed())
		Expect(config.Data).To(HaveKeyWithValue("02-glance-override.conf", []byte("[DEFAULT]\ndebug = true\n")))
		Expect(string(config.Data["01-glance.conf"])).To(ContainSubstring("enabled_backends = default_backend:file"))
		shows(w.api("glance-default-single"), condition.ServiceConfigReadyCondition, "True/Ready/", "No database is configured")
		shows(w.api("glance-default-single"), topologyv1.PlacementReadyCondition, "True/Ready/")
	})

	It("removes an API that it no longer describes, and keeps its claims", func() {
		w.apply(glance(`
  storage: {storageRequest: 1G, storageClass: ` + storageClass + `}
  glanceAPIs: {a: {}, b: {}}`))
		ready(w.glance())
		change(w.glance(), func(g *glancev1.Glance) { delete(g.Spec.GlanceAPIs, "b") })
		Eventually(w.births).Should(And(HaveLen(1), HaveKey("glance-a-single-0")))
		claim := &k8scorev1.PersistentVolumeClaim{ObjectMeta: w.meta("glance-glance-b-single-0")}
		Expect(api.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
	})

	It("rolls pods out when configuration or a Secret of it changes, and only then", func() {
		w.apply(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "stringData": {"c": "[database]\nconnection = sqlite://one\n"}}`)
		w.apply(glance(`
  glanceAPIs: {a: {customServiceConfigSecrets: [db]}, b: {}}`))
		ready(w.glance())
		Expect(w.jobs()).To(BeEmpty(), "each pod updates a database of its own")
		before := w.births()
		w.apply(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "stringData": {"c": "[database]\nconnection = sqlite://two\n"}}`)
		Eventually(w.births).ShouldNot(HaveKeyWithValue("glance-a-single-0", before["glance-a-single-0"]))
		ready(w.glance())
		Expect(w.births()).To(HaveKeyWithValue("glance-b-single-0", before["glance-b-single-0"]))
		quiet()
	})

	It("says which Secret is missing, and continues when it comes", func() {
		w.apply(glance(`
  databaseHostname: openstack.example
  secret: osp-secret
  glanceAPIs: {a: {}}`))
		shows(w.api("glance-a-single"), condition.InputReadyCondition, "False/SecretMissing/Warning", `Secret "osp-secret" does not exist`)
		w.apply(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "osp-secret"}, "stringData": {"x": "y"}}`)
		shows(w.api("glance-a-single"), condition.InputReadyCondition, "False/SecretKeyMissing/Warning", "GlanceDatabasePassword")
		w.apply(`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "osp-secret"}, "stringData": {"GlanceDatabasePassword": "p@ss$"}}`)
		ready(w.glance())
		config := &k8scorev1.Secret{ObjectMeta: w.meta("glance-a-single-config-data")}
		Expect(api.Get(ctx, client.ObjectKeyFromObject(config), config)).To(Succeed())
		Expect(string(config.Data["01-glance.conf"])).To(ContainSubstring("connection = mysql+pymysql://glance:p%40ss$$@openstack.example/glance"))

		By("having updated the schema of the database once for all pods")
		Expect(w.jobs()).To(Equal(map[string]bool{"glance-a-single-db-sync": true}))
		Expect(w.pod("glance-a-single-0").Spec.InitContainers).To(BeEmpty())
		shows(w.api("glance-a-single"), condition.DBSyncReadyCondition, "True/Ready/")
		quiet()
	})

	It("leaves a Service of another owner alone, and says so", func() {
		w.apply(glance("\n  glanceAPIs: {a: {}}"))
		ready(w.glance())
		w.apply("apiVersion: glance.openstack.org/v1beta1\nkind: Glance\nmetadata: {name: other}\nspec: {glanceAPIs: {a: {}}}")
		shows(w.api("other-a-single"), condition.DeploymentReadyCondition, "False/Conflict/Error", "glance-a-", "GlanceAPI/glance-a-single", "rename")
	})
})

var _ = Describe("The reference to a Topology", func() {
	var w world
	BeforeEach(func() { w = newWorld() })

	controlPlane := `apiVersion: core.openstack.org/v1beta1
kind: OpenStackControlPlane
metadata: {name: openstack}
spec:
  topologyRef: {name: plane}
  glance:
    template:
      glanceAPIs:
        edge: {type: edge, topologyRef: {name: near}}
        inherits: {}
        none: {topologyRef: {}}`

	It("counts when it is the nearest, and an empty one opts out", func() {
		w.apply(pin("plane", "zoneA") + "\n---\n" + pin("near", "zoneB") + "\n---\n" + controlPlane)
		ready(w.glance())
		for name, topology := range map[string]string{"glance-edge-edge": "near", "glance-inherits-single": "plane"} {
			Expect(get(Default, w.api(name)).Status.LastAppliedTopology).To(HaveValue(HaveField("Name", topology)), name)
		}
		Expect(get(Default, w.api("glance-none-single")).Status.LastAppliedTopology).To(BeNil())
		Expect(w.pods()).To(ContainElements("glance-edge-edge-api-0@zoneB", "glance-inherits-single-0@zoneA"))
		Expect(w.pod("glance-none-single-0").Spec.Affinity.NodeAffinity).To(BeNil())
		Eventually(w.users).WithArguments("plane").Should(ConsistOf("GlanceAPI/glance-inherits-single"))
		quiet()

		By("changing the reference of the control plane: what refers to another is not touched")
		mark, before := wire.Mark(), w.births()
		w.apply(pin("other", "zoneC"))
		change(&openstackv1.OpenStackControlPlane{ObjectMeta: w.meta("openstack")}, func(p *openstackv1.OpenStackControlPlane) { p.Spec.TopologyRef.Name = "other" })
		Eventually(w.pods).Should(ContainElement("glance-inherits-single-0@zoneC"))
		ready(w.glance())
		Expect(w.births()).To(And(HaveKeyWithValue("glance-edge-edge-api-0", before["glance-edge-edge-api-0"]), HaveKeyWithValue("glance-none-single-0", before["glance-none-single-0"])))
		Expect(wire.Since(mark, "statefulsets")).To(HaveLen(1))
		Eventually(w.users).WithArguments("plane").Should(BeEmpty())

		By("removing it: the default comes back")
		change(&openstackv1.OpenStackControlPlane{ObjectMeta: w.meta("openstack")}, func(p *openstackv1.OpenStackControlPlane) { p.Spec.TopologyRef = nil })
		Eventually(func(g Gomega) {
			g.Expect(get(g, w.set("glance-inherits-single")).Spec.Template.Spec.Affinity.NodeAffinity).To(BeNil())
			g.Expect(w.users("other")).To(BeEmpty())
		}).Should(Succeed())
	})

	It("stops only its consumers when the Topology does not exist, and heals when it is created", func() {
		w.apply(pin("near", "zoneB") + "\n---\n" + controlPlane)
		shows(w.api("glance-inherits-single"), condition.TopologyReadyCondition, "False/TopologyMissing/Warning", `"plane"`, "create it")
		plane := &openstackv1.OpenStackControlPlane{ObjectMeta: w.meta("openstack")}
		shows(plane, condition.TopologyReadyCondition, "False/TopologyMissing/Warning", `"plane"`)
		ready(w.api("glance-edge-edge"), w.api("glance-none-single"))
		Expect(apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(w.set("glance-inherits-single")), w.set("glance-inherits-single")))).To(BeTrue())
		w.apply(pin("plane", "zoneA"))
		ready(w.glance())
		shows(plane, condition.ReadyCondition, "True/Ready/")
	})

	It("keeps pods running, and reports their state, when it changes to a missing Topology", func() {
		w.apply(glance("\n  glanceAPIs: {a: {}}"))
		ready(w.glance())
		before := w.births()
		change(w.glance(), func(g *glancev1.Glance) { g.Spec.TopologyRef = &topologyv1.TopologyRef{Name: "nothing"} })
		shows(w.api("glance-a-single"), condition.TopologyReadyCondition, "False/TopologyMissing/Warning")
		shows(w.api("glance-a-single"), condition.DeploymentReadyCondition, "True/Ready/", "1 of 1")
		Consistently(w.births).Should(Equal(before))
	})

	It("releases the Topology when the API is deleted", func() {
		w.apply(pin("plane", "zoneA") + "\n---\n" + glance("\n  glanceAPIs: {a: {topologyRef: {name: plane}}}"))
		ready(w.glance())
		Expect(api.Delete(ctx, w.topology("plane"))).To(Succeed())
		Expect(api.Delete(ctx, w.glance())).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(w.topology("plane")), w.topology("plane")))
		}).Should(BeTrue(), "the Topology should go after its consumer")
	})
})

var _ = Describe("A Topology that is edited", func() {
	It("writes each StatefulSet of its consumers once, and then all is quiet", func() {
		w := newWorld()
		w.apply(pin("shared", "zoneA, zoneB") + "\n---\n" + glance(`
  topologyRef: {name: shared}
  glanceAPIs: {a: {}, b: {replicas: 2}, c: {topologyRef: {}}}`))
		ready(w.glance())
		quiet()
		mark, before := wire.Mark(), w.births()
		w.apply(pin("shared", "zoneC"))
		Eventually(func() map[string]int { return w.perZone("glance-b") }).Should(Equal(map[string]int{"zoneC": 2}))
		Eventually(func() map[string]int { return w.perZone("glance-a") }).Should(Equal(map[string]int{"zoneC": 1}))
		ready(w.glance())
		quiet()
		Expect(wire.Since(mark, "statefulsets")).To(ConsistOf(ContainSubstring("glance-a-single"), ContainSubstring("glance-b-single")))
		Expect(w.births()).To(HaveKeyWithValue("glance-c-single-0", before["glance-c-single-0"]))
	})

	It("writes 100 StatefulSets once each", func() {
		w := newWorld()
		const n = 100
		g := &glancev1.Glance{ObjectMeta: w.meta("glance"), Spec: glancev1.GlanceSpec{
			TopologyRef: &topologyv1.TopologyRef{Name: "shared"}, GlanceAPIs: map[string]glancev1.GlanceAPITemplate{},
		}}
		for i := range n {
			// No pods: what is counted are writes.
			g.Spec.GlanceAPIs[fmt.Sprintf("a%03d", i)] = glancev1.GlanceAPITemplate{APIService: glancev1.APIService{Replicas: ptr.To[int32](0)}}
		}
		w.apply(pin("shared", "zoneA"))
		Expect(api.Create(ctx, g)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(get(g, w.glance()).Status.APIsSummary).To(Equal("100/100"))
		}).WithTimeout(4 * soon).Should(Succeed())
		quiet()
		mark := wire.Mark()
		w.apply(pin("shared", "zoneB"))
		Eventually(func() int { return len(wire.Since(mark, "statefulsets")) }).WithTimeout(4 * soon).Should(Equal(n))
		quiet()
		names := map[string]int{}
		for _, write := range wire.Since(mark, "statefulsets") {
			names[write]++
		}
		Expect(names).To(HaveLen(n))
		Expect(wire.Since(mark, "statefulsets")).To(HaveLen(n), "one write each")
		sets := &appsv1.StatefulSetList{}
		Expect(api.List(ctx, sets, client.InNamespace(string(w)))).To(Succeed())
		Expect(sets.Items).To(HaveLen(n))
	})
})
