// Package controlplane knows what the services of an OpenStackControlPlane
// inherit from it. Admission and the controller share it.
package controlplane

import (
	"cmp"
	openstackv1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/glance"
)

// Glance returns the spec of the Glance: its template, with what the control
// plane says where the template says nothing. The template is not changed. The
// layout of each API is decided here, so that admission has nothing to add to an
// API that is removed later.
func Glance(plane openstackv1.OpenStackControlPlaneSpec) glancev1.GlanceSpec {
	spec := *plane.Glance.Template.DeepCopy()
	if spec.Secret == "" {
		spec.Secret = plane.Secret
	}
	if spec.Storage.StorageClass == "" {
		spec.Storage.StorageClass = plane.StorageClass
	}
	if spec.TopologyRef == nil {
		spec.TopologyRef = plane.TopologyRef
	}
	spec.NodeSelector = cmp.Or(spec.NodeSelector, plane.NodeSelector)
	glance.DecideLayouts(&spec)
	return spec
}

// Nova returns the spec of the Nova: its template, with what the control plane
// says where the template says nothing. The template is not changed.
func Nova(plane openstackv1.OpenStackControlPlaneSpec) novav1.NovaSpec {
	spec := *plane.Nova.Template.DeepCopy()
	if spec.Secret == "" {
		spec.Secret = plane.Secret
	}
	if spec.TopologyRef == nil {
		spec.TopologyRef = plane.TopologyRef
	}
	spec.NodeSelector = cmp.Or(spec.NodeSelector, plane.NodeSelector)
	return spec
}
