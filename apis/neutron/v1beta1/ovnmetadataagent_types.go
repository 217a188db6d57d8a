package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OVNMetadataAgentFinalizer keeps an OVNMetadataAgent until the agent is off the host.
const OVNMetadataAgentFinalizer = "neutron.openstack.org/ovnmetadataagent"

// MetadataStep is the step that brings the agent to a host.
const MetadataStep = "ovn-metadata"

// OVNMetadataAgent is neutron-ovn-metadata-agent on a host outside Kubernetes: guests
// reach the metadata service of nova through it. Its name is that of the node.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=edpm-operators"
// +kubebuilder:resource:shortName=ovnmeta,categories=edpm
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="OVN",type=string,JSONPath=`.spec.ovnConfigSecretName`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == self.spec.dataplaneNodeName",message="metadata.name must be the same as spec.dataplaneNodeName: a node has one OVNMetadataAgent, named like the node"
type OVNMetadataAgent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	OVNService        `json:",inline"`
}

// OVNMetadataAgentList is a list of OVNMetadataAgent.
//
// +kubebuilder:object:root=true
type OVNMetadataAgentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OVNMetadataAgent `json:"items"`
}

func init() { register(&OVNMetadataAgent{}, &OVNMetadataAgentList{}) }
