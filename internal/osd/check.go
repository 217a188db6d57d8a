package osd

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
)

// Check returns what makes it impossible to carry a spec out, as an error that names
// the field, the value and the remedy; nil if nothing does.
func Check(spec *ocsv1.StorageClusterSpec) error {
	if _, err := nodeSelector(spec.LabelSelector); err != nil {
		return err
	}
	if err := checkArbiter(spec); err != nil {
		return err
	}
	return checkNames(spec)
}

func checkArbiter(spec *ocsv1.StorageClusterSpec) error {
	switch {
	case !spec.Arbiter.Enable:
		return nil
	case spec.FlexibleScaling:
		return fmt.Errorf("spec.flexibleScaling: true makes each host a failure domain, but spec.arbiter.enable: true needs two zones: set one of them to false")
	case ArbiterZone(spec) == "":
		return fmt.Errorf("spec.nodeTopologies.arbiterLocation is empty: set it to the zone of the arbiter, a value of the label %s, or set spec.arbiter.enable to false", corev1.LabelTopologyZone)
	}
	return nil
}

// checkNames finds device sets whose StorageClassDeviceSets have the same name.
func checkNames(spec *ocsv1.StorageClusterSpec) error {
	owner := map[string]string{}
	for i := range spec.StorageDeviceSets {
		set := &spec.StorageDeviceSets[i]
		for _, name := range Names(spec.DeviceSetLayout, set) {
			if other, taken := owner[name]; taken {
				return fmt.Errorf("spec.storageDeviceSets[%d].name: %s results in a StorageClassDeviceSet %s, and so does %s: give one of them another name", i, set.Name, name, other)
			}
			owner[name] = set.Name
		}
	}
	return nil
}
