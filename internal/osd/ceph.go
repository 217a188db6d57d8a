package osd

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
)

// Ceph is what a CephCluster has, as far as this project writes or reads it. It is in
// the form of JSON, since Rook may have fields that no type here has. The zero value
// is a CephCluster that does not exist.
type Ceph struct {
	Exists bool
	// Sets are spec.storage.storageClassDeviceSets.
	Sets []any
	// Placement and Resources are those of daemons, by name.
	Placement, Resources map[string]any
	// OnlyOSDs is spec.storage.onlyApplyOSDPlacement: OSDs have the placement of their
	// sets only, and not that of all daemons.
	OnlyOSDs bool
}

// NewCeph returns what a CephCluster has, given the object.
func NewCeph(object map[string]any) Ceph {
	c := Ceph{Exists: true}
	c.Sets, _, _ = unstructured.NestedSlice(object, "spec", "storage", "storageClassDeviceSets")
	c.Placement, _, _ = unstructured.NestedMap(object, "spec", "placement")
	c.Resources, _, _ = unstructured.NestedMap(object, "spec", "resources")
	c.OnlyOSDs, _, _ = unstructured.NestedBool(object, "spec", "storage", "onlyApplyOSDPlacement")
	return c
}

// placement returns that of a daemon as far as the types know it, and whether there
// is one.
func (c Ceph) placement(daemon string) (cephv1.Placement, bool, error) {
	given, found := c.Placement[daemon]
	item, ok := given.(map[string]any)
	if !found || !ok {
		return cephv1.Placement{}, found, nil
	}
	p := cephv1.Placement{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item, &p); err != nil {
		return p, true, fmt.Errorf("reading spec.placement.%s of the CephCluster: %w", daemon, err)
	}
	return p, true, nil
}

// resources returns the requirements of a daemon, of the first of the names that has
// any. What cannot be read is left to Rook to refuse.
func (c Ceph) resources(names ...string) corev1.ResourceRequirements {
	for _, name := range names {
		item, _ := c.Resources[name].(map[string]any)
		found := corev1.ResourceRequirements{}
		if len(item) > 0 && runtime.DefaultUnstructuredConverter.FromUnstructured(item, &found) == nil {
			return found
		}
	}
	return corev1.ResourceRequirements{}
}

// DaemonPlacement is a placement that the spec asks for, and what becomes of it.
type DaemonPlacement struct {
	// Name of the daemon, or all, and Hash of what the spec says of it.
	Name, Hash string
	// Kept reports whether the CephCluster keeps what it has, which may be none.
	Kept bool
	// Placement that the spec asks for.
	Placement cephv1.Placement
}

// planPlacements returns what becomes of each placement that the spec asks for. Rook
// puts them into the pods of all daemons, so one that another user wrote is kept
// until the spec says something else of it than when it was found. The default of all
// daemons is only written to a CephCluster that is made here.
func planPlacements(spec *ocsv1.StorageClusterSpec, ceph Ceph, before []ocsv1.DaemonPlacementStatus) []DaemonPlacement {
	wanted := Placements(spec)
	var plan []DaemonPlacement
	for _, name := range sets.List(sets.KeySet(wanted)) {
		var given *cephv1.Placement
		if p, ok := spec.Placement[name]; ok {
			given = &p
		}
		d := DaemonPlacement{Name: name, Placement: wanted[name], Hash: hashOfPlacement(given)}
		d.Kept = ceph.Exists && d.keeps(ceph, given != nil, before)
		plan = append(plan, d)
	}
	return plan
}

func (d *DaemonPlacement) keeps(ceph Ceph, asked bool, before []ocsv1.DaemonPlacementStatus) bool {
	at := slices.IndexFunc(before, func(s ocsv1.DaemonPlacementStatus) bool { return s.Name == d.Name })
	if at >= 0 && (!before[at].Kept || sameVersion(before[at].Hash, d.Hash)) {
		return before[at].Kept && before[at].Hash == d.Hash
	}
	present, found, err := ceph.placement(d.Name)
	if !found {
		return !asked
	}
	return err != nil || !equality.Semantic.DeepEqual(present, d.Placement)
}

// placementOfOSDs returns the placement of all daemons as far as it applies to OSDs,
// and what the sets have to say themselves because it is not what the spec asks for.
func placementOfOSDs(spec *ocsv1.StorageClusterSpec, ceph Ceph, plan []DaemonPlacement) (all, base cephv1.Placement, err error) {
	wanted := placementOfAll(spec)
	kept := slices.ContainsFunc(plan, func(d DaemonPlacement) bool { return d.Name == cephv1.PlacementAll && d.Kept })
	switch {
	case ceph.OnlyOSDs:
		return cephv1.Placement{}, wanted, nil
	case kept:
		all, _, err = ceph.placement(cephv1.PlacementAll)
		return all, wanted, err
	}
	return wanted, cephv1.Placement{}, nil
}
