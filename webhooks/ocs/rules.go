package ocs

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	"github.com/edpm-operators/edpm-operators/internal/osd"
	"github.com/edpm-operators/edpm-operators/internal/validate"
	"github.com/edpm-operators/edpm-operators/webhooks/topology"
)

// clusterErrors returns what is wrong with a storage cluster on its own.
func clusterErrors(c *ocsv1.StorageCluster) field.ErrorList {
	spec, at := c.Spec, field.NewPath("spec")
	errs := cephName(c.Name)
	errs = append(errs, arbiter(at, spec)...)
	errs = append(errs, topology.Selector(at.Child("labelSelector"), spec.LabelSelector)...)
	for _, key := range slices.Sorted(maps.Keys(spec.Placement)) {
		errs = append(errs, placement(at.Child("placement").Key(key), spec.Placement[key])...)
	}
	for i, set := range spec.StorageDeviceSets {
		errs = append(errs, deviceSet(at.Child("storageDeviceSets").Index(i), set)...)
	}
	return errs
}

// cephName checks that the CephCluster can have its name.
func cephName(name string) field.ErrorList {
	over := len(osd.CephClusterName(name)) - validation.DNS1123SubdomainMaxLength
	if over <= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), name, fmt.Sprintf(
		"must be no more than %d characters: it becomes part of the name of the CephCluster", len(name)-over))}
}

// arbiter checks what a stretched cluster needs (ocs-operator, validateArbiterSpec).
func arbiter(at *field.Path, spec ocsv1.StorageClusterSpec) field.ErrorList {
	if !spec.Arbiter.Enable {
		return nil
	}
	var errs field.ErrorList
	if spec.FlexibleScaling {
		errs = append(errs, field.Invalid(at.Child("flexibleScaling"), true,
			"makes each host a failure domain, and an arbiter decides between two zones: set it to false, or arbiter.enable to false"))
	}
	if spec.NodeTopologies == nil || spec.NodeTopologies.ArbiterLocation == "" {
		errs = append(errs, field.Required(at.Child("nodeTopologies", "arbiterLocation"),
			"arbiter.enable is true: set this field to the zone of the arbiter, a value of the label "+corev1.LabelTopologyZone+", or set arbiter.enable to false"))
	}
	return errs
}

func deviceSet(at *field.Path, set ocsv1.StorageDeviceSet) field.ErrorList {
	errs := validate.Label(at.Child("name"), set.Name)
	errs = append(errs, claimNames(at, set)...)
	if set.TopologyKey != "" {
		errs = append(errs, topology.Key(at.Child("topologyKey"), set.TopologyKey)...)
	}
	if len(validation.IsValidLabelValue(set.DeviceClass)) > 0 {
		errs = append(errs, field.Invalid(at.Child("deviceClass"), set.DeviceClass,
			`becomes a label of pods and is not a valid label value: use at most 63 letters, digits, "-", "_" and ".", beginning and ending with a letter or digit, for example ssd`))
	}
	errs = append(errs, placement(at.Child("placement"), set.Placement)...)
	if set.PreparePlacement != nil {
		errs = append(errs, placement(at.Child("preparePlacement"), *set.PreparePlacement)...)
	}
	return append(errs, dataClaim(at.Child("dataPVCTemplate"), set.DataPVCTemplate)...)
}

// randomSuffix is how much the API server adds to a generated name.
const randomSuffix = 5

// claimNames checks that the name of each claim fits into a label of its pods, as
// Rook puts it there: <name>-<set>-<template>-<index> and a random suffix. An
// index has a digit to spare, for OSDs that replace others.
func claimNames(at *field.Path, set ocsv1.StorageDeviceSet) field.ErrorList {
	names := osd.Names(ocsv1.LayoutSplit, &set)
	longest := fmt.Sprintf("%s-%s-%d", names[len(names)-1], templateName(set), 10*set.Count)
	over := len(longest) + randomSuffix - validation.LabelValueMaxLength
	if over <= 0 {
		return nil
	}
	problem := fmt.Sprintf("%d characters are too many: claims of its OSDs are named like %s and %d characters more, and a label of their pods holds %d; shorten it to %d",
		len(set.Name), longest, randomSuffix, validation.LabelValueMaxLength, len(set.Name)-over)
	if over >= len(set.Name) {
		problem += ", or dataPVCTemplate.metadata.name too"
	}
	return field.ErrorList{field.Invalid(at.Child("name"), set.Name, problem)}
}

// templateName is the part of the names of claims that the template gives.
func templateName(set ocsv1.StorageDeviceSet) string {
	if name := set.DataPVCTemplate.Name; name != "" {
		return name
	}
	return cephv1.DataTemplate
}

// dataClaim checks the template of the claims as the API server and Rook would,
// which no one would see.
func dataClaim(at *field.Path, claim corev1.PersistentVolumeClaim) field.ErrorList {
	spec, in := claim.Spec, at.Child("spec")
	errs := validate.Label(at.Child("metadata", "name"), claim.Name)
	errs = append(errs, request(in.Child("resources", "requests").Key("storage"), spec.Resources)...)
	errs = append(errs, accessModes(in.Child("accessModes"), spec.AccessModes)...)
	const block = "OSDs need raw devices: set Block"
	switch {
	case spec.VolumeMode == nil:
		errs = append(errs, field.Required(in.Child("volumeMode"), "without it, volumes are formatted with a file system: "+block))
	case *spec.VolumeMode != corev1.PersistentVolumeBlock:
		errs = append(errs, field.Invalid(in.Child("volumeMode"), *spec.VolumeMode, block))
	}
	if spec.StorageClassName != nil {
		errs = append(errs, validate.ObjectName(in.Child("storageClassName"), *spec.StorageClassName)...)
	}
	if spec.VolumeName != "" {
		errs = append(errs, field.Invalid(in.Child("volumeName"), spec.VolumeName, "is one volume, but each OSD has its own claim: remove it, and choose volumes by storageClassName or selector"))
	}
	return append(errs, topology.Selector(in.Child("selector"), spec.Selector)...)
}

func request(at *field.Path, resources corev1.VolumeResourceRequirements) field.ErrorList {
	size, ok := resources.Requests[corev1.ResourceStorage]
	if !ok {
		return field.ErrorList{field.Required(at, "set the size of the device of each OSD, for example 512Gi")}
	}
	if size.Sign() <= 0 {
		return field.ErrorList{field.Invalid(at, size.String(), "is not a valid size: set a quantity larger than 0, for example 512Gi")}
	}
	return nil
}

func accessModes(at *field.Path, modes []corev1.PersistentVolumeAccessMode) field.ErrorList {
	if len(modes) == 0 {
		return field.ErrorList{field.Required(at, "a claim needs at least one: set ReadWriteOnce")}
	}
	var errs field.ErrorList
	for i, mode := range modes {
		errs = append(errs, oneOf(at.Index(i), mode, corev1.ReadWriteOnce, corev1.ReadWriteMany, corev1.ReadWriteOncePod)...)
	}
	return errs
}

// oneOf checks a value of an enumeration.
func oneOf[T ~string](at *field.Path, value T, supported ...T) field.ErrorList {
	if slices.Contains(supported, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at, value, supported)}
}

// placement checks what ends up in pods, where only Rook would see the mistake.
func placement(at *field.Path, p cephv1.Placement) field.ErrorList {
	errs := topology.Affinity(at, &corev1.Affinity{NodeAffinity: p.NodeAffinity, PodAffinity: p.PodAffinity, PodAntiAffinity: p.PodAntiAffinity})
	for i, t := range p.Tolerations {
		errs = append(errs, toleration(at.Child("tolerations").Index(i), t)...)
	}
	for i, c := range p.TopologySpreadConstraints {
		item := at.Child("topologySpreadConstraints").Index(i)
		errs = append(errs, constraint(item, c)...)
		errs = append(errs, topology.Constraint(item, c)...)
	}
	return errs
}

// constraint checks the fields that a Topology has in its schema.
func constraint(at *field.Path, c corev1.TopologySpreadConstraint) field.ErrorList {
	var errs field.ErrorList
	if c.MaxSkew < 1 {
		errs = append(errs, field.Invalid(at.Child("maxSkew"), c.MaxSkew, "is less than 1, but OSDs cannot always be spread evenly: set a number from 1"))
	}
	errs = append(errs, oneOf(at.Child("whenUnsatisfiable"), c.WhenUnsatisfiable, corev1.DoNotSchedule, corev1.ScheduleAnyway)...)
	if n := c.MinDomains; n != nil && (*n < 1 || c.WhenUnsatisfiable == corev1.ScheduleAnyway) {
		errs = append(errs, field.Invalid(at.Child("minDomains"), *n, "has to be at least 1 and requires whenUnsatisfiable: DoNotSchedule: correct these fields, or remove minDomains"))
	}
	for _, p := range []struct {
		name  string
		value *corev1.NodeInclusionPolicy
	}{{"nodeAffinityPolicy", c.NodeAffinityPolicy}, {"nodeTaintsPolicy", c.NodeTaintsPolicy}} {
		if p.value != nil {
			errs = append(errs, oneOf(at.Child(p.name), *p.value, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)...)
		}
	}
	return errs
}

func toleration(at *field.Path, t corev1.Toleration) field.ErrorList {
	errs := oneOf(at.Child("operator"), t.Operator, "", corev1.TolerationOpEqual, corev1.TolerationOpExists)
	errs = append(errs, oneOf(at.Child("effect"), t.Effect, "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
	switch {
	case t.Key == "" && t.Operator != corev1.TolerationOpExists:
		errs = append(errs, field.Required(at.Child("key"), "set the key of the taint, or tolerate all taints with operator Exists"))
	case t.Operator == corev1.TolerationOpExists && t.Value != "":
		errs = append(errs, field.Invalid(at.Child("value"), t.Value, "operator Exists does not allow a value: remove the value, or use operator Equal"))
	}
	return errs
}
