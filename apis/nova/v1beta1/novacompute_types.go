package v1beta1

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/apis/common/podified"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// NovaComputeFinalizer keeps a NovaCompute until it has released its Topology and
// no pod of it is left behind.
const NovaComputeFinalizer = "nova.openstack.org/novacompute"

// Drivers of a NovaCompute.
const (
	IronicDriver = "ironic.IronicDriver"
	FakeDriver   = "fake.FakeDriver"
)

// NovaComputeSpec describes nova-compute services that run in pods.
type NovaComputeSpec struct {
	// CellName is the name of the NovaCell object that the computes belong to.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cellName cannot be changed: nova cannot move a compute between cells; create another NovaCompute"
	CellName string `json:"cellName"`

	// ComputeDriver: ironic.IronicDriver for bare metal, or fake.FakeDriver for
	// trying things out. Computes with libvirt run on hosts: see NovaExternalCompute.
	// +kubebuilder:default="ironic.IronicDriver"
	// +kubebuilder:validation:Enum=ironic.IronicDriver;fake.FakeDriver
	// +optional
	ComputeDriver string `json:"computeDriver,omitempty"`

	// ContainerImage with nova-compute; by default that of the operator.
	// +optional
	ContainerImage string `json:"containerImage,omitempty"`

	// Replicas is the number of nova-compute services.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=32
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// NodeSelector of the pods. By default it is that of the cell; {} means none.
	// +optional
	NodeSelector *map[string]string `json:"nodeSelector,omitempty"`

	// TopologyRef is the Topology that the pods follow. By default it is that of
	// the cell; {} means none.
	// +optional
	TopologyRef *topologyv1.TopologyRef `json:"topologyRef,omitempty"`

	// CustomServiceConfig is an oslo.config snippet with a higher priority than
	// the generated configuration. No operator ever writes it.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	CustomServiceConfig string `json:"customServiceConfig,omitempty"`

	// CustomServiceConfigSecrets are Secrets whose values are oslo.config snippets, with the
	// highest priority: for options with passwords.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	CustomServiceConfigSecrets []string `json:"customServiceConfigSecrets,omitempty"`

	FurtherFiles `json:",inline"`

	// Resources of the container.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// NetworkAttachments of the pods: NetworkAttachmentDefinitions of the namespace.
	// +optional
	// +listType=atomic
	NetworkAttachments []string `json:"networkAttachments,omitempty"`
}

// NovaComputeStatus is the state of the pods.
type NovaComputeStatus struct {
	// ObservedGeneration of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the compute.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions condition.Conditions `json:"conditions,omitempty"`

	// Hosts are the pods as hosts of nova. One that is no longer wanted stays here until
	// its service is deleted in nova.
	// +optional
	// +listType=map
	// +listMapKey=name
	Hosts []PodHostStatus `json:"hosts,omitempty"`

	// ConfigHash identifies the configuration of the cell that all pods run.
	// +optional
	ConfigHash string `json:"configHash,omitempty"`

	// Release has the image of compute.
	common.Release  `json:",inline"`
	podified.Status `json:",inline"`
}

// PodHostStatus is a pod as a host of nova.
type PodHostStatus struct {
	// Name of the pod, which is that of its host in nova.
	Name string `json:"name"`

	// ComputeService is the service nova-compute of the pod as nova shows it. Absent
	// while nova does not know it, or is not asked.
	// +optional
	ComputeService *ComputeServiceStatus `json:"computeService,omitempty"`
}

// NovaCompute is a group of nova-compute services that run in pods, with a
// driver that needs no hypervisor next to them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=edpm-operators"
// +kubebuilder:resource:categories=edpm
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Cell",type=string,JSONPath=`.spec.cellName`
// +kubebuilder:printcolumn:name="ReadyCount",type=integer,JSONPath=`.status.readyCount`
// +kubebuilder:printcolumn:name="Topology",type=string,JSONPath=`.status.lastAppliedTopology.name`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NovaCompute struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NovaComputeSpec   `json:"spec"`
	Status NovaComputeStatus `json:"status,omitempty"`
}

// NovaComputeList is a list of NovaCompute.
//
// +kubebuilder:object:root=true
type NovaComputeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NovaCompute `json:"items"`
}

// GetConditions returns the conditions, to be changed in place.
func (c *NovaCompute) GetConditions() *condition.Conditions { return &c.Status.Conditions }

// GetRelease returns the images that are recorded, to be changed in place.
func (c *NovaCompute) GetRelease() *common.Release { return &c.Status.Release }

// SetObservedGeneration notes the generation that the status describes.
func (c *NovaCompute) SetObservedGeneration(g int64) { c.Status.ObservedGeneration = g }

func init() {
	register(&NovaCompute{}, &NovaComputeList{})
}
