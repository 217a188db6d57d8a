package osd

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
)

// DeviceSet is a device set of the spec and what becomes of it.
type DeviceSet struct {
	// Name of the device set, and Hash of what the spec says of it.
	Name, Hash string
	// Key is the label of nodes whose values its OSDs are spread over.
	Key string
	// Placement reports whether the StorageClassDeviceSets are left as they are.
	Placement ocsv1.DeviceSetPlacement
	// Parts are its StorageClassDeviceSets in the CephCluster, with the resources that
	// Rook takes for those that have none.
	Parts []cephv1.StorageClassDeviceSet
	// Prepare are the resources of the Jobs that prepare the devices.
	Prepare corev1.ResourceRequirements
	// items are the same as they are written.
	items []map[string]any
}

// OSDs returns the number of OSDs that there are to be.
func (d *DeviceSet) OSDs() int {
	total := 0
	for i := range d.Parts {
		total += d.Parts[i].Count
	}
	return total
}

// Names returns the names of its StorageClassDeviceSets.
func (d *DeviceSet) Names() []string {
	var names []string
	for i := range d.Parts {
		names = append(names, d.Parts[i].Name)
	}
	return names
}

// Record is what the status says was written to the CephCluster. It is empty if that
// was another CephCluster.
type Record struct {
	DeviceSets []ocsv1.DeviceSetStatus
	Placements []ocsv1.DaemonPlacementStatus
	// Replaced are the device sets whose placement a person has let be replaced.
	Replaced []string
}

// Decision is what becomes of a CephCluster.
type Decision struct {
	// DeviceSets of the spec, in its order.
	DeviceSets []DeviceSet
	// Placements of daemons that the spec asks for, by name.
	Placements []DaemonPlacement
	// Items are the whole list spec.storage.storageClassDeviceSets.
	Items []any
	// All is the placement of all daemons, as far as it applies to OSDs.
	All cephv1.Placement
	// Dropped are the names of StorageClassDeviceSets that the list has no longer.
	Dropped []string
	// Problems keep the CephCluster from being written.
	Problems []Problem
}

// planner decides about the device sets, one after the other.
type planner struct {
	spec      *ocsv1.StorageClusterSpec
	domainKey string
	ceph      Ceph
	// base is what the sets need in place of placement.all.
	base     cephv1.Placement
	before   []ocsv1.DeviceSetStatus
	replaced []string
	items    map[string]map[string]any
	occupied sets.Set[string]
}

// Decide returns what becomes of a CephCluster, given the key of the failure domain,
// what it has, what was written to it before, and the claims of OSDs that there are.
// The error says which part of the CephCluster cannot be read.
//
// What is found in a CephCluster stays until a user asks for something else: a
// device set that it has already, and that would be changed in more than its count, is
// Legacy. It gets more OSDs if the spec asks for more, and is left as it is otherwise,
// to the letter, until a person names it in an annotation. Another placement recreates
// the pods of all its OSDs, each on any node that its volume can be reached from, and
// no one asks for that with another count (seeds/003, phase 1: "existing OSD Pods would
// still remain with the old Placement configurations"). Another change of a Legacy set
// with OSDs is a problem until then.
func Decide(spec *ocsv1.StorageClusterSpec, domainKey string, ceph Ceph, record Record, claims []*corev1.PersistentVolumeClaim) (*Decision, error) {
	items, order, err := index(ceph.Sets)
	if err != nil {
		return nil, err
	}
	d := &Decision{Placements: planPlacements(spec, ceph, record.Placements)}
	p := &planner{spec: spec, domainKey: domainKey, ceph: ceph, before: record.DeviceSets, replaced: record.Replaced, items: items, occupied: setsOf(claims)}
	if d.All, p.base, err = placementOfOSDs(spec, ceph, d.Placements); err != nil {
		return nil, err
	}
	for i := range spec.StorageDeviceSets {
		set, err := p.deviceSet(&spec.StorageDeviceSets[i])
		if err != nil {
			return nil, err
		}
		d.DeviceSets = append(d.DeviceSets, set)
	}
	d.merge(items, order, record.DeviceSets)
	d.Problems = append(p.encryption(d), p.legacy(d)...)
	return d, nil
}

// setsOf returns the StorageClassDeviceSets that have claims, and so OSDs.
func setsOf(claims []*corev1.PersistentVolumeClaim) sets.Set[string] {
	names := sets.New[string]()
	for _, claim := range claims {
		names.Insert(claim.Labels[cephv1.DeviceSetLabel])
	}
	return names
}

func (p *planner) deviceSet(set *ocsv1.StorageDeviceSet) (DeviceSet, error) {
	hash, err := Hash(set)
	if err != nil {
		return DeviceSet{}, err
	}
	wanted := deviceSets(p.spec, set, p.domainKey, p.base)
	d := DeviceSet{Name: set.Name, Hash: hash, Key: TopologyKey(set, p.domainKey), Placement: ocsv1.PlacementConstraints, Prepare: p.ceph.resources(resourcesPrepare)}
	for i := range wanted {
		item, err := p.merged(wanted, i)
		if err != nil {
			return DeviceSet{}, err
		}
		d.items = append(d.items, item)
	}
	if p.stays(&d) {
		d.Placement = ocsv1.PlacementLegacy
		p.leave(&d, set)
	}
	d.Parts, err = p.typed(d.items)
	return d, err
}

// stays reports whether a set is Legacy. One that was found, or whose hash is of
// another version, is if it would be changed in more than its count.
func (p *planner) stays(d *DeviceSet) bool {
	before := p.recorded(d.Name)
	switch {
	case slices.Contains(p.replaced, d.Name):
		return false
	case before.Placement == "":
	case before.Placement != ocsv1.PlacementLegacy:
		return false
	case sameVersion(before.Hash, d.Hash):
		return p.present(d) && (SameButCount(before.Hash, d.Hash) || p.hasOSDs(d))
	}
	return slices.ContainsFunc(d.items, func(item map[string]any) bool {
		present := p.items[nameOf(item)]
		return present != nil && !sameButCount(present, item)
	})
}

// recorded returns what the status says of a device set.
func (p *planner) recorded(name string) ocsv1.DeviceSetStatus {
	at := slices.IndexFunc(p.before, func(s ocsv1.DeviceSetStatus) bool { return s.Name == name })
	if at < 0 {
		return ocsv1.DeviceSetStatus{}
	}
	return p.before[at]
}

// present reports whether the CephCluster has any part of a device set.
func (p *planner) present(d *DeviceSet) bool {
	return slices.ContainsFunc(d.items, func(item map[string]any) bool { return p.items[nameOf(item)] != nil })
}

func (p *planner) hasOSDs(d *DeviceSet) bool {
	return slices.ContainsFunc(d.items, func(item map[string]any) bool { return p.occupied.Has(nameOf(item)) })
}

// legacy returns the Legacy sets that have changed in more than their count since they
// were found.
func (p *planner) legacy(d *Decision) []Problem {
	var problems []Problem
	for i := range d.DeviceSets {
		set := &d.DeviceSets[i]
		if before := p.recorded(set.Name); set.Placement == ocsv1.PlacementLegacy && sameVersion(before.Hash, set.Hash) && !SameButCount(before.Hash, set.Hash) {
			problems = append(problems, Problem{ocsv1.LegacyPlacementReason, fmt.Sprintf(
				"spec.storageDeviceSets[%d] %s", i, LegacyConsequence(set.Name))})
		}
	}
	return problems
}

// LegacyConsequence says what a change of a Legacy set does, and how to have it.
func LegacyConsequence(set string) string {
	return fmt.Sprintf("has changed, and %s has the placement that was found in the CephCluster: the pods of all its OSDs would be recreated with that of the spec. "+
		"Restore everything but count and replica, or annotate the StorageCluster with %s=%s", set, ocsv1.ReplacePlacementAnnotation, set)
}

func sameButCount(a, b map[string]any) bool {
	a, b = maps.Clone(a), maps.Clone(b)
	delete(a, "count")
	delete(b, "count")
	return reflect.DeepEqual(a, b)
}

// leave puts the items that there are in the place of those that would be written,
// with the larger count of both.
func (p *planner) leave(d *DeviceSet, set *ocsv1.StorageDeviceSet) {
	rounded := p.roundedDown(set, d)
	if rounded {
		d.items = slices.DeleteFunc(d.items, func(item map[string]any) bool { return p.items[nameOf(item)] == nil })
	}
	for i, item := range d.items {
		present := p.items[nameOf(item)]
		if present == nil {
			continue
		}
		d.items[i] = present
		if countOf(item) > countOf(present) && !rounded {
			d.items[i] = maps.Clone(present)
			d.items[i]["count"] = countOf(item)
		}
	}
}

// roundedDown reports whether the CephCluster has what ocs-operator makes of a set
// without replica: three times a third of count, rounded down. No one asks for the
// rest by leaving ocs-operator, but by another count.
func (p *planner) roundedDown(set *ocsv1.StorageDeviceSet, d *DeviceSet) bool {
	before := p.recorded(set.Name).Hash
	if set.Replica != 0 || sameVersion(before, d.Hash) && before != d.Hash {
		return false
	}
	for i := range ocsv1.DefaultReplica {
		present := p.items[fmt.Sprintf("%s-%d", set.Name, i)]
		if present == nil || countOf(present) != int64(set.Count/ocsv1.DefaultReplica) {
			return false
		}
	}
	return true
}

func countOf(item map[string]any) int64 {
	count, _, _ := unstructured.NestedInt64(item, "count")
	return count
}

func nameOf(item map[string]any) string {
	name, _, _ := unstructured.NestedString(item, "name")
	return name
}

// Names under which Rook looks for resources in a CephCluster.
const (
	resourcesOSD     = "osd"
	resourcesPrepare = "prepareosd"
)

// typed returns items as far as the types know them, with the resources that Rook
// takes for those that have none: of their device class, and else of all OSDs.
func (p *planner) typed(items []map[string]any) ([]cephv1.StorageClassDeviceSet, error) {
	var parts []cephv1.StorageClassDeviceSet
	for _, item := range items {
		part := cephv1.StorageClassDeviceSet{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item, &part); err != nil {
			return nil, fmt.Errorf("reading StorageClassDeviceSet %s of the CephCluster: %w", nameOf(item), err)
		}
		if len(part.Resources.Requests) == 0 && len(part.Resources.Limits) == 0 {
			part.Resources = p.ceph.resources(resourcesOSD+"-"+deviceClassOf(&part), resourcesOSD)
		}
		parts = append(parts, part)
	}
	return parts, nil
}
