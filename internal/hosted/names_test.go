package hosted

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/edpm-operators/edpm-operators/apis/common"
)

// telemetryOnEdge is the object of service telemetry on node edge-0, which has run. Service
// telemetry-edge on node 0 would have the same name.
func telemetryOnEdge() *agent {
	obj := newAgent("x")
	obj.Name, obj.Labels = "telemetry-edge-0", map[string]string{"service": "telemetry"}
	obj.Spec.DataplaneNodeName = "edge-0"
	obj.Status.Set("telemetry", "hash", common.RunRecord{Name: "r", Serial: 1})
	return obj
}

func TestANodeIsNotHeldByTheObjectOfAnotherNodeOrService(t *testing.T) {
	for name, c := range map[string]struct {
		node, service string
		want          bool
	}{
		"its own":                               {"edge-0", "telemetry", true},
		"another node of which it has the name": {"0", "telemetry-edge", false},
		"another service on its node":           {"edge-0", "telemetry-edge", false},
	} {
		s := newScope(Parts{})
		s.MultiInstance, s.Node.Name = several(), c.node
		p := &serviceOnNode{&creator{kind: s.kind}, ServiceClass{Name: c.service}, s.Node, s.Role}
		if got := p.holds(telemetryOnEdge()); got != c.want {
			t.Errorf("%s: it holds the node: %v, want %v", name, got, c.want)
		}
	}
}

func TestAnObjectWakesAllNodesOfWhichItCouldHaveTheName(t *testing.T) {
	s := newScope(Parts{})
	s.MultiInstance = several()
	var got []string
	for _, r := range s.byNode(t.Context(), telemetryOnEdge()) {
		got = append(got, r.Namespace+"/"+r.Name)
	}
	if diff := cmp.Diff([]string{"ns/edge-0", "ns/0"}, got); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}
