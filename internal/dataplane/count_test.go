package dataplane

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
)

func inRole(namespace, name, role string) *dataplanev1.OpenStackDataPlaneNode {
	return &dataplanev1.OpenStackDataPlaneNode{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: dataplanev1.OpenStackDataPlaneNodeSpec{Role: role},
	}
}

func TestCountsFollowTheNodesOfARole(t *testing.T) {
	c := &Counts{of: map[types.NamespacedName]int{}}
	for _, name := range []string{"a", "b", "c"} {
		c.OnAdd(inRole("ns", name, "r"), true)
	}
	c.OnAdd(inRole("elsewhere", "a", "r"), false)
	for _, step := range []struct {
		what         string
		do           func()
		role, others int
	}{
		{"three nodes", func() {}, 3, 0},
		{"a resync", func() { c.OnUpdate(inRole("ns", "a", "r"), inRole("ns", "a", "r")) }, 3, 0},
		{"a node that moves", func() { c.OnUpdate(inRole("ns", "a", "r"), inRole("ns", "a", "other")) }, 2, 1},
		{"a node that is deleted", func() { c.OnDelete(inRole("ns", "b", "r")) }, 1, 1},
		{"a deletion that the watch missed", func() { c.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: inRole("ns", "a", "other")}) }, 1, 0},
		{"the last node", func() { c.OnDelete(inRole("ns", "c", "r")) }, 0, 0},
	} {
		step.do()
		if role, others := c.Of("ns", "r"), c.Of("ns", "other"); role != step.role || others != step.others {
			t.Errorf("after %s the roles have %d and %d nodes; want %d and %d", step.what, role, others, step.role, step.others)
		}
	}
	if len(c.of) != 1 {
		t.Errorf("roles without nodes are kept: %v", c.of)
	}
}
