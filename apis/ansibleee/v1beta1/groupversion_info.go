// Package v1beta1 is the API of the Ansible execution environment: one object,
// OpenStackAnsibleEE, is one run of ansible-runner in a Job.
//
// +kubebuilder:object:generate=true
// +groupName=ansibleee.openstack.org
package v1beta1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

var (
	// GroupVersion of the kinds in this package.
	GroupVersion = schema.GroupVersion{Group: "ansibleee.openstack.org", Version: "v1beta1"}

	// SchemeBuilder registers the kinds of this package.
	SchemeBuilder = &scheme.Builder{GroupVersion: GroupVersion}

	// AddToScheme adds the kinds of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)
