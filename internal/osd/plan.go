package osd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
)

// DeviceSet is a device set of the spec and what becomes of it.
type DeviceSet struct {
	// Name of the device set, and Hash of what the spec says of it.
	Name, Hash string
	// Key is the label of nodes whose values its OSDs are spread over.
	Key string
	// Placement tells whether the StorageClassDeviceSets are left as they are.
	Placement ocsv1.DeviceSetPlacement
	// Parts are its StorageClassDeviceSets in the CephCluster.
	Parts []cephv1.StorageClassDeviceSet
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

// Plan returns what becomes of each device set of the spec, given the key of the
// failure domain, what the CephCluster has, and what the status said before.
//
// A set that the CephCluster has already, and whose daemons are placed in another way,
// is Legacy: it stays as it is, to the letter, until the spec says something else of
// it than when it was found. Another placement would change the pods of all its OSDs
// at once, and nobody asked for that (seeds/003, phase 1: "existing OSD Pods would
// still remain with the old Placement configurations").
func Plan(spec *ocsv1.StorageClusterSpec, domainKey string, existing []cephv1.StorageClassDeviceSet, before []ocsv1.DeviceSetStatus) ([]DeviceSet, error) {
	var plan []DeviceSet
	for i := range spec.StorageDeviceSets {
		set := &spec.StorageDeviceSets[i]
		hash, err := Hash(set)
		if err != nil {
			return nil, err
		}
		wanted := deviceSets(spec, set, domainKey)
		d := DeviceSet{Name: set.Name, Hash: hash, Key: TopologyKey(set, domainKey), Placement: ocsv1.PlacementConstraints, Parts: wanted}
		if old := named(existing, d.Names()); isLegacy(old, wanted) && untouched(&d, before) {
			d.Placement, d.Parts = ocsv1.PlacementLegacy, old
		}
		plan = append(plan, d)
	}
	return plan, nil
}

// Hash returns a hash of what the spec says of a device set.
func Hash(set *ocsv1.StorageDeviceSet) (string, error) {
	text, err := json.Marshal(set)
	if err != nil {
		return "", fmt.Errorf("hashing device set %s: %w", set.Name, err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

func named(sets []cephv1.StorageClassDeviceSet, names []string) []cephv1.StorageClassDeviceSet {
	var found []cephv1.StorageClassDeviceSet
	for i := range sets {
		if slices.Contains(names, sets[i].Name) {
			found = append(found, sets[i])
		}
	}
	return found
}

// isLegacy tells whether there are sets, and daemons of one are placed otherwise than
// is wanted. What is said of prepare Jobs does not matter to OSDs that there are.
func isLegacy(present, wanted []cephv1.StorageClassDeviceSet) bool {
	return slices.ContainsFunc(present, func(p cephv1.StorageClassDeviceSet) bool {
		return !equality.Semantic.DeepEqual(p.Placement, wanted[0].Placement)
	})
}

// untouched tells whether the set is new to the status, or was Legacy there and has
// not changed since.
func untouched(d *DeviceSet, before []ocsv1.DeviceSetStatus) bool {
	at := slices.IndexFunc(before, func(s ocsv1.DeviceSetStatus) bool { return s.Name == d.Name })
	return at < 0 || before[at].Placement == ocsv1.PlacementLegacy && before[at].Hash == d.Hash
}
