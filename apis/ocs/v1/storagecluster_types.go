package v1

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
)

// Labels and the taint of nodes.
const (
	// StorageNodeLabel marks the nodes that OSDs go to, unless labelSelector says
	// otherwise.
	StorageNodeLabel = "cluster.ocs.openshift.io/openshift-storage"
	// StorageTaint keeps other pods off the nodes; OSDs tolerate it.
	StorageTaint = "node.ocs.openshift.io/storage"
	// RackLabel has the rack of a node: where there are too few zones, the
	// operator makes racks.
	RackLabel = "topology.rook.io/rack"
)

// OrphanAnnotation of a StorageCluster names, separated by commas, the
// StorageClassDeviceSets that a change of the spec may take out of the CephCluster
// although they have OSDs: Rook no longer manages those.
const OrphanAnnotation = "edpm.openstack.org/orphan-device-sets"

// ReplacePlacementAnnotation of a StorageCluster names, separated by commas, the device
// sets with the placement that was found in the CephCluster (PlacementLegacy) that may
// get that of the spec: Rook makes the pods of all their OSDs again.
const ReplacePlacementAnnotation = "edpm.openstack.org/replace-placement"

// DefaultReplica is the number of StorageClassDeviceSets of a device set that
// says none; its count is then that of all OSDs, and not of each set's.
const DefaultReplica = 3

// FailureDomain is what may fail without the loss of data: copies of data are in
// different ones.
//
// +kubebuilder:validation:Enum=zone;rack;host;osd
type FailureDomain string

// Failure domains, the largest first.
const (
	FailureDomainZone FailureDomain = "zone"
	FailureDomainRack FailureDomain = "rack"
	FailureDomainHost FailureDomain = "host"
	// FailureDomainOSD is that of a cluster with one node.
	FailureDomainOSD FailureDomain = "osd"
)

// OSDPlacementMode says what the OSD daemons are spread over; the Jobs that
// prepare the devices are always spread over the failure domain first.
//
// +kubebuilder:validation:Enum=SeedPhase1;FailureDomain
type OSDPlacementMode string

// Modes of the placement of daemons.
const (
	// OSDPlacementSeedPhase1 spreads daemons across hosts, softly: their volumes
	// keep them in the domain where they were prepared (seeds/003).
	OSDPlacementSeedPhase1 OSDPlacementMode = "SeedPhase1"
	// OSDPlacementFailureDomain spreads daemons across the failure domain, hard,
	// and across hosts, softly (ocs-operator since September 2025).
	OSDPlacementFailureDomain OSDPlacementMode = "FailureDomain"
)

// DeviceSetLayout says how many StorageClassDeviceSets a device set becomes.
//
// +kubebuilder:validation:Enum=Split;Single
type DeviceSetLayout string

// Layouts of device sets.
const (
	// LayoutSplit makes as many as replica says, named <set>-0, <set>-1, ...
	LayoutSplit DeviceSetLayout = "Split"
	// LayoutSingle makes one, named like the device set (seeds/003, phase 2).
	LayoutSingle DeviceSetLayout = "Single"
)

// StorageDeviceSet is a group of OSDs.
type StorageDeviceSet struct {
	// Name of the set; the names of its StorageClassDeviceSets begin with it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Count of the OSDs in each StorageClassDeviceSet, of which there are as many
	// as replica says. Without replica it is the number of all OSDs of the set.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Count int32 `json:"count"`

	// Replica is the number of StorageClassDeviceSets, and of failure domains
	// that the OSDs need at least.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Replica int32 `json:"replica,omitempty"`

	// DeviceType of the devices.
	// +optional
	// +kubebuilder:validation:Enum=SSD;ssd;HDD;hdd;NVMe;NVME;nvme
	DeviceType string `json:"deviceType,omitempty"`

	// DeviceClass of the devices in the CRUSH map. Empty means that of the
	// device type.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	DeviceClass string `json:"deviceClass,omitempty"`

	// Portable OSDs can move to another node of the failure domain that they were
	// prepared in: their volumes can be used there.
	// +optional
	Portable bool `json:"portable,omitempty"`

	// TopologyKey is the label of nodes whose values the prepare Jobs are spread
	// over. Empty means that of the failure domain.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	TopologyKey string `json:"topologyKey,omitempty"`

	// Placement of the daemons, and of the prepare Jobs unless preparePlacement is
	// set. Each part that is set replaces the default; tolerations are added.
	// +optional
	Placement cephv1.Placement `json:"placement,omitzero"`

	// PreparePlacement of the Jobs that prepare the devices.
	// +optional
	PreparePlacement *cephv1.Placement `json:"preparePlacement,omitempty"`

	// Resources of the daemons.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`

	// Encrypted devices. Without it spec.encryption decides. It cannot be changed
	// once there are OSDs.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`

	// DataPVCTemplate is the claim of each OSD.
	// +required
	DataPVCTemplate corev1.PersistentVolumeClaim `json:"dataPVCTemplate"`

	UnsupportedSetFields `json:",inline"`
}

// ArbiterSpec stretches the cluster over two zones and an arbiter.
type ArbiterSpec struct {
	// Enable it: the location is in nodeTopologies.
	// +optional
	Enable bool `json:"enable,omitempty"`

	UnsupportedArbiterFields `json:",inline"`
}

// EncryptionSpec says whether devices are encrypted.
type EncryptionSpec struct {
	// Enable encrypts the devices of all device sets that do not say otherwise, as
	// clusterWide does; it is the older name.
	// +optional
	Enable bool `json:"enable,omitempty"`
	// ClusterWide encrypts the devices of all device sets that do not say otherwise.
	// +optional
	ClusterWide bool `json:"clusterWide,omitempty"`

	UnsupportedEncryptionFields `json:",inline"`
}

// NodeTopologyMap is what is known of the topology of nodes.
type NodeTopologyMap struct {
	// ArbiterLocation is the zone of the arbiter, where no data is.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	ArbiterLocation string `json:"arbiterLocation,omitempty"`
	// Labels of the nodes, and their values.
	// +optional
	Labels map[string][]string `json:"labels,omitempty"`
}

// OSDPlacementSpec says how OSDs are spread.
type OSDPlacementSpec struct {
	// Mode of the placement of the daemons: SeedPhase1 spreads them across hosts,
	// FailureDomain across the failure domain and then across hosts.
	// +optional
	// +kubebuilder:default=SeedPhase1
	Mode OSDPlacementMode `json:"mode,omitempty"`
}

// UnsupportedEncryptionFields are the fields of encryption in ocs-operator's StorageCluster that have no
// effect here.
type UnsupportedEncryptionFields struct {
	// StorageClass is not supported.
	// +optional
	StorageClass *apiextensionsv1.JSON `json:"storageClass,omitempty"`
	// StorageClassName is not supported.
	// +optional
	StorageClassName *apiextensionsv1.JSON `json:"storageClassName,omitempty"`
	// KMS is not supported.
	// +optional
	KMS *apiextensionsv1.JSON `json:"kms,omitempty"`
	// KeyRotation is not supported.
	// +optional
	KeyRotation *apiextensionsv1.JSON `json:"keyRotation,omitempty"`
}

// UnsupportedArbiterFields are the fields of arbiter in ocs-operator's StorageCluster that have no
// effect here.
type UnsupportedArbiterFields struct {
	// ReconcileStrategy is not supported.
	// +optional
	ReconcileStrategy *apiextensionsv1.JSON `json:"reconcileStrategy,omitempty"`
	// ArbiterMonPVCTemplate is not supported.
	// +optional
	ArbiterMonPVCTemplate *apiextensionsv1.JSON `json:"arbiterMonPVCTemplate,omitempty"`
	// DisableMasterNodeToleration is not supported.
	// +optional
	DisableMasterNodeToleration *apiextensionsv1.JSON `json:"disableMasterNodeToleration,omitempty"`
}

// UnsupportedSetFields are the fields of ocs-operator's device sets that are not
// supported. Without them OSDs would be others than those that are asked for.
type UnsupportedSetFields struct {
	// MetadataPVCTemplate is not supported.
	// +optional
	MetadataPVCTemplate *apiextensionsv1.JSON `json:"metadataPVCTemplate,omitempty"`
	// WALPVCTemplate is not supported.
	// +optional
	WALPVCTemplate *apiextensionsv1.JSON `json:"walPVCTemplate,omitempty"`
	// InitialWeight is not supported.
	// +optional
	InitialWeight *apiextensionsv1.JSON `json:"initialWeight,omitempty"`
	// PrimaryAffinity is not supported.
	// +optional
	PrimaryAffinity *apiextensionsv1.JSON `json:"primaryAffinity,omitempty"`
	// Config is not supported.
	// +optional
	Config *apiextensionsv1.JSON `json:"config,omitempty"`
}

// UnsupportedFields are the fields of ocs-operator's StorageCluster that have no effect
// here: they are about what Ceph consists of next to OSDs. They are kept, so that they can
// be reported: the API server drops fields that it does not know, and says so only to
// strict clients.
type UnsupportedFields struct {
	// ManageNodes is not supported.
	// +optional
	ManageNodes *apiextensionsv1.JSON `json:"manageNodes,omitempty"`
	// InstanceType is not supported.
	// +optional
	InstanceType *apiextensionsv1.JSON `json:"instanceType,omitempty"`
	// ExternalStorage is not supported.
	// +optional
	ExternalStorage *apiextensionsv1.JSON `json:"externalStorage,omitempty"`
	// HostNetwork is not supported.
	// +optional
	HostNetwork *apiextensionsv1.JSON `json:"hostNetwork,omitempty"`
	// Resources is not supported.
	// +optional
	Resources *apiextensionsv1.JSON `json:"resources,omitempty"`
	// ResourceProfile is not supported.
	// +optional
	ResourceProfile *apiextensionsv1.JSON `json:"resourceProfile,omitempty"`
	// MonPVCTemplate is not supported.
	// +optional
	MonPVCTemplate *apiextensionsv1.JSON `json:"monPVCTemplate,omitempty"`
	// MonDataDirHostPath is not supported.
	// +optional
	MonDataDirHostPath *apiextensionsv1.JSON `json:"monDataDirHostPath,omitempty"`
	// Mgr is not supported.
	// +optional
	Mgr *apiextensionsv1.JSON `json:"mgr,omitempty"`
	// MultiCloudGateway is not supported.
	// +optional
	MultiCloudGateway *apiextensionsv1.JSON `json:"multiCloudGateway,omitempty"`
	// NFS is not supported.
	// +optional
	NFS *apiextensionsv1.JSON `json:"nfs,omitempty"`
	// NVMeoF is not supported.
	// +optional
	NVMeoF *apiextensionsv1.JSON `json:"nvmeof,omitempty"`
	// CSI is not supported.
	// +optional
	CSI *apiextensionsv1.JSON `json:"csi,omitempty"`
	// Monitoring is not supported.
	// +optional
	Monitoring *apiextensionsv1.JSON `json:"monitoring,omitempty"`
	// Version is not supported.
	// +optional
	Version *apiextensionsv1.JSON `json:"version,omitempty"`
	// Network is not supported.
	// +optional
	Network *apiextensionsv1.JSON `json:"network,omitempty"`
	// ManagedResources is not supported.
	// +optional
	ManagedResources *apiextensionsv1.JSON `json:"managedResources,omitempty"`
	// Mirroring is not supported.
	// +optional
	Mirroring *apiextensionsv1.JSON `json:"mirroring,omitempty"`
	// OverprovisionControl is not supported.
	// +optional
	OverprovisionControl *apiextensionsv1.JSON `json:"overprovisionControl,omitempty"`
	// AllowRemoteStorageConsumers is not supported.
	// +optional
	AllowRemoteStorageConsumers *apiextensionsv1.JSON `json:"allowRemoteStorageConsumers,omitempty"`
	// ProviderAPIServerServiceType is not supported.
	// +optional
	ProviderAPIServerServiceType *apiextensionsv1.JSON `json:"providerAPIServerServiceType,omitempty"`
	// EnableCephTools is not supported.
	// +optional
	EnableCephTools *apiextensionsv1.JSON `json:"enableCephTools,omitempty"`
	// LogCollector is not supported.
	// +optional
	LogCollector *apiextensionsv1.JSON `json:"logCollector,omitempty"`
	// BackingStorageClasses is not supported.
	// +optional
	BackingStorageClasses *apiextensionsv1.JSON `json:"backingStorageClasses,omitempty"`
	// DefaultStorageProfile is not supported.
	// +optional
	DefaultStorageProfile *apiextensionsv1.JSON `json:"defaultStorageProfile,omitempty"`
}

// StorageClusterSpec is the part of a storage cluster that decides where OSDs go.
type StorageClusterSpec struct {
	// StorageDeviceSets are the groups of OSDs.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	StorageDeviceSets []StorageDeviceSet `json:"storageDeviceSets,omitempty"`

	// LabelSelector of the nodes that OSDs go to. Empty means nodes with the label
	// cluster.ocs.openshift.io/openshift-storage.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// FlexibleScaling makes each host a failure domain of its own, wherever it is.
	// +optional
	FlexibleScaling bool `json:"flexibleScaling,omitempty"`

	// Arbiter stretches the cluster over two zones and an arbiter in a third.
	// +optional
	Arbiter ArbiterSpec `json:"arbiter,omitzero"`

	// Encryption of the devices.
	// +optional
	Encryption EncryptionSpec `json:"encryption,omitzero"`

	// NodeTopologies has what cannot be read from the nodes. An arbiter needs its
	// location.
	// +optional
	NodeTopologies *NodeTopologyMap `json:"nodeTopologies,omitempty"`

	// Placement by component, as in a CephCluster: all is that of every daemon;
	// without it, nodes with the storage label and the toleration of the storage
	// taint. That of OSDs is in storageDeviceSets, and osd here is ignored.
	// +optional
	Placement map[string]cephv1.Placement `json:"placement,omitempty"`

	// OSDPlacement says how OSDs are spread.
	// +optional
	// +kubebuilder:default={mode: SeedPhase1}
	OSDPlacement OSDPlacementSpec `json:"osdPlacement,omitzero"`

	// DeviceSetLayout says how many StorageClassDeviceSets a device set becomes:
	// Split makes as many as replica says, Single makes one. Changing it renames
	// them, and with them the OSDs: admission refuses that where there are any.
	// +optional
	// +kubebuilder:default=Split
	DeviceSetLayout DeviceSetLayout `json:"deviceSetLayout,omitempty"`

	UnsupportedFields `json:",inline"`
}

// DeviceSetPlacement says how the OSDs of a device set are scheduled.
//
// +kubebuilder:validation:Enum=Legacy;Constraints
type DeviceSetPlacement string

// Ways in which OSDs find their nodes.
const (
	// PlacementLegacy is that of StorageClassDeviceSets that were there before, such
	// as those that ocs-operator pinned to one domain each by node affinity. They are
	// kept as they are, with more OSDs if the spec asks for more, until an annotation
	// names the device set.
	PlacementLegacy DeviceSetPlacement = "Legacy"
	// PlacementConstraints spreads OSDs by topology spread constraints.
	PlacementConstraints DeviceSetPlacement = "Constraints"
)

// MaxDomains and MaxOrphans bound the lists in the status.
const (
	MaxDomains = 64
	MaxOrphans = 100
)

// DomainOSDs is a number of OSDs in a domain.
type DomainOSDs struct {
	// Domain is the value of the label.
	Domain string `json:"domain"`
	// OSDs in the domain.
	OSDs int32 `json:"osds"`
}

// DeviceSetStatus is where the OSDs of a device set are and would go.
type DeviceSetStatus struct {
	// Name of the device set.
	Name string `json:"name"`
	// Placement that is effective: Legacy of a set that was there before, until an
	// annotation names it, and otherwise Constraints. Empty until the CephCluster was written.
	// +optional
	Placement DeviceSetPlacement `json:"placement,omitempty"`
	// Hash of what the spec said of the set when the CephCluster was written.
	// +optional
	Hash string `json:"hash,omitempty"`
	// StorageClassDeviceSets that the set became in the CephCluster.
	// +optional
	// +listType=atomic
	StorageClassDeviceSets []string `json:"storageClassDeviceSets,omitempty"`
	// OSDs of the set.
	// +optional
	OSDs int32 `json:"osds"`
	// Distribution of the OSDs over the domains: where they run, and where the
	// scheduler would put those that do not run yet; the first 64 by name.
	// +optional
	// +listType=map
	// +listMapKey=domain
	// +kubebuilder:validation:MaxItems=64
	Distribution []DomainOSDs `json:"distribution,omitempty"`
	// Skew is the difference between the domain with the most OSDs and that with
	// the fewest.
	// +optional
	Skew int32 `json:"skew"`
}

// CephClusterStatus is what was written to the CephCluster next to device sets.
type CephClusterStatus struct {
	// UID of the CephCluster. One that was restored from a backup has another UID,
	// and what it has is found as if for the first time.
	UID types.UID `json:"uid"`
	// Placements by daemon.
	// +optional
	// +listType=map
	// +listMapKey=name
	Placements []DaemonPlacementStatus `json:"placements,omitempty"`
}

// DaemonPlacementStatus is what became of a placement of the CephCluster.
type DaemonPlacementStatus struct {
	// Name of the daemon, or all: a key of spec.placement.
	Name string `json:"name"`
	// Kept is true while the placement is the one that was found in the CephCluster:
	// until the spec says something else of it than when it was found.
	// +optional
	Kept bool `json:"kept,omitempty"`
	// Hash of what the spec said of it.
	// +optional
	Hash string `json:"hash,omitempty"`
}

// LayoutSwitchStatus is the dry run of the other deviceSetLayout: what it would
// leave without an owner.
type LayoutSwitchStatus struct {
	// To is the layout that was tried.
	To DeviceSetLayout `json:"to"`
	// OrphanedPVCs are claims that no StorageClassDeviceSet would name any more,
	// the first 100 by name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	OrphanedPVCs []string `json:"orphanedPVCs,omitempty"`
	// OrphanedOSDs are the numbers of the OSDs on those claims, the first 100.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	OrphanedOSDs []string `json:"orphanedOSDs,omitempty"`
	// OrphanedPVCCount is the number of all such claims.
	// +optional
	OrphanedPVCCount int32 `json:"orphanedPVCCount"`
}

// StorageClusterStatus shows the failure domain, and where the OSDs are.
type StorageClusterStatus struct {
	// ObservedGeneration of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the storage cluster.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions condition.Conditions `json:"conditions,omitempty"`

	// FailureDomain of the cluster. Once decided, it stays.
	// +optional
	FailureDomain FailureDomain `json:"failureDomain,omitempty"`
	// FailureDomainKey is the label of nodes that has the domain.
	// +optional
	FailureDomainKey string `json:"failureDomainKey,omitempty"`
	// FailureDomainValues are the domains of the nodes that OSDs go to.
	// +optional
	// +listType=set
	FailureDomainValues []string `json:"failureDomainValues,omitempty"`

	// EligibleNodes are the nodes that OSDs go to.
	// +optional
	// +listType=set
	EligibleNodes []string `json:"eligibleNodes,omitempty"`

	// NodeTopologies of these nodes.
	// +optional
	NodeTopologies *NodeTopologyMap `json:"nodeTopologies,omitempty"`

	// DeviceSets of the spec, and how their OSDs are spread.
	// +optional
	// +listType=map
	// +listMapKey=name
	DeviceSets []DeviceSetStatus `json:"deviceSets,omitempty"`

	// CephCluster that was written.
	// +optional
	CephCluster *CephClusterStatus `json:"cephCluster,omitempty"`

	// OSDs of all device sets.
	// +optional
	OSDs int32 `json:"osds"`

	// SpreadSummary has the OSDs of each domain, for example a=2,b=2,c=2.
	// +optional
	SpreadSummary string `json:"spreadSummary,omitempty"`

	// LayoutSwitch is the dry run of the other deviceSetLayout.
	// +optional
	LayoutSwitch *LayoutSwitchStatus `json:"layoutSwitch,omitempty"`
}

// StorageCluster says which OSDs there are and how they are spread over failure
// domains. It becomes the device sets of CephCluster <name>-cephcluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=edpm-operators"
// +kubebuilder:resource:shortName=ocssc,categories=edpm
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Domain",type=string,JSONPath=`.status.failureDomain`
// +kubebuilder:printcolumn:name="OSDs",type=integer,JSONPath=`.status.osds`
// +kubebuilder:printcolumn:name="Spread",type=string,JSONPath=`.status.spreadSummary`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type StorageCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   StorageClusterSpec   `json:"spec,omitempty"`
	Status StorageClusterStatus `json:"status,omitempty"`
}

// StorageClusterList is a list of StorageCluster.
//
// +kubebuilder:object:root=true
type StorageClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StorageCluster `json:"items"`
}

// GetConditions returns the conditions, to be changed in place.
func (c *StorageCluster) GetConditions() *condition.Conditions { return &c.Status.Conditions }

// SetObservedGeneration notes the generation that the status describes.
func (c *StorageCluster) SetObservedGeneration(g int64) { c.Status.ObservedGeneration = g }

func init() {
	register(&StorageCluster{}, &StorageClusterList{})
}
