package osd

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
)

// upstreamCase is a unit case of red-hat-storage/ocs-operator (ab00543dc,
// internal/controller/storagecluster). It is run with its input and its expected
// output where that is made here, in mode FailureDomain.
type upstreamCase struct {
	test, name string
	got, want  any
	// why says what is not made here, or differs on purpose.
	why string
}

// upstreamCases are how many cases each test has there.
var upstreamCases = map[string]int{
	"TestStorageClassDeviceSetCreation": 7, "TestStorageClassDeviceSetCreationForArbiter": 2,
	"TestGetPlacement": 25, "TestAppendUniqueTolerations": 5,
	"TestReconcileNodeTopologyMap": 4, "TestReconcileNodeTopologyMapFailure": 2, "TestNodeTopologyMapOnDifferentAZ": 3,
	"TestFailureDomain": 7, "TestStorageClusterEligibleNodes": 3, "TestEnsureNodeRack": 2, "TestDeterminePlacementRack": 4,
}

func TestUpstreamCases(t *testing.T) {
	seen := map[string]int{}
	for _, c := range slices.Concat(deviceSetCases(t), placementCases(), tolerationCases(), topologyCases(t), rackCases()) {
		seen[c.test]++
		t.Run(c.test+"/"+c.name, func(t *testing.T) {
			if c.want == nil && c.why == "" {
				t.Fatal("it is neither run, nor said why not")
			}
			if diff := cmp.Diff(c.want, c.got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-ocs-operator +here:\n%s", diff)
			}
			if c.want == nil {
				t.Skip(c.why)
			}
		})
	}
	if diff := cmp.Diff(upstreamCases, seen); diff != "" {
		t.Errorf("the number of cases (-ocs-operator +here):\n%s", diff)
	}
}

// upstreamSpread is what ocs-operator spreads pods with by default.
func upstreamSpread(key string, apps ...string) cephv1.Placement {
	constraints := []corev1.TopologySpreadConstraint{spread(key, hard, apps...)}
	if key != host {
		constraints = append(constraints, spread(host, soft, apps...))
	}
	return cephv1.Placement{TopologySpreadConstraints: constraints}
}

// made is what is compared of a StorageClassDeviceSet.
type made struct {
	Name            string
	Count           int
	Portable        bool
	Encrypted       bool
	Daemon, Prepare cephv1.Placement
}

const (
	whyClass = `ocs-operator adds "device-class In [<empty>]" where there is no class, which selects no pod of Rook: left out here`
	whyJobs  = "the Jobs of ocs-operator get the constraints of the daemons here, which count no Job: they keep their own"
)

func deviceSetCases(t *testing.T) []upstreamCase {
	custom := func(key, value string) cephv1.Placement {
		return cephv1.Placement{NodeAffinity: requires(in(key, value))}
	}
	dedicated := custom("node-role", "storage-worker")
	dedicated.Tolerations = []corev1.Toleration{{Key: "storage-node", Operator: corev1.TolerationOpEqual, Value: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
	type input struct {
		name, key       string
		encrypted       bool
		daemon, prepare cephv1.Placement
		why             string
	}
	var cases []upstreamCase
	for _, c := range []input{
		{name: "Zone failure domain with 3 zones", key: zone, why: whyClass},
		{name: "Zone failure domain with 3 zones, cluster-wide encryption", key: zone, encrypted: true, why: whyClass},
		{name: "Rack failure domain", key: rack, why: whyClass},
		{name: "Host failure domain", key: host, why: whyClass},
		{name: "Device set with custom OSD placement only", key: zone, daemon: custom("custom-osd-label", "osd-value"), why: whyClass + "; " + whyJobs},
		{name: "Device set with both custom OSD and prepare placements", key: zone, daemon: custom("osd-node-type", "storage"), prepare: custom("prepare-node-type", "compute"), why: whyClass},
		{name: "Device set with custom placement and tolerations", key: rack, daemon: dedicated, why: whyClass + "; " + whyJobs},
	} {
		set := makeSet("mock-sds", 3, 0, func(s *ocsv1.StorageDeviceSet) { s.Placement, s.PreparePlacement = c.daemon, &c.prepare })
		spec := inMode(ocsv1.OSDPlacementFailureDomain)
		spec.Encryption.ClusterWide = c.encrypted
		daemon, prepare := upstreamSpread(c.key, osds), upstreamSpread(c.key, osds, jobs)
		daemon.NodeAffinity, daemon.Tolerations = c.daemon.NodeAffinity, c.daemon.Tolerations
		prepare.NodeAffinity, prepare.Tolerations = c.prepare.NodeAffinity, c.prepare.Tolerations
		if isEmpty(c.prepare) {
			prepare.NodeAffinity, prepare.Tolerations = c.daemon.NodeAffinity, c.daemon.Tolerations
		}
		cases = append(cases, upstreamCase{"TestStorageClassDeviceSetCreation", c.name, madeOf(t, spec, set, c.key), wantMade("mock-sds", 3, 1, c.encrypted, daemon, prepare), c.why})
	}
	for i, replica := range []int32{4, 6} {
		set := makeSet("mock", 1, replica)
		spec := withArbiter(inMode(ocsv1.OSDPlacementFailureDomain), "zone3")
		outside := requires(corev1.NodeSelectorRequirement{Key: zone, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"zone3"}})
		daemon, prepare := upstreamSpread(zone, osds), upstreamSpread(zone, osds, jobs)
		daemon.NodeAffinity, prepare.NodeAffinity = outside, outside
		cases = append(cases, upstreamCase{
			"TestStorageClassDeviceSetCreationForArbiter", fmt.Sprintf("case %d", i+1), madeOf(t, spec, set, zone), wantMade("mock", int(replica), 1, false, daemon, prepare),
			whyClass + "; OSDs are kept out of the zone of the arbiter, where ocs-operator relies on its nodes having no label",
		})
	}
	return cases
}

func madeOf(t *testing.T, spec *ocsv1.StorageClusterSpec, set ocsv1.StorageDeviceSet, key string) []made {
	t.Helper()
	spec.StorageDeviceSets = []ocsv1.StorageDeviceSet{set}
	d, err := Decide(spec, key, Ceph{}, Record{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []made
	for _, p := range d.DeviceSets[0].Parts {
		all = append(all, made{p.Name, p.Count, p.Portable, ptr.Deref(p.Encrypted, false), p.Placement, *p.PreparePlacement})
	}
	return all
}

func wantMade(name string, parts, count int, encrypted bool, daemon, prepare cephv1.Placement) []made {
	var all []made
	for i := range parts {
		all = append(all, made{fmt.Sprintf("%s-%d", name, i), count, true, encrypted, daemon, prepare})
	}
	return all
}

func placementCases() []upstreamCase {
	spec := inMode(ocsv1.OSDPlacementFailureDomain)
	set := makeSet("a", 1, 3)
	var cases []upstreamCase
	add := func(name string, got, want any, why string) {
		cases = append(cases, upstreamCase{"TestGetPlacement", name, got, want, why})
	}
	const unknown = "ocs-operator makes it, or a kind with it, which StorageCluster does not have here"
	for _, component := range []string{"arbiter", "rgw with topology key update", "mds with topology key update", "nfs with topology key update", "rbd-mirror", "toolbox", "noobaa-core", "api-server", "metrics-exporter"} {
		add("default of "+component, nil, nil, unknown)
	}
	add("default of mon", nil, nil, "mons are left to Rook: only what the spec says of them is written")
	add("default of osd", defaultOSD(spec, &set, zone), upstreamSpread(zone, osds), "")
	add("default of prepareosd", defaultPrepare(spec, &set, zone), upstreamSpread(zone, osds, jobs), "")

	all := cephv1.Placement{Tolerations: []corev1.Toleration{storageToleration}, NodeAffinity: requires(corev1.NodeSelectorRequirement{Key: ocsv1.StorageNodeLabel, Operator: corev1.NodeSelectorOpExists})}
	of := func(label, value string) cephv1.Placement {
		c := spread(zone, hard)
		c.LabelSelector.MatchExpressions[0].Key, c.LabelSelector.MatchExpressions[0].Values = label, []string{value}
		with := *all.DeepCopy()
		with.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{c}
		return with
	}
	mine := []corev1.Toleration{toleration("custom")}
	anti := &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: zone}}}
	near := &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: zone}}}}
	const merged = "the default is ocs-operator's: only the merge is made here"
	for _, c := range []struct {
		name        string
		base, given cephv1.Placement
		want        func(*cephv1.Placement)
	}{
		{"mon with custom tolerations", constraints(spread(zone, hard, "rook-ceph-mon")), cephv1.Placement{Tolerations: mine}, func(p *cephv1.Placement) { p.Tolerations = mine }},
		{"rgw with custom pod affinity", of("rook_object_store", "x"), cephv1.Placement{PodAffinity: near}, func(p *cephv1.Placement) { p.PodAffinity = near }},
		{"mds with custom pod anti affinity", of("rook_file_system", "x"), cephv1.Placement{PodAntiAffinity: anti}, func(p *cephv1.Placement) { p.PodAntiAffinity = anti }},
		{"rbd-mirror with custom pod anti affinity", all, cephv1.Placement{PodAntiAffinity: anti}, func(p *cephv1.Placement) { p.PodAntiAffinity = anti }},
		{"toolbox with custom node affinity", all, cephv1.Placement{NodeAffinity: requires(in("k", "v"))}, func(p *cephv1.Placement) { p.NodeAffinity = requires(in("k", "v")) }},
		{"noobaa-core with custom tolerations and node affinity", all, cephv1.Placement{Tolerations: mine, NodeAffinity: requires(in("k", "v"))}, func(p *cephv1.Placement) {
			p.NodeAffinity, p.Tolerations = requires(in("k", "v")), append(p.Tolerations, mine...)
		}},
		{"api-server with custom toleration", all, cephv1.Placement{Tolerations: mine}, func(p *cephv1.Placement) { p.Tolerations = append(p.Tolerations, mine...) }},
		{"metrics-exporter with custom toleration", all, cephv1.Placement{Tolerations: append([]corev1.Toleration{storageToleration}, mine...)}, func(p *cephv1.Placement) { p.Tolerations = append(p.Tolerations, mine...) }},
	} {
		want := *c.base.DeepCopy()
		c.want(&want)
		add(c.name, Merge(c.base, c.given), want, merged)
	}

	selected, nothing, empty := inMode(ocsv1.OSDPlacementFailureDomain), inMode(ocsv1.OSDPlacementFailureDomain), inMode(ocsv1.OSDPlacementFailureDomain)
	selected.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "custom-label", Operator: metav1.LabelSelectorOpIn, Values: []string{"custom-value"}}}}
	nothing.LabelSelector = &metav1.LabelSelector{}
	empty.Placement = map[string]cephv1.Placement{"mon": {}, "osd": {}, "noobaa-core": {}}
	add("component with label selector", Placements(selected)["all"], cephv1.Placement{Tolerations: all.Tolerations, NodeAffinity: requires(in("custom-label", "custom-value"))}, "")
	add("component with empty label selector", Placements(nothing)["all"], cephv1.Placement{Tolerations: all.Tolerations}, "")
	add("mon with empty placement specification", Placements(empty)["mon"], cephv1.Placement{}, "")
	add("osd with empty placement specification", defaultOSD(empty, &set, zone), cephv1.Placement{}, "")
	add("noobaa-core with empty placement specification", Placements(empty)["noobaa-core"], cephv1.Placement{}, "")
	return cases
}

func tolerationCases() []upstreamCase {
	one := corev1.Toleration{Key: "key1", Operator: corev1.TolerationOpEqual, Value: "value1", Effect: corev1.TaintEffectNoSchedule}
	two := corev1.Toleration{Key: "key2", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	type list = []corev1.Toleration
	var cases []upstreamCase
	for _, c := range []struct {
		name             string
		base, more, want list
	}{
		{"empty base", nil, list{one}, list{one}},
		{"empty additional", list{one}, nil, list{one}},
		{"no duplicates", list{one}, list{two}, list{one, two}},
		{"with duplicates", list{one, two}, list{one}, list{one, two}},
		{"all duplicates", list{one}, list{one}, list{one}},
	} {
		cases = append(cases, upstreamCase{"TestAppendUniqueTolerations", c.name, addTolerations(c.base, c.more), c.want, ""})
	}
	return cases
}

// zonesOf are nodes in the zones, "" for none.
func zonesOf(zones ...string) []*corev1.Node {
	nodes := plain(len(zones))
	for i, z := range zones {
		if z != "" {
			nodes[i].Labels[zone] = z
		}
	}
	return nodes
}

// found is the failure domain of nodes that got their racks, and the values of labels.
func found(spec *ocsv1.StorageClusterSpec, before ocsv1.FailureDomain, nodes []*corev1.Node) map[string][]string {
	domain := Domain(spec, before, nodes, len(nodes))
	if domain == ocsv1.FailureDomainRack {
		for name, value := range Racks(nodes, 3) {
			nodes[slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name == name })].Labels[rack] = value
		}
	}
	values := Topologies(nodes)
	delete(values, host)
	values["domain"] = []string{string(domain), Key(domain)}
	return values
}

func topologyCases(t *testing.T) []upstreamCase {
	var cases []upstreamCase
	racks := []string{"rack0", "rack1", "rack2"}
	region := zonesOf("zone1", "zone2", "")
	region[2].Labels[corev1.LabelTopologyRegion] = "region3"
	for _, c := range []struct {
		test, name string
		before     ocsv1.FailureDomain
		nodes      []*corev1.Node
		want       map[string][]string
	}{
		{"TestReconcileNodeTopologyMap", "Case 1", "rack", zonesOf("zone1", "zone2", "zone3"), map[string][]string{zone: {"zone1", "zone2", "zone3"}, rack: racks, "domain": {"rack", rack}}},
		{"TestReconcileNodeTopologyMap", "Case 2", "", zonesOf("zone1", "zone2", "zone3"), map[string][]string{zone: {"zone1", "zone2", "zone3"}, "domain": {"zone", zone}}},
		{"TestReconcileNodeTopologyMap", "Case 3", "", zonesOf("zone1", "zone2", ""), map[string][]string{zone: {"zone1", "zone2"}, rack: racks, "domain": {"rack", rack}}},
		{"TestReconcileNodeTopologyMap", "Case 4", "", region, map[string][]string{zone: {"zone1", "zone2"}, corev1.LabelTopologyRegion: {"region3"}, rack: racks, "domain": {"rack", rack}}},
		{"TestNodeTopologyMapOnDifferentAZ", "Case 1", "", zonesOf("zone1", "zone1", "zone1"), map[string][]string{zone: {"zone1"}, rack: racks, "domain": {"rack", rack}}},
		{"TestNodeTopologyMapOnDifferentAZ", "Case 2", "", zonesOf("zone1", "zone2", "zone2"), map[string][]string{zone: {"zone1", "zone2"}, rack: racks, "domain": {"rack", rack}}},
		{"TestNodeTopologyMapOnDifferentAZ", "Case 3", "", zonesOf("zone1", "zone2", "zone3"), map[string][]string{zone: {"zone1", "zone2", "zone3"}, "domain": {"zone", zone}}},
		{"TestFailureDomain", "Case 1", "zone", zonesOf("zone1", "zone2", "zone3"), map[string][]string{zone: {"zone1", "zone2", "zone3"}, "domain": {"zone", zone}}},
		{"TestFailureDomain", "Case 2", "rack", zonesOf("", "", ""), map[string][]string{rack: racks, "domain": {"rack", rack}}},
		{"TestFailureDomain", "Case 3", "", zonesOf("zone1", "zone2", "zone3"), map[string][]string{zone: {"zone1", "zone2", "zone3"}, "domain": {"zone", zone}}},
		{"TestFailureDomain", "Case 4", "", zonesOf("", "", ""), map[string][]string{rack: racks, "domain": {"rack", rack}}},
		{"TestFailureDomain", "Case 5", "host", zonesOf("", ""), map[string][]string{"domain": {"host", host}}},
	} {
		cases = append(cases, upstreamCase{c.test, c.name, found(specOf(), c.before, c.nodes), c.want, ""})
	}
	flexible := specOf()
	flexible.FlexibleScaling = true
	cases = append(cases,
		upstreamCase{"TestFailureDomain", "Case 6", found(flexible, "", nil), map[string][]string{"domain": {"host", host}}, "the key is empty there while no node has it"},
		upstreamCase{"TestFailureDomain", "Case 7", nil, nil, "only the stable labels count here, which nodes have had since Kubernetes 1.17"},
	)
	worker := plain(1)[0]
	worker.Labels = map[string]string{"node-role.kubernetes.io/worker": ""}
	selecting := specOf()
	selecting.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "node-role.kubernetes.io/worker", Operator: metav1.LabelSelectorOpExists}}}
	for i, c := range []struct {
		spec  *ocsv1.StorageClusterSpec
		nodes []*corev1.Node
		want  int
	}{{selecting, []*corev1.Node{worker}, 1}, {specOf(), []*corev1.Node{worker, plain(1)[0]}, 1}, {specOf(), []*corev1.Node{worker}, 0}} {
		eligible, err := Eligible(c.spec, c.nodes)
		if err != nil {
			t.Fatal(err)
		}
		cases = append(cases, upstreamCase{"TestStorageClusterEligibleNodes", fmt.Sprintf("Case %d", i+1), len(eligible), c.want, ""})
	}
	for i, c := range []struct{ nodes, replica int }{{3, 4}, {0, 3}} {
		enough := c.nodes >= MinNodes(specOf(makeSet("a", 3, int32(c.replica))), c.nodes)
		cases = append(cases, upstreamCase{"TestReconcileNodeTopologyMapFailure", fmt.Sprintf("Case %d", i+1), enough, false, ""})
	}
	return cases
}

func rackCases() []upstreamCase {
	labelled := func(racks ...string) []*corev1.Node {
		nodes := plain(len(racks))
		for i, r := range racks {
			if r != "" {
				nodes[i].Labels[rack] = r
			}
		}
		return nodes
	}
	zoned := labelled("rack0", "rack1", "rack2", "")
	for i, z := range []string{"zone1", "zone1", "zone1", "zone2"} {
		zoned[i].Labels[zone] = z
	}
	var cases []upstreamCase
	for _, c := range []struct {
		test, name string
		nodes      []*corev1.Node
		want       map[string]string
	}{
		{"TestEnsureNodeRack", "Case 1", labelled("", "", ""), map[string]string{"n0": "rack0", "n1": "rack1", "n2": "rack2"}},
		{"TestEnsureNodeRack", "Case 2", labelled("rack0", "rack1", ""), map[string]string{"n2": "rack2"}},
		{"TestDeterminePlacementRack", "Case 1", labelled(""), map[string]string{"n0": "rack0"}},
		{"TestDeterminePlacementRack", "Case 2", labelled("rack0", "rack0", "rack0", ""), map[string]string{"n3": "rack1"}},
		{"TestDeterminePlacementRack", "Case 3", labelled("rack0", "rack1", "rack0", "rack1", ""), map[string]string{"n4": "rack2"}},
		{"TestDeterminePlacementRack", "Case 4", zoned, map[string]string{"n3": "rack3"}},
	} {
		cases = append(cases, upstreamCase{c.test, c.name, maps.Clone(Racks(c.nodes, 3)), c.want, ""})
	}
	return cases
}
