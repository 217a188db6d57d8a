package topology

import (
	"context"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common/podified"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
)

// seeds/001, "Failure Scenarios".
var _ = Describe("A node that dies", Ordered, func() {
	const (
		apiName  = "glance-azone-edge"
		dead     = "worker-0"
		replicas = 6
		// aWhile is more than it takes until pods are evicted from a dead node, or
		// its pods are collected because of its taint.
		aWhile = 5 * time.Minute
	)
	zoneA := allIn("zoneA", replicas, "glance-azone-edge-api")
	var victims []string

	// die suspends the node and waits until its pods are to be evicted.
	die := func(ctx SpecContext) {
		GinkgoHelper()
		victims = on(ctx, dead)
		slices.Sort(victims)
		Expect(len(victims)).To(BeNumerically(">=", 2), "six pods on three nodes that would rather not share one")
		suspend(ctx, dead)
		Eventually(listing).WithContext(ctx).WithTimeout(aWhile).Should(haveEntries(inState(terminating, victims)))
	}

	BeforeAll(func(ctx SpecContext) {
		boot(ctx, sevenNodes())
		enter(ctx)
		mustCreate(ctx, "001-control-plane.yaml", "002-azone-node-affinity.yaml")
		edit(ctx, seed("001-all-external.yaml"))
		Eventually(current(ctx, controlPlane())).Should(expect.Ready())
		edit(ctx, `glanceAPIs: {default: null, azone: {type: edge, replicas: 6, topologyRef: {name: glance-azone-node-affinity}}}`)
		Eventually(zones).WithContext(ctx).Should(Equal(zoneA))
		Eventually(current(ctx, controlPlane())).Should(expect.Ready())
		DeferCleanup(func(ctx SpecContext) {
			change(ctx, node(dead), func(n *corev1.Node) { n.Spec.Taints, n.Labels[kwokLabel] = nil, kwokValue })
		})
	}, NodeTimeout(6*time.Minute))

	It("leaves its pods Terminating, and the condition says which, since when, why and what helps", func(ctx SpecContext) {
		die(ctx)
		Eventually(current(ctx, api(apiName))).Should(expect.False(podified.PodNodesReadyCondition, podified.PodsTerminatingReason, append(victims,
			"Node worker-0 is NotReady since 20", "Terminating since 20", "StatefulSet creates no pod of the same name",
			"bring node worker-0 back", "delete the Node", "kubectl taint node worker-0 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
			"kubectl delete pod --force --grace-period=0")...))
		Expect(current(ctx, controlPlane())()).NotTo(expect.Ready())

		By("forcing nothing")
		before := mustIdentify(ctx, "glance-")
		Consistently(identities("glance-")).WithContext(ctx).Should(Equal(before))
	}, SpecTimeout(9*time.Minute))

	It("heals when it returns", func(ctx SpecContext) {
		before := mustIdentify(ctx, "glance-")
		resume(ctx, dead)
		Eventually(zones).WithContext(ctx).Should(Equal(zoneA))
		Eventually(current(ctx, controlPlane())).Should(expect.Ready())
		after := mustIdentify(ctx, "glance-")
		for name := range before {
			if slices.Contains(victims, name) {
				Expect(after[name]).NotTo(Equal(before[name]), "%s is recreated", name)
			} else {
				Expect(after[name]).To(Equal(before[name]), "%s never left", name)
			}
		}
	}, SpecTimeout(6*time.Minute))

	It("gets a pod that is deleted by force replaced in the same zone", tier.Long, func(ctx SpecContext) {
		moveTo(ctx, dead, mustIdentify(ctx, "glance-"), "master-0", "worker-3")
		die(ctx)
		forced := victims[0]
		Expect(k8s.Delete(ctx, pod(ctx, forced), client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(zones).WithContext(ctx).Should(And(HaveKeyWithValue(forced, "zoneA"), haveEntries(inState(terminating, victims[1:]))))
		Expect(pod(ctx, forced).Spec.NodeName).NotTo(Equal(dead))
		Eventually(current(ctx, api(apiName))).Should(And(
			expect.False(podified.PodNodesReadyCondition, podified.PodsTerminatingReason, victims[1]),
			Not(expect.False(podified.PodNodesReadyCondition, podified.PodsTerminatingReason, forced))))
	}, SpecTimeout(9*time.Minute))

	It("gets the others replaced in the same zone once it is tainted out-of-service", tier.Long, func(ctx SpecContext) {
		outOfService := corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
		change(ctx, node(dead), func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, outOfService) })
		Eventually(zones).WithContext(ctx).WithTimeout(aWhile).Should(Equal(zoneA))
		Expect(on(ctx, dead)).To(BeEmpty())
		Eventually(current(ctx, controlPlane())).Should(expect.Ready(), "although the node is still dead")
		Expect(ready(ctx, dead)).To(BeFalse())
	}, SpecTimeout(9*time.Minute))
})

// moveTo makes pods again until two are on the node, by cordoning the others that
// would take them.
func moveTo(ctx context.Context, node string, all map[string]types.UID, others ...string) {
	GinkgoHelper()
	cordon(ctx, true, others...)
	for _, name := range slices.Sorted(maps.Keys(all))[:2] {
		if p := pod(ctx, name); p.Spec.NodeName != node {
			Expect(k8s.Delete(ctx, p)).To(Succeed())
		}
		Eventually(listing).WithContext(ctx).Should(HaveKeyWithValue(name, node))
	}
	cordon(ctx, false, others...)
}

// inState is a listing of pods that are all in one state.
func inState(state string, pods []string) map[string]string {
	states := map[string]string{}
	for _, pod := range pods {
		states[pod] = state
	}
	return states
}
