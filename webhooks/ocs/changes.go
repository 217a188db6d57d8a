package ocs

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	"github.com/edpm-operators/edpm-operators/internal/names"
	"github.com/edpm-operators/edpm-operators/internal/osd"
)

// changeErrors returns what cannot be changed of a stored storage cluster.
func changeErrors(old, c *ocsv1.StorageCluster) field.ErrorList {
	at := field.NewPath("spec")
	errs := domainFixed(at, old, c)
	for i, set := range c.Spec.StorageDeviceSets {
		if before := find(old, set.Name); before != nil {
			errs = append(errs, claimFixed(at.Child("storageDeviceSets").Index(i).Child("dataPVCTemplate"), *before, set)...)
		}
	}
	return errs
}

// domainFixed keeps what the failure domain was decided by: it stays, because the
// copies of the data are placed by it.
func domainFixed(at *field.Path, old, c *ocsv1.StorageCluster) field.ErrorList {
	decided := old.Status.FailureDomain
	if decided == "" {
		return nil
	}
	fixed := func(at *field.Path, before, after any) field.ErrorList {
		if before == after {
			return nil
		}
		return field.ErrorList{field.Invalid(at, after, fmt.Sprintf(
			"was %v when the failure domain was set to %s, by which the data is placed: restore the value, or create another StorageCluster", before, decided))}
	}
	errs := fixed(at.Child("flexibleScaling"), old.Spec.FlexibleScaling, c.Spec.FlexibleScaling)
	errs = append(errs, fixed(at.Child("arbiter", "enable"), old.Spec.Arbiter.Enable, c.Spec.Arbiter.Enable)...)
	if old.Spec.Arbiter.Enable && c.Spec.Arbiter.Enable {
		errs = append(errs, fixed(at.Child("nodeTopologies", "arbiterLocation"), location(old), location(c))...)
	}
	return errs
}

func location(c *ocsv1.StorageCluster) string {
	if c.Spec.NodeTopologies == nil {
		return ""
	}
	return c.Spec.NodeTopologies.ArbiterLocation
}

// claimFixed keeps the names of the claims, which are the identity of the OSDs,
// and their size: claims do not shrink.
func claimFixed(at *field.Path, before, set ocsv1.StorageDeviceSet) field.ErrorList {
	var errs field.ErrorList
	if a, b := templateName(before), templateName(set); a != b {
		errs = append(errs, field.Invalid(at.Child("metadata", "name"), b, fmt.Sprintf(
			"was %s, and is part of the names of the claims: Rook would create a second claim for each OSD; restore the value, or add a device set", a)))
	}
	was, size := before.DataPVCTemplate.Spec.Resources.Requests.Storage(), set.DataPVCTemplate.Spec.Resources.Requests.Storage()
	if size.Cmp(*was) < 0 {
		errs = append(errs, field.Invalid(at.Child("spec", "resources", "requests").Key("storage"), size.String(), fmt.Sprintf(
			"was %s, and claims cannot shrink: set at least that size, or add a device set", was)))
	}
	return errs
}

// osdErrors refuses what OSDs that there are cannot follow, or what would move them:
// their device set leaves the spec, or gets another encryption or placement.
func osdErrors(old, c *ocsv1.StorageCluster, claims []*corev1.PersistentVolumeClaim) field.ErrorList {
	if old == nil || old.Spec.DeviceSetLayout != c.Spec.DeviceSetLayout {
		return nil // layoutErrors has looked at all names
	}
	var errs field.ErrorList
	for i := range old.Spec.StorageDeviceSets {
		errs = append(errs, orphanErrors(old, c, &old.Spec.StorageDeviceSets[i], claims)...)
	}
	errs = append(errs, legacyErrors(old, c, claims)...)
	return append(errs, encryptionErrors(old, c, claims)...)
}

// orphanErrors keeps the StorageClassDeviceSets of a stored device set that have OSDs,
// unless the annotation names them.
func orphanErrors(old, c *ocsv1.StorageCluster, set *ocsv1.StorageDeviceSet, claims []*corev1.PersistentVolumeClaim) field.ErrorList {
	after := osd.AllNames(c.Spec.DeviceSetLayout, c.Spec.StorageDeviceSets)
	lost := slices.DeleteFunc(osd.Unnamed(c, namesOf(old, set)), func(name string) bool {
		return slices.Contains(after, name) || len(osd.Orphans([]string{name}, nil, claims)) == 0
	})
	if len(lost) == 0 {
		return nil
	}
	orphans := osd.Orphans(lost, nil, claims)
	const consequence = "which removes StorageClassDeviceSets %s with %d OSDs that Rook would no longer manage (claims %s): %s, or annotate the StorageCluster with %s=%s"
	text := func(remedy string) string {
		return fmt.Sprintf(consequence, strings.Join(lost, ", "), len(orphans), names.List(orphans, names.Few), remedy, ocsv1.OrphanAnnotation, strings.Join(lost, ","))
	}
	at := field.NewPath("spec", "storageDeviceSets")
	if i := slices.IndexFunc(c.Spec.StorageDeviceSets, func(s ocsv1.StorageDeviceSet) bool { return s.Name == set.Name }); i >= 0 {
		return field.ErrorList{field.Invalid(at.Index(i).Child("replica"), c.Spec.StorageDeviceSets[i].Replica, fmt.Sprintf(
			"was %d, %s", set.Replica, text(fmt.Sprintf("restore %d", set.Replica))))}
	}
	return field.ErrorList{field.Invalid(at, allNames(c), fmt.Sprintf("no longer has %s, %s", set.Name, text("restore "+set.Name)))}
}

// namesOf returns the StorageClassDeviceSets of a stored device set: those of the spec
// and those that were written.
func namesOf(c *ocsv1.StorageCluster, set *ocsv1.StorageDeviceSet) []string {
	names := sets.New(osd.Names(c.Spec.DeviceSetLayout, set)...)
	for _, status := range c.Status.DeviceSets {
		if status.Name == set.Name {
			names.Insert(status.StorageClassDeviceSets...)
		}
	}
	return sets.List(names)
}

func allNames(c *ocsv1.StorageCluster) []string {
	names := []string{}
	for i := range c.Spec.StorageDeviceSets {
		names = append(names, c.Spec.StorageDeviceSets[i].Name)
	}
	return names
}

// encryptionErrors keeps the encryption of device sets that have OSDs.
func encryptionErrors(old, c *ocsv1.StorageCluster, claims []*corev1.PersistentVolumeClaim) field.ErrorList {
	var errs field.ErrorList
	for i := range c.Spec.StorageDeviceSets {
		set := &c.Spec.StorageDeviceSets[i]
		before := find(old, set.Name)
		if before == nil || len(osd.Orphans(namesOf(old, before), nil, claims)) == 0 {
			continue
		}
		was, is := osd.Encrypted(&old.Spec, before), osd.Encrypted(&c.Spec, set)
		if was != nil && is != nil && *was != *is {
			errs = append(errs, field.Invalid(field.NewPath("spec", "storageDeviceSets").Index(i).Child("encrypted"), *is, fmt.Sprintf(
				"was %v when the OSDs of %s were created, and cannot change: set %v, or add a device set", *was, set.Name, *was)))
		}
	}
	return errs
}

// changeWarnings says what happens to the OSDs that a change removes from the
// spec: nothing, for Rook takes none away.
func changeWarnings(old, c *ocsv1.StorageCluster, claims []*corev1.PersistentVolumeClaim) []string {
	if old == nil {
		return nil
	}
	at := field.NewPath("spec", "storageDeviceSets")
	var warnings []string
	for i, set := range c.Spec.StorageDeviceSets {
		if before := find(old, set.Name); before != nil {
			warnings = append(warnings, countWarnings(at.Index(i), *before, set)...)
			warnings = append(warnings, surplusWarnings(at.Index(i), c, *before, set, claims)...)
		}
	}
	for _, set := range old.Spec.StorageDeviceSets {
		if find(c, set.Name) != nil {
			continue
		}
		if left := osd.Orphans(osd.Names(old.Spec.DeviceSetLayout, &set), nil, claims); len(left) > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: %s is removed, as the annotation %s allows, and its %d OSDs stay, with claims %s: Rook neither moves them to a set of another name nor removes them, "+
				"and no longer updates them; if you renamed the set, restore the name %s", at, set.Name, ocsv1.OrphanAnnotation, len(left), names.List(left, names.Few), set.Name))
		}
	}
	return warnings
}

func countWarnings(at *field.Path, before, set ocsv1.StorageDeviceSet) []string {
	was, now := osd.Total(&before), osd.Total(&set)
	switch {
	case now < was:
		return []string{fmt.Sprintf("%s: %s had %d OSDs and would have %d: Rook does not remove OSDs, so %d stay until they are removed from Ceph and their claims are deleted",
			at.Child("count"), set.Name, was, now, was-now)}
	case (before.Replica == 0) != (set.Replica == 0) && now != was:
		return []string{fmt.Sprintf("%s: with replica, count is that of each of its sets, and without it that of all OSDs: %s had %d OSDs and gets %d",
			at.Child("replica"), set.Name, was, now)}
	}
	return nil
}

// surplusWarnings reports OSDs that are more than the spec asks for: those of a
// StorageClassDeviceSet with a lower count stay, while others get more.
func surplusWarnings(at *field.Path, c *ocsv1.StorageCluster, before, set ocsv1.StorageDeviceSet, claims []*corev1.PersistentVolumeClaim) []string {
	total := osd.Total(&set)
	if before.Count == set.Count && before.Replica == set.Replica || total < osd.Total(&before) {
		return nil // countWarnings has reported fewer
	}
	left := osd.Remaining(c.Spec.DeviceSetLayout, &set, claims)
	if left <= total {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s asks for %d OSDs and would have %d: Rook does not remove OSDs of a StorageClassDeviceSet whose count is lower, and creates those of the others; "+
		"restore replica %d, and change count only", at.Child("replica"), set.Name, total, left, before.Replica)}
}

// legacyErrors keeps a device set with OSDs that was found in the CephCluster as it
// was found, but for the number of its OSDs, unless the annotation names it.
func legacyErrors(old, c *ocsv1.StorageCluster, claims []*corev1.PersistentVolumeClaim) field.ErrorList {
	var errs field.ErrorList
	for i := range c.Spec.StorageDeviceSets {
		set := &c.Spec.StorageDeviceSets[i]
		before := find(old, set.Name)
		if before == nil || !legacyChanges(old, before, set) || slices.Contains(osd.Replaced(c), set.Name) || len(osd.Orphans(namesOf(old, before), nil, claims)) == 0 {
			continue
		}
		errs = append(errs, field.Forbidden(field.NewPath("spec", "storageDeviceSets").Index(i), osd.LegacyConsequence(set.Name)))
	}
	return errs
}

// legacyChanges reports whether a Legacy set is changed in more than its count. It may
// be written again as it was found.
func legacyChanges(old *ocsv1.StorageCluster, before, set *ocsv1.StorageDeviceSet) bool {
	at := slices.IndexFunc(old.Status.DeviceSets, func(s ocsv1.DeviceSetStatus) bool {
		return s.Name == set.Name && s.Placement == ocsv1.PlacementLegacy
	})
	was, err := osd.Hash(before)
	is, failed := osd.Hash(set)
	return at >= 0 && err == nil && failed == nil && !osd.SameButCount(was, is) && !osd.SameButCount(old.Status.DeviceSets[at].Hash, is)
}

// layoutErrors is the dry run of a switch of the layout: Rook knows OSDs by the
// names of their sets, and another layout has others.
func layoutErrors(old, c *ocsv1.StorageCluster, claims []*corev1.PersistentVolumeClaim) field.ErrorList {
	layout := c.Spec.DeviceSetLayout
	if old != nil && old.Spec.DeviceSetLayout == layout {
		return nil
	}
	left := osd.OrphansOfLayout(&c.Spec, claims)
	if old != nil { // sets that were renamed at the same time
		renamed := osd.Orphans(osd.AllNames(old.Spec.DeviceSetLayout, old.Spec.StorageDeviceSets), osd.AllNames(layout, c.Spec.StorageDeviceSets), claims)
		left = sets.List(sets.New(left...).Insert(renamed...))
	}
	if len(left) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "deviceSetLayout"), layout, fmt.Sprintf(
		"would orphan %d claims and their OSDs, %s: Rook would create new ones instead; set %s", len(left), names.List(left, names.Few), osd.OtherLayout(layout)))}
}
