package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1 "k8s.io/api/apps/v1"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
)

// cellChanges are the ways in which a compute of the samples could be moved to
// another cell.
func cellChanges(ctx context.Context) map[string]func() error {
	cell := func(obj client.Object, value string) func() error {
		return func() error {
			return change(ctx, obj, func(o client.Object) { annotated(o, novav1.CellAnnotation, value) })
		}
	}
	return map[string]func() error{
		"the annotation of the node changed": cell(nodeNamed(samplesNS, compute1.Name), "nova-cell1"),
		"an overriding annotation added":     cell(nodeNamed(samplesNS, compute0.Name), "nova-cell2"),
		"the annotation of the role changed": cell(roleNamed(samplesNS, "edpm-compute"), "nova-cell2"),
		"the annotation of the node removed": func() error {
			return change(ctx, nodeNamed(samplesNS, compute1.Name), func(n *dataplanev1.OpenStackDataPlaneNode) {
				delete(n.Annotations, novav1.CellAnnotation)
			})
		},
		"the node moved to a role without cell": func() error {
			return change(ctx, nodeNamed(samplesNS, compute0.Name), func(n *dataplanev1.OpenStackDataPlaneNode) {
				n.Spec.Role = "edpm-storage"
			})
		},
	}
}

// cellRuleStories tell that nothing moves a compute between cells, through the
// webhooks as they are deployed.
func cellRuleStories() {
	var before history

	BeforeAll(func(ctx SpecContext) {
		needPod()
		before = historyOf(ctx, compute0, compute1, storage0)
	}, NodeTimeout(3*time.Minute))

	AfterAll(func(ctx SpecContext) { Expect(scaleManager(ctx, 1)).To(Succeed()) }, NodeTimeout(9*time.Minute))

	It("refuses every way of moving a compute, and says what to do instead", func(ctx SpecContext) {
		for what, write := range cellChanges(ctx) {
			Expect(write()).To(MatchError(And(
				MatchRegexp("edpm-compute-[01]"), ContainSubstring("cell nova-cell"), ContainSubstring("cannot move"),
			)), what)
		}
	}, SpecTimeout(3*time.Minute))

	It("refuses a customServiceConfig that nova could not read, with the line", func(ctx SpecContext) {
		err := change(ctx, computeNamed(samplesNS, compute0.Name), func(c *novav1.NovaExternalCompute) {
			c.Spec.CustomServiceConfig = "[DEFAULT]\ndebug = true\nthis is no option\n"
		})
		Expect(err).To(MatchError(And(ContainSubstring("spec.customServiceConfig"), ContainSubstring("line 3"))))
	}, SpecTimeout(3*time.Minute))

	It("refuses changes of a cell while the manager is unavailable, and nothing else", tier.Long, func(ctx SpecContext) {
		Expect(scaleManager(ctx, 0)).To(Succeed())
		for what, write := range cellChanges(ctx) {
			Eventually(write).WithTimeout(60*time.Second).Should(MatchError(ContainSubstring("failed calling webhook")), what)
		}
		for _, obj := range []client.Object{
			nodeNamed(samplesNS, compute0.Name), roleNamed(samplesNS, "edpm-compute"), computeNamed(samplesNS, compute0.Name),
		} {
			Expect(change(ctx, obj, func(o client.Object) {
				annotated(o, "example.com/note", "written while the manager was away")
				o.SetLabels(map[string]string{"example.com/rack": "r1"})
			})).To(Succeed(), "%T", obj)
		}
		Expect(change(ctx, nodeNamed(samplesNS, compute1.Name), func(n *dataplanev1.OpenStackDataPlaneNode) {
			n.Spec.Node.AnsiblePort = 22 // as the role has it
		})).To(Succeed())
		Expect(scaleManager(ctx, 1)).To(Succeed())
	}, SpecTimeout(15*time.Minute))

	It("leaves every compute where it was, and starts no run", func(ctx SpecContext) {
		Eventually(current(ctx, computeNamed(samplesNS, compute0.Name))).WithTimeout(90 * time.Second).Should(beReady())
		Consistently(before.since).WithArguments(ctx, compute0).WithTimeout(6 * time.Second).Should(BeEmpty())
		before.untouched(ctx, compute0, compute1, storage0)
		Expect(compute(ctx, samplesNS, compute0.Name).Spec.CellName).To(Equal("nova-cell1"))
		Expect(compute(ctx, samplesNS, compute1.Name).Spec.CellName).To(Equal("nova-cell2"))
	}, SpecTimeout(6*time.Minute))
}

// scaleManager sets the number of pods of the manager and waits for them.
func scaleManager(ctx context.Context, replicas int32) error {
	err := change(ctx, managerDeployment(), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(replicas) })
	if err != nil {
		return err
	}
	return manager.Ready(ctx)
}
