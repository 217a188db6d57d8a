package osd

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
)

const (
	hard = corev1.DoNotSchedule
	soft = corev1.ScheduleAnyway
	osds = "rook-ceph-osd"
	jobs = "rook-ceph-osd-prepare"
)

// ofClass adds the device class that a constraint counts by itself.
func ofClass(c corev1.TopologySpreadConstraint, class string) corev1.TopologySpreadConstraint {
	c.LabelSelector.MatchExpressions = append(c.LabelSelector.MatchExpressions,
		metav1.LabelSelectorRequirement{Key: "device-class", Operator: metav1.LabelSelectorOpIn, Values: []string{class}})
	return c
}

// The table of the docs: what the constraints are by mode and failure domain.
func TestConstraints(t *testing.T) {
	ssd := func(s *ocsv1.StorageDeviceSet) { s.DeviceClass = "ssd" }
	for name, c := range map[string]struct {
		mode          ocsv1.OSDPlacementMode
		set           ocsv1.StorageDeviceSet
		key           string
		osds, prepare []corev1.TopologySpreadConstraint
	}{
		"phase 1, zones": {
			ocsv1.OSDPlacementSeedPhase1, makeSet("a", 1, 3), zone,
			[]corev1.TopologySpreadConstraint{spread(host, soft, osds)},
			[]corev1.TopologySpreadConstraint{spread(zone, hard, osds, jobs), spread(host, soft, osds, jobs)},
		},
		"phase 1, racks, with a device class": {
			ocsv1.OSDPlacementSeedPhase1, makeSet("a", 1, 3, ssd), rack,
			[]corev1.TopologySpreadConstraint{spread(host, soft, osds)},
			[]corev1.TopologySpreadConstraint{spread(rack, hard, osds, jobs), spread(host, soft, osds, jobs)},
		},
		"phase 1, hosts": {
			ocsv1.OSDPlacementSeedPhase1, makeSet("a", 1, 3), host,
			[]corev1.TopologySpreadConstraint{spread(host, soft, osds)},
			[]corev1.TopologySpreadConstraint{spread(host, hard, osds, jobs)},
		},
		"no mode at all is phase 1": {
			"", makeSet("a", 1, 3), zone,
			[]corev1.TopologySpreadConstraint{spread(host, soft, osds)},
			[]corev1.TopologySpreadConstraint{spread(zone, hard, osds, jobs), spread(host, soft, osds, jobs)},
		},
		"failure domain, zones, with a device class": {
			ocsv1.OSDPlacementFailureDomain, makeSet("a", 1, 3, ssd), zone,
			[]corev1.TopologySpreadConstraint{ofClass(spread(zone, hard, osds), "ssd"), spread(host, soft, osds)},
			[]corev1.TopologySpreadConstraint{ofClass(spread(zone, hard, osds, jobs), "ssd"), spread(host, soft, osds, jobs)},
		},
		"failure domain, racks, without a device class": {
			ocsv1.OSDPlacementFailureDomain, makeSet("a", 1, 3), rack,
			[]corev1.TopologySpreadConstraint{spread(rack, hard, osds), spread(host, soft, osds)},
			[]corev1.TopologySpreadConstraint{spread(rack, hard, osds, jobs), spread(host, soft, osds, jobs)},
		},
		"failure domain, hosts": {
			ocsv1.OSDPlacementFailureDomain, makeSet("a", 1, 3), host,
			[]corev1.TopologySpreadConstraint{spread(host, hard, osds)},
			[]corev1.TopologySpreadConstraint{spread(host, hard, osds, jobs)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			daemon, prepare := forSet(inMode(c.mode), &c.set, c.key, none)
			if diff := cmp.Diff(constraints(c.osds...), daemon); diff != "" {
				t.Errorf("of daemons (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(constraints(c.prepare...), prepare); diff != "" {
				t.Errorf("of prepare Jobs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnEmptyPlacementTakesTheConstraintsAway(t *testing.T) {
	set := makeSet("a", 1, 3)
	byDefault, prepareByDefault := forSet(specOf(), &set, zone, none)
	empty := cephv1.Placement{}
	for name, c := range map[string]struct {
		placement     map[string]cephv1.Placement
		osds, prepare cephv1.Placement
	}{
		"of osd":            {map[string]cephv1.Placement{"osd": empty}, empty, prepareByDefault},
		"of prepareosd":     {map[string]cephv1.Placement{"prepareosd": empty}, byDefault, empty},
		"of both":           {map[string]cephv1.Placement{"osd": empty, "prepareosd": empty}, empty, empty},
		"of something else": {map[string]cephv1.Placement{"mon": empty}, byDefault, prepareByDefault},
		"but one that is not empty is ignored": {
			map[string]cephv1.Placement{"osd": {Tolerations: []corev1.Toleration{toleration("x")}}}, byDefault, prepareByDefault,
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := specOf(set)
			spec.Placement = c.placement
			daemon, prepare := forSet(spec, &set, zone, none)
			if diff := cmp.Diff([]cephv1.Placement{c.osds, c.prepare}, []cephv1.Placement{daemon, prepare}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// ocs-operator panics here (317834a65).
func TestNoEmptyCaseIsHarmful(t *testing.T) {
	empty, none := cephv1.Placement{}, cephv1.Placement{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{}}
	for _, mode := range []ocsv1.OSDPlacementMode{"", ocsv1.OSDPlacementSeedPhase1, ocsv1.OSDPlacementFailureDomain} {
		for i, placement := range []map[string]cephv1.Placement{nil, {}, {"osd": empty}, {"all": empty, "osd": empty, "prepareosd": empty}, {"osd": none}} {
			for j, set := range []ocsv1.StorageDeviceSet{
				{}, {Name: "a", Count: 1}, makeSet("a", 1, 3), {Name: "a", Count: 3, DeviceClass: "ssd", PreparePlacement: &empty},
				{Name: "a", Count: 3, DeviceType: "HDD", Placement: none, PreparePlacement: &none}, {Name: "a", Count: 3, PreparePlacement: &cephv1.Placement{NodeAffinity: &corev1.NodeAffinity{}}},
			} {
				t.Run(fmt.Sprint(mode, i, j), func(t *testing.T) {
					spec := &ocsv1.StorageClusterSpec{StorageDeviceSets: []ocsv1.StorageDeviceSet{set}, OSDPlacement: ocsv1.OSDPlacementSpec{Mode: mode}, Placement: placement}
					decision, err := Decide(spec, "", Ceph{}, Record{}, nil)
					if err != nil || len(decision.DeviceSets) != 1 {
						t.Fatalf("decision %+v, error %v", decision, err)
					}
					for _, part := range decision.DeviceSets[0].Parts {
						PrepareTemplate(decision.All, &part, corev1.ResourceRequirements{})
					}
				})
			}
		}
	}
}

func TestPlacementsOfASet(t *testing.T) {
	mine, other := requires(in("node-type", "storage")), requires(in("node-type", "prepare"))
	tolerated := []corev1.Toleration{toleration("dedicated")}
	byHost := []corev1.TopologySpreadConstraint{spread(host, hard, "mine")}
	defaults, prepareDefaults := constraints(spread(host, soft, osds)), constraints(spread(zone, hard, osds, jobs), spread(host, soft, osds, jobs))
	with := func(p cephv1.Placement, change func(*cephv1.Placement)) cephv1.Placement {
		change(&p)
		return p
	}
	affine := func(a *corev1.NodeAffinity) func(*cephv1.Placement) {
		return func(p *cephv1.Placement) { p.NodeAffinity = a }
	}
	for name, c := range map[string]struct {
		placement     cephv1.Placement
		prepare       *cephv1.Placement
		osds, prepped cephv1.Placement
	}{
		"neither":      {cephv1.Placement{}, nil, defaults, prepareDefaults},
		"an empty one": {cephv1.Placement{}, &cephv1.Placement{}, defaults, prepareDefaults},
		"of both: each its own": {
			cephv1.Placement{NodeAffinity: mine}, &cephv1.Placement{NodeAffinity: other}, with(defaults, affine(mine)), with(prepareDefaults, affine(other)),
		},
		"of daemons only: for both, and Jobs keep their constraints": {
			cephv1.Placement{NodeAffinity: mine}, nil, with(defaults, affine(mine)), with(prepareDefaults, affine(mine)),
		},
		"of daemons and an empty one of Jobs: for both": {
			cephv1.Placement{NodeAffinity: mine}, &cephv1.Placement{}, with(defaults, affine(mine)), with(prepareDefaults, affine(mine)),
		},
		"of Jobs only: daemons have the default": {
			cephv1.Placement{}, &cephv1.Placement{NodeAffinity: other}, defaults, with(prepareDefaults, affine(other)),
		},
		"constraints replace the default ones": {
			cephv1.Placement{TopologySpreadConstraints: byHost}, nil, constraints(byHost...), constraints(byHost...),
		},
		"an empty list of constraints means none": {
			cephv1.Placement{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{}}, nil, constraints([]corev1.TopologySpreadConstraint{}...), constraints([]corev1.TopologySpreadConstraint{}...),
		},
		"tolerations and affinity together": {
			cephv1.Placement{Tolerations: tolerated, NodeAffinity: mine}, nil,
			with(defaults, func(p *cephv1.Placement) { p.Tolerations, p.NodeAffinity = tolerated, mine }),
			with(prepareDefaults, func(p *cephv1.Placement) { p.Tolerations, p.NodeAffinity = tolerated, mine }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := makeSet("a", 1, 3, func(s *ocsv1.StorageDeviceSet) { s.Placement, s.PreparePlacement = c.placement, c.prepare })
			daemon, prepare := forSet(specOf(set), &set, zone, none)
			if diff := cmp.Diff([]cephv1.Placement{c.osds, c.prepped}, []cephv1.Placement{daemon, prepare}, equateEmptyConstraints); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// equateEmptyConstraints takes a list that is there and empty for none.
var equateEmptyConstraints = cmp.Transformer("constraints", func(c []corev1.TopologySpreadConstraint) map[int]corev1.TopologySpreadConstraint {
	all := map[int]corev1.TopologySpreadConstraint{}
	for i := range c {
		all[i] = c[i]
	}
	return all
})

func TestMerge(t *testing.T) {
	affinity, anti := &corev1.PodAffinity{}, &corev1.PodAntiAffinity{}
	base := cephv1.Placement{
		NodeAffinity: requires(in("a", "1")), PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "k"}}},
		Tolerations: []corev1.Toleration{toleration("a")}, TopologySpreadConstraints: []corev1.TopologySpreadConstraint{spread(zone, hard, osds)},
	}
	for name, c := range map[string]struct{ base, given, want cephv1.Placement }{
		"nothing with nothing": {},
		"nothing given":        {base, cephv1.Placement{}, base},
		"nothing there":        {cephv1.Placement{}, base, base},
		"a section replaces the whole section, and others stay": {
			base, cephv1.Placement{NodeAffinity: requires(in("b", "2")), PodAffinity: affinity, PodAntiAffinity: anti},
			cephv1.Placement{NodeAffinity: requires(in("b", "2")), PodAffinity: affinity, PodAntiAffinity: anti, Tolerations: base.Tolerations, TopologySpreadConstraints: base.TopologySpreadConstraints},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Merge(c.base, c.given)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestMergeTolerations(t *testing.T) {
	a, b, aAgain := toleration("a"), toleration("b"), toleration("a")
	aAgain.Effect = corev1.TaintEffectNoExecute
	for name, c := range map[string]struct{ present, more, want []corev1.Toleration }{
		"none to any":           {nil, []corev1.Toleration{a}, []corev1.Toleration{a}},
		"any to none":           {[]corev1.Toleration{a}, nil, []corev1.Toleration{a}},
		"others are added":      {[]corev1.Toleration{a}, []corev1.Toleration{b}, []corev1.Toleration{a, b}},
		"the same only once":    {[]corev1.Toleration{a}, []corev1.Toleration{a, b, b}, []corev1.Toleration{a, b}},
		"another effect counts": {[]corev1.Toleration{a}, []corev1.Toleration{aAgain}, []corev1.Toleration{a, aAgain}},
		"none to none":          {nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := Merge(cephv1.Placement{Tolerations: c.present}, cephv1.Placement{Tolerations: c.more}).Tolerations
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestPlacementOfAll(t *testing.T) {
	tolerated := []corev1.Toleration{storageToleration}
	storage := corev1.NodeSelectorRequirement{Key: "cluster.ocs.openshift.io/openshift-storage", Operator: corev1.NodeSelectorOpExists}
	custom := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "custom", Operator: metav1.LabelSelectorOpIn, Values: []string{"value"}}}}
	both := requires(in("a", "1"), in("b", "2"))
	bothCustom := both.DeepCopy()
	for i := range bothCustom.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		terms := bothCustom.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		terms[i].MatchExpressions = append(terms[i].MatchExpressions, in("custom", "value"))
	}
	for name, c := range map[string]struct {
		given    *cephv1.Placement
		selector *metav1.LabelSelector
		want     *cephv1.Placement
	}{
		"by default":      {nil, nil, &cephv1.Placement{NodeAffinity: requires(storage), Tolerations: tolerated}},
		"with a selector": {nil, custom, &cephv1.Placement{NodeAffinity: requires(in("custom", "value")), Tolerations: tolerated}},
		"with labels": {nil, &metav1.LabelSelector{MatchLabels: map[string]string{"b": "2", "a": "1"}}, &cephv1.Placement{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{in("a", "1"), in("b", "2")}},
			}}}, Tolerations: tolerated,
		}},
		"with an empty selector, which selects all nodes": {nil, &metav1.LabelSelector{}, &cephv1.Placement{Tolerations: tolerated}},
		"with other tolerations":                          {&cephv1.Placement{Tolerations: []corev1.Toleration{toleration("x")}}, nil, &cephv1.Placement{NodeAffinity: requires(storage), Tolerations: []corev1.Toleration{storageToleration, toleration("x")}}},
		"with another node affinity":                      {&cephv1.Placement{NodeAffinity: both}, nil, &cephv1.Placement{NodeAffinity: both, Tolerations: tolerated}},
		"with both, in each term":                         {&cephv1.Placement{NodeAffinity: both}, custom, &cephv1.Placement{NodeAffinity: bothCustom, Tolerations: tolerated}},
		"empty, which means anywhere":                     {&cephv1.Placement{}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			spec := specOf()
			spec.LabelSelector = c.selector
			if c.given != nil {
				spec.Placement = map[string]cephv1.Placement{"all": *c.given}
			}
			want := map[string]cephv1.Placement{}
			if c.want != nil {
				want["all"] = *c.want
			}
			if diff := cmp.Diff(want, Placements(spec)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestPlacementOfOtherDaemonsIsHandedOn(t *testing.T) {
	mon := cephv1.Placement{Tolerations: []corev1.Toleration{toleration("x")}}
	spec := specOf()
	spec.Placement = map[string]cephv1.Placement{"mon": mon, "mgr": {}, "osd": mon, "prepareosd": mon}
	got := Placements(spec)
	delete(got, "all")
	if diff := cmp.Diff(map[string]cephv1.Placement{"mon": mon}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// ocs-operator writes into the slices of its defaults.
func TestNothingIsWrittenIntoWhatComesIn(t *testing.T) {
	class := func(s *ocsv1.StorageDeviceSet) {
		s.DeviceClass = "ssd"
		s.Placement = cephv1.Placement{
			NodeAffinity: requires(in("a", "1")), Tolerations: append(make([]corev1.Toleration, 0, 8), toleration("x")),
			TopologySpreadConstraints: append(make([]corev1.TopologySpreadConstraint, 0, 8), spread(zone, hard, osds)),
		}
		s.DataPVCTemplate.Annotations = map[string]string{"mine": "too"}
	}
	fresh := func() *ocsv1.StorageClusterSpec {
		spec := withArbiter(specOf(makeSet("a", 3, 0, class), makeSet("b", 1, 4, class)), "zone9")
		spec.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"l": "v"}}
		spec.Placement = map[string]cephv1.Placement{"all": {NodeAffinity: requires(in("a", "1"))}, "mon": {Tolerations: []corev1.Toleration{toleration("x")}}}
		return spec
	}
	spec := fresh()
	first := decide(t, spec, Ceph{}).DeviceSets
	if diff := cmp.Diff(fresh(), spec); diff != "" {
		t.Errorf("the spec has changed (-want +got):\n%s", diff)
	}
	again := decide(t, spec, Ceph{}).DeviceSets
	if diff := cmp.Diff(first, again, cmpopts.IgnoreUnexported(DeviceSet{})); diff != "" {
		t.Errorf("deciding again gives something else (-want +got):\n%s", diff)
	}
	// No one who changes a part changes another, or the spec.
	for _, placement := range []*cephv1.Placement{&first[0].Parts[0].Placement, first[0].Parts[0].PreparePlacement} {
		placement.TopologySpreadConstraints[0].LabelSelector.MatchExpressions[0].Values[0] = "changed"
		placement.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Key = "changed"
		placement.Tolerations[0].Key = "changed"
	}
	first[0].Parts[0].VolumeClaimTemplates[0].Annotations["mine"] = "changed"
	if diff := cmp.Diff(again[0].Parts[1], first[0].Parts[1]); diff != "" {
		t.Errorf("changing one set changes another:\n%s", diff)
	}
	if diff := cmp.Diff(fresh(), spec); diff != "" {
		t.Errorf("changing a set changes the spec:\n%s", diff)
	}
}

func TestConstraintsShareNothing(t *testing.T) {
	set := makeSet("a", 1, 3)
	_, prepare := forSet(specOf(set), &set, zone, none)
	prepare.TopologySpreadConstraints[0].LabelSelector.MatchExpressions[0].Values[0] = "changed"
	if got := prepare.TopologySpreadConstraints[1].LabelSelector.MatchExpressions[0].Values[0]; got != osds {
		t.Errorf("changing one constraint changes another: it counts %s", got)
	}
}
