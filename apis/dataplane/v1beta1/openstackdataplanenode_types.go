package v1beta1

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// NodeFinalizer keeps a node until every service is off its host.
const NodeFinalizer = "dataplane.openstack.org/node"

// MachineFinalizer is on a node that has, or is about to claim, a BareMetalHost. It
// shows in a backup without status.
const MachineFinalizer = "dataplane.openstack.org/machine"

// NodeServiceStatus is the state of one OpenStack service on a node. Each entry
// is owned by the operator of that service, which applies it with server-side
// apply, so that the data plane need not know any service.
type NodeServiceStatus struct {
	// Name of the service, for example nova.
	Name string `json:"name"`
	// Ready reports whether the service runs with its current configuration.
	Ready bool `json:"ready"`
	// Message says why it is not ready.
	// +optional
	Message string `json:"message,omitempty"`
	// Kind of the object that describes the service on this node.
	// +optional
	Kind string `json:"kind,omitempty"`
	// ObjectName is the name of that object.
	// +optional
	ObjectName string `json:"objectName,omitempty"`
	// EmptySince is since when nothing of the service, such as a guest, is on the host that a
	// reboot would end. Absent while something is, and where that is not known.
	// +optional
	EmptySince *metav1.Time `json:"emptySince,omitempty"`
}

// ClaimedHost is the BareMetalHost of a node.
type ClaimedHost struct {
	// Name of the BareMetalHost that the node has chosen; empty when the status was
	// lost and it is not found yet.
	Name string `json:"name"`

	// Claimed reports whether the node has claimed it.
	// +optional
	Claimed bool `json:"claimed,omitempty"`

	// Provisioned reports whether the node has seen it run its image.
	// +optional
	Provisioned bool `json:"provisioned,omitempty"`

	// PoweredOff reports whether baremetal-operator has seen it off, and leaves it off.
	// +optional
	PoweredOff bool `json:"poweredOff,omitempty"`

	// Address by which Ansible reaches it unless spec.ansibleHost is set.
	// +optional
	Address string `json:"address,omitempty"`

	// InputHash is a hash of the image, user data and network data that it was given.
	// +optional
	InputHash string `json:"inputHash,omitempty"`

	// Outdated reports whether image, user data or network data that are wanted have
	// changed since.
	// +optional
	Outdated bool `json:"outdated,omitempty"`

	// ReclaimPolicy is what its role said last of the time after the node.
	// +optional
	ReclaimPolicy string `json:"reclaimPolicy,omitempty"`

	// Waiting is the reason for which phase -1 waits, and Since is since when it does.
	// +optional
	Waiting string `json:"waiting,omitempty"`
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// Replacement is the last token of the annotation edpm.openstack.org/replace-host
	// that was followed. Another machine is another host: every step is run on it.
	// +optional
	Replacement string `json:"replacement,omitempty"`

	// Former is the BareMetalHost that was released because of that token. The node
	// claims it again only if spec.bareMetalHost names it.
	// +optional
	Former string `json:"former,omitempty"`
}

// ProvisioningStatus is what the controller that claims machines reports to that of the
// node, which shows it as condition ProvisionReady.
type ProvisioningStatus struct {
	// Reason for which phase -1 waits; empty when it waits for nothing.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Severity of the condition.
	// +optional
	Severity string `json:"severity,omitempty"`

	// Message says what is wrong or awaited, and what to do.
	// +optional
	Message string `json:"message,omitempty"`
}

// OpenStackDataPlaneNodeStatus is the state of phases -1 and 0 and, for
// information, of the services of phase 1.
type OpenStackDataPlaneNodeStatus struct {
	// ObservedGeneration of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the node.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions condition.Conditions `json:"conditions,omitempty"`

	// Ledger of what ran successfully, by service of phase 0.
	common.Ledger `json:",inline"`

	// BareMetalHost is the machine of a node that is provisioned from bare metal.
	// +optional
	BareMetalHost *ClaimedHost `json:"bareMetalHost,omitempty"`

	// Provisioning is what phase -1 waits for. It is absent where no machine is wanted.
	// +optional
	Provisioning *ProvisioningStatus `json:"provisioning,omitempty"`

	// InventoryConfigMapName is the ConfigMap whose key inventory is the
	// Ansible inventory of this node.
	// +optional
	InventoryConfigMapName string `json:"inventoryConfigMapName,omitempty"`

	// LastAppliedTopology is the Topology of the object's own topologyRef, which
	// cannot go while it is noted here.
	// +optional
	LastAppliedTopology *topologyv1.TopologyRef `json:"lastAppliedTopology,omitempty"`

	// Services of phase 1 on the node.
	// +optional
	// +listType=map
	// +listMapKey=name
	Services []NodeServiceStatus `json:"services,omitempty"`
}

// OpenStackDataPlaneNode is one host outside Kubernetes.
//
// It is Ready when its inputs are valid, it is provisioned, and every service
// of phase 0 has run successfully with the current inputs. Ready says nothing
// about phase 1; status.services does.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=edpm-operators"
// +kubebuilder:resource:shortName=osdpnode;osdpnodes,categories=edpm
// +kubebuilder:selectablefield:JSONPath=`.spec.role`
// +kubebuilder:selectablefield:JSONPath=`.spec.ansibleHost`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.role`
// +kubebuilder:printcolumn:name="Services",type=string,JSONPath=`.status.services[*].name`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OpenStackDataPlaneNode struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   OpenStackDataPlaneNodeSpec   `json:"spec,omitempty"`
	Status OpenStackDataPlaneNodeStatus `json:"status,omitempty"`
}

// OpenStackDataPlaneNodeList is a list of OpenStackDataPlaneNode.
//
// +kubebuilder:object:root=true
type OpenStackDataPlaneNodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OpenStackDataPlaneNode `json:"items"`
}

// IsReady reports whether phases -1 and 0 are done for the current spec.
func (n *OpenStackDataPlaneNode) IsReady() bool {
	return n.Status.ObservedGeneration == n.Generation && n.Status.Conditions.IsTrue(condition.ReadyCondition)
}

// GetConditions returns the conditions, to be changed in place.
func (n *OpenStackDataPlaneNode) GetConditions() *condition.Conditions { return &n.Status.Conditions }

// SetObservedGeneration notes the generation that the status describes.
func (n *OpenStackDataPlaneNode) SetObservedGeneration(g int64) { n.Status.ObservedGeneration = g }

// GetLedger returns what ran successfully for the node.
func (n *OpenStackDataPlaneNode) GetLedger() *common.Ledger { return &n.Status.Ledger }

func init() {
	register(&OpenStackDataPlaneNode{}, &OpenStackDataPlaneNodeList{})
}
