package osd

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	got, err := Plan(spec, zone, existing, before)
	if err != nil {
		t.Fatal(err)
	}
	return got
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
	larger := makeSet("a", 2, 3)
	names := []string{"a-0", "a-1", "a-2"}
	found := ocsv1.DeviceSetStatus{Name: "a", Placement: ocsv1.PlacementLegacy, Hash: hashOf(t, set)}
	spread := deviceSets(specOf(set), &set, zone)
	today := specOf(set)
	today.OSDPlacement.Mode = ocsv1.OSDPlacementFailureDomain
	otherJobs := deviceSets(specOf(set), &set, zone)
	for i := range otherJobs {
		otherJobs[i].PreparePlacement = nil
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
		"it stays while nobody touches it":                  {specOf(set), pinned(names...), []ocsv1.DeviceSetStatus{found}, "Legacy"},
		"it gets constraints when its spec changes":         {specOf(larger), pinned(names...), []ocsv1.DeviceSetStatus{found}, "Constraints"},
		"it never becomes pinned again":                     {specOf(set), pinned(names...), []ocsv1.DeviceSetStatus{{Name: "a", Placement: "Constraints", Hash: hashOf(t, set)}}, "Constraints"},
		"a set that is found as it is wanted is no legacy":  {specOf(set), spread, nil, "Constraints"},
		"a set that is found spread in another way stays":   {specOf(set), deviceSets(today, &set, zone), nil, "Legacy"},
		"a set whose mode was changed follows":              {specOf(set), deviceSets(today, &set, zone), []ocsv1.DeviceSetStatus{{Name: "a", Placement: "Constraints", Hash: hashOf(t, set)}}, "Constraints"},
		"other Jobs are no reason to stay":                  {specOf(set), otherJobs, nil, "Constraints"},
		"one part that is placed otherwise is enough":       {specOf(set), append(pinned("a-0"), spread[1:]...), nil, "Legacy"},
		"sets of others do not count":                       {specOf(set), pinned("b-0", "b-1", "b-2"), nil, "Constraints"},
		"what was said of another set does not count":       {specOf(set), pinned(names...), []ocsv1.DeviceSetStatus{{Name: "b", Placement: "Constraints"}}, "Legacy"},
		"a set that is as it is wanted without constraints": {withoutAny, deviceSets(withoutAny, &set, zone), nil, "Constraints"},
		"a set that is found without any placement stays":   {specOf(set), []cephv1.StorageClassDeviceSet{{Name: "a-0"}, {Name: "a-1"}, {Name: "a-2"}}, nil, "Legacy"},
		"a set found where a part is missing stays":         {specOf(set), pinned("a-0", "a-1"), nil, "Legacy"},
	} {
		t.Run(name, func(t *testing.T) {
			got := plan(t, c.spec, c.existing, c.before...)
			if len(got) != 1 || got[0].Placement != c.want || got[0].Hash != hashOf(t, c.spec.StorageDeviceSets[0]) {
				t.Fatalf("the plan is %+v; want %s", got, c.want)
			}
			want := deviceSets(c.spec, &c.spec.StorageDeviceSets[0], zone)
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

func TestWhatTouchesASet(t *testing.T) {
	set := makeSet("a", 1, 3)
	for name, change := range map[string]func(*ocsv1.StorageDeviceSet){
		"count": func(s *ocsv1.StorageDeviceSet) { s.Count++ },
		"placement": func(s *ocsv1.StorageDeviceSet) {
			s.Placement.Tolerations = append(s.Placement.Tolerations, toleration("x"))
		},
		"portable":    func(s *ocsv1.StorageDeviceSet) { s.Portable = false },
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
}
