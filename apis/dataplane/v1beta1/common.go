package v1beta1

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
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

	// JumpHost is the host through which runs reach hosts that the cluster cannot connect
	// to. That of a node takes the place of that of its role as a whole.
	// +optional
	JumpHost *common.JumpHost `json:"jumpHost,omitempty"`

	// ExtraMounts of the runner Pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ExtraMounts []ansibleeev1.ExtraMount `json:"extraMounts,omitempty"`

	// UserData is a Secret whose key userData has a cloud-config, or a script, for
	// the first boot of a host that is provisioned from bare metal.
	// +optional
	UserData *corev1.SecretReference `json:"userData,omitempty"`

	// NetworkData is a Secret whose key networkData has the network data of a host
	// that is provisioned from bare metal.
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

	// Drain says how guests are moved off a host for a step that needs it empty, such as a
	// reboot: live moves them while they run, cold shuts them down meanwhile, and with none (the
	// default) the step waits until they are moved otherwise. At most maxUnavailable hosts of the
	// role, by default 5%, are drained for that at a time, and given back when the step has run.
	// +optional
	Drain DrainPolicy `json:"drain,omitempty"`

	// DriftCheck has the steps of the hosts, and of the services on them, run in check mode
	// from time to time, which changes nothing there. Without it nothing is checked.
	// +optional
	DriftCheck *DriftCheck `json:"driftCheck,omitempty"`
}

// DrainPolicy says how guests are moved off a host for a step that needs it empty.
// +kubebuilder:validation:Enum=live;cold;none
type DrainPolicy string

// DrainNone has the step wait. The others are the ways of annotation edpm.openstack.org/drain;
// stop is none of them, as guests that were shut down would stay so.
const DrainNone DrainPolicy = "none"

// DriftCheck says when hosts are compared with what was run on them, and what becomes of
// differences.
type DriftCheck struct {
	// Interval between two checks of a host. Hosts of a role have their turns spread over
	// it.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10m') && duration(self) <= duration('720h')",message="interval must be between 10m and 720h: choose another one, or remove the field for 24h"
	// +kubebuilder:default="24h"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// Steps that are checked: names of services of the role, and of steps of services on
	// hosts such as libvirt and nova. All of them unless set.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	// +listType=set
	Steps []string `json:"steps,omitempty"`

	// Repair says what becomes of a step that differs: Never (the default) reports it, Ask has
	// a condition say how to repair it, and Always has the step run again once.
	// +kubebuilder:default=Never
	// +optional
	Repair common.RepairPolicy `json:"repair,omitempty"`
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

	// BareMetalHost names the BareMetalHost (metal3.io) that the node claims, where
	// its role has a baremetalSetTemplate. Without it the role decides. It is of no
	// effect once the node has claimed one.
	// +optional
	BareMetalHost string `json:"bareMetalHost,omitempty"`

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
	// +kubebuilder:validation:XValidation:rule="self.all(x, self.exists_one(y, x == y))",message="each service can be named once: remove the repeated name"
	// +optional
	// +listType=atomic
	Services []string `json:"services,omitempty"`

	// PreProvisioned reports whether the hosts run an operating system already.
	// +optional
	PreProvisioned *bool `json:"preProvisioned,omitempty"`

	// BaremetalSetTemplate describes how hosts are provisioned from bare metal. With
	// it and without preProvisioned: true, each node of the role claims a
	// BareMetalHost (metal3.io), unless something was run on its host before.
	// +optional
	BaremetalSetTemplate *BaremetalSetTemplate `json:"baremetalSetTemplate,omitempty"`

	// DeployStrategy says whether and how Ansible is run.
	// +optional
	DeployStrategy DeployStrategySection `json:"deployStrategy,omitempty,omitzero"`
}

// BaremetalSetTemplate is the shape of the spec of an OpenStackBaremetalSet, with
// what is needed in place of an OpenStackProvisionServer.
type BaremetalSetTemplate struct {
	// BaremetalHosts has what differs between the nodes, by host name.
	// +optional
	BaremetalHosts map[string]BaremetalHost `json:"baremetalHosts,omitempty"`

	// BmhNamespace can only be the namespace of the role: BareMetalHosts are those of
	// the same namespace.
	// +optional
	BmhNamespace string `json:"bmhNamespace,omitempty"`

	// BmhLabelSelector are labels that a BareMetalHost must have.
	// +optional
	BmhLabelSelector map[string]string `json:"bmhLabelSelector,omitempty"`

	// HardwareReqs that a BareMetalHost must meet.
	// +optional
	HardwareReqs *HardwareReqs `json:"hardwareReqs,omitempty"`

	// SpreadLabel is a label of BareMetalHosts, such as that of the rack, over whose
	// values the nodes of the role are spread as evenly as free hosts allow.
	// +optional
	SpreadLabel string `json:"spreadLabel,omitempty"`

	// Image that is written to the hosts.
	// +optional
	Image *metal3v1.Image `json:"image,omitempty"`

	// ReclaimPolicy says what becomes of the machine when its node is deleted, once
	// the services are removed from it. Deprovision (the default) has the image
	// removed and frees the BareMetalHost. Detach frees it and lets the machine run,
	// without baremetal-operator. Retain leaves everything as it is: a new node of the
	// same name has the machine again.
	// +kubebuilder:validation:Enum=Deprovision;Detach;Retain
	// +optional
	ReclaimPolicy string `json:"reclaimPolicy,omitempty"`

	// AutomatedCleaningMode of the BareMetalHosts that are claimed. Without it they
	// keep theirs.
	// +optional
	// +kubebuilder:validation:Enum=metadata;disabled
	AutomatedCleaningMode string `json:"automatedCleaningMode,omitempty"`

	// BootstrapDNS are the DNS servers of the first boot.
	// +optional
	// +listType=set
	BootstrapDNS []string `json:"bootstrapDns,omitempty"`

	// DNSSearchDomains of hosts with a static address.
	// +optional
	// +listType=set
	DNSSearchDomains []string `json:"dnsSearchDomains,omitempty"`

	// CloudUserName can only be nodeTemplate.ansibleUser, which is the user that
	// cloud-init creates.
	// +optional
	CloudUserName string `json:"cloudUserName,omitempty"`

	// CtlplaneGateway is the default route of hosts with a static address.
	// +optional
	CtlplaneGateway string `json:"ctlplaneGateway,omitempty"`

	// CtlplaneInterface is the NIC of the management network, by the name that
	// inspection gave it or by its MAC address. Without it, it is the one that the
	// machine boots from.
	// +optional
	CtlplaneInterface string `json:"ctlplaneInterface,omitempty"`

	// CtlplaneNetmask of static addresses, such as 255.255.255.0 (the default) or 24.
	// +optional
	CtlplaneNetmask string `json:"ctlplaneNetmask,omitempty"`

	// CtlplaneVLAN is the VLAN of the management network. Without it, it is untagged.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4094
	// +optional
	CtlplaneVLAN int32 `json:"ctlplaneVlan,omitempty"`

	// CtlplaneBond is a bond of NICs for the management network, in place of
	// ctlplaneInterface.
	// +optional
	CtlplaneBond *Bond `json:"ctlplaneBond,omitempty"`

	// BootNetworks are further networks of the first boot. The address of a host on one
	// of them is the fixedIP of its entry in networks; without one it is DHCP.
	// +optional
	// +listType=map
	// +listMapKey=network
	// +kubebuilder:validation:MaxItems=32
	BootNetworks []BootNetwork `json:"bootNetworks,omitempty"`

	// RootDeviceHints say to which disk the image is written. They take the place of
	// those of the BareMetalHosts that are claimed, and only hosts with such a disk are.
	// +optional
	RootDeviceHints *metal3v1.RootDeviceHints `json:"rootDeviceHints,omitempty"`

	// DeploymentSSHSecret can only be nodeTemplate.ansibleSSHPrivateKeySecret, the
	// public half of whose key cloud-init authorises.
	// +optional
	DeploymentSSHSecret string `json:"deploymentSSHSecret,omitempty"`

	// DomainName of hosts whose name has no dot.
	// +optional
	DomainName string `json:"domainName,omitempty"`

	// CABundleSecretName is a Secret whose key tls-ca-bundle.pem has certificates that
	// the hosts trust.
	// +optional
	CABundleSecretName string `json:"caBundleSecretName,omitempty"`

	// OSImage is not supported: set image.
	// +optional
	OSImage string `json:"osImage,omitempty"`

	// RHELImageURL is not supported: set image.
	// +optional
	RHELImageURL string `json:"rhelImageUrl,omitempty"`

	// ProvisioningInterface is not supported: it is baremetal-operator's.
	// +optional
	ProvisioningInterface string `json:"provisioningInterface,omitempty"`

	// ProvisionServerName is not supported: set image.
	// +optional
	ProvisionServerName string `json:"provisionServerName,omitempty"`

	// PasswordSecret is not supported: set a password in userData.
	// +optional
	PasswordSecret *corev1.SecretReference `json:"passwordSecret,omitempty"`

	// UserData is a Secret whose key userData has a cloud-config, or a script, that is
	// merged with what the nodes need.
	// +optional
	UserData *corev1.SecretReference `json:"userData,omitempty"`

	// NetworkData is a Secret whose key networkData takes the place of the network
	// data that are made from the fields above.
	// +optional
	NetworkData *corev1.SecretReference `json:"networkData,omitempty"`
}

// Bond of NICs.
type Bond struct {
	// Interfaces are the NICs, by the names that inspection gave them or by their MAC
	// addresses. The bond has the address of the first.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Interfaces []string `json:"interfaces"`

	// Mode of the bond, by default active-backup.
	// +kubebuilder:validation:Enum=balance-rr;active-backup;balance-xor;broadcast;"802.3ad";balance-tlb;balance-alb
	// +optional
	Mode string `json:"mode,omitempty"`
}

// BootNetwork is a network that hosts have at their first boot, next to the management
// network.
type BootNetwork struct {
	// Network is the name of the network, as in networks.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Network string `json:"network"`

	// Interface is the NIC by its name or MAC address. Without it, it is that of the
	// management network.
	// +optional
	Interface string `json:"interface,omitempty"`

	// VLAN of the network. Without it, it is untagged.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4094
	// +optional
	VLAN int32 `json:"vlan,omitempty"`

	// Netmask of static addresses, such as 255.255.255.0 (the default) or 24.
	// +optional
	Netmask string `json:"netmask,omitempty"`
}

// HardwareReqs are requirements on the hardware of a BareMetalHost.
type HardwareReqs struct {
	// +optional
	CPUReqs CPUReqs `json:"cpuReqs,omitempty,omitzero"`
	// +optional
	MemReqs MemReqs `json:"memReqs,omitempty,omitzero"`
	// DiskReqs are those on one of its disks.
	// +optional
	DiskReqs DiskReqs `json:"diskReqs,omitempty,omitzero"`
}

// CPUReqs are requirements on the CPUs.
type CPUReqs struct {
	// Arch such as x86_64.
	// +optional
	Arch string `json:"arch,omitempty"`
	// +optional
	CountReq CPUCountReq `json:"countReq,omitempty,omitzero"`
	// +optional
	MhzReq CPUMhzReq `json:"mhzReq,omitempty,omitzero"`
}

// CPUCountReq is a number of cores: the least, or with exactMatch the only one.
type CPUCountReq struct {
	// +kubebuilder:validation:Minimum=1
	// +optional
	Count int `json:"count,omitempty"`
	// +optional
	ExactMatch bool `json:"exactMatch,omitempty"`
}

// CPUMhzReq is a clock speed: the least, or with exactMatch the only one.
type CPUMhzReq struct {
	// +kubebuilder:validation:Minimum=1
	// +optional
	Mhz int `json:"mhz,omitempty"`
	// +optional
	ExactMatch bool `json:"exactMatch,omitempty"`
}

// MemReqs are requirements on the memory.
type MemReqs struct {
	// +optional
	GbReq MemGbReq `json:"gbReq,omitempty,omitzero"`
}

// MemGbReq is an amount of memory in GiB: the least, or with exactMatch the only one.
type MemGbReq struct {
	// +kubebuilder:validation:Minimum=1
	// +optional
	Gb int `json:"gb,omitempty"`
	// +optional
	ExactMatch bool `json:"exactMatch,omitempty"`
}

// DiskReqs are requirements on one disk.
type DiskReqs struct {
	// +optional
	GbReq DiskGbReq `json:"gbReq,omitempty,omitzero"`
	// +optional
	SsdReq DiskSsdReq `json:"ssdReq,omitempty,omitzero"`
}

// DiskGbReq is a size in GB: the least, or with exactMatch the only one.
type DiskGbReq struct {
	// +kubebuilder:validation:Minimum=1
	// +optional
	Gb int `json:"gb,omitempty"`
	// +optional
	ExactMatch bool `json:"exactMatch,omitempty"`
}

// DiskSsdReq says whether the disk is an SSD. ssd: false means any disk, or with
// exactMatch one that rotates.
type DiskSsdReq struct {
	// +optional
	Ssd bool `json:"ssd,omitempty"`
	// +optional
	ExactMatch bool `json:"exactMatch,omitempty"`
}

// BaremetalHost is what differs for one node of a role, by its host name.
type BaremetalHost struct {
	// CtlPlaneIP is the address of the host on the management network. spec.ansibleHost
	// of the node takes its place.
	// +optional
	CtlPlaneIP string `json:"ctlPlaneIP,omitempty"`
	// UserData in place of that of the role.
	// +optional
	UserData *corev1.SecretReference `json:"userData,omitempty"`
	// NetworkData in place of that of the role.
	// +optional
	NetworkData *corev1.SecretReference `json:"networkData,omitempty"`
}

// What becomes of the machine of a node that is deleted.
const (
	ReclaimDeprovision = "Deprovision"
	ReclaimDetach      = "Detach"
	ReclaimRetain      = "Retain"
)

// DefaultServices of a role, run in this order (design of the data plane at
// the time of seeds/004).
var DefaultServices = []string{"configure-network", "validate-network", "install-os", "configure-os", "run-os"}

// Conditions of the data plane kinds in addition to Ready, InputReady and DeploymentReady.
const (
	// ProvisionReadyCondition : phase -1 is complete: the host answers.
	ProvisionReadyCondition condition.Type = "ProvisionReady"
	// NodesReadyCondition : all nodes are Ready.
	NodesReadyCondition condition.Type = "NodesReady"
)

// Reasons of InputReady.
const (
	// RoleMissingReason : `spec.role` is empty, or the role does not exist. Remedy: set
	// `spec.role`, or create the role.
	RoleMissingReason condition.Reason = "RoleMissing"
	// ServiceMissingReason : the role names a service that is not built in and for which no
	// OpenStackDataPlaneService exists. Remedy: create the OpenStackDataPlaneService, or
	// remove the name from the role.
	ServiceMissingReason condition.Reason = "ServiceMissing"
	// InvalidVarsReason : `ansibleVars` is neither a mapping nor a string with a YAML mapping,
	// or it or `env` has a variable that changes how hosts are [reached and
	// trusted](security.md#how-hosts-are-reached). Remedy: correct the field or remove the
	// variable that the message names.
	InvalidVarsReason condition.Reason = "InvalidAnsibleVars"
	// InvalidSpecReason : a field is invalid, or is too long for the inventory; the message
	// names it. Remedy: correct the field.
	InvalidSpecReason condition.Reason = "InvalidSpec"
	// MachineConflictReason : another node has the same address and port, or the same host
	// key; the message names it. Nothing is run for either. Remedy: correct `ansibleHost` of
	// one of them, or delete one: see [one host, two
	// nodes](how-to/replace-a-host.md#one-host-two-nodes).
	MachineConflictReason condition.Reason = "MachineConflict"
	// RejectedReason : the API server or a webhook rejects roles or nodes, or their deletion;
	// the message names up to ten of them with the reasons. The others are up to date. Remedy:
	// correct what the message names; it is retried every minute.
	RejectedReason condition.Reason = "Rejected"
	// NodesNotReadyReason : some nodes are not Ready; the message names the first. Remedy:
	// `kubectl edpm status` shows which, and why.
	NodesNotReadyReason condition.Reason = "NodesNotReady"
	// ServicesRemainingReason : the node is being deleted and waits until the services on its
	// host are removed; the message names them. Remedy: wait; if one of them reports
	// `CleanupFailed`, see [removing a node](how-to/scale-in.md).
	ServicesRemainingReason condition.Reason = "ServicesRemaining"
	// HostUnreachableReason : the host or its jump host did not answer, or shows another
	// key; the message has the error of SSH, and names the jump host if that is the cause.
	// Remedy: fix the host, or correct its address, user, port or key; it is retried
	// automatically, and immediately when one of them changes. For a reinstalled host see
	// [keys of hosts](how-to/replace-a-host.md#keys-of-hosts), for a jump host
	// [jump hosts](how-to/jump-hosts.md#when-a-host-is-not-reached).
	HostUnreachableReason condition.Reason = "HostUnreachable"
)

// Reasons of ProvisionReady that tell of the BareMetalHost of a node.
const (
	// MetalKindMissingReason : the resource definition of BareMetalHost does not exist.
	// Remedy: install baremetal-operator (Metal3), or set `preProvisioned: true` in the role;
	// it continues automatically.
	MetalKindMissingReason condition.Reason = "BareMetalHostKindMissing"
	// MetalNoneFreeReason : no BareMetalHost of the namespace is free and fits; the message
	// says how many there are, and what is wrong with each. Remedy: register machines, or
	// correct what the message names; it continues automatically when one is free.
	MetalNoneFreeReason condition.Reason = "NoBareMetalHostFree"
	// MetalHostLostReason : the BareMetalHost of the node no longer exists, is being deleted,
	// or is no longer claimed by the node. The machine is left alone. Remedy: restore the
	// object or its `spec.consumerRef`, or set annotation `edpm.openstack.org/replace-host` to
	// have another machine.
	MetalHostLostReason condition.Reason = "BareMetalHostLost"
	// MetalRegisteringReason : baremetal-operator registers the machine, or has not looked at
	// it yet. Remedy: wait; if it does not end, see whether baremetal-operator runs, and the
	// credentials of the BMC.
	MetalRegisteringReason condition.Reason = "BareMetalHostRegistering"
	// MetalInspectingReason : baremetal-operator inspects the machine. Remedy: nothing: it
	// continues automatically.
	MetalInspectingReason condition.Reason = "BareMetalHostInspecting"
	// MetalPreparingReason : baremetal-operator prepares the machine. Remedy: nothing: it
	// continues automatically.
	MetalPreparingReason condition.Reason = "BareMetalHostPreparing"
	// MetalProvisioningReason : the node has chosen a machine, or the image is being written
	// to it. Remedy: wait; if it does not end, see whether baremetal-operator runs, and the
	// console of the machine.
	MetalProvisioningReason condition.Reason = "BareMetalHostProvisioning"
	// MetalErrorReason : baremetal-operator reports an error; the message has its type and
	// text. Remedy: correct what the message names, which baremetal-operator tries again, or
	// set annotation `edpm.openstack.org/replace-host` to have another machine.
	MetalErrorReason condition.Reason = "BareMetalHostError"
	// MetalPausedReason : the BareMetalHost is paused. Remedy: remove annotation
	// `baremetalhost.metal3.io/paused`.
	MetalPausedReason condition.Reason = "BareMetalHostPaused"
	// MetalPoweredOffReason : the machine is powered off. Remedy: set `spec.online: true` of
	// the BareMetalHost; if it is, see its events.
	MetalPoweredOffReason condition.Reason = "BareMetalHostPoweredOff"
	// MetalDeprovisionedReason : the machine was deprovisioned, though not by the node, or
	// was made externally provisioned. Remedy: find out who did it; the node does not provision
	// it again. Set annotation `edpm.openstack.org/replace-host` to have another machine.
	MetalDeprovisionedReason condition.Reason = "BareMetalHostDeprovisioned"
	// MetalAddressUnknownReason : the machine runs its image, and its address is not known, or
	// is that of another node. Remedy: set `spec.ansibleHost`.
	MetalAddressUnknownReason condition.Reason = "BareMetalHostAddressUnknown"
	// MetalHostKeyUnknownReason : the machine runs, and the Secret with the key that was
	// generated for it is lost. Remedy: copy the public key from its console into annotation
	// `edpm.openstack.org/host-key` of the node.
	MetalHostKeyUnknownReason condition.Reason = "HostKeyUnknown"
	// MetalReplaceRefusedReason : annotation `edpm.openstack.org/replace-host` asks for
	// another machine, and the message says what is in the way. Remedy: correct what the
	// message names, or remove the annotation.
	MetalReplaceRefusedReason condition.Reason = "HostNotReplaced"
	// MetalWriteRefusedReason : a write to the BareMetalHost is refused, by baremetal-operator's
	// webhook or another rule of the cluster, or the webhook does not answer; the message has
	// the error. Remedy: correct the BareMetalHost or the webhook, and it continues
	// automatically; to have another machine, register one, or name it in `spec.bareMetalHost`;
	// to delete the node and leave the machine as it is, set annotation
	// `edpm.openstack.org/skip-cleanup: "true"` on the node.
	MetalWriteRefusedReason condition.Reason = "BareMetalHostWriteRefused"
	// MetalReleasingReason : the node is being deleted, or its machine replaced, and waits
	// until that is deprovisioned. Remedy: wait; if it does not end, see the events of the
	// BareMetalHost, or set annotation `edpm.openstack.org/skip-cleanup: "true"` on the node.
	MetalReleasingReason condition.Reason = "BareMetalHostDeprovisioning"
)
