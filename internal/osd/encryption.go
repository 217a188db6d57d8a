package osd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
)

// Problem keeps the CephCluster from being written: what is wrong, and what to do.
type Problem struct {
	Reason  condition.Reason
	Message string
}

// Encrypted returns whether the devices of a set are to be encrypted, nil if the spec
// does not say (ocs-operator, isDeviceSetToBeEncrypted, which takes that for no).
func Encrypted(spec *ocsv1.StorageClusterSpec, set *ocsv1.StorageDeviceSet) *bool {
	if set.Encrypted == nil && (spec.Encryption.Enable || spec.Encryption.ClusterWide) {
		return ptr.To(true)
	}
	return set.Encrypted
}

// encryption returns what is wrong with the encryption of the sets: Ceph data that is
// written to a plain device stays readable, and an OSD cannot change.
func (p *planner) encryption(d *Decision) []Problem {
	var problems []Problem
	present := encryptedOf(p.ceph.Sets)
	for i := range d.DeviceSets {
		wanted := Encrypted(p.spec, &p.spec.StorageDeviceSets[i])
		field := fmt.Sprintf("spec.storageDeviceSets[%d].encrypted", i)
		for _, item := range d.DeviceSets[i].items {
			name, encrypted := nameOf(item), isEncrypted(item)
			switch {
			case wanted != nil && encrypted != *wanted:
				problems = append(problems, Problem{ocsv1.EncryptionDiffersReason, fmt.Sprintf(
					"%s is %v, and StorageClassDeviceSet %s of the CephCluster has %v. Set it to %v, or add another device set", field, *wanted, name, encrypted, encrypted)})
			case wanted == nil && !encrypted && p.items[name] == nil && len(present) > 0:
				problems = append(problems, Problem{ocsv1.EncryptionUnsetReason, fmt.Sprintf(
					"%s is not set, and the CephCluster has encrypted device sets (%s): %s would be unencrypted. Set it to true or false", field, strings.Join(present, ", "), name)})
			}
		}
	}
	return problems
}

func encryptedOf(items []any) []string {
	var names []string
	for _, item := range items {
		if set, _ := item.(map[string]any); isEncrypted(set) {
			names = append(names, nameOf(set))
		}
	}
	slices.Sort(names)
	return names
}

func isEncrypted(item map[string]any) bool {
	encrypted, _, _ := unstructured.NestedBool(item, "encrypted")
	return encrypted
}
