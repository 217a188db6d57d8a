package v1beta1

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/apis/common/hosted"
)

// NovaExternalComputeFinalizer keeps a compute until its services are off the host.
const NovaExternalComputeFinalizer = "nova.openstack.org/novaexternalcompute"

// NovaExternalComputeSpec says which node is a compute of which cell. All of it
// but customServiceConfig and the images is kept up to date by the controller
// that watches the nodes.
type NovaExternalComputeSpec struct {
	hosted.ServiceSpec `json:",inline"`

	// CellName is the name of the NovaCell object that the compute belongs to.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cellName cannot be changed: nova cannot move a compute between cells; remove the node and create it again in the other cell"
	CellName string `json:"cellName"`

	// CustomServiceConfigSecrets are Secrets whose values are oslo.config snippets, with the
	// highest priority: for options with passwords. No operator ever writes it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	CustomServiceConfigSecrets []string `json:"customServiceConfigSecrets,omitempty"`

	FurtherFiles `json:",inline"`

	// NovaComputeContainerImage of the nova-compute service.
	// +optional
	NovaComputeContainerImage string `json:"novaComputeContainerImage,omitempty"`

	// NovaLibvirtContainerImage of the libvirt daemons.
	// +optional
	NovaLibvirtContainerImage string `json:"novaLibvirtContainerImage,omitempty"`
}

// NovaExternalComputeStatus is the state of the compute.
type NovaExternalComputeStatus struct {
	// ServiceStatus with the ledger of the steps.
	hosted.ServiceStatus `json:",inline"`

	// Release has the images of compute and libvirt.
	common.Release `json:",inline"`

	// ComputeService is what nova says of the service nova-compute of the host.
	// Absent where nova's API is not asked, or does not know the service.
	// +optional
	ComputeService *ComputeServiceStatus `json:"computeService,omitempty"`

	// NovaHost is the name of the host in nova, recorded when nova-compute reported
	// once the step nova had run. From then on the service is looked for by this name
	// only: for nova another name is another host.
	// +optional
	NovaHost string `json:"novaHost,omitempty"`

	// ConfigHash identifies the configuration of the cell, with its templates, that runs on the
	// host.
	// +optional
	ConfigHash string `json:"configHash,omitempty"`

	// PulledImage is the image of the cell that the host has pulled while nova-compute runs with
	// another one. Absent once it runs with that image.
	// +optional
	PulledImage string `json:"pulledImage,omitempty"`

	// TemplateImage is the image of nova-compute that computeTemplates of the cell name for the
	// compute, which does not follow that of the cell. Absent if they name none.
	// +optional
	TemplateImage string `json:"templateImage,omitempty"`

	// Drain is that the host is drained for a step that needs it empty, until the step has run.
	// Absent for a drain that only annotation edpm.openstack.org/drain of the node asks for.
	// +optional
	Drain *DrainStatus `json:"drain,omitempty"`

	// Fence is that the host is off, as a person or its BareMetalHost says, until nova uses
	// the host again.
	// +optional
	Fence *FenceStatus `json:"fence,omitempty"`

	// Guests is how many guests nova has on the host. Absent unless they are moved off the host, or the
	// compute is being deleted: for nothing else is nova asked for them.
	// +optional
	Guests *GuestsStatus `json:"guests,omitempty"`

	// LiveMigration is how guests are moved from and to the host.
	// +optional
	LiveMigration *LiveMigrationStatus `json:"liveMigration,omitempty"`

	// ColdMigration is how disks of guests are copied from and to the host, for cold migration
	// and resize. Its address is that of live migration.
	// +optional
	ColdMigration *ColdMigrationStatus `json:"coldMigration,omitempty"`

	// ConsoleTLS reports whether consoles of guests that start on the host can be reached over
	// TLS only, by console proxies of the cell.
	// +optional
	ConsoleTLS bool `json:"consoleTLS,omitempty"`
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
func (c *NovaExternalCompute) GetLedger() *common.Ledger { return &c.Status.Ledger }

// GetRelease returns the images that are recorded, to be changed in place.
func (c *NovaExternalCompute) GetRelease() *common.Release { return &c.Status.Release }

// Hosted returns what the compute has in common with all services on hosts.
func (c *NovaExternalCompute) Hosted() (*hosted.ServiceSpec, *hosted.ServiceStatus) {
	return &c.Spec.ServiceSpec, &c.Status.ServiceStatus
}

func init() {
	register(&NovaExternalCompute{}, &NovaExternalComputeList{})
}

// HasOwnConfig reports whether the compute has a configuration of its own, next to that of
// its cell.
func (c *NovaExternalCompute) HasOwnConfig() bool {
	return c.Spec.CustomServiceConfig != "" || len(c.Spec.CustomServiceConfigSecrets) > 0 || c.Spec.HasFiles()
}
