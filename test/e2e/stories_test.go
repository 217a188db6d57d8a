package e2e

import (
	. "github.com/onsi/ginkgo/v2"
)

// The stories share hosts and namespaces, and so are told in this order.
var _ = Describe("edpm-operators", func() {
	AfterEach(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			dump(ctx)
		}
		collectLeaks(ctx)
	})

	Describe("A compute", Ordered, ContinueOnFailure, computeStories)
	Describe("The cell rule", Ordered, ContinueOnFailure, cellRuleStories)
	Describe("A change", Ordered, ContinueOnFailure, changeStories)
	Describe("A node that is deleted", Ordered, ContinueOnFailure, deletionStories)
	Describe("A batch of four hosts", Ordered, batchStories)
	Describe("Wrong inputs", Ordered, inputStories)
	Describe("Rights", rightsStories)
	Describe("customServiceConfig", osloStories)
	Describe("Secrets", secretsStories)
})
