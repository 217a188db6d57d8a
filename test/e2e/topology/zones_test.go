package topology

import (
	"fmt"
	"maps"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gstruct"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
)

// seeds/001, "Multi Node Testing", without volumes: they have a story of their own.
var _ = Describe("Three zones", Ordered, func() {
	edges := allIn("zoneA", 3, "glance-azone-edge-api")
	maps.Copy(edges, allIn("zoneB", 3, "glance-bzone-edge-api"))
	maps.Copy(edges, allIn("zoneC", 3, "glance-czone-edge-api"))

	BeforeAll(func(ctx SpecContext) {
		boot(ctx, sevenNodes())
		enter(ctx)
		mustCreate(ctx, "001-control-plane.yaml")
		edit(ctx, seed("001-all-external.yaml"))
	}, NodeTimeout(3*time.Minute))

	It("keep the pods of each edge API in the zone of its Topology", func(ctx SpecContext) {
		mustCreate(ctx, "002-azone-node-affinity.yaml", "002-bzone-node-affinity.yaml", "002-czone-node-affinity.yaml")
		edit(ctx, seed("001-edge-apis.yaml"))
		Eventually(zonesOf("glance-")).WithContext(ctx).Should(And(HaveLen(11), haveEntries(edges),
			HaveKeyWithValue("glance-default-external-api-0", HavePrefix("zone")),
			HaveKeyWithValue("glance-default-internal-api-0", HavePrefix("zone"))))
		Eventually(current(ctx, controlPlane())).Should(expect.Ready())

		spec := pod(ctx, "glance-azone-edge-api-0").Spec
		Expect(spec.Affinity.NodeAffinity).NotTo(BeNil())
		Expect(spec.Affinity.PodAntiAffinity).To(Equal(defaultAntiAffinity()), "what the Topology does not set stays")
	}, SpecTimeout(6*time.Minute))

	It("mean nothing to the pods of an API without a Topology", func(ctx SpecContext) {
		edit(ctx, seed("001-default-replicas.yaml"))
		Eventually(zonesOf("glance-default-")).WithContext(ctx).Should(And(HaveLen(6), HaveEach(HavePrefix("zone"))))
		Eventually(current(ctx, controlPlane())).Should(expect.Ready())
		spec := pod(ctx, "glance-default-internal-api-0").Spec
		Expect(spec.TopologySpreadConstraints).To(BeEmpty())
		Expect(spec.Affinity).To(Equal(&corev1.Affinity{PodAntiAffinity: defaultAntiAffinity()}))
	}, SpecTimeout(6*time.Minute))

	It("get two pods each of an API that refers to a Topology that spreads", func(ctx SpecContext) {
		mustCreate(ctx, "002-default-spread-pods.yaml")
		edit(ctx, seed("001-default-spread.yaml"))
		Eventually(perZone("glance-default-")).WithContext(ctx).Should(Equal(map[string]int{"zoneA": 2, "zoneB": 2, "zoneC": 2}))
		Eventually(current(ctx, controlPlane())).Should(expect.Ready())
		Expect(perZone("glance-default-")(ctx)).To(Equal(map[string]int{"zoneA": 2, "zoneB": 2, "zoneC": 2}), "when the roll-out is over")
		Expect(zones(ctx)).To(haveEntries(edges))

		By("keeping the default anti-affinity next to the constraint, as the seed's dump of a pod shows")
		for _, group := range []string{"external", "internal"} {
			spec := pod(ctx, fmt.Sprintf("glance-default-%s-api-2", group)).Spec
			Expect(spec.Affinity).To(Equal(&corev1.Affinity{PodAntiAffinity: defaultAntiAffinity()}))
			Expect(spec.TopologySpreadConstraints).To(Equal([]corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"service": "glance"}},
			}}))
		}

		By("showing consumers, domains and skew on the Topology")
		t := topology("glance-default-spread-pods")
		Eventually(current(ctx, t)).Should(expect.Ready())
		Eventually(func() (topologyv1.TopologyStatus, error) {
			_, err := current(ctx, t)()
			return t.Status, err
		}).Should(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
			"Consumers": ConsistOf(
				topologyv1.Consumer{Kind: "GlanceAPI", Name: "glance-default-external", Pods: 3},
				topologyv1.Consumer{Kind: "GlanceAPI", Name: "glance-default-internal", Pods: 3}),
			"DomainsSummary": Equal("zoneA=5,zoneB=5,zoneC=5"),
			"SkewSummary":    Equal("0/1"),
		}))
	}, SpecTimeout(6*time.Minute))
})
