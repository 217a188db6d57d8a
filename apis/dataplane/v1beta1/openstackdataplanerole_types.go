package v1beta1

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// OldRoleFinalizer kept a role that referred to a Topology in versions up to 0.1.
const OldRoleFinalizer = "dataplane.openstack.org/role"

// OpenStackDataPlaneRoleStatus sums up the nodes of the role.
type OpenStackDataPlaneRoleStatus struct {
	// ObservedGeneration of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the role.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions condition.Conditions `json:"conditions,omitempty"`

	// Nodes of the role.
	// +optional
	Nodes int32 `json:"nodes,omitempty"`

	// ReadyNodes of the role.
	// +optional
	ReadyNodes int32 `json:"readyNodes,omitempty"`

	// NodesSummary is the number of ready nodes over all, for example 48/50.
	// +optional
	NodesSummary string `json:"nodesSummary,omitempty"`

	// InventoryConfigMapName is the ConfigMap whose key inventory is the
	// Ansible inventory of the nodes of the role: of all, or of the first of them
	// when there are InventoryParts. It is empty when the inventory is not
	// published because of its size.
	// +optional
	InventoryConfigMapName string `json:"inventoryConfigMapName,omitempty"`

	// InventoryParts is the number of ConfigMaps over which the inventory is
	// spread, if there is more than one. Part N is dataplaneroleN-<role>.
	// +optional
	InventoryParts int32 `json:"inventoryParts,omitempty"`

	// LastAppliedTopology is the Topology of the object's own topologyRef, which
	// cannot go while it is noted here.
	// +optional
	LastAppliedTopology *topologyv1.TopologyRef `json:"lastAppliedTopology,omitempty"`
}

// OpenStackDataPlaneRole is what a group of nodes has in common.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=edpm-operators"
// +kubebuilder:resource:shortName=osdprole;osdproles,categories=edpm
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Nodes",type=string,JSONPath=`.status.nodesSummary`
// +kubebuilder:printcolumn:name="DataPlane",type=string,JSONPath=`.spec.dataPlane`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OpenStackDataPlaneRole struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   OpenStackDataPlaneRoleSpec   `json:"spec,omitempty"`
	Status OpenStackDataPlaneRoleStatus `json:"status,omitempty"`
}

// OpenStackDataPlaneRoleList is a list of OpenStackDataPlaneRole.
//
// +kubebuilder:object:root=true
type OpenStackDataPlaneRoleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OpenStackDataPlaneRole `json:"items"`
}

// GetConditions returns the conditions, to be changed in place.
func (r *OpenStackDataPlaneRole) GetConditions() *condition.Conditions { return &r.Status.Conditions }

// SetObservedGeneration notes the generation that the status describes.
func (r *OpenStackDataPlaneRole) SetObservedGeneration(g int64) { r.Status.ObservedGeneration = g }

func init() {
	register(&OpenStackDataPlaneRole{}, &OpenStackDataPlaneRoleList{})
}
