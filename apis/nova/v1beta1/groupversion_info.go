// Package v1beta1 is the API of the compute service: Nova, its cells and the computes that run on
// external data plane nodes.
//
// +kubebuilder:object:generate=true
// +groupName=nova.openstack.org
package v1beta1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

var (
	// GroupVersion of the kinds in this package.
	GroupVersion = schema.GroupVersion{Group: "nova.openstack.org", Version: "v1beta1"}

	// SchemeBuilder registers the kinds of this package.
	SchemeBuilder = &scheme.Builder{GroupVersion: GroupVersion}

	// AddToScheme adds the kinds of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)
