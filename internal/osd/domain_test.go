package osd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
)

func nodeNames(nodes []*corev1.Node) []string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return names
}

func TestEligible(t *testing.T) {
	worker := makeNode("worker", "node-role.kubernetes.io/worker", "")
	delete(worker.Labels, ocsv1.StorageNodeLabel)
	nodes := []*corev1.Node{makeNode("storage"), worker, makeNode("named", ocsv1.StorageNodeLabel, "true"), makeNode("arbiter", zone, "zone3")}
	workers := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "node-role.kubernetes.io/worker", Operator: metav1.LabelSelectorOpExists}}}
	for name, c := range map[string]struct {
		spec *ocsv1.StorageClusterSpec
		want []string
	}{
		"those with the storage label, whatever its value":       {specOf(), []string{"arbiter", "named", "storage"}},
		"those that a selector selects, whether labelled or not": {&ocsv1.StorageClusterSpec{LabelSelector: workers}, []string{"worker"}},
		"all with an empty selector":                             {&ocsv1.StorageClusterSpec{LabelSelector: &metav1.LabelSelector{}}, []string{"arbiter", "named", "storage", "worker"}},
		"none if none is selected":                               {&ocsv1.StorageClusterSpec{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"no": "such"}}}, nil},
		"none in the zone of an arbiter":                         {withArbiter(specOf(), "zone3"), []string{"named", "storage"}},
		"those in a zone that would be an arbiter's if there were one": {
			&ocsv1.StorageClusterSpec{NodeTopologies: &ocsv1.NodeTopologyMap{ArbiterLocation: "zone3"}}, []string{"arbiter", "named", "storage"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Eligible(c.spec, nodes)
			if diff := cmp.Diff(c.want, nodeNames(got)); err != nil || diff != "" {
				t.Errorf("error %v, nodes (-want +got):\n%s", err, diff)
			}
		})
	}
	wrong := &ocsv1.StorageClusterSpec{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}}
	if _, err := Eligible(wrong, nodes); err == nil {
		t.Error("a selector with the operator Is selects nodes")
	}
}

func TestMinNodes(t *testing.T) {
	for name, c := range map[string]struct {
		spec    *ocsv1.StorageClusterSpec
		cluster int
		want    int
	}{
		"three for three copies":                               {specOf(makeSet("a", 1, 0)), 9, 3},
		"three without device sets":                            {specOf(), 1, 3},
		"four for a replica of four":                           {specOf(makeSet("a", 1, 3), makeSet("b", 1, 4)), 9, 4},
		"four next to an arbiter":                              {withArbiter(specOf(makeSet("a", 1, 3)), "z"), 9, 4},
		"six next to an arbiter for a replica of six":          {withArbiter(specOf(makeSet("a", 1, 6)), "z"), 9, 6},
		"three for a replica of one":                           {specOf(makeSet("a", 3, 1)), 9, 3},
		"one in a cluster of one that asks for no more":        {specOf(makeSet("a", 3, 1)), 1, 1},
		"three while the other nodes of a cluster are to come": {specOf(makeSet("a", 3, 0)), 1, 3},
	} {
		t.Run(name, func(t *testing.T) {
			if got := MinNodes(c.spec, c.cluster); got != c.want {
				t.Errorf("%d; want %d", got, c.want)
			}
		})
	}
}

func TestDomain(t *testing.T) {
	flexible, single := specOf(makeSet("a", 3, 0)), specOf(makeSet("a", 3, 1))
	flexible.FlexibleScaling = true
	for name, c := range map[string]struct {
		spec   *ocsv1.StorageClusterSpec
		before ocsv1.FailureDomain
		nodes  []*corev1.Node
		want   ocsv1.FailureDomain
	}{
		"zone with three zones":                          {specOf(), "", inZones(1, 1, 1), "zone"},
		"zone with five zones":                           {specOf(), "", inZones(1, 1, 1, 1, 1), "zone"},
		"rack with two zones":                            {specOf(), "", inZones(2, 2), "rack"},
		"rack without zones":                             {specOf(), "", plain(3), "rack"},
		"zone with two zones and an arbiter":             {withArbiter(specOf(), "zone9"), "", inZones(2, 2), "zone"},
		"rack with one zone and an arbiter":              {withArbiter(specOf(), "zone9"), "", inZones(4), "rack"},
		"host with flexible scaling, whatever the zones": {flexible, "", inZones(1, 1, 1), "host"},
		"osd on a single node":                           {single, "", plain(1), "osd"},
		"zone as it was, although zones are gone":        {specOf(), "zone", plain(3), "zone"},
		"rack as it was, although there are zones now":   {specOf(), "rack", inZones(1, 1, 1), "rack"},
		"host as it was":                                 {specOf(), "host", inZones(1, 1, 1), "host"},
		"osd as it was, although there are nodes now":    {single, "osd", plain(3), "osd"},
		"zone as it was, with flexible scaling now":      {flexible, "zone", inZones(1, 1, 1), "zone"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Domain(c.spec, c.before, c.nodes, len(c.nodes)); got != c.want {
				t.Errorf("the failure domain is %s; want %s", got, c.want)
			}
		})
	}
}

func TestMinDomains(t *testing.T) {
	for name, c := range map[string]struct {
		spec   *ocsv1.StorageClusterSpec
		domain ocsv1.FailureDomain
		want   int
	}{
		"three for three copies":          {specOf(makeSet("a", 1, 0)), "zone", 3},
		"five for a replica of five":      {specOf(makeSet("a", 1, 5)), "rack", 5},
		"two next to an arbiter":          {withArbiter(specOf(makeSet("a", 1, 4)), "z"), "zone", 2},
		"one where the domain is the OSD": {specOf(makeSet("a", 1, 1)), "osd", 1},
	} {
		if got := MinDomains(c.spec, c.domain); got != c.want {
			t.Errorf("%s: %d; want %d", name, got, c.want)
		}
	}
}

func TestKey(t *testing.T) {
	for domain, want := range map[ocsv1.FailureDomain]string{
		"zone": "topology.kubernetes.io/zone", "rack": "topology.rook.io/rack", "host": "kubernetes.io/hostname", "osd": "kubernetes.io/hostname", "": "", "row": "",
	} {
		if got := Key(domain); got != want {
			t.Errorf("the key of %q is %q; want %q", domain, got, want)
		}
	}
}

func TestTopologies(t *testing.T) {
	for name, c := range map[string]struct {
		nodes []*corev1.Node
		want  map[string][]string
	}{
		"of three zones":            {inZones(1, 1, 1), map[string][]string{zone: {"zone0", "zone1", "zone2"}, host: {"z0-n0", "z1-n0", "z2-n0"}}},
		"of two zones":              {inZones(2, 1), map[string][]string{zone: {"zone0", "zone1"}, host: {"z0-n0", "z0-n1", "z1-n0"}}},
		"of one zone":               {inZones(2), map[string][]string{zone: {"zone0"}, host: {"z0-n0", "z0-n1"}}},
		"of racks and a region":     {[]*corev1.Node{makeNode("a", rack, "rack0", corev1.LabelTopologyRegion, "r")}, map[string][]string{rack: {"rack0"}, corev1.LabelTopologyRegion: {"r"}, host: {"a"}}},
		"without labels of beta":    {[]*corev1.Node{makeNode("a", "failure-domain.beta.kubernetes.io/zone", "z")}, map[string][]string{host: {"a"}}},
		"some nodes without a zone": {[]*corev1.Node{makeNode("a", zone, "z"), makeNode("b")}, map[string][]string{zone: {"z"}, host: {"a", "b"}}},
		"no nodes":                  {nil, map[string][]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Topologies(c.nodes)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestLacking(t *testing.T) {
	nodes := []*corev1.Node{makeNode("a", zone, "z"), makeNode("b"), makeNode("c", zone, "")}
	if diff := cmp.Diff([]string{"b"}, Lacking(nodes, zone)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCheck(t *testing.T) {
	good, flexible, nowhere := withArbiter(specOf(makeSet("a", 1, 4)), "z"), withArbiter(specOf(), "z"), withArbiter(specOf(), "")
	flexible.FlexibleScaling = true
	single := specOf(makeSet("a", 1, 3), makeSet("a-0", 1, 3))
	single.DeviceSetLayout = ocsv1.LayoutSingle
	for name, c := range map[string]struct {
		spec *ocsv1.StorageClusterSpec
		want string
	}{
		"an arbiter":                             {good, ""},
		"nothing at all":                         {&ocsv1.StorageClusterSpec{}, ""},
		"names that only differ in the number":   {single, ""},
		"an arbiter with flexible scaling":       {flexible, "spec.flexibleScaling: true makes each host"},
		"an arbiter that is nowhere":             {nowhere, "spec.nodeTopologies.arbiterLocation is empty: set it to the zone"},
		"sets that become sets of the same name": {specOf(makeSet("a", 1, 3), makeSet("a", 1, 3)), "spec.storageDeviceSets[1].name: a results in a StorageClassDeviceSet a-0, and so does a"},
		"a selector that cannot be read":         {&ocsv1.StorageClusterSpec{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b c"}}}, "spec.labelSelector"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(c.spec)
			if (err == nil) != (c.want == "") || err != nil && !contains(err.Error(), c.want) {
				t.Errorf("the error is %v; want %q", err, c.want)
			}
		})
	}
}
