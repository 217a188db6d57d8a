package v1

import "github.com/openstack-k8s-operators/lib-common/modules/common/condition"

// Conditions of StorageCluster in addition to Ready, lib-common's InputReady and the
// PlacementReady of what has pods.
const (
	// NodesReadyCondition : there are enough nodes for the OSDs.
	NodesReadyCondition condition.Type = "NodesReady"
	// FailureDomainReadyCondition : there are enough failure domains, and every node for OSDs
	// is in one.
	FailureDomainReadyCondition condition.Type = "FailureDomainReady"
	// CephClusterReadyCondition : the CephCluster has the device sets.
	CephClusterReadyCondition condition.Type = "CephClusterReady"
)

// Reasons of InputReady.
const (
	// InvalidSpecReason : fields contradict each other, and the webhook was unavailable when
	// they were written. Remedy: correct the field that the message names.
	InvalidSpecReason condition.Reason = "InvalidSpec"
	// UnsupportedFieldReason : a device set has fields of ocs-operator that are not supported and
	// would result in other OSDs. Nothing is changed. Remedy: remove the fields that the message
	// names, or leave the StorageCluster to ocs-operator.
	UnsupportedFieldReason condition.Reason = "UnsupportedField"
)

// Reasons of NodesReady.
const (
	// NotEnoughNodesReason : fewer nodes are selected than the OSDs need. Existing OSDs are
	// not changed. Remedy: label more nodes; the message has the command.
	NotEnoughNodesReason condition.Reason = "NotEnoughNodes"
)

// Reasons of FailureDomainReady.
const (
	// TooFewDomainsReason : there are fewer failure domains than copies of the data, or than
	// `replica` asks for. OSDs are created nevertheless. Remedy: add storage nodes with other
	// values of the label, or lower `replica`.
	TooFewDomainsReason condition.Reason = "TooFewDomains"
	// NodesOutsideDomainsReason : nodes do not have the label of the failure domain, and get
	// no OSD. Remedy: label the nodes that the message names.
	NodesOutsideDomainsReason condition.Reason = "NodesOutsideDomains"
)

// Reasons of PlacementReady, next to those of everything that has pods.
const (
	// DeviceClassUnevenReason : a failure domain has no OSD of a device class of which another
	// one has several. Remedy: set `osdPlacement.mode: FailureDomain`, or add OSDs of the class.
	DeviceClassUnevenReason condition.Reason = "DeviceClassUneven"
)

// Reasons of CephClusterReady.
const (
	// RookMissingReason : the resource definition of CephCluster does not exist. Remedy:
	// install Rook; it continues automatically.
	RookMissingReason condition.Reason = "RookMissing"
	// LayoutOrphansReason : `deviceSetLayout` would orphan OSDs. The CephCluster is not
	// changed. Remedy: set the layout that the message names.
	LayoutOrphansReason condition.Reason = "LayoutOrphans"
	// DeviceSetOrphansReason : device sets with OSDs were removed from the spec. The
	// CephCluster is not changed. Remedy: add the device sets again, or set the annotation
	// that the message names.
	DeviceSetOrphansReason condition.Reason = "DeviceSetOrphans"
	// EncryptionUnsetReason : a new device set would be unencrypted while others are
	// encrypted, and the spec does not set `encrypted`. The CephCluster is not changed.
	// Remedy: set `encrypted` of the device set.
	EncryptionUnsetReason condition.Reason = "EncryptionUnset"
	// EncryptionDiffersReason : `encrypted` in the spec differs from device sets of the
	// CephCluster. The CephCluster is not changed. Remedy: set `encrypted` as the message
	// says, or add a device set.
	EncryptionDiffersReason condition.Reason = "EncryptionDiffers"
	// LegacyPlacementReason : more than the count of a device set with OSDs that was found in
	// the CephCluster has changed, which would recreate their pods with another placement. The
	// CephCluster is not changed. Remedy: restore the device set, or set the annotation that
	// the message names.
	LegacyPlacementReason condition.Reason = "LegacyPlacement"
	// RefusedReason : the API server, a webhook or a policy rejects the CephCluster, or the label
	// of a rack on a node; the message has its error. Remedy: correct what the message names, or
	// what rejects it; it is tried again each minute.
	RefusedReason condition.Reason = "Refused"
)
