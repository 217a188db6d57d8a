package topology

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/edpm-operators/edpm-operators/internal/kinds"
)

func TestTheKindsWithReferencesAreThoseOfTheTable(t *testing.T) {
	var want, got []string
	for _, k := range kinds.UsingTopologies() {
		want = append(want, k.Kind)
	}
	for _, k := range Kinds {
		got = append(got, k.Name)
	}
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
		t.Errorf("the kinds that use Topologies differ (-table +references):\n%s", diff)
	}
}
