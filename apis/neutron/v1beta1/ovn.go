package v1beta1

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/apis/common/hosted"
)

// OVNAnnotation on an OpenStackDataPlaneNode, or on its role, gives the node
// ovn-controller and the metadata agent. Its value is the name of a Secret in the same
// namespace, the OVN configuration.
const OVNAnnotation = "neutron.openstack.org/ovn"

// Keys of the OVN configuration.
const (
	// SouthboundKey has the remotes of OVN's south bound database, separated by commas:
	// each tcp:<IP>:<port> or ssl:<IP>:<port>, IPv6 addresses in brackets. Required.
	SouthboundKey = "southbound"
	// TLSSecretKey names a Secret with tls.crt, tls.key and ca.crt for connections to
	// the south bound database. Required if a remote begins with ssl:, else not used.
	TLSSecretKey = "tls-secret"
	// MetadataSharedSecretKey has metadata_proxy_shared_secret of nova. This and the
	// next key are required by the metadata agent.
	MetadataSharedSecretKey = "metadata-shared-secret"
	// NovaMetadataHostKey has the IP address or name of nova's metadata service, as
	// hosts reach it.
	NovaMetadataHostKey = "nova-metadata-host"
	// NovaMetadataPortKey has its port, 8775 by default.
	NovaMetadataPortKey = "nova-metadata-port"
	// NovaMetadataProtocolKey is http, the default, or https.
	NovaMetadataProtocolKey = "nova-metadata-protocol"
)

// Conditions in addition to those of all services on hosts.
const (
	// OVNConfigReadyCondition : the [OVN
	// configuration](how-to/ovn-on-hosts.md#the-ovn-configuration) is valid.
	OVNConfigReadyCondition condition.Type = "OVNConfigReady"
	// OVNControllerReadyCondition : the OVNController of the node is Ready.
	OVNControllerReadyCondition condition.Type = "OVNControllerReady"
)

// Reasons of the conditions.
const (
	// InvalidOVNConfigReason : a key has an invalid value; the message has the Secret, the key
	// and what is valid, and never the value. Remedy: correct the key; it continues
	// automatically.
	InvalidOVNConfigReason condition.Reason = "InvalidOVNConfig"
	// OVNControllerMissingReason : the node has no OVNController. Remedy: see the entry
	// `ovn-controller` in `status.services` of the node; without one, set the annotation that
	// the message names.
	OVNControllerMissingReason condition.Reason = "OVNControllerMissing"
	// OVNControllerNotReadyReason : the OVNController is not Ready, or is being deleted.
	// Remedy: see the conditions of the OVNController: `kubectl edpm status <node>`.
	OVNControllerNotReadyReason condition.Reason = "OVNControllerNotReady"
	// MetadataAgentPresentReason : the object is being deleted, and the metadata agent is
	// removed from the host first. Remedy: nothing if the node is deleted: its
	// OVNMetadataAgent is deleted too. Else delete the OVNMetadataAgent.
	MetadataAgentPresentReason condition.Reason = "OVNMetadataAgentPresent"
)

// OVNServiceSpec is the spec of a service that follows an OVN configuration.
type OVNServiceSpec struct {
	hosted.ServiceSpec `json:",inline"`

	// OVNConfigSecretName is the Secret with the OVN configuration. It is copied from
	// the annotation of the node or its role.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	OVNConfigSecretName string `json:"ovnConfigSecretName"`

	// ContainerImage of the service.
	// +optional
	ContainerImage string `json:"containerImage,omitempty"`
}

// OVNServiceStatus is the status of a service that follows an OVN configuration.
type OVNServiceStatus struct {
	hosted.ServiceStatus `json:",inline"`
	// Release has the image of the service.
	common.Release `json:",inline"`

	// TLSSecretName is the Secret that the OVN configuration names. Absent without TLS.
	// +optional
	TLSSecretName string `json:"tlsSecretName,omitempty"`
}

// OVNService is what all services have in common that follow an OVN configuration.
type OVNService struct {
	Spec   OVNServiceSpec   `json:"spec"`
	Status OVNServiceStatus `json:"status,omitempty"`
}

// OVN returns the service.
func (s *OVNService) OVN() *OVNService { return s }

// Hosted returns what it has in common with all services on hosts.
func (s *OVNService) Hosted() (*hosted.ServiceSpec, *hosted.ServiceStatus) {
	return &s.Spec.ServiceSpec, &s.Status.ServiceStatus
}

// GetConditions returns the conditions, to be changed in place.
func (s *OVNService) GetConditions() *condition.Conditions { return &s.Status.Conditions }

// SetObservedGeneration notes the generation that the status describes.
func (s *OVNService) SetObservedGeneration(g int64) { s.Status.ObservedGeneration = g }

// GetLedger returns what ran successfully on the host.
func (s *OVNService) GetLedger() *common.Ledger { return &s.Status.Ledger }

// GetRelease returns the images that are recorded, to be changed in place.
func (s *OVNService) GetRelease() *common.Release { return &s.Status.Release }

// ServiceComponent in status.images is the service.
const ServiceComponent = "service"
