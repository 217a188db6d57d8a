package v1beta1

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/apis/common/hosted"
)

// CellAnnotation on an OpenStackDataPlaneNode, or on its role, makes the node a
// compute of that NovaCell (seeds/004).
const CellAnnotation = "nova.openstack.org/cell"

// Cell0Name is the cell for instances that failed to schedule. It has no computes.
const Cell0Name = "cell0"

// Conditions beside Ready, InputReady, ServiceConfigReady and DeploymentReady.
const (
	// NovaCellReadyCondition : the cell of the compute exists and is Ready.
	NovaCellReadyCondition condition.Type = "NovaCellReady"
	// NovaAllCellsReadyCondition : every cell of a Nova is Ready.
	NovaAllCellsReadyCondition condition.Type = "NovaAllCellReady"
	// NovaComputeServiceConfigReadyCondition : the configuration for the
	// computes of the cell is generated.
	NovaComputeServiceConfigReadyCondition condition.Type = "NovaComputeServiceConfigReady"
	// NovaConductorReadyCondition : the cell has all that its conductor needs, or
	// is to have none.
	NovaConductorReadyCondition condition.Type = "NovaConductorReady"
	// NovaAPIReadyCondition : the Nova has all that its API needs, or is to have none.
	NovaAPIReadyCondition condition.Type = "NovaAPIReady"
	// NovaCellMappingsReadyCondition : the API knows every cell that has a database.
	NovaCellMappingsReadyCondition condition.Type = "NovaCellMappingsReady"
	// UpdateReadyCondition : no update is in progress. Present only while one is.
	UpdateReadyCondition condition.Type = "UpdateReady"
	// NovaDBPurgeReadyCondition : rows of deleted instances are removed from the
	// database of each cell.
	NovaDBPurgeReadyCondition condition.Type = "NovaDBPurgeReady"
	// ComputeServiceReadyCondition : nova can put a guest on the compute, or it is not
	// asked whether it can.
	ComputeServiceReadyCondition condition.Type = "ComputeServiceReady"
	// NovaComputeServicesReadyCondition : the API of a Nova says in which state the
	// services of its computes are.
	NovaComputeServicesReadyCondition condition.Type = "NovaComputeServicesReady"
)

// Reasons of the conditions.
const (
	InvalidSpecReason   condition.Reason = "InvalidSpec"
	InvalidConfigReason condition.Reason = "InvalidServiceConfig"
	// AnnotationMissingReason : neither the node nor its role names a cell.
	AnnotationMissingReason condition.Reason = "CellAnnotationMissing"
	CellMissingReason       condition.Reason = "NovaCellMissing"
	CellNotReadyReason      condition.Reason = "NovaCellNotReady"
	CellZeroReason          condition.Reason = "CellZeroHasNoComputes"
	CellMismatchReason      condition.Reason = "CellMismatch"
	CellsNotReadyReason     condition.Reason = "CellsNotReady"
	ComputesRemainingReason condition.Reason = "ComputesRemaining"
	// CellHasHostsReason : hosts are mapped to a cell that is to be removed.
	CellHasHostsReason condition.Reason = "CellHasHosts"
	// CellHasInstancesReason : a cell that is to be removed has instances.
	CellHasInstancesReason condition.Reason = "CellHasInstances"
	// QueueTypeChangedReason : other queues are asked for in a virtual host that is in use.
	QueueTypeChangedReason condition.Reason = "QueueTypeChanged"
	// DatabaseConflictReason : a database is that of another Nova.
	DatabaseConflictReason condition.Reason = "DatabaseConflict"
	// NotObservedReason : no API is asked for the state of the service of a compute.
	NotObservedReason condition.Reason = "NotObserved"
	// ServiceNotReportedReason : nova does not know the service of a compute.
	ServiceNotReportedReason condition.Reason = "ComputeServiceNotReported"
	// ServiceDuplicatedReason : nova has services of two cells for one host.
	ServiceDuplicatedReason condition.Reason = "ComputeServiceDuplicated"
	// ServiceConflictReason : two computes have one service in nova.
	ServiceConflictReason condition.Reason = "ComputeServiceConflict"
	// ServiceDownReason : the service of a compute does not report to nova.
	ServiceDownReason condition.Reason = "ComputeServiceDown"
	// ServiceDisabledReason : the scheduler passes the compute over.
	ServiceDisabledReason condition.Reason = "ComputeServiceDisabled"
	// InstancesPresentReason : nova has instances on a compute that is being deleted.
	InstancesPresentReason condition.Reason = "InstancesPresent"
	// HostNotMappedReason : the host of a compute is not mapped to its cell.
	HostNotMappedReason condition.Reason = "HostNotMapped"
)

// Those of a NovaExternalCompute that all services on hosts have.
const (
	DataPlaneNodeReadyCondition = hosted.DataPlaneNodeReadyCondition
	NodeMissingReason           = hosted.NodeMissingReason
	NodeNotReadyReason          = hosted.NodeNotReadyReason
	InvalidInventoryReason      = hosted.InvalidInventoryReason
	CleanupReason               = hosted.CleanupReason
	CleanupFailedReason         = hosted.CleanupFailedReason
	MachineConflictReason       = hosted.MachineConflictReason
)

// ServiceLeftEvent says that a compute was deleted and nova keeps its service.
const ServiceLeftEvent = "ComputeServiceLeft"

// Reasons why nova cannot be asked.
const (
	KeystoneUnreachableReason  condition.Reason = "KeystoneUnreachable"
	KeystoneAccessDeniedReason condition.Reason = "KeystoneAccessDenied"
	EndpointMissingReason      condition.Reason = "ComputeEndpointMissing"
	PlacementMissingReason     condition.Reason = "PlacementEndpointMissing"
	CellUnreachableReason      condition.Reason = "CellDatabaseUnreachable"
	APIUnreachableReason       condition.Reason = "NovaAPIUnreachable"
	APIAccessDeniedReason      condition.Reason = "NovaAPIAccessDenied"
)

// UpdatingReason of UpdateReady: a step of an update is not complete.
const UpdatingReason condition.Reason = "Updating"
