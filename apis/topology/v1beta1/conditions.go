package v1beta1

import "github.com/openstack-k8s-operators/lib-common/modules/common/condition"

// Finalizer keeps a Topology while objects use it, as kubernetes.io/pvc-protection keeps
// a PersistentVolumeClaim.
const Finalizer = "topology.openstack.org/in-use"

// Conditions of Topology beside Ready. Objects that refer to a Topology have
// lib-common's TopologyReady.
const (
	// ConsumersReadyCondition is True while the objects that refer to the
	// Topology can do so, and False while they hold up its deletion.
	ConsumersReadyCondition condition.Type = "ConsumersReady"
	// SpreadReadyCondition is True while the running pods keep to every
	// constraint that is DoNotSchedule.
	SpreadReadyCondition condition.Type = "SpreadReady"
)

// Reasons of ConsumersReady.
const (
	// InUseReason : the Topology is deleted and objects still refer to it.
	InUseReason condition.Reason = "InUse"
)

// Reasons of SpreadReady.
const (
	// NoDomainReason : no node has the topologyKey of a constraint.
	NoDomainReason condition.Reason = "NoDomain"
	// SkewExceededReason : pods are further apart than maxSkew allows.
	SkewExceededReason condition.Reason = "SkewExceeded"
)

// Reasons of TopologyReady, a condition of objects that refer to a Topology.
const (
	// TopologyMissingReason : the Topology does not exist.
	TopologyMissingReason condition.Reason = "TopologyMissing"
	// TopologyDeletingReason : the Topology is being deleted and takes no new users.
	TopologyDeletingReason condition.Reason = "TopologyDeleting"
	// TopologyHeldReason : the Topology, or its last change, is held back by
	// enforcement Hold, and the pods follow what was there before.
	TopologyHeldReason condition.Reason = "TopologyHeld"
)

// PlacementReadyCondition of objects with pods: every pod has a node, or would find
// one if it were made as the spec says now.
const PlacementReadyCondition condition.Type = "PlacementReady"

// Reasons of PlacementReady. What they mean is decided by internal/placement with
// the code of the scheduler.
const (
	// VolumeNodeAffinityConflictReason : a pod's volume can only be reached from
	// nodes that refuse the pod, as in the last case of seeds/001.
	VolumeNodeAffinityConflictReason condition.Reason = "VolumeNodeAffinityConflict"
	// MissingNodeLabelReason : nodes lack the topology key of a constraint with
	// DoNotSchedule.
	MissingNodeLabelReason condition.Reason = "MissingNodeLabel"
	// MinDomainsUnmetReason : there are fewer domains than minDomains of a
	// constraint, which then counts as if an empty domain were there.
	MinDomainsUnmetReason condition.Reason = "MinDomainsUnmet"
	// PodRefusedReason : the API server would not create a pod or its claim, because
	// of a LimitRange or a ResourceQuota of the namespace.
	PodRefusedReason condition.Reason = "PodRefused"
	// UnsatisfiableReason : no node takes a pod, for any other reason.
	UnsatisfiableReason condition.Reason = "Unsatisfiable"
	// InertSelectorReason : a constraint or an affinity has no effect, because it
	// selects no pod, or no pod or no node has its key.
	InertSelectorReason condition.Reason = "InertSelector"
)

// PlacementReasons are the reasons of PlacementReady, those first that tell most.
var PlacementReasons = []condition.Reason{
	VolumeNodeAffinityConflictReason, MissingNodeLabelReason, MinDomainsUnmetReason, PodRefusedReason, UnsatisfiableReason, InertSelectorReason,
}

// Annotations of pod templates that a Topology was applied to. They tell the
// controller of Topologies which pods are whose.
const (
	// NameAnnotation is the name of the Topology.
	NameAnnotation = "topology.openstack.org/name"
	// ConsumersAnnotation lists whose pods these are, as Kind/name separated by commas.
	ConsumersAnnotation = "topology.openstack.org/consumers"
)
