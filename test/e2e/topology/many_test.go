package topology

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
	"github.com/edpm-operators/edpm-operators/test/standalone"
)

var _ = Describe("Three hundred GlanceAPIs that share a Topology", Ordered, tier.Long, func() {
	const (
		many   = 300
		shared = "shared"
		// aWhile is more than a small and busy machine needs for three hundred pods.
		aWhile = 8 * time.Minute
		// perAPI bounds what one edit of the Topology may cost each of them: the
		// states that its pod goes through are a handful.
		writesPerAPI, reconcilesPerAPI = 10, 30
	)
	glance := &glancev1.Glance{}

	BeforeAll(func(ctx SpecContext) {
		boot(ctx, sevenNodes())
		enter(ctx)
		Expect(k8s.Create(ctx, softly(shared))).To(Succeed())
		glance.ObjectMeta = named("glance")
		glance.Spec.TopologyRef = &topologyv1.TopologyRef{Name: shared}
		glance.Spec.GlanceAPIs = map[string]glancev1.GlanceAPITemplate{}
		for i := range many {
			glance.Spec.GlanceAPIs[fmt.Sprintf("site%03d", i)] = glancev1.GlanceAPITemplate{Type: glancev1.LayoutEdge}
		}
		Expect(k8s.Create(ctx, glance)).To(Succeed())
		Eventually(current(ctx, glance)).WithTimeout(aWhile).WithPolling(time.Second).Should(expect.Ready())
	}, NodeTimeout(aWhile+time.Minute))

	It("take one write each when it is edited, and then none", func(ctx SpecContext) {
		before, spent, requests := generations(ctx), quiet(ctx), countRequests(ctx)
		Expect(before).To(HaveLen(many))
		start := time.Now()
		change(ctx, topology(shared), func(t *topologyv1.Topology) { t.Spec.TopologySpreadConstraints[0].MaxSkew = 2 })
		Eventually(func() (map[string]int64, error) { return rolledOut(ctx) }).WithTimeout(aWhile).WithPolling(time.Second).Should(HaveLen(many), "sets that are rolled out")
		Eventually(current(ctx, glance)).WithTimeout(aWhile).WithPolling(time.Second).Should(expect.Ready())
		took := time.Since(start)
		after, written := quiet(ctx), countRequests(ctx).Since(requests)

		AddReportEntry("cost of one edit", fmt.Sprintf("%s until all were Ready; %d reconciliations, %d writes of the manager, %d of them conflicts; all: %v",
			took.Round(time.Second), after.Reconciles-spent.Reconciles, after.Writes-spent.Writes, after.Conflicts-spent.Conflicts, written))
		for name, generation := range generations(ctx) {
			Expect(generation).To(Equal(before[name]+1), "StatefulSet %s is written once", name)
		}
		Expect(written[standalone.Request{Group: "apps", Resource: "statefulsets", Verb: "APPLY"}]).To(Equal(many))
		for _, untouched := range []standalone.Request{{Resource: "secrets"}, {Resource: "services"}, {Group: glancev1.GroupVersion.Group, Resource: "glanceapis"}} {
			for _, untouched.Verb = range []string{"APPLY", "PATCH", "PUT", "POST"} {
				Expect(written[untouched]).To(BeZero(), "%+v", untouched)
			}
		}
		Expect(after.Errors - spent.Errors).To(BeZero())
		Expect(after.Writes - spent.Writes).To(BeNumerically("<=", many*writesPerAPI))
		Expect(after.Reconciles - spent.Reconciles).To(BeNumerically("<=", many*reconcilesPerAPI))
	}, SpecTimeout(6*aWhile))

	It("cost a manager that starts again no write at all", func(ctx SpecContext) {
		manager.Stop()
		startManager(ctx, cluster, "manager-again.log")
		Expect(quiet(ctx)).To(HaveField("Writes", BeZero()))
		Expect(manager.Read().ByController["glanceapi"]).To(BeNumerically(">=", many), "all were looked at")
	}, SpecTimeout(aWhile))
})

// generations of the StatefulSets, by name.
func generations(ctx context.Context) map[string]int64 {
	GinkgoHelper()
	sets := &appsv1.StatefulSetList{}
	Expect(k8s.List(ctx, sets, client.InNamespace(namespace))).To(Succeed())
	out := map[string]int64{}
	for _, s := range sets.Items {
		out[s.Name] = s.Generation
	}
	return out
}

// rolledOut are the generations of the StatefulSets whose pods were recreated at
// least once, and are up.
func rolledOut(ctx context.Context) (map[string]int64, error) {
	sets := &appsv1.StatefulSetList{}
	err := k8s.List(ctx, sets, client.InNamespace(namespace))
	out := map[string]int64{}
	for _, s := range sets.Items {
		if s.Generation > 1 && s.Status.ObservedGeneration == s.Generation && s.Status.CurrentRevision == s.Status.UpdateRevision && s.Status.ReadyReplicas == 1 {
			out[s.Name] = s.Generation
		}
	}
	return out, err
}

// quiet waits until the manager does nothing any more, and returns what it has
// done so far.
func quiet(ctx context.Context) *standalone.Activity {
	GinkgoHelper()
	_, activity, err := manager.Quiet(ctx)
	Expect(err).NotTo(HaveOccurred())
	return activity
}

func countRequests(ctx context.Context) standalone.Requests {
	GinkgoHelper()
	counts, err := standalone.CountRequests(ctx, raw)
	Expect(err).NotTo(HaveOccurred())
	return counts
}
