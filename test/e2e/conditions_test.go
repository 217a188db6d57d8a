package e2e

import (
	"context"

	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
)

var beReady, haveProblem, describe = expect.Ready, expect.Problem, expect.Describe

// current returns a function for Eventually that reads an object.
func current[T phase.Object](ctx context.Context, obj T) func() (phase.Object, error) {
	return expect.Read(ctx, k8s, obj)
}
