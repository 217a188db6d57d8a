// Package v1alpha1 has of Metal3's API what this project reads of a
// BareMetalHost, and what it writes to one that a node has claimed. The module
// github.com/metal3-io/baremetal-operator/apis has the webhooks of the kind in the
// package of its types, and its module hardwareutils by a replacement that only its
// own repository can follow. Fields and their names are those of
// baremetal-operator/apis v0.9.0. Objects are only ever patched, so that what is
// not here stays.
//
// +kubebuilder:object:generate=true
// +groupName=metal3.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion of the kinds in this package.
	GroupVersion = schema.GroupVersion{Group: "metal3.io", Version: "v1alpha1"}

	// SchemeBuilder registers the kinds of this package.
	SchemeBuilder = runtime.NewSchemeBuilder()

	// AddToScheme adds the kinds of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func register(objects ...runtime.Object) {
	SchemeBuilder.Register(func(s *runtime.Scheme) error {
		s.AddKnownTypes(GroupVersion, objects...)
		metav1.AddToGroupVersion(s, GroupVersion)
		return nil
	})
}
