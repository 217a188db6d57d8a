package v1beta1

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// NodeSection is what a role says for all its nodes and a node for itself.
// The node wins field by field; ansibleVars are merged by their top-level keys.
type NodeSection struct {
	// NetworkConfig of the host.
	// +optional
	NetworkConfig *NetworkConfigSection `json:"networkConfig,omitempty"`

	// Networks that the host is on.
	// +optional
	// +listType=map
	// +listMapKey=network
	Networks []NetworkSection `json:"networks,omitempty"`

	// ManagementNetwork is the network that Ansible uses.
	// +optional
	ManagementNetwork string `json:"managementNetwork,omitempty"`

	// AnsibleUser that logs in to the host.
	// +optional
	AnsibleUser string `json:"ansibleUser,omitempty"`

	// AnsiblePort is the port of the SSH server.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	AnsiblePort int32 `json:"ansiblePort,omitempty"`

	// AnsibleVars are variables for Ansible: a mapping, or the text of a YAML mapping.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	AnsibleVars *apiextensionsv1.JSON `json:"ansibleVars,omitempty"`

	// AnsibleSSHPrivateKeySecret names a Secret whose key ssh-privatekey is the
	// key with which Ansible logs in.
	// +optional
	AnsibleSSHPrivateKeySecret string `json:"ansibleSSHPrivateKeySecret,omitempty"`

	// ExtraMounts of the runner Pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ExtraMounts []ansibleeev1.ExtraMount `json:"extraMounts,omitempty"`

	// UserData for bare metal provisioning.
	// +optional
	UserData *corev1.SecretReference `json:"userData,omitempty"`

	// NetworkData for bare metal provisioning.
	// +optional
	NetworkData *corev1.SecretReference `json:"networkData,omitempty"`
}

// NetworkConfigSection describes the network configuration of a host.
type NetworkConfigSection struct {
	// Template is the text of the network configuration.
	// +optional
	Template string `json:"template,omitempty"`
}

// NetworkSection puts a host on a network.
type NetworkSection struct {
	// Network is the name of the network.
	// +kubebuilder:validation:MinLength=1
	Network string `json:"network"`

	// SubnetName of the network.
	// +optional
	SubnetName string `json:"subnetName,omitempty"`

	// FixedIP of the host on the network.
	// +optional
	FixedIP string `json:"fixedIP,omitempty"`

	// DefaultRoute reports whether the default route goes over this network.
	// +optional
	DefaultRoute *bool `json:"defaultRoute,omitempty"`
}

// DeployStrategySection says whether and how Ansible is run. On a node each
// field that is set wins over that of its role.
type DeployStrategySection struct {
	// Deploy is desired state: true (the default) keeps the hosts converged,
	// false computes and shows everything and runs nothing.
	// +optional
	Deploy *bool `json:"deploy,omitempty"`

	// AnsibleTags : only tasks with these tags are run. Such a run never marks
	// a host as converged.
	// +optional
	AnsibleTags string `json:"ansibleTags,omitempty"`

	// AnsibleLimit is an Ansible host pattern over node names: hosts that do not
	// match are left alone.
	// +optional
	AnsibleLimit string `json:"ansibleLimit,omitempty"`

	// AnsibleSkipTags : tasks with these tags are not run. Such a run never
	// marks a host as converged.
	// +optional
	AnsibleSkipTags string `json:"ansibleSkipTags,omitempty"`

	// BatchSize is the most hosts that one run has, by default 50.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	// +optional
	BatchSize *int32 `json:"batchSize,omitempty"`

	// MaxUnavailable is the most hosts of the role, as a number or a percentage,
	// that a step may have in a run or failed at the same time.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// MaxFailures is the most hosts of the role that may have failed a step
	// before no further host is started.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxFailures *int32 `json:"maxFailures,omitempty"`
}

// OpenStackDataPlaneNodeSpec says which host the node is and what is special about it.
type OpenStackDataPlaneNodeSpec struct {
	// Role that the node has.
	// +optional
	Role string `json:"role,omitempty"`

	// HostName of the host.
	// +optional
	HostName string `json:"hostName,omitempty"`

	// AnsibleHost is the address by which Ansible reaches the host; by default
	// its hostName.
	// +optional
	AnsibleHost string `json:"ansibleHost,omitempty"`

	// Node holds what differs from the role.
	// +optional
	Node NodeSection `json:"node,omitempty,omitzero"`

	// Env of the runner Pods. When set it replaces that of the role.
	// +optional
	// +listType=map
	// +listMapKey=name
	Env []corev1.EnvVar `json:"env,omitempty"`

	// NetworkAttachments of the runner Pods. When set they replace those of the role.
	// +optional
	// +listType=atomic
	NetworkAttachments []string `json:"networkAttachments,omitempty"`

	// TopologyRef is the Topology that the runner Pods follow. Without it that of
	// the role is meant; {} means none.
	// +optional
	TopologyRef *topologyv1.TopologyRef `json:"topologyRef,omitempty"`

	// DeployStrategy says whether and how Ansible is run.
	// +optional
	DeployStrategy DeployStrategySection `json:"deployStrategy,omitempty,omitzero"`
}

// OpenStackDataPlaneRoleSpec is what all nodes of a role have in common.
type OpenStackDataPlaneRoleSpec struct {
	// DataPlane that the role belongs to.
	// +optional
	DataPlane string `json:"dataPlane,omitempty"`

	// NodeTemplate holds the defaults for the nodes of the role.
	// +optional
	NodeTemplate NodeSection `json:"nodeTemplate,omitempty,omitzero"`

	// Env of the runner Pods.
	// +optional
	// +listType=map
	// +listMapKey=name
	Env []corev1.EnvVar `json:"env,omitempty"`

	// NetworkAttachments of the runner Pods.
	// +optional
	// +listType=atomic
	NetworkAttachments []string `json:"networkAttachments,omitempty"`

	// TopologyRef is the Topology that the runner Pods follow, so that they run
	// where they can reach the hosts of the role.
	// +optional
	TopologyRef *topologyv1.TopologyRef `json:"topologyRef,omitempty"`

	// Services of phase 0, in the order in which they are run on each node.
	// +kubebuilder:default={configure-network,validate-network,install-os,configure-os,run-os}
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(x, self.exists_one(y, x == y))",message="each service can be named once"
	// +optional
	// +listType=atomic
	Services []string `json:"services,omitempty"`

	// PreProvisioned reports whether the hosts run an operating system already.
	// +optional
	PreProvisioned *bool `json:"preProvisioned,omitempty"`

	// BaremetalSetTemplate describes how hosts are provisioned from bare metal.
	// It is not supported yet: nodes of a role that sets baremetalHosts say so.
	// +optional
	BaremetalSetTemplate *BaremetalSetTemplate `json:"baremetalSetTemplate,omitempty"`

	// DeployStrategy says whether and how Ansible is run.
	// +optional
	DeployStrategy DeployStrategySection `json:"deployStrategy,omitempty,omitzero"`
}

// BaremetalSetTemplate is the shape of the spec of an OpenStackBaremetalSet.
type BaremetalSetTemplate struct {
	// BaremetalHosts to provision, by host name.
	// +optional
	BaremetalHosts map[string]BaremetalHost `json:"baremetalHosts,omitempty"`
	// +optional
	BmhNamespace string `json:"bmhNamespace,omitempty"`
	// +optional
	BmhLabelSelector map[string]string `json:"bmhLabelSelector,omitempty"`
	// +optional
	// +kubebuilder:validation:Enum=metadata;disabled
	AutomatedCleaningMode string `json:"automatedCleaningMode,omitempty"`
	// +optional
	// +listType=set
	BootstrapDNS []string `json:"bootstrapDns,omitempty"`
	// +optional
	// +listType=set
	DNSSearchDomains []string `json:"dnsSearchDomains,omitempty"`
	// +optional
	CloudUserName string `json:"cloudUserName,omitempty"`
	// +optional
	CtlplaneGateway string `json:"ctlplaneGateway,omitempty"`
	// +optional
	CtlplaneInterface string `json:"ctlplaneInterface,omitempty"`
	// +optional
	CtlplaneNetmask string `json:"ctlplaneNetmask,omitempty"`
	// +optional
	DeploymentSSHSecret string `json:"deploymentSSHSecret,omitempty"`
	// +optional
	DomainName string `json:"domainName,omitempty"`
	// +optional
	OSImage string `json:"osImage,omitempty"`
	// +optional
	ProvisioningInterface string `json:"provisioningInterface,omitempty"`
	// +optional
	ProvisionServerName string `json:"provisionServerName,omitempty"`
	// +optional
	PasswordSecret *corev1.SecretReference `json:"passwordSecret,omitempty"`
	// +optional
	UserData *corev1.SecretReference `json:"userData,omitempty"`
	// +optional
	NetworkData *corev1.SecretReference `json:"networkData,omitempty"`
}

// BaremetalHost is one host to provision.
type BaremetalHost struct {
	// CtlPlaneIP is the address of the host on the control plane network.
	// +optional
	CtlPlaneIP string `json:"ctlPlaneIP,omitempty"`
	// +optional
	UserData *corev1.SecretReference `json:"userData,omitempty"`
	// +optional
	NetworkData *corev1.SecretReference `json:"networkData,omitempty"`
}

// DefaultServices of a role, run in this order (design of the data plane at
// the time of seeds/004).
var DefaultServices = []string{"configure-network", "validate-network", "install-os", "configure-os", "run-os"}

// Conditions of the data plane kinds beside Ready, InputReady and DeploymentReady.
const (
	// ProvisionReadyCondition is True once phase -1 is done: the host is there.
	ProvisionReadyCondition condition.Type = "ProvisionReady"
	// NodesReadyCondition of a role or data plane is True once all its nodes are Ready.
	NodesReadyCondition condition.Type = "NodesReady"
)

// Reasons of InputReady.
const (
	RoleMissingReason    condition.Reason = "RoleMissing"
	ServiceMissingReason condition.Reason = "ServiceMissing"
	InvalidVarsReason    condition.Reason = "InvalidAnsibleVars"
	InvalidSpecReason    condition.Reason = "InvalidSpec"
	// MachineConflictReason : another node has the same address or host key.
	MachineConflictReason   condition.Reason = "MachineConflict"
	RejectedReason          condition.Reason = "Rejected"
	BaremetalNotYetReason   condition.Reason = "BaremetalNotSupportedYet"
	NodesNotReadyReason     condition.Reason = "NodesNotReady"
	ServicesRemainingReason condition.Reason = "ServicesRemaining"
	HostUnreachableReason   condition.Reason = "HostUnreachable"
)
