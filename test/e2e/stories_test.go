package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
)

// The stories share hosts and namespaces, and so run in this order. What is long tells on
// real hosts what faster tests tell for every change: CONTRIBUTING.md names them.
var _ = Describe("edpm-operators", func() {
	AfterEach(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			dump(ctx)
		}
	}, NodeTimeout(6*time.Minute))

	Describe("A compute", Ordered, ContinueOnFailure, watchedForLeaks(computeStories))
	Describe("The cell rule", Ordered, ContinueOnFailure, watchedForLeaks(cellRuleStories))
	Describe("A change", Ordered, ContinueOnFailure, watchedForLeaks(changeStories))
	Describe("A node that is deleted", Ordered, ContinueOnFailure, watchedForLeaks(deletionStories))
	Describe("A host that is added again", Ordered, tier.Long, watchedForLeaks(machineStories))
	Describe("Services without Go", Ordered, watchedForLeaks(classStories))
	Describe("A batch of four hosts", Ordered, watchedForLeaks(batchStories))
	Describe("A hostile host", Ordered, ContinueOnFailure, tier.Long, watchedForLeaks(hostileStories))
	Describe("Wrong inputs", Ordered, tier.Long, watchedForLeaks(inputStories))
	Describe("Glance", Ordered, watchedForLeaks(glanceStories))
	Describe("Permissions", rightsStories)
	Describe("Permissions for Secrets", Ordered, tier.Long, secretRightsStories)
	Describe("Secrets", secretsStories)
	Describe("The manager", auditStories)
})

// watchedForLeaks looks for secrets where a story has left its traces.
func watchedForLeaks(stories func()) func() {
	return func() {
		AfterAll(func(ctx SpecContext) { collectLeaks(ctx) }, NodeTimeout(6*time.Minute))
		stories()
	}
}
