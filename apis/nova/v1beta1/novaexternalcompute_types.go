package v1beta1

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/edpm"
)

// NovaExternalComputeFinalizer keeps a compute until its services are off the host.
const NovaExternalComputeFinalizer = "nova.openstack.org/novaexternalcompute"

// NovaExternalComputeSpec says which node is a compute of which cell. All of it
// but customServiceConfig and the images is kept up to date by the controller
// that watches the nodes.
type NovaExternalComputeSpec struct {
	// DataplaneNodeName is the OpenStackDataPlaneNode that this compute runs on.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="dataplaneNodeName cannot be changed: create a NovaExternalCompute for the other node instead"
	DataplaneNodeName string `json:"dataplaneNodeName"`

	// CellName is the name of the NovaCell object that the compute belongs to.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cellName cannot be changed: nova cannot move a compute between cells; remove the node and create it again in the other cell"
	CellName string `json:"cellName"`

	// CustomServiceConfig is an oslo.config snippet with a higher priority than
	// the generated configuration. No operator ever writes it.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	CustomServiceConfig string `json:"customServiceConfig,omitempty"`

	// InventoryConfigMapName is a ConfigMap whose key inventory is an Ansible
	// inventory that contains the node.
	// +optional
	InventoryConfigMapName string `json:"inventoryConfigMapName,omitempty"`

	// SSHKeySecretName names a Secret whose key ssh-privatekey is the key with
	// which Ansible logs in.
	// +optional
	SSHKeySecretName string `json:"sshKeySecretName,omitempty"`

	// NetworkAttachments of the runner Pods.
	// +optional
	// +listType=atomic
	NetworkAttachments []string `json:"networkAttachments,omitempty"`

	// Deploy is desired state: true (the default) keeps the compute converged,
	// false computes and shows everything and runs nothing.
	// +optional
	Deploy *bool `json:"deploy,omitempty"`

	// AnsibleEEContainerImage is the execution environment of the runs.
	// +optional
	AnsibleEEContainerImage string `json:"ansibleEEContainerImage,omitempty"`

	// NovaComputeContainerImage of the nova-compute service.
	// +optional
	NovaComputeContainerImage string `json:"novaComputeContainerImage,omitempty"`

	// NovaLibvirtContainerImage of the libvirt daemons.
	// +optional
	NovaLibvirtContainerImage string `json:"novaLibvirtContainerImage,omitempty"`
}

// NovaExternalComputeStatus is the state of the compute.
type NovaExternalComputeStatus struct {
	// ObservedGeneration of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the compute.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions condition.Conditions `json:"conditions,omitempty"`

	// ComputeService is what nova says of the service nova-compute of the host.
	// Absent where nova's API is not asked, or does not know the service.
	// +optional
	ComputeService *ComputeServiceStatus `json:"computeService,omitempty"`

	// Ledger of what ran successfully, by step: libvirt and nova.
	edpm.Ledger `json:",inline"`
}

// ComputeServiceStatus is a service nova-compute as nova's API shows it.
type ComputeServiceStatus struct {
	// ID of the service in nova.
	ID string `json:"id"`

	// Host is the name of the host in nova.
	Host string `json:"host"`

	// Up reports whether nova considers the service to be alive.
	Up bool `json:"up"`

	// DownSince is when the service reported last. Absent while it is up.
	// +optional
	DownSince *metav1.Time `json:"downSince,omitempty"`

	// ForcedDown reports whether the service is forced down: nova treats its host as dead.
	// +optional
	ForcedDown bool `json:"forcedDown,omitempty"`

	// Mapped reports whether the host is mapped to its cell, without which nova
	// puts no guest there.
	Mapped bool `json:"mapped"`

	// Duplicated reports whether nova has a service of the same host in another cell.
	// +optional
	Duplicated bool `json:"duplicated,omitempty"`

	// Disabled reports whether the scheduler passes the host over.
	// +optional
	Disabled bool `json:"disabled,omitempty"`

	// DisabledReason is why, as nova has it.
	// +optional
	DisabledReason string `json:"disabledReason,omitempty"`

	// DisabledFor is the reason with which the operator has disabled the service, for
	// the annotation of the node. It enables nothing that somebody else has disabled.
	// +optional
	DisabledFor string `json:"disabledFor,omitempty"`
}

// NovaExternalCompute is a nova-compute service with the libvirt driver on a
// host outside Kubernetes. Its name is that of the node.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=edpm-operators"
// +kubebuilder:resource:shortName=nec;necs,categories=edpm
// +kubebuilder:selectablefield:JSONPath=`.spec.cellName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Cell",type=string,JSONPath=`.spec.cellName`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == self.spec.dataplaneNodeName",message="metadata.name must be the same as spec.dataplaneNodeName: a node has one NovaExternalCompute, named like the node"
type NovaExternalCompute struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NovaExternalComputeSpec   `json:"spec"`
	Status NovaExternalComputeStatus `json:"status,omitempty"`
}

// NovaExternalComputeList is a list of NovaExternalCompute.
//
// +kubebuilder:object:root=true
type NovaExternalComputeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NovaExternalCompute `json:"items"`
}

// GetConditions returns the conditions, to be changed in place.
func (c *NovaExternalCompute) GetConditions() *condition.Conditions { return &c.Status.Conditions }

// SetObservedGeneration notes the generation that the status describes.
func (c *NovaExternalCompute) SetObservedGeneration(g int64) { c.Status.ObservedGeneration = g }

// GetLedger returns what ran successfully for the compute.
func (c *NovaExternalCompute) GetLedger() *edpm.Ledger { return &c.Status.Ledger }

func init() {
	register(&NovaExternalCompute{}, &NovaExternalComputeList{})
}
