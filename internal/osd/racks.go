package osd

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
)

// Racks returns the racks of the nodes that have none, by the name of the node.
// Nodes are taken in their order. Each gets the rack with the fewest nodes, the
// first by name of several, out of at least minRacks: rack0, rack1, ... A rack
// never spans zones, since a volume cannot leave its zone: where no rack of the
// node's zone is there and none is empty, another one is added (ocs-operator,
// determinePlacementRack).
//
// Only the label topology.rook.io/rack counts. ocs-operator reads a rack out of
// every label whose name has "rack" in it, such as "tracked-by".
func Racks(nodes []*corev1.Node, minRacks int) map[string]string {
	racks, assigned := racksOf(nodes), map[string]string{}
	for _, node := range nodes {
		if _, ok := node.Labels[ocsv1.RackLabel]; ok {
			continue
		}
		if len(racks) < minRacks {
			racks.add()
		}
		rack := racks.choose(node.Labels[corev1.LabelTopologyZone])
		racks.put(rack, node)
		assigned[node.Name] = rack
	}
	return assigned
}

// racks are the nodes of each rack, as the zones that they are in.
type racks map[string][]string

func racksOf(nodes []*corev1.Node) racks {
	r := racks{}
	for _, node := range nodes {
		if rack, ok := node.Labels[ocsv1.RackLabel]; ok {
			r.put(rack, node)
		}
	}
	return r
}

func (r racks) put(rack string, node *corev1.Node) {
	r[rack] = append(r[rack], node.Labels[corev1.LabelTopologyZone])
}

// add adds an empty rack and returns its name.
func (r racks) add() string {
	for i := 0; ; i++ {
		name := fmt.Sprintf("rack%d", i)
		if _, taken := r[name]; !taken {
			r[name] = nil
			return name
		}
	}
}

// choose returns the rack for a node of a zone, empty if it is in none.
func (r racks) choose(zone string) string {
	chosen := ""
	for _, rack := range sets.List(sets.KeySet(r)) {
		if r.takes(rack, zone) && (chosen == "" || len(r[rack]) < len(r[chosen])) {
			chosen = rack
		}
	}
	if chosen == "" {
		return r.add()
	}
	return chosen
}

func (r racks) takes(rack, zone string) bool {
	return zone == "" || len(r[rack]) == 0 || slices.Contains(r[rack], zone)
}
