// Package v1 has of Rook's API what this project writes: where the OSDs of a
// CephCluster go. Rook's own types would bring in its dependencies; fields and
// their names are those of rook/rook pkg/apis/ceph.rook.io/v1. Everything that
// is empty is omitted, so that server-side apply owns only what is written.
//
// +kubebuilder:object:generate=true
// +groupName=ceph.rook.io
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion of the kinds in this package.
	GroupVersion = schema.GroupVersion{Group: "ceph.rook.io", Version: "v1"}

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
