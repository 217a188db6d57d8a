package osd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
)

func TestCounts(t *testing.T) {
	for name, c := range map[string]struct {
		layout         ocsv1.DeviceSetLayout
		count, replica int32
		want           []int
	}{
		"with replica, count is that of each":          {"Split", 2, 3, []int{2, 2, 2}},
		"one of each":                                  {"Split", 1, 3, []int{1, 1, 1}},
		"four of each next to an arbiter":              {"Split", 1, 4, []int{1, 1, 1, 1}},
		"all in one set":                               {"Split", 5, 1, []int{5}},
		"without replica, three share the count":       {"Split", 3, 0, []int{1, 1, 1}},
		"a multiple of three":                          {"Split", 12, 0, []int{4, 4, 4}},
		"the remainder goes to the first":              {"Split", 4, 0, []int{2, 1, 1}},
		"the remainder goes to the first two":          {"Split", 5, 0, []int{2, 2, 1}},
		"two without replica are two, and not none":    {"Split", 2, 0, []int{1, 1}},
		"one without replica is one, and not none":     {"Split", 1, 0, []int{1}},
		"no layout is split":                           {"", 3, 0, []int{1, 1, 1}},
		"a single one has all that replica multiplies": {"Single", 2, 3, []int{6}},
		"a single one has the whole count":             {"Single", 5, 0, []int{5}},
	} {
		t.Run(name, func(t *testing.T) {
			set := makeSet("a", c.count, c.replica)
			got := Counts(c.layout, &set)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			sum := 0
			for _, n := range got {
				sum += n
			}
			if sum != Total(&set) {
				t.Errorf("they are %d together; want %d", sum, Total(&set))
			}
		})
	}
}

func TestNames(t *testing.T) {
	for name, c := range map[string]struct {
		layout         ocsv1.DeviceSetLayout
		count, replica int32
		want           []string
	}{
		"as ocs-operator names them": {"Split", 1, 3, []string{"ocs-deviceset-0", "ocs-deviceset-1", "ocs-deviceset-2"}},
		"without replica":            {"Split", 3, 0, []string{"ocs-deviceset-0", "ocs-deviceset-1", "ocs-deviceset-2"}},
		"none that has no OSD":       {"Split", 2, 0, []string{"ocs-deviceset-0", "ocs-deviceset-1"}},
		"single":                     {"Single", 1, 3, []string{"ocs-deviceset"}},
	} {
		set := makeSet("ocs-deviceset", c.count, c.replica)
		if diff := cmp.Diff(c.want, Names(c.layout, &set)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff([]string{"a-0", "b-0", "b-1"}, AllNames("Split", []ocsv1.StorageDeviceSet{makeSet("a", 1, 0), makeSet("b", 2, 0)})); diff != "" {
		t.Errorf("of all sets (-want +got):\n%s", diff)
	}
}

func TestNamesOfClusters(t *testing.T) {
	if got := CephClusterName("ocs-storagecluster"); got != "ocs-storagecluster-cephcluster" {
		t.Errorf("the CephCluster is named %s", got)
	}
	if got, ok := StorageClusterName("ocs-storagecluster-cephcluster"); !ok || got != "ocs-storagecluster" {
		t.Errorf("the StorageCluster is named %s, %v", got, ok)
	}
	if got, ok := StorageClusterName("rook-ceph"); ok {
		t.Errorf("a CephCluster of another name has the StorageCluster %s", got)
	}
}

func TestTopologyKey(t *testing.T) {
	for given, want := range map[string]string{"": zone, "rack": rack, "host": host, "example.org/row": "example.org/row", zone: zone} {
		set := ocsv1.StorageDeviceSet{TopologyKey: given}
		if got := TopologyKey(&set, zone); got != want {
			t.Errorf("topologyKey %q is %s; want %s", given, got, want)
		}
	}
}

func TestDeviceSets(t *testing.T) {
	template := func(annotations map[string]string) []cephv1.VolumeClaimTemplate {
		set := makeSet("", 1, 0)
		claim := cephv1.VolumeClaimTemplate{Spec: set.DataPVCTemplate.Spec}
		claim.Annotations = annotations
		return []cephv1.VolumeClaimTemplate{claim}
	}
	inZones := constraints(spread(zone, hard, osds, jobs), spread(host, soft, osds, jobs))
	byHost := constraints(spread(host, soft, osds))
	resources := corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}
	for name, c := range map[string]struct {
		set   ocsv1.StorageDeviceSet
		names []string
		want  cephv1.StorageClassDeviceSet
	}{
		"three sets with constraints that are all the same": {
			makeSet("d", 2, 3), []string{"d-0", "d-1", "d-2"},
			cephv1.StorageClassDeviceSet{Count: 2, Portable: true, Placement: byHost, PreparePlacement: &inZones, VolumeClaimTemplates: template(nil)},
		},
		"the device class is noted on the claims, and wins over the type": {
			makeSet("d", 1, 1, func(s *ocsv1.StorageDeviceSet) { s.DeviceType, s.DeviceClass = "SSD", "replicated" }), []string{"d-0"},
			cephv1.StorageClassDeviceSet{
				Count: 1, Portable: true, Placement: byHost, PreparePlacement: &inZones, TuneFastDeviceClass: true,
				VolumeClaimTemplates: template(map[string]string{"crushDeviceClass": "replicated"}),
			},
		},
		"the device type is the class otherwise, next to annotations of the template": {
			makeSet("d", 1, 1, func(s *ocsv1.StorageDeviceSet) {
				s.DeviceType, s.DataPVCTemplate.Annotations = "hdd", map[string]string{"mine": "too"}
			}), []string{"d-0"},
			cephv1.StorageClassDeviceSet{
				Count: 1, Portable: true, Placement: byHost, PreparePlacement: &inZones, TuneSlowDeviceClass: true,
				VolumeClaimTemplates: template(map[string]string{"crushDeviceClass": "hdd", "mine": "too"}),
			},
		},
		"resources and what is not portable": {
			makeSet("d", 1, 1, func(s *ocsv1.StorageDeviceSet) { s.Resources, s.Portable = resources, false }), []string{"d-0"},
			cephv1.StorageClassDeviceSet{Count: 1, Resources: resources, Placement: byHost, PreparePlacement: &inZones, VolumeClaimTemplates: template(nil)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := deviceSets(specOf(c.set), &c.set, zone, none)
			var want []cephv1.StorageClassDeviceSet
			for _, n := range c.names {
				one := c.want
				one.Name = n
				want = append(want, one)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestDeviceSetsBesideAnArbiter(t *testing.T) {
	outside := requires(corev1.NodeSelectorRequirement{Key: zone, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"zone3"}})
	for _, replica := range []int32{4, 6} {
		set := makeSet("mock", 1, replica)
		got := deviceSets(withArbiter(specOf(set), "zone3"), &set, zone, none)
		if len(got) != int(replica) {
			t.Errorf("there are %d sets; want %d", len(got), replica)
		}
		for _, part := range got {
			if diff := cmp.Diff(outside, part.Placement.NodeAffinity); diff != "" || part.Count != 1 {
				t.Errorf("%d OSDs of %s go elsewhere (-want +got):\n%s", part.Count, part.Name, diff)
			}
			if diff := cmp.Diff(outside, part.PreparePlacement.NodeAffinity); diff != "" {
				t.Errorf("Jobs of %s go elsewhere (-want +got):\n%s", part.Name, diff)
			}
			if got := part.PreparePlacement.TopologySpreadConstraints[0]; got.TopologyKey != zone || got.WhenUnsatisfiable != hard {
				t.Errorf("Jobs of %s are spread by %+v", part.Name, got)
			}
		}
	}
	set := makeSet("mock", 1, 4, func(s *ocsv1.StorageDeviceSet) { s.Placement.NodeAffinity = requires(in("a", "1"), in("b", "2")) })
	got := deviceSets(withArbiter(specOf(set), "zone3"), &set, zone, none)[0].Placement.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	for i, term := range got.NodeSelectorTerms {
		if len(term.MatchExpressions) != 2 || term.MatchExpressions[1].Operator != corev1.NodeSelectorOpNotIn {
			t.Errorf("term %d of a person's affinity leads into the zone of the arbiter: %+v", i, term)
		}
	}
}

// What Rook does to pods, as its Placement.ApplyToPodSpec does it.
func TestApplyToPodSpec(t *testing.T) {
	first, second := in("a", "1"), in("b", "2")
	preferred := func(weight int32) []corev1.PreferredSchedulingTerm {
		return []corev1.PreferredSchedulingTerm{{Weight: weight}}
	}
	and := func(all ...corev1.NodeSelectorRequirement) *corev1.NodeAffinity {
		return &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: all}}}}
	}
	for name, c := range map[string]struct{ all, own, want *corev1.NodeAffinity }{
		"neither":                         {nil, nil, nil},
		"that of all":                     {requires(first), nil, requires(first)},
		"its own":                         {nil, requires(first), requires(first)},
		"both are combined":               {requires(first), requires(second), and(first, second)},
		"of several terms only the first": {requires(first, second), requires(second, first), and(first, second)},
		"a preference leaves what is required": {requires(first), &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred(1)}, func() *corev1.NodeAffinity {
			a := requires(first)
			a.PreferredDuringSchedulingIgnoredDuringExecution = preferred(1)
			return a
		}()},
		"preferences add up": {
			&corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred(1)}, &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred(2)},
			&corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: append(preferred(1), preferred(2)...)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.PodSpec{}
			ApplyToPodSpec(cephv1.Placement{NodeAffinity: c.all}, pod)
			ApplyToPodSpec(cephv1.Placement{NodeAffinity: c.own}, pod)
			if diff := cmp.Diff(c.want, pod.Affinity.NodeAffinity); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestPrepareTemplate(t *testing.T) {
	set := makeSet("d", 1, 3, func(s *ocsv1.StorageDeviceSet) {
		s.DeviceClass = "ssd"
		s.Placement.Tolerations = []corev1.Toleration{toleration("x")}
	})
	part := deviceSets(specOf(set), &set, zone, none)[0]
	all := cephv1.Placement{Tolerations: []corev1.Toleration{storageToleration}, TopologySpreadConstraints: []corev1.TopologySpreadConstraint{spread("k", soft, "x")}}
	got := PrepareTemplate(all, &part, corev1.ResourceRequirements{})
	if diff := cmp.Diff(part.PreparePlacement.TopologySpreadConstraints, got.Spec.TopologySpreadConstraints); diff != "" {
		t.Errorf("its own constraints replace those of all (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]corev1.Toleration{storageToleration, toleration("x")}, got.Spec.Tolerations); diff != "" {
		t.Errorf("tolerations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"app": jobs, "ceph.rook.io/pvc": "", "device-class": "ssd"}, got.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	part.PreparePlacement = nil
	if diff := cmp.Diff(part.Placement.TopologySpreadConstraints, PrepareTemplate(all, &part, corev1.ResourceRequirements{}).Spec.TopologySpreadConstraints); diff != "" {
		t.Errorf("without a placement of its own a Job has that of the daemons (-want +got):\n%s", diff)
	}
}
