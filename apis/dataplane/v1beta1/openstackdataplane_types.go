package v1beta1

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OpenStackDataPlaneSpec describes whole roles and nodes, by name.
type OpenStackDataPlaneSpec struct {
	// Roles to create, by name.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Roles map[string]OpenStackDataPlaneRoleSpec `json:"roles,omitempty"`

	// Nodes to create, by name.
	// +optional
	// +kubebuilder:validation:MaxProperties=1024
	Nodes map[string]OpenStackDataPlaneNodeSpec `json:"nodes,omitempty"`

	// DeployStrategy : with deploy false nothing runs on any node of the data
	// plane, whatever its role and itself say. The other fields are defaults
	// for roles that do not set them.
	// +optional
	DeployStrategy DeployStrategySection `json:"deployStrategy,omitempty,omitzero"`
}

// OpenStackDataPlaneStatus sums up the roles and nodes of the data plane.
type OpenStackDataPlaneStatus struct {
	// ObservedGeneration of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the data plane.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions condition.Conditions `json:"conditions,omitempty"`

	// NodesSummary is the number of ready nodes over all, for example 48/50.
	// +optional
	NodesSummary string `json:"nodesSummary,omitempty"`
}

// OpenStackDataPlane creates roles and nodes from one object.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=edpm-operators"
// +kubebuilder:resource:shortName=osdp;osdps;osdataplane;osdataplanes,categories=edpm
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Nodes",type=string,JSONPath=`.status.nodesSummary`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OpenStackDataPlane struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   OpenStackDataPlaneSpec   `json:"spec,omitempty"`
	Status OpenStackDataPlaneStatus `json:"status,omitempty"`
}

// OpenStackDataPlaneList is a list of OpenStackDataPlane.
//
// +kubebuilder:object:root=true
type OpenStackDataPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OpenStackDataPlane `json:"items"`
}

// GetConditions returns the conditions, to be changed in place.
func (d *OpenStackDataPlane) GetConditions() *condition.Conditions { return &d.Status.Conditions }

// SetObservedGeneration notes the generation that the status describes.
func (d *OpenStackDataPlane) SetObservedGeneration(g int64) { d.Status.ObservedGeneration = g }

func init() {
	register(&OpenStackDataPlane{}, &OpenStackDataPlaneList{})
}
