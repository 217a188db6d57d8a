package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OpenStackDataPlaneServiceSpec is one step of phase 0.
//
// +kubebuilder:validation:XValidation:rule="has(self.playbook) != has(self.play)",message="set exactly one of playbook (the name of a playbook of the image) and play (the text of a playbook)"
type OpenStackDataPlaneServiceSpec struct {
	// Label is a short description for people.
	// +optional
	Label string `json:"label,omitempty"`

	// Play is the text of a playbook: a YAML list of plays.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Play string `json:"play,omitempty"`

	// Playbook of the image: a fully qualified name such as
	// edpm.operators.install_os, or a path under /runner/project.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Playbook string `json:"playbook,omitempty"`

	// ConfigMaps whose entries are put on the runner; ansible finds their paths
	// in the variable edpm_config_files, by key.
	// +optional
	// +listType=atomic
	ConfigMaps []string `json:"configMaps,omitempty"`

	// Secrets whose entries are put on the runner, as those of configMaps are.
	// +optional
	// +listType=atomic
	Secrets []string `json:"secrets,omitempty"`

	// OpenStackAnsibleEERunnerImage is the execution environment of this
	// service; by default that of the operator.
	// +optional
	OpenStackAnsibleEERunnerImage string `json:"openStackAnsibleEERunnerImage,omitempty"`

	// TaskTimeoutSeconds is how long one task of the playbook may take on a host; then
	// it fails there. A task that sets timeout itself keeps that. 600 by default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=7200
	TaskTimeoutSeconds *int32 `json:"taskTimeoutSeconds,omitempty"`
}

// OpenStackDataPlaneService is one step of phase 0 that roles name in
// spec.services. The five default services are built in; an object of the same
// name replaces the built-in one in its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=edpm-operators"
// +kubebuilder:resource:shortName=osdpservice;osdpservices,categories=edpm
// +kubebuilder:printcolumn:name="Playbook",type=string,JSONPath=`.spec.playbook`
// +kubebuilder:printcolumn:name="Label",type=string,JSONPath=`.spec.label`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OpenStackDataPlaneService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec OpenStackDataPlaneServiceSpec `json:"spec"`
}

// OpenStackDataPlaneServiceList is a list of OpenStackDataPlaneService.
//
// +kubebuilder:object:root=true
type OpenStackDataPlaneServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OpenStackDataPlaneService `json:"items"`
}

func init() {
	register(&OpenStackDataPlaneService{}, &OpenStackDataPlaneServiceList{})
}
