package placement

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A pod that is made again leaves its node first, and all others stay where they are.
func TestWhereAPodWouldBeMadeAgain(t *testing.T) {
	full := makeNode("b", "zone", "B")
	full.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("0")
	for name, c := range map[string]struct {
		nodes []*corev1.Node
		want  []string
		says  string
	}{
		"in the zone that has none":          {[]*corev1.Node{makeNode("a", "zone", "A"), makeNode("b", "zone", "B")}, []string{"b"}, ""},
		"on any node of the same score":      {[]*corev1.Node{makeNode("a", "zone", "A"), makeNode("b", "zone", "B"), makeNode("c", "zone", "C")}, []string{"b", "c"}, ""},
		"nowhere, if the other zone is full": {[]*corev1.Node{makeNode("a", "zone", "A"), full}, nil, "1 Too many pods"},
		"on its own node":                    {[]*corev1.Node{makeNode("a", "zone", "A")}, []string{"a"}, ""},
	} {
		pods := podsOn(map[string]int{"a": 2}, "service", "glance")
		for _, pod := range pods {
			pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{spreadBy("zone", "service", "glance")}
		}
		got, err := Replace(t.Context(), Snapshot{Nodes: c.nodes, Pods: pods}, pods)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range got {
			if !slices.Equal(r.Nodes, c.want) || !strings.Contains(r.Message, c.says) || (r.Message == "") != (len(c.want) > 0) {
				t.Errorf("%s: of pod %d got %+v", name, i, r)
			}
		}
		if len(got) != len(pods) || pods[0].Spec.NodeName != "a" {
			t.Errorf("%s: got %d of %d, and %+v", name, len(got), len(pods), pods[0])
		}
	}
}
