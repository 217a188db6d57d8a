package topology

import (
	"maps"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
)

// seeds/002, on its three nodes, each a zone: where a pod is, is known by its zone.
var _ = Describe("An edge API", Ordered, func() {
	const set = "glance-czone-edge-api"
	twoPerNode := Equal(map[string]int{"zoneA": 2, "zoneB": 2, "zoneC": 2})

	BeforeAll(func(ctx SpecContext) {
		boot(ctx, threeNodes())
		enter(ctx)
		mustCreate(ctx, "001-control-plane.yaml", "002-default-spread-pods.yaml")
		edit(ctx, seed("001-all-external.yaml"))
		edit(ctx, seed("001-default-spread.yaml"))
		Eventually(perZone("glance-default-")).WithContext(ctx).Should(twoPerNode)
		Eventually(current(ctx, controlPlane())).Should(expect.Ready())
	}, NodeTimeout(6*time.Minute))

	It("cannot be spread by a field that does not exist, and the field that does is named", func(ctx SpecContext) {
		err := create(ctx, seed("002-czone-spread-pods.yaml"))
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(And(ContainSubstring("spec.topologySpreadConstraint"), ContainSubstring("write topologySpreadConstraints, in the plural"))))
	}, SpecTimeout(3*time.Minute))

	It("spreads over the zones by the value of its label glanceAPI", func(ctx SpecContext) {
		Expect(create(ctx, strings.Replace(seed("002-czone-spread-pods.yaml"), "topologySpreadConstraint:", "topologySpreadConstraints:", 1))).To(Succeed())
		edit(ctx, `glanceAPIs: {czone: {type: edge, replicas: 3, topologyRef: {name: glance-czone-spread-pods}}}`)
		Eventually(perZone(set)).WithContext(ctx).Should(Equal(map[string]int{"zoneA": 1, "zoneB": 1, "zoneC": 1}))
		Eventually(current(ctx, api("glance-czone-edge"))).Should(expect.Ready(), "the selector is not inert")
		Expect(perZone("glance-default-")(ctx)).To(twoPerNode)
	}, SpecTimeout(6*time.Minute))

	It("stays in one zone when pinned", func(ctx SpecContext) {
		mustCreate(ctx, "002-czone-node-affinity.yaml")
		edit(ctx, `glanceAPIs: {czone: {topologyRef: {name: glance-czone-node-affinity}}}`)
		Eventually(listingOf(set)).WithContext(ctx).Should(Equal(allIn("master-2", 3, set)))
		Eventually(current(ctx, controlPlane())).Should(expect.Ready())
		Expect(pod(ctx, set+"-0").Spec.TopologySpreadConstraints).To(BeEmpty())
		Expect(perZone("glance-default-")(ctx)).To(twoPerNode)
	}, SpecTimeout(6*time.Minute))

	It("leaves the other zones to its neighbours: the final table of fifteen pods", func(ctx SpecContext) {
		mustCreate(ctx, "002-azone-node-affinity.yaml", "002-bzone-node-affinity.yaml")
		edit(ctx, seed("001-edge-apis.yaml"))
		edges := allIn("master-0", 3, "glance-azone-edge-api")
		maps.Copy(edges, allIn("master-1", 3, "glance-bzone-edge-api"))
		maps.Copy(edges, allIn("master-2", 3, "glance-czone-edge-api"))
		Eventually(listing).WithContext(ctx).Should(And(HaveLen(15), haveEntries(edges)))
		Eventually(current(ctx, controlPlane())).Should(expect.Ready())
		Expect(perZone("glance-default-")(ctx)).To(twoPerNode)

		By("listing the Topologies, of which one has no consumer any more")
		list := &topologyv1.TopologyList{}
		Eventually(func() (map[string]int32, error) {
			err := k8s.List(ctx, list)
			consumers := map[string]int32{}
			for _, t := range list.Items {
				consumers[t.Name] = t.Status.ConsumerCount
			}
			return consumers, err
		}).Should(Equal(map[string]int32{
			"glance-azone-node-affinity": 1, "glance-bzone-node-affinity": 1, "glance-czone-node-affinity": 1,
			"glance-czone-spread-pods": 0, "glance-default-spread-pods": 2,
		}))
	}, SpecTimeout(6*time.Minute))
})
