package topology

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common/podified"
	openstackv1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
)

// seeds/000, "Confirm glance follows topology spread constraints (1 node)".
var _ = Describe("One node, which has no zone", Ordered, func() {
	const (
		apiName = "glance-default-single"
		zoneKey = "topology.kubernetes.io/zone"
	)

	BeforeAll(func(ctx SpecContext) {
		boot(ctx, labels{"crc": {}})
		enter(ctx)
	}, NodeTimeout(3*time.Minute))

	It("runs glance", func(ctx SpecContext) {
		mustCreate(ctx, "000-control-plane.yaml")
		Eventually(listing).WithContext(ctx).Should(Equal(map[string]string{"glance-default-single-0": "crc"}))
		Eventually(current(ctx, controlPlane())).Should(expect.Ready())
		Expect(pod(ctx, "glance-default-single-0").Spec.Affinity).To(Equal(&corev1.Affinity{PodAntiAffinity: defaultAntiAffinity()}))
	}, SpecTimeout(6*time.Minute))

	It("leaves the pod Pending under a constraint on zones, and says why", func(ctx SpecContext) {
		mustCreate(ctx, "000-topo.yaml")
		edit(ctx, seed("000-default-ref.yaml"))

		By("the prediction naming the label, the node and the remedy")
		Eventually(current(ctx, api(apiName))).Should(expect.False(topologyv1.PlacementReadyCondition, topologyv1.MissingNodeLabelReason,
			"glance-default-single-0", zoneKey, "crc", "kubectl label node crc", "whenUnsatisfiable: ScheduleAnyway"))
		By("the scheduler")
		Eventually(listing).WithContext(ctx).Should(Equal(map[string]string{"glance-default-single-0": pending}))
		Eventually(current(ctx, api(apiName))).Should(expect.False(condition.DeploymentReadyCondition, podified.PodsPendingReason,
			"glance-default-single-0", "0/1 nodes are available", "missing required label"))
		By("everything above it")
		Eventually(current(ctx, controlPlane())).Should(expect.Problem(openstackv1.GlanceReadyCondition, openstackv1.ServiceNotReadyReason, apiName, zoneKey))
		By("an event")
		Eventually(reasons).WithContext(ctx).WithArguments(apiName).Should(ContainElement(string(topologyv1.MissingNodeLabelReason)))
		By("the Topology itself")
		Eventually(current(ctx, topology("default-sample"))).Should(expect.False(topologyv1.SpreadReadyCondition, topologyv1.NoDomainReason, zoneKey))
	}, SpecTimeout(6*time.Minute))

	It("runs it once the constraint is soft", func(ctx SpecContext) {
		change(ctx, topology("default-sample"), func(t *topologyv1.Topology) {
			t.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable = corev1.ScheduleAnyway
		})
		Eventually(listing).WithContext(ctx).Should(Equal(map[string]string{"glance-default-single-0": "crc"}))
		Eventually(current(ctx, api(apiName))).Should(expect.Ready())
		Eventually(current(ctx, controlPlane())).Should(expect.Ready())
		p := pod(ctx, "glance-default-single-0")
		Expect(p.Spec.TopologySpreadConstraints).To(HaveLen(1))
		Expect(p.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable).To(Equal(corev1.ScheduleAnyway))
		Expect(p.Spec.Affinity).To(Equal(&corev1.Affinity{PodAntiAffinity: defaultAntiAffinity()}))
	}, SpecTimeout(6*time.Minute))
})

// reasons of the events about an object.
func reasons(ctx context.Context, name string) ([]string, error) {
	list := &eventsv1.EventList{}
	err := k8s.List(ctx, list, client.InNamespace(namespace))
	var out []string
	for _, e := range list.Items {
		if e.Regarding.Name == name {
			out = append(out, e.Reason)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), err
}
