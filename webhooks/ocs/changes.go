package ocs

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
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
			"was %v when the failure domain was decided to be %s, by which the data is placed: set it back, or make another storage cluster", before, decided))}
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
			"was %s, and is part of the names of the claims: Rook would make a second claim for each OSD; set it back, or add a device set", a)))
	}
	was, size := before.DataPVCTemplate.Spec.Resources.Requests.Storage(), set.DataPVCTemplate.Spec.Resources.Requests.Storage()
	if size.Cmp(*was) < 0 {
		errs = append(errs, field.Invalid(at.Child("spec", "resources", "requests").Key("storage"), size.String(), fmt.Sprintf(
			"was %s, and claims do not shrink: write at least that, or add a device set", was)))
	}
	return errs
}

// changeWarnings says what becomes of the OSDs that a change leaves out of the
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
		}
	}
	for _, set := range old.Spec.StorageDeviceSets {
		if find(c, set.Name) != nil {
			continue
		}
		if left := osd.Orphans(osd.Names(old.Spec.DeviceSetLayout, &set), nil, claims); len(left) > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: %s is gone, and its %d OSDs stay, with claims %s: Rook neither moves them to a set of another name nor removes them, "+
				"and no longer updates them; if the set was renamed, write %s again", at, set.Name, len(left), some(left), set.Name))
		}
	}
	return warnings
}

func countWarnings(at *field.Path, before, set ocsv1.StorageDeviceSet) []string {
	was, now := osd.Total(&before), osd.Total(&set)
	switch {
	case now < was:
		return []string{fmt.Sprintf("%s: %s had %d OSDs and would have %d: Rook removes none, so %d stay until they are taken out of Ceph and their claims are deleted",
			at.Child("count"), set.Name, was, now, was-now)}
	case (before.Replica == 0) != (set.Replica == 0) && now != was:
		return []string{fmt.Sprintf("%s: with replica, count is that of each of its sets, and without it that of all OSDs: %s had %d OSDs and gets %d",
			at.Child("replica"), set.Name, was, now)}
	}
	return nil
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
		"would orphan %d claims and their OSDs, %s: Rook would make new ones in their stead; write %s", len(left), some(left), osd.OtherLayout(layout)))}
}

// some names the first of many.
func some(names []string) string {
	const few = 5
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
