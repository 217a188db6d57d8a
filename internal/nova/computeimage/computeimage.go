// Package computeimage knows which image a compute on a host has, and who chose it: a person, the
// templates of its cell, an update of the cell or admission.
package computeimage

import (
	"cmp"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// FieldManager of the image in the spec of computes that follow.
const FieldManager = "edpm-nova-rollout"

// Of returns the image of nova-compute, as far as a compute says it.
func Of(compute *novav1.NovaExternalCompute) string {
	return cmp.Or(Named(compute, novav1.ComputeComponent, compute.Status.TemplateImage), compute.Status.Images[novav1.ComputeComponent])
}

// Named returns the image of a component that is named for a compute: in its spec by a person, by
// the templates of its cell, or in its spec by an update of the cell or as a default.
func Named(compute *novav1.NovaExternalCompute, component, template string) string {
	if template != "" && !IsChosen(compute, component) {
		return template
	}
	return imageInSpec(compute, component)
}

// OfTemplates returns the images that templates of a cell name for computes of the role, empty
// for none: the later one wins.
func OfTemplates(templates []novav1.NovaComputeTemplate, role string) novav1.NovaComputeImages {
	var all novav1.NovaComputeImages
	for _, t := range templates {
		if t.IsFor(role) {
			all.Compute, all.Libvirt = cmp.Or(t.Images.Compute, all.Compute), cmp.Or(t.Images.Libvirt, all.Libvirt)
		}
	}
	return all
}

// IsChosen reports whether a person or another program chose the image of a component in the spec.
func IsChosen(compute *novav1.NovaExternalCompute, component string) bool {
	return imageInSpec(compute, component) != "" && ChosenBy(compute.ManagedFields, component) != ""
}

func imageInSpec(compute *novav1.NovaExternalCompute, component string) string {
	if component == novav1.LibvirtComponent {
		return compute.Spec.NovaLibvirtContainerImage
	}
	return compute.Spec.NovaComputeContainerImage
}

// imageFields are the fields of the spec of a compute with its images, as managedFields name them.
var imageFields = map[string]string{novav1.ComputeComponent: "f:novaComputeContainerImage", novav1.LibvirtComponent: "f:novaLibvirtContainerImage"}

// ChosenBy returns who chose the image of a component in the spec of a compute; empty if it is
// the default that admission has set. The API server knows who set a field:
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
func ChosenBy(managers []metav1.ManagedFieldsEntry, component string) string {
	for _, entry := range managers {
		if entry.Manager != FieldManager && setsImage(entry, component) {
			return entry.Manager
		}
	}
	return ""
}

func setsImage(entry metav1.ManagedFieldsEntry, component string) bool {
	var fields struct {
		Spec map[string]json.RawMessage `json:"f:spec"`
	}
	return entry.FieldsV1 != nil && json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) == nil && fields.Spec[imageFields[component]] != nil
}

// Managers returns of those who manage fields of a compute the ones that chose its images: of
// the others nothing has to be held in memory.
func Managers(all []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	kept := slices.DeleteFunc(all, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == FieldManager || !setsImage(entry, novav1.ComputeComponent) && !setsImage(entry, novav1.LibvirtComponent)
	})
	if len(kept) == 0 {
		return nil
	}
	return kept
}
