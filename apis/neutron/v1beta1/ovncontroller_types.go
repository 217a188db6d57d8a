package v1beta1

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OVNControllerFinalizer keeps an OVNController until ovn-controller is off the host.
const OVNControllerFinalizer = "neutron.openstack.org/ovncontroller"

// OVNController is ovn-controller on a host outside Kubernetes: it connects the Open
// vSwitch of the host to the networks of OVN. Its name is that of the node.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=edpm-operators"
// +kubebuilder:resource:shortName=ovnctl,categories=edpm
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="OVN",type=string,JSONPath=`.spec.ovnConfigSecretName`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == self.spec.dataplaneNodeName",message="metadata.name must be the same as spec.dataplaneNodeName: a node has one OVNController, named like the node"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.customServiceConfig) || size(self.spec.customServiceConfig) == 0",message="spec.customServiceConfig must be empty: ovn-controller reads no oslo.config; set that of the metadata agent in the OVNMetadataAgent of the node, and settings of Open vSwitch in ansibleVars of the node"
type OVNController struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	OVNService        `json:",inline"`
}

// OVNControllerList is a list of OVNController.
//
// +kubebuilder:object:root=true
type OVNControllerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OVNController `json:"items"`
}

// IsReady reports whether ovn-controller runs on the host as the spec says, and is to stay.
func (o *OVNController) IsReady() bool {
	return o.DeletionTimestamp.IsZero() && o.Status.ObservedGeneration == o.Generation && o.Status.Conditions.IsTrue(condition.ReadyCondition)
}

func init() { register(&OVNController{}, &OVNControllerList{}) }
