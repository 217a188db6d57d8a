package osd

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
)

// Keys of spec.placement that are about OSDs. Their placement is said by the
// device sets, so only one that is there and empty counts: it takes the default
// constraints away (ocs-operator, getPlacement).
const (
	placementOSD        = "osd"
	placementOSDPrepare = "prepareosd"
)

// Placements returns what spec.placement of the CephCluster is to have: all, by
// which every daemon stays on the storage nodes and tolerates their taint, and
// what the spec says of daemons other than OSDs. An empty all in the spec means
// that the daemons go anywhere.
func Placements(spec *ocsv1.StorageClusterSpec) map[string]cephv1.Placement {
	placements := map[string]cephv1.Placement{}
	for key, p := range spec.Placement {
		if key != placementOSD && key != placementOSDPrepare && !isEmpty(p) {
			placements[key] = *p.DeepCopy()
		}
	}
	if all := placementOfAll(spec); !isEmpty(all) {
		placements[cephv1.PlacementAll] = all
	}
	return placements
}

func placementOfAll(spec *ocsv1.StorageClusterSpec) cephv1.Placement {
	given, ok := spec.Placement[cephv1.PlacementAll]
	if ok && isEmpty(given) {
		return cephv1.Placement{}
	}
	all := Merge(cephv1.Placement{
		Tolerations: []corev1.Toleration{{
			Key: ocsv1.StorageTaint, Operator: corev1.TolerationOpEqual, Value: "true", Effect: corev1.TaintEffectNoSchedule,
		}},
	}, given)
	switch {
	case spec.LabelSelector != nil:
		all.NodeAffinity = requiring(all.NodeAffinity, requirements(spec.LabelSelector)...)
	case all.NodeAffinity == nil:
		all.NodeAffinity = requiring(nil, corev1.NodeSelectorRequirement{Key: ocsv1.StorageNodeLabel, Operator: corev1.NodeSelectorOpExists})
	}
	return all
}

// forSet returns the placements of the daemons and of the prepare Jobs of a device
// set. Without a preparePlacement the placement is for both; the Jobs keep their
// own default constraints then, which count Jobs as well as daemons. (In
// ocs-operator they get those of the daemons, which do not select a Job, so that
// all Jobs that start together may land in one domain.)
//
// The base is what the placement of all daemons lacks; Rook would add it in the same
// way.
func forSet(spec *ocsv1.StorageClusterSpec, set *ocsv1.StorageDeviceSet, key string, base cephv1.Placement) (osds, prepare cephv1.Placement) {
	forPrepare := set.PreparePlacement
	if forPrepare == nil || isEmpty(*forPrepare) {
		forPrepare = &set.Placement
	}
	osds = onTopOf(base, Merge(defaultOSD(spec, set, key), set.Placement))
	prepare = onTopOf(base, Merge(defaultPrepare(spec, set, key), *forPrepare))
	if zone := ArbiterZone(spec); zone != "" {
		// An arbiter's zone gets no OSD. Were it counted as an empty domain, no
		// other one could get more than maxSkew.
		outside := corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpNotIn, Values: []string{zone}}
		osds.NodeAffinity, prepare.NodeAffinity = requiring(osds.NodeAffinity, outside), requiring(prepare.NodeAffinity, outside)
	}
	return osds, prepare
}

// onTopOf adds to a placement what all daemons have, as Rook does: a node has to
// match both node affinities, and tolerations add up.
func onTopOf(base, own cephv1.Placement) cephv1.Placement {
	base = *base.DeepCopy()
	own.NodeAffinity = combine(base.NodeAffinity, own.NodeAffinity)
	own.Tolerations = addTolerations(base.Tolerations, own.Tolerations)
	if own.PodAffinity == nil {
		own.PodAffinity = base.PodAffinity
	}
	if own.PodAntiAffinity == nil {
		own.PodAntiAffinity = base.PodAntiAffinity
	}
	if own.TopologySpreadConstraints == nil {
		own.TopologySpreadConstraints = base.TopologySpreadConstraints
	}
	return own
}

// defaultOSD spreads daemons across hosts only, softly, in mode SeedPhase1: their
// volumes keep them in the domain in which they were prepared. In mode
// FailureDomain they are spread like the Jobs (ocs-operator since 228b28444).
func defaultOSD(spec *ocsv1.StorageClusterSpec, set *ocsv1.StorageDeviceSet, key string) cephv1.Placement {
	switch {
	case takenAway(spec, placementOSD):
		return cephv1.Placement{}
	case spec.OSDPlacement.Mode == ocsv1.OSDPlacementFailureDomain:
		return overDomains(spec, set, key, cephv1.AppOSD)
	}
	return cephv1.Placement{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{overHosts(cephv1.AppOSD)}}
}

// defaultPrepare spreads prepare Jobs across the failure domain. They end when the
// device is ready, so the daemons are counted as well.
func defaultPrepare(spec *ocsv1.StorageClusterSpec, set *ocsv1.StorageDeviceSet, key string) cephv1.Placement {
	if takenAway(spec, placementOSDPrepare) {
		return cephv1.Placement{}
	}
	return overDomains(spec, set, key, cephv1.AppOSD, cephv1.AppOSDPrepare)
}

func takenAway(spec *ocsv1.StorageClusterSpec, component string) bool {
	given, ok := spec.Placement[component]
	return ok && isEmpty(given)
}

// overDomains spreads pods across domains, hard, and within them across hosts,
// softly. In mode FailureDomain, as in ocs-operator since 317834a65, OSDs of one
// device class are balanced by themselves.
func overDomains(spec *ocsv1.StorageClusterSpec, set *ocsv1.StorageDeviceSet, key string, apps ...string) cephv1.Placement {
	domains := constraint(key, corev1.DoNotSchedule, apps)
	if class := crushClass(set); class != "" && spec.OSDPlacement.Mode == ocsv1.OSDPlacementFailureDomain {
		domains.LabelSelector.MatchExpressions = append(domains.LabelSelector.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: deviceClassLabel, Operator: metav1.LabelSelectorOpIn, Values: []string{class}})
	}
	constraints := []corev1.TopologySpreadConstraint{domains}
	if key != corev1.LabelHostname {
		constraints = append(constraints, overHosts(apps...))
	}
	return cephv1.Placement{TopologySpreadConstraints: constraints}
}

// deviceClassLabel is that of the pods of OSDs (Rook since 4fcdfaad1).
const deviceClassLabel = "device-class"

func overHosts(apps ...string) corev1.TopologySpreadConstraint {
	return constraint(corev1.LabelHostname, corev1.ScheduleAnyway, apps)
}

func constraint(key string, otherwise corev1.UnsatisfiableConstraintAction, apps []string) corev1.TopologySpreadConstraint {
	return corev1.TopologySpreadConstraint{
		MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: otherwise,
		LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: cephv1.AppLabel, Operator: metav1.LabelSelectorOpIn, Values: apps},
		}},
	}
}

// Merge returns the base with what is given put in its place, section by section;
// tolerations are added. A list of constraints that is there and empty means none.
func Merge(base, given cephv1.Placement) cephv1.Placement {
	merged, given := *base.DeepCopy(), *given.DeepCopy()
	if given.NodeAffinity != nil {
		merged.NodeAffinity = given.NodeAffinity
	}
	if given.PodAffinity != nil {
		merged.PodAffinity = given.PodAffinity
	}
	if given.PodAntiAffinity != nil {
		merged.PodAntiAffinity = given.PodAntiAffinity
	}
	if given.TopologySpreadConstraints != nil {
		merged.TopologySpreadConstraints = given.TopologySpreadConstraints
	}
	merged.Tolerations = addTolerations(merged.Tolerations, given.Tolerations)
	return merged
}

// addTolerations returns both, each once.
func addTolerations(present, more []corev1.Toleration) []corev1.Toleration {
	var all []corev1.Toleration
	for _, t := range slices.Concat(present, more) {
		if !slices.ContainsFunc(all, func(o corev1.Toleration) bool { return equality.Semantic.DeepEqual(o, t) }) {
			all = append(all, t)
		}
	}
	return all
}

func isEmpty(p cephv1.Placement) bool {
	return p.NodeAffinity == nil && p.PodAffinity == nil && p.PodAntiAffinity == nil && p.Tolerations == nil && p.TopologySpreadConstraints == nil
}

// requiring returns the affinity with the requirements in each of its terms: a
// node has to match one term, so each has to ask for them.
func requiring(affinity *corev1.NodeAffinity, more ...corev1.NodeSelectorRequirement) *corev1.NodeAffinity {
	if len(more) == 0 {
		return affinity
	}
	result := affinity.DeepCopy()
	if result == nil {
		result = &corev1.NodeAffinity{}
	}
	if required := result.RequiredDuringSchedulingIgnoredDuringExecution; required == nil || len(required.NodeSelectorTerms) == 0 {
		result.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: make([]corev1.NodeSelectorTerm, 1)}
	}
	terms := result.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		terms[i].MatchExpressions = append(terms[i].MatchExpressions, more...)
	}
	return result
}

// requirements returns a label selector as requirements on nodes, in a fixed order.
func requirements(selector *metav1.LabelSelector) []corev1.NodeSelectorRequirement {
	var result []corev1.NodeSelectorRequirement
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		result = append(result, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{selector.MatchLabels[key]}})
	}
	for _, e := range selector.MatchExpressions {
		// The operators are spelt alike.
		result = append(result, corev1.NodeSelectorRequirement{Key: e.Key, Operator: corev1.NodeSelectorOperator(e.Operator), Values: slices.Clone(e.Values)})
	}
	return result
}
