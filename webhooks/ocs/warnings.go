package ocs

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	"github.com/edpm-operators/edpm-operators/internal/osd"
)

// specWarnings reports what is allowed but likely not meant, of what has changed
// since old, which is nil for a new object.
func specWarnings(old, c *ocsv1.StorageCluster) []string {
	var warnings []string
	for i, set := range c.Spec.StorageDeviceSets {
		before := find(old, set.Name)
		if before != nil && before.Count == set.Count && before.Replica == set.Replica {
			continue
		}
		if text := uneven(c.Spec, set); text != "" {
			warnings = append(warnings, fmt.Sprintf("%s: %s", field.NewPath("spec", "storageDeviceSets").Index(i).Child("count"), text))
		}
	}
	warnings = append(warnings, fieldWarnings(old, c)...)
	before, after := placements(old), placements(c)
	for _, at := range slices.Sorted(maps.Keys(after)) {
		if !equality.Semantic.DeepEqual(before[at], after[at]) {
			warnings = append(warnings, placementWarnings(at, after[at])...)
		}
	}
	return warnings
}

// fieldWarnings names fields of ocs-operator that are new.
func fieldWarnings(old, c *ocsv1.StorageCluster) []string {
	if old == nil {
		old = &ocsv1.StorageCluster{}
	}
	var warnings []string
	for _, path := range osd.Ignored(&c.Spec) {
		if !slices.Contains(osd.Ignored(&old.Spec), path) {
			warnings = append(warnings, path+": has no effect, as only OSDs are managed: set it in the CephCluster")
		}
	}
	for _, path := range osd.Unsupported(&c.Spec) {
		if !slices.Contains(osd.Unsupported(&old.Spec), path) {
			warnings = append(warnings, path+": is not supported, and nothing is changed until it is removed: without it the OSDs would be others than those that the spec asks for")
		}
	}
	return warnings
}

// placements returns those that are about OSDs, by where they are written.
func placements(c *ocsv1.StorageCluster) map[string]*cephv1.Placement {
	found := map[string]*cephv1.Placement{}
	if c == nil {
		return found
	}
	for _, key := range []string{cephv1.PlacementAll, osdPlacement} {
		if p, ok := c.Spec.Placement[key]; ok {
			found[field.NewPath("spec", "placement").Key(key).String()] = &p
		}
	}
	for i, set := range c.Spec.StorageDeviceSets {
		at := field.NewPath("spec", "storageDeviceSets").Index(i)
		found[at.Child("placement").String()] = &set.Placement
		if set.PreparePlacement != nil {
			found[at.Child("preparePlacement").String()] = set.PreparePlacement
		}
	}
	return found
}

// osdPlacement is the key of a placement that only counts where it is empty.
const osdPlacement = "osd"

func placementWarnings(at string, p *cephv1.Placement) []string {
	if at == field.NewPath("spec", "placement").Key(osdPlacement).String() {
		if equality.Semantic.DeepEqual(p, &cephv1.Placement{}) {
			return []string{at + ": {} removes the default constraints of the daemons: remove the entry to use them"}
		}
		return []string{at + ": is ignored: set the placement of OSDs in storageDeviceSets"}
	}
	var warnings []string
	if n := terms(p.NodeAffinity); n > 1 {
		warnings = append(warnings, fmt.Sprintf("%s.nodeAffinity: Rook combines node affinities by the first term of each, so that %d of %d terms are ignored: use one term", at, n-1, n))
	}
	for i, c := range p.TopologySpreadConstraints {
		if s := c.LabelSelector; s == nil || len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0 {
			warnings = append(warnings, fmt.Sprintf("%s.topologySpreadConstraints[%d].labelSelector: selects no pods, so that nothing is spread: set {matchExpressions: [{key: %s, operator: In, values: [%s, %s]}]}",
				at, i, cephv1.AppLabel, cephv1.AppOSD, cephv1.AppOSDPrepare))
		}
	}
	return warnings
}

// terms counts those that nodes must match one of.
func terms(a *corev1.NodeAffinity) int {
	if a == nil || a.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return 0
	}
	return len(a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms)
}

// uneven says what is odd about a number of OSDs, nothing if it can be meant.
func uneven(spec ocsv1.StorageClusterSpec, set ocsv1.StorageDeviceSet) string {
	number := strconv.Itoa(int(set.Count))
	switch {
	case spec.Arbiter.Enable && osd.Total(&set)%2 != 0:
		return fmt.Sprintf("%d OSDs cannot be divided evenly between the two zones other than that of the arbiter: use an even count or replica", osd.Total(&set))
	case spec.Arbiter.Enable || set.Replica != 0:
		return ""
	case set.Count < ocsv1.DefaultReplica:
		return fmt.Sprintf("%s without replica means %s OSDs in total, too few for three copies of the data: set replica: 3 for %s in each of three sets", number, number, number)
	case set.Count%ocsv1.DefaultReplica != 0:
		return fmt.Sprintf("%s without replica means %s OSDs in total, which three sets cannot divide evenly: use a multiple of 3, or set replica", number, number)
	}
	return ""
}

// find returns the device set of that name, nil if there is none.
func find(c *ocsv1.StorageCluster, name string) *ocsv1.StorageDeviceSet {
	if c == nil {
		return nil
	}
	for i := range c.Spec.StorageDeviceSets {
		if c.Spec.StorageDeviceSets[i].Name == name {
			return &c.Spec.StorageDeviceSets[i]
		}
	}
	return nil
}
