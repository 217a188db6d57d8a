package osd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

func TestRacks(t *testing.T) {
	for name, c := range map[string]struct {
		nodes []*corev1.Node
		least int
		want  map[string]string
	}{
		"the first node gets rack0": {plain(1), 3, map[string]string{"n0": "rack0"}},
		"each of three nodes gets a rack of its own": {
			plain(3), 3, map[string]string{"n0": "rack0", "n1": "rack1", "n2": "rack2"},
		},
		"more nodes fill the racks in turn": {
			plain(7), 3, map[string]string{"n0": "rack0", "n1": "rack1", "n2": "rack2", "n3": "rack0", "n4": "rack1", "n5": "rack2", "n6": "rack0"},
		},
		"a node joins a second rack while there is one": {
			[]*corev1.Node{makeNode("a", rack, "rack0"), makeNode("b", rack, "rack0"), makeNode("c")}, 3, map[string]string{"c": "rack1"},
		},
		"a node joins a third rack while there are two": {
			[]*corev1.Node{makeNode("a", rack, "rack0"), makeNode("b", rack, "rack1"), makeNode("c")}, 3, map[string]string{"c": "rack2"},
		},
		"a node of another zone gets a fourth rack": {
			[]*corev1.Node{makeNode("a", rack, "rack0", zone, "1"), makeNode("b", rack, "rack1", zone, "1"), makeNode("c", rack, "rack2", zone, "1"), makeNode("d", zone, "2")},
			3, map[string]string{"d": "rack3"},
		},
		"no rack spans zones": {
			append(inZones(3), makeNode("z9", zone, "other")), 3, map[string]string{"z0-n0": "rack0", "z0-n1": "rack1", "z0-n2": "rack2", "z9": "rack3"},
		},
		"a node joins the emptiest rack of its zone": {
			[]*corev1.Node{
				makeNode("a", rack, "rack0", zone, "1"), makeNode("b", rack, "rack0", zone, "1"), makeNode("c", rack, "rack1", zone, "1"),
				makeNode("d", rack, "rack2", zone, "2"), makeNode("e", zone, "1"),
			}, 3, map[string]string{"e": "rack1"},
		},
		"racks that people named are filled first": {
			[]*corev1.Node{makeNode("a", rack, "A"), makeNode("b", rack, "B"), makeNode("c", rack, "C"), makeNode("d")}, 3, map[string]string{"d": "A"},
		},
		"more racks are made when more are needed": {plain(4), 4, map[string]string{"n0": "rack0", "n1": "rack1", "n2": "rack2", "n3": "rack3"}},
		"labels that merely have rack in their name are none": {
			[]*corev1.Node{makeNode("a", "example.org/tracked", "yes")}, 3, map[string]string{"a": "rack0"},
		},
		"no node that has a rack gets another": {[]*corev1.Node{makeNode("a", rack, "rack7")}, 3, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Racks(c.nodes, c.least)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Labelling is in steps: what was assigned must not change what comes next.
func TestRacksDoNotDependOnWhenNodesAreLabelled(t *testing.T) {
	nodes := append(inZones(4, 3), plain(5)...)
	all, labelled := Racks(nodes, 3), []*corev1.Node{}
	for i, node := range nodes {
		if got := Racks(append(labelled, node), 3)[node.Name]; got != all[node.Name] {
			t.Fatalf("node %d, %s, gets %s alone and %s with the others", i, node.Name, got, all[node.Name])
		}
		done := node.DeepCopy()
		done.Labels[rack] = all[node.Name]
		labelled = append(labelled, done)
	}
	if again := Racks(labelled, 3); len(again) > 0 {
		t.Errorf("nodes that all have racks get %v", again)
	}
}
