package v1

import "github.com/openstack-k8s-operators/lib-common/modules/common/condition"

// Conditions of StorageCluster beside Ready, lib-common's InputReady and the
// PlacementReady of what has pods.
const (
	// NodesReadyCondition : there are enough nodes for the OSDs.
	NodesReadyCondition condition.Type = "NodesReady"
	// FailureDomainReadyCondition : there are enough failure domains, and every
	// node for OSDs is in one.
	FailureDomainReadyCondition condition.Type = "FailureDomainReady"
	// CephClusterReadyCondition : the CephCluster has the device sets.
	CephClusterReadyCondition condition.Type = "CephClusterReady"
)

// Reasons of InputReady.
const (
	// InvalidSpecReason : fields of the spec contradict each other.
	InvalidSpecReason condition.Reason = "InvalidSpec"
	// UnsupportedFieldReason : the spec has a field of ocs-operator that would make
	// other OSDs, and that is not supported.
	UnsupportedFieldReason condition.Reason = "UnsupportedField"
)

// Reasons of NodesReady.
const (
	// NotEnoughNodesReason : fewer nodes are selected than the OSDs need.
	NotEnoughNodesReason condition.Reason = "NotEnoughNodes"
)

// Reasons of FailureDomainReady.
const (
	// TooFewDomainsReason : there are fewer failure domains than copies of the
	// data, or than a device set asks for.
	TooFewDomainsReason condition.Reason = "TooFewDomains"
	// NodesOutsideDomainsReason : nodes lack the label of the failure domain, so
	// that no OSD goes there.
	NodesOutsideDomainsReason condition.Reason = "NodesOutsideDomains"
)

// Reasons of PlacementReady, next to those of everything that has pods.
const (
	// DeviceClassUnevenReason : a failure domain has no OSD of a device class of which
	// another one has several.
	DeviceClassUnevenReason condition.Reason = "DeviceClassUneven"
)

// Reasons of CephClusterReady.
const (
	// RookMissingReason : the cluster has no kind CephCluster.
	RookMissingReason condition.Reason = "RookMissing"
	// LayoutOrphansReason : the layout of the device sets would orphan OSDs.
	LayoutOrphansReason condition.Reason = "LayoutOrphans"
	// DeviceSetOrphansReason : the spec no longer has device sets with OSDs.
	DeviceSetOrphansReason condition.Reason = "DeviceSetOrphans"
	// EncryptionUnsetReason : a new device set beside encrypted ones does not say
	// whether it is encrypted.
	EncryptionUnsetReason condition.Reason = "EncryptionUnset"
	// EncryptionDiffersReason : the spec asks for another encryption than OSDs have.
	EncryptionDiffersReason condition.Reason = "EncryptionDiffers"
	// LegacyPlacementReason : a device set with OSDs that was found in the CephCluster
	// has changed, which would give it another placement.
	LegacyPlacementReason condition.Reason = "LegacyPlacement"
	// RefusedReason : the API server refuses the CephCluster.
	RefusedReason condition.Reason = "Refused"
)
