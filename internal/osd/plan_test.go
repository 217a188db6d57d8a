package osd

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
)

// pinned returns the sets of ocs-operator before seeds/003: each in one zone.
func pinned(names ...string) []cephv1.StorageClassDeviceSet {
	var sets []cephv1.StorageClassDeviceSet
	for i, name := range names {
		sets = append(sets, cephv1.StorageClassDeviceSet{
			Name: name, Count: 1, Portable: true, Placement: cephv1.Placement{NodeAffinity: requires(in(zone, []string{"zone0", "zone1", "zone2"}[i%3]))},
		})
	}
	return sets
}

func plan(t *testing.T, spec *ocsv1.StorageClusterSpec, existing []cephv1.StorageClassDeviceSet, before ...ocsv1.DeviceSetStatus) []DeviceSet {
	t.Helper()
	ceph := Ceph{}
	if existing != nil {
		ceph = cephWith(t, existing...)
		ceph.Placement = map[string]any{"all": asJSON(t, Placements(spec)["all"])}
	}
	return decide(t, spec, ceph, before...).DeviceSets
}

func asJSON(t *testing.T, p cephv1.Placement) map[string]any {
	t.Helper()
	item, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&p)
	if err != nil {
		t.Fatal(err)
	}
	return item
}

func hashOf(t *testing.T, set ocsv1.StorageDeviceSet) string {
	t.Helper()
	hash, err := Hash(&set)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func TestWhichSetsStayAsTheyAre(t *testing.T) {
	set := makeSet("a", 1, 3)
	changed := makeSet("a", 1, 3, func(s *ocsv1.StorageDeviceSet) { s.TopologyKey = "rack" })
	names := []string{"a-0", "a-1", "a-2"}
	found := ocsv1.DeviceSetStatus{Name: "a", Placement: ocsv1.PlacementLegacy, Hash: hashOf(t, set)}
	spread := deviceSets(specOf(set), &set, zone, none)
	today := specOf(set)
	today.OSDPlacement.Mode = ocsv1.OSDPlacementFailureDomain
	otherJobs := deviceSets(specOf(set), &set, zone, none)
	for i := range otherJobs {
		otherJobs[i].PreparePlacement = nil
	}
	otherClass, notPortable := deviceSets(specOf(set), &set, zone, none), deviceSets(specOf(set), &set, zone, none)
	for i := range otherClass {
		otherClass[i].VolumeClaimTemplates[0].Spec.StorageClassName, notPortable[i].Portable = ptr.To("gp3"), false
	}
	withoutAny := specOf(set)
	withoutAny.Placement = map[string]cephv1.Placement{"osd": {}, "prepareosd": {}}
	for name, c := range map[string]struct {
		spec     *ocsv1.StorageClusterSpec
		existing []cephv1.StorageClassDeviceSet
		before   []ocsv1.DeviceSetStatus
		want     ocsv1.DeviceSetPlacement
	}{
		"a new set gets constraints":                        {specOf(set), nil, nil, "Constraints"},
		"a set that is found pinned stays":                  {specOf(set), pinned(names...), nil, "Legacy"},
		"it stays while no one touches it":                  {specOf(set), pinned(names...), []ocsv1.DeviceSetStatus{found}, "Legacy"},
		"without OSDs it gets constraints when it changes":  {specOf(changed), pinned(names...), []ocsv1.DeviceSetStatus{found}, "Constraints"},
		"it never becomes pinned again":                     {specOf(set), pinned(names...), []ocsv1.DeviceSetStatus{{Name: "a", Placement: "Constraints", Hash: hashOf(t, set)}}, "Constraints"},
		"a set that is found as it is wanted is no legacy":  {specOf(set), spread, nil, "Constraints"},
		"a set that is found spread in another way stays":   {specOf(set), deviceSets(today, &set, zone, none), nil, "Legacy"},
		"a set whose mode was changed follows":              {specOf(set), deviceSets(today, &set, zone, none), []ocsv1.DeviceSetStatus{{Name: "a", Placement: "Constraints", Hash: hashOf(t, set)}}, "Constraints"},
		"a set whose Jobs are placed otherwise stays":       {specOf(set), otherJobs, nil, "Legacy"},
		"a set whose claims are of another class stays":     {specOf(set), otherClass, nil, "Legacy"},
		"a set that cannot move, and should, stays":         {specOf(set), notPortable, nil, "Legacy"},
		"a hash of another version touches nothing":         {specOf(set), pinned(names...), []ocsv1.DeviceSetStatus{{Name: "a", Placement: "Legacy", Hash: "64d58a3b7d9b1c6e"}}, "Legacy"},
		"nor does that of a later version":                  {specOf(set), pinned(names...), []ocsv1.DeviceSetStatus{{Name: "a", Placement: "Legacy", Hash: "v3:64d58a3b7d9b1c6e"}}, "Legacy"},
		"a set of another version that is as it is wanted":  {specOf(set), spread, []ocsv1.DeviceSetStatus{{Name: "a", Placement: "Legacy", Hash: "64d58a3b7d9b1c6e"}}, "Constraints"},
		"a placement that was never written protects none":  {specOf(set), pinned(names...), []ocsv1.DeviceSetStatus{{Name: "a"}}, "Legacy"},
		"one part that is placed otherwise is enough":       {specOf(set), append(pinned("a-0"), spread[1:]...), nil, "Legacy"},
		"sets of others do not count":                       {specOf(set), pinned("b-0", "b-1", "b-2"), nil, "Constraints"},
		"what was said of another set does not count":       {specOf(set), pinned(names...), []ocsv1.DeviceSetStatus{{Name: "b", Placement: "Constraints"}}, "Legacy"},
		"a set that is as it is wanted without constraints": {withoutAny, deviceSets(withoutAny, &set, zone, none), nil, "Constraints"},
		"a set that is found without any placement stays":   {specOf(set), []cephv1.StorageClassDeviceSet{{Name: "a-0", Count: 1}, {Name: "a-1", Count: 1}, {Name: "a-2", Count: 1}}, nil, "Legacy"},
	} {
		t.Run(name, func(t *testing.T) {
			got := plan(t, c.spec, c.existing, c.before...)
			if len(got) != 1 || got[0].Placement != c.want || got[0].Hash != hashOf(t, c.spec.StorageDeviceSets[0]) {
				t.Fatalf("the plan is %+v; want %s", got, c.want)
			}
			want := deviceSets(c.spec, &c.spec.StorageDeviceSets[0], zone, none)
			if c.want == "Legacy" {
				want = c.existing
			}
			if diff := cmp.Diff(want, got[0].Parts); diff != "" {
				t.Errorf("the parts differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewSetsGetConstraintsBesideLegacyOnes(t *testing.T) {
	got := plan(t, specOf(makeSet("old", 1, 3), makeSet("new", 2, 3)), pinned("old-0", "old-1", "old-2"))
	if got[0].Placement != "Legacy" || got[1].Placement != "Constraints" {
		t.Errorf("they are %s and %s", got[0].Placement, got[1].Placement)
	}
	if got[0].OSDs() != 3 || got[1].OSDs() != 6 || !slices.Equal(got[1].Names(), []string{"new-0", "new-1", "new-2"}) {
		t.Errorf("the plan is %+v", got)
	}
}

// Hashes are in the status of StorageClusters. One that changes touches every Legacy
// set: increase hashVersion then, by which it is known to be of another version.
func TestHashesStayTheSame(t *testing.T) {
	all := makeSet("a", 2, 3, func(s *ocsv1.StorageDeviceSet) {
		s.DeviceType, s.DeviceClass, s.TopologyKey, s.Encrypted = "SSD", "fast", "rack", ptr.To(true)
		s.Placement = cephv1.Placement{
			NodeAffinity: requires(in("a", "b")), PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{},
			Tolerations: []corev1.Toleration{toleration("x")}, TopologySpreadConstraints: []corev1.TopologySpreadConstraint{spread(zone, hard, osds)},
		}
		s.PreparePlacement = s.Placement.DeepCopy()
		s.Resources = corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("5Gi")}, Limits: corev1.ResourceList{"cpu": resource.MustParse("4")},
		}
		s.DataPVCTemplate.Name, s.DataPVCTemplate.Labels, s.DataPVCTemplate.Annotations = "data", map[string]string{"l": "1", "k": "2"}, map[string]string{"crushDeviceClass": "ssd"}
		s.DataPVCTemplate.Spec.Selector, s.DataPVCTemplate.Spec.VolumeAttributesClassName = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, ptr.To("gold")
	})
	for name, c := range map[string]struct {
		set  ocsv1.StorageDeviceSet
		want string
	}{
		"of a set with everything": {all, "v2:abcaea7d829be60f:2x3"},
		"of a small one":           {makeSet("a", 1, 3), "v2:46c5497343879ca7:1x3"},
	} {
		if got := hashOf(t, c.set); got != c.want {
			t.Errorf("the hash %s is %s; want %s", name, got, c.want)
		}
	}
	same := all.DeepCopy()
	same.Resources.Requests["memory"] = resource.MustParse("5120Mi")
	same.DataPVCTemplate.Status.Phase, same.DataPVCTemplate.UID = corev1.ClaimBound, "1"
	if hashOf(t, *same) != hashOf(t, all) {
		t.Error("the same in other words, or what is not named, gives another hash")
	}
}

func TestWhatTouchesASet(t *testing.T) {
	set := makeSet("a", 1, 3)
	for name, change := range map[string]func(*ocsv1.StorageDeviceSet){
		"placement": func(s *ocsv1.StorageDeviceSet) {
			s.Placement.Tolerations = append(s.Placement.Tolerations, toleration("x"))
		},
		"portable":  func(s *ocsv1.StorageDeviceSet) { s.Portable = false },
		"encrypted": func(s *ocsv1.StorageDeviceSet) { s.Encrypted = ptr.To(false) },
		"class":     func(s *ocsv1.StorageDeviceSet) { s.DataPVCTemplate.Spec.StorageClassName = ptr.To("gp3") },
		"size": func(s *ocsv1.StorageDeviceSet) {
			s.DataPVCTemplate.Spec.Resources.Requests = corev1.ResourceList{"storage": resource.MustParse("2Ti")}
		},
		"topologyKey": func(s *ocsv1.StorageDeviceSet) { s.TopologyKey = "rack" },
	} {
		changed := *set.DeepCopy()
		change(&changed)
		if hashOf(t, changed) == hashOf(t, set) {
			t.Errorf("a change of %s does not touch the set", name)
		}
	}
	if hashOf(t, *set.DeepCopy()) != hashOf(t, set) {
		t.Error("a copy is another set")
	}
	more := makeSet("a", 2, 4)
	if is, was := hashOf(t, more), hashOf(t, set); is == was || !SameButCount(is, was) {
		t.Errorf("with more OSDs the hash is %s, and was %s; want the same but for the count", is, was)
	}
	if SameButCount(hashOf(t, set), "v1:9874c591d92ffbe4") {
		t.Error("a hash of another version says nothing")
	}
}

// Nothing but a person's word moves an OSD that a CephCluster was found with.
func TestLegacySetsWithOSDs(t *testing.T) {
	set, names := makeSet("a", 1, 3), []string{"a-0", "a-1", "a-2"}
	found := Record{DeviceSets: []ocsv1.DeviceSetStatus{{Name: "a", Placement: ocsv1.PlacementLegacy, Hash: hashOf(t, set)}}}
	named := found
	named.Replaced = []string{"a"}
	moved := makeSet("a", 1, 3, func(s *ocsv1.StorageDeviceSet) { s.TopologyKey = "rack" })
	for name, c := range map[string]struct {
		set       ocsv1.StorageDeviceSet
		record    Record
		placement ocsv1.DeviceSetPlacement
		problem   string
	}{
		"more OSDs":                        {makeSet("a", 2, 3), found, "Legacy", ""},
		"more sets":                        {makeSet("a", 1, 4), found, "Legacy", ""},
		"another change":                   {moved, found, "Legacy", "spec.storageDeviceSets[0] has changed"},
		"another change, with more OSDs":   {makeSet("a", 2, 3, func(s *ocsv1.StorageDeviceSet) { s.Portable = false }), found, "Legacy", "annotate the StorageCluster with edpm.openstack.org/replace-placement=a"},
		"another change, which is allowed": {moved, named, "Constraints", ""},
		"no change, which is allowed":      {set, named, "Constraints", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var claims []*corev1.PersistentVolumeClaim
			for _, n := range names {
				claims = append(claims, makeClaim(n, 0))
			}
			d, err := Decide(specOf(c.set), zone, cephWith(t, pinned(names...)...), c.record, claims)
			if err != nil {
				t.Fatal(err)
			}
			if d.DeviceSets[0].Placement != c.placement || d.DeviceSets[0].OSDs() != Total(&c.set) {
				t.Errorf("it is %s with %d OSDs; want %s with %d", d.DeviceSets[0].Placement, d.DeviceSets[0].OSDs(), c.placement, Total(&c.set))
			}
			if len(d.Problems) > 0 != (c.problem != "") || c.problem != "" && !contains(d.Problems[0].Message, c.problem) {
				t.Errorf("the problems are %+v; want %q", d.Problems, c.problem)
			}
			if c.placement == ocsv1.PlacementLegacy {
				for i, part := range pinned(names...) {
					if diff := cmp.Diff(part.Placement, d.DeviceSets[0].Parts[i].Placement); diff != "" {
						t.Errorf("the placement of %s (-want +got):\n%s", part.Name, diff)
					}
				}
			}
		})
	}
}
