package topology

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	openstackv1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
)

// What people do to a Topology and to references while pods run.
var _ = Describe("A Topology in use", Ordered, tier.Long, func() {
	const shared, other, late = "shared", "other", "late"
	// Of three edge APIs two share a Topology.
	users := []string{"glance-one-edge", "glance-two-edge"}
	const bystander = "glance-three-edge"

	BeforeAll(func(ctx SpecContext) {
		boot(ctx, sevenNodes())
		enter(ctx)
		mustCreate(ctx, "001-control-plane.yaml")
		for _, name := range []string{shared, other} {
			Expect(k8s.Create(ctx, softly(name))).To(Succeed())
		}
		edit(ctx, seed("001-all-external.yaml"))
		edit(ctx, `glanceAPIs:
  default: null
  one: {type: edge, replicas: 2, topologyRef: {name: shared}}
  two: {type: edge, replicas: 2, topologyRef: {name: shared}}
  three: {type: edge, replicas: 2, topologyRef: {name: other}}`)
		Eventually(zones).WithContext(ctx).Should(And(HaveLen(6), HaveEach(HavePrefix("zone"))))
		Eventually(current(ctx, controlPlane())).Should(expect.Ready())
	}, NodeTimeout(6*time.Minute))

	It("updates exactly its users when it is edited", func(ctx SpecContext) {
		before, untouched := mustIdentify(ctx, "glance-"), statefulSet(ctx, bystander+"-api")
		change(ctx, topology(shared), func(t *topologyv1.Topology) { t.Spec.TopologySpreadConstraints[0].MaxSkew = 2 })
		for _, name := range users {
			for _, ordinal := range []string{"-0", "-1"} {
				Eventually(getPod).WithContext(ctx).WithArguments(name + "-api" + ordinal).Should(HaveField("UID", Not(Equal(before[name+"-api"+ordinal]))))
			}
			Eventually(current(ctx, api(name))).Should(expect.Ready())
			Expect(pod(ctx, name+"-api-0").Spec.TopologySpreadConstraints[0].MaxSkew).To(BeEquivalentTo(2))
		}
		Expect(statefulSet(ctx, bystander+"-api").ResourceVersion).To(Equal(untouched.ResourceVersion))
		for _, ordinal := range []string{"-0", "-1"} {
			Expect(pod(ctx, bystander+"-api"+ordinal).UID).To(Equal(before[bystander+"-api"+ordinal]))
		}
	}, SpecTimeout(6*time.Minute))

	It("stays when it is deleted, says for whom, and takes no new users", func(ctx SpecContext) {
		Expect(k8s.Delete(ctx, topology(shared))).To(Succeed())
		Eventually(current(ctx, topology(shared))).Should(expect.Problem(topologyv1.ConsumersReadyCondition, topologyv1.InUseReason,
			"GlanceAPI/"+users[0], "GlanceAPI/"+users[1]))
		Eventually(reasons).WithContext(ctx).WithArguments(shared).Should(ContainElement(string(topologyv1.InUseReason)))

		before := mustIdentify(ctx, "glance-")
		edit(ctx, `glanceAPIs: {three: {topologyRef: {name: shared}}}`)
		Eventually(current(ctx, api(bystander))).Should(expect.Problem(condition.TopologyReadyCondition, topologyv1.TopologyDeletingReason, shared))
		Consistently(identities("glance-")).WithContext(ctx).Should(Equal(before))
		Eventually(topologyUsers).WithContext(ctx).WithArguments(other).Should(ConsistOf("GlanceAPI/"+bystander), "the old one is in use until there is a new one")

		edit(ctx, `glanceAPIs: {three: {topologyRef: {name: other}}}`)
		Eventually(current(ctx, api(bystander))).Should(expect.Ready())
	}, SpecTimeout(6*time.Minute))

	It("disappears only once its users have another", func(ctx SpecContext) {
		before := mustIdentify(ctx, "glance-")
		edit(ctx, `glanceAPIs: {one: {topologyRef: {name: late}}, two: {topologyRef: {name: late}}}`)
		for _, name := range users {
			Eventually(current(ctx, api(name))).Should(expect.Problem(condition.TopologyReadyCondition, topologyv1.TopologyMissingReason, late))
		}
		Consistently(identities("glance-")).WithContext(ctx).Should(Equal(before), "pods of an API that waits for a Topology run on")
		Eventually(topologyUsers).WithContext(ctx).WithArguments(shared).Should(ConsistOf("GlanceAPI/"+users[0], "GlanceAPI/"+users[1]))
		Expect(current(ctx, api(bystander))()).To(expect.Ready(), "only those wait that refer to it")

		Expect(k8s.Create(ctx, softly(late))).To(Succeed())
		for _, name := range users {
			Eventually(current(ctx, api(name))).Should(expect.Ready())
		}
		Eventually(func() error { return k8s.Get(ctx, client.ObjectKeyFromObject(topology(shared)), topology(shared)) }).
			Should(Satisfy(apierrors.IsNotFound))
	}, SpecTimeout(6*time.Minute))

	It("leaves the default behind when the reference is removed", func(ctx SpecContext) {
		edit(ctx, `glanceAPIs: {one: {topologyRef: null}, two: {topologyRef: {name: null}}}`)
		for _, name := range users {
			Eventually(getPod).WithContext(ctx).WithArguments(name + "-api-0").Should(HaveField("Spec.TopologySpreadConstraints", BeEmpty()))
			Eventually(current(ctx, api(name))).Should(expect.Ready())
			a := api(name)
			Expect(current(ctx, a)()).NotTo(BeNil())
			Expect(a.Status.LastAppliedTopology).To(BeNil())
			Expect(a.Status.Conditions.Get(condition.TopologyReadyCondition)).To(BeNil())
			for _, ordinal := range []string{"-0", "-1"} {
				Expect(pod(ctx, name+"-api"+ordinal).Spec.Affinity).To(Equal(&corev1.Affinity{PodAntiAffinity: defaultAntiAffinity()}))
			}
		}
		Eventually(topologyUsers).WithContext(ctx).WithArguments(late).Should(BeEmpty())
	}, SpecTimeout(6*time.Minute))

	It("applies from the control plane to the APIs that neither have their own nor opt out", func(ctx SpecContext) {
		change(ctx, controlPlane(), func(p *openstackv1.OpenStackControlPlane) { p.Spec.TopologyRef = &topologyv1.TopologyRef{Name: late} })
		Eventually(topologyUsers).WithContext(ctx).WithArguments(late).Should(ConsistOf("GlanceAPI/" + users[0]))
		Eventually(getPod).WithContext(ctx).WithArguments(users[0] + "-api-0").Should(HaveField("Spec.TopologySpreadConstraints", HaveLen(1)))
		Eventually(current(ctx, controlPlane())).Should(expect.Ready())
		Expect(pod(ctx, users[1]+"-api-0").Spec.TopologySpreadConstraints).To(BeEmpty())
	}, SpecTimeout(6*time.Minute))
})

// softly is a Topology that spreads the pods of each of its users over zones as
// far as that goes.
func softly(name string) *topologyv1.Topology {
	t := topology(name)
	t.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.ScheduleAnyway}}
	return t
}
