package topology

import (
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common/podified"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
)

// seeds/001, "topologySpreadConstraints for Glance Split Pods": the pods have
// volumes that never leave their node, and worker-3 lacks the label of zones.
var _ = Describe("Volumes that are bound to a node", Ordered, tier.Long, func() {
	const spread = "glance-default-spread-pods"
	// nodes are where the pods of the seed's listing are.
	nodes := map[string]string{
		"glance-default-external-api-0": "worker-0", "glance-default-external-api-1": "worker-2", "glance-default-external-api-2": "worker-3",
		"glance-default-internal-api-0": "worker-1", "glance-default-internal-api-1": "worker-3", "glance-default-internal-api-2": "worker-0",
	}
	// trapped are the pods on worker-3, by GlanceAPI.
	trapped := map[string]string{"glance-default-external": "glance-default-external-api-2", "glance-default-internal": "glance-default-internal-api-1"}

	BeforeAll(func(ctx SpecContext) {
		boot(ctx, sevenNodes().withoutZone("worker-3"))
		enter(ctx)
		for pod, node := range nodes {
			claimOn(ctx, pod, node)
		}
		mustCreate(ctx, "001-control-plane.yaml")
		edit(ctx, seed("001-default-replicas.yaml"))
		Eventually(listing).WithContext(ctx).Should(Equal(nodes))
		Eventually(current(ctx, controlPlane())).Should(expect.Ready())
	}, NodeTimeout(6*time.Minute))

	It("hold a roll-out back that would leave pods without a node, if the Topology says so", func(ctx SpecContext) {
		before := mustIdentify(ctx, "glance-default-")
		mustCreate(ctx, "002-default-spread-pods.yaml")
		change(ctx, topology(spread), func(t *topologyv1.Topology) { t.Spec.Enforcement = topologyv1.Hold })
		edit(ctx, seed("001-default-spread.yaml"))
		for name, trappedPod := range trapped {
			Eventually(current(ctx, api(name))).Should(And(
				expect.False(topologyv1.PlacementReadyCondition, topologyv1.VolumeNodeAffinityConflictReason,
					trappedPod, volumeOf(ctx, trappedPod), "worker-3", "lacks the label zone", "kubectl label node worker-3 zone=", "storage.external: true", "Hold"),
				expect.False(condition.DeploymentReadyCondition, podified.HeldReason, name+"-api")))
		}
		Consistently(identities("glance-default-")).WithContext(ctx).Should(Equal(before), "no pod is recreated")
		Expect(listing(ctx)).To(Equal(nodes))
	}, SpecTimeout(6*time.Minute))

	It("leave pods Pending as in the seed, if the Topology only warns", func(ctx SpecContext) {
		change(ctx, topology(spread), func(t *topologyv1.Topology) { t.Spec.Enforcement = topologyv1.Warn })
		Eventually(listing).WithContext(ctx).Should(And(HaveLen(6),
			HaveKeyWithValue("glance-default-external-api-2", pending), HaveKeyWithValue("glance-default-internal-api-1", pending),
			HaveKeyWithValue("glance-default-external-api-0", "worker-0"), HaveKeyWithValue("glance-default-external-api-1", "worker-2"),
			HaveKeyWithValue("glance-default-internal-api-0", "worker-1"), HaveKeyWithValue("glance-default-internal-api-2", "worker-0")))
		for name, trappedPod := range trapped {
			Eventually(current(ctx, api(name))).Should(And(
				expect.False(topologyv1.PlacementReadyCondition, topologyv1.VolumeNodeAffinityConflictReason, trappedPod, "worker-3", "storage.external: true"),
				expect.False(condition.DeploymentReadyCondition, podified.PodsPendingReason, trappedPod,
					"0/7 nodes are available", "1 node(s) didn't match pod topology spread constraints (missing required label)")))
		}
	}, SpecTimeout(6*time.Minute))

	It("lose their effect once the storage is external", func(ctx SpecContext) {
		claims := claimNames(ctx)
		Expect(claims).To(HaveLen(6))
		edit(ctx, seed("001-default-external.yaml"))
		Eventually(perZone("glance-default-")).WithContext(ctx).WithTimeout(6 * time.Minute).
			Should(Equal(map[string]int{"zoneA": 2, "zoneB": 2, "zoneC": 2}))
		Eventually(current(ctx, controlPlane())).Should(expect.Ready())
		Expect(perZone("glance-default-")(ctx)).To(Equal(map[string]int{"zoneA": 2, "zoneB": 2, "zoneC": 2}), "when the roll-out is over")
		for ordinal := range 3 {
			p := pod(ctx, fmt.Sprintf("glance-default-external-api-%d", ordinal))
			Expect(p.Spec.Volumes).NotTo(ContainElement(HaveField("PersistentVolumeClaim", Not(BeNil()))))
		}
		Expect(claimNames(ctx)).To(Equal(claims), "what is on the volumes is no one's to delete")
	}, SpecTimeout(9*time.Minute))

	It("follow the pods to where the scheduler puts them, if the Topology exists first", func(ctx SpecContext) {
		edit(ctx, `glanceAPIs: {default: null}`)
		Eventually(listing).WithContext(ctx).Should(BeEmpty())
		edit(ctx, `glanceAPIs: {late: {type: split, replicas: 3, topologyRef: {name: glance-default-spread-pods}}}`)
		Eventually(perZone("glance-")).WithContext(ctx).WithTimeout(6 * time.Minute).
			Should(Equal(map[string]int{"zoneA": 2, "zoneB": 2, "zoneC": 2}))
		Expect(volumeOf(ctx, "glance-late-external-api-0")).NotTo(BeEmpty())
		Eventually(current(ctx, controlPlane())).Should(expect.Ready())
	}, SpecTimeout(9*time.Minute))
})

func claimNames(ctx SpecContext) []string {
	GinkgoHelper()
	list := &corev1.PersistentVolumeClaimList{}
	Expect(k8s.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	var names []string
	for _, claim := range list.Items {
		names = append(names, claim.Name)
	}
	slices.Sort(names)
	return names
}
