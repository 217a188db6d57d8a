package v1beta1

import "github.com/openstack-k8s-operators/lib-common/modules/common/condition"

// Finalizer keeps a Topology while objects use it, as kubernetes.io/pvc-protection keeps
// a PersistentVolumeClaim.
const Finalizer = "topology.openstack.org/in-use"

// Conditions of Topology in addition to Ready. Objects that refer to a Topology have
// lib-common's TopologyReady.
const (
	// ConsumersReadyCondition : objects can refer to the Topology.
	ConsumersReadyCondition condition.Type = "ConsumersReady"
	// SpreadReadyCondition : the running pods satisfy every constraint with `DoNotSchedule`.
	SpreadReadyCondition condition.Type = "SpreadReady"
)

// Reasons of ConsumersReady.
const (
	// InUseReason : the Topology is being deleted, and objects still use it; the message names
	// them. Remedy: refer to another Topology in these objects, or remove the reference.
	InUseReason condition.Reason = "InUse"
)

// Reasons of SpreadReady.
const (
	// NoDomainReason : no node has the label of a constraint with `DoNotSchedule`: pods would
	// stay Pending. Remedy: label the nodes, or correct `topologyKey`.
	NoDomainReason condition.Reason = "NoDomain"
	// SkewExceededReason : the skew of the running pods exceeds `maxSkew`, or there are fewer
	// domains than `minDomains`. Remedy: do what the message says: set `nodeTaintsPolicy: Honor`,
	// or delete the pod that it names and that would be scheduled in another domain; the
	// scheduler does not move running pods.
	SkewExceededReason condition.Reason = "SkewExceeded"
)

// Reasons of TopologyReady, a condition of objects that refer to a Topology.
const (
	// TopologyMissingReason : the Topology does not exist in the namespace. Running pods
	// continue. Remedy: create it, or refer to another one; it continues automatically.
	TopologyMissingReason condition.Reason = "TopologyMissing"
	// TopologyDeletingReason : the Topology is being deleted and accepts no new users. Running
	// pods continue. Remedy: refer to another Topology, or to none.
	TopologyDeletingReason condition.Reason = "TopologyDeleting"
	// TopologyHeldReason : the Topology, or its last change, has `enforcement: Hold`, and pods
	// would be unschedulable. Pods keep using the Topology that the message names, which is
	// not removed. Remedy: do what `PlacementReady` says, set `enforcement: Warn`, or refer to
	// the previous Topology again.
	TopologyHeldReason condition.Reason = "TopologyHeld"
)

// PlacementReadyCondition : every pod is scheduled, or would be if it were created from the
// current spec.
const PlacementReadyCondition condition.Type = "PlacementReady"

// Reasons of PlacementReady. What they mean is decided by internal/placement with
// the code of the scheduler.
const (
	// VolumeNodeAffinityConflictReason : the volume of a pod can only be reached from nodes
	// that refuse the pod. Remedy: allow the pod on the nodes that can reach its volume, or
	// use external storage.
	VolumeNodeAffinityConflictReason condition.Reason = "VolumeNodeAffinityConflict"
	// MissingNodeLabelReason : nodes do not have the label that a constraint needs. Remedy:
	// label the nodes; the message has the command.
	MissingNodeLabelReason condition.Reason = "MissingNodeLabel"
	// MinDomainsUnmetReason : there are fewer domains than `minDomains`. Remedy: label more
	// nodes, or lower `minDomains`.
	MinDomainsUnmetReason condition.Reason = "MinDomainsUnmet"
	// PodRefusedReason : the API server would reject a pod or its claim, because of a
	// LimitRange or ResourceQuota of the namespace. Remedy: correct the requests and limits,
	// or raise the quota: the message names both.
	PodRefusedReason condition.Reason = "PodRefused"
	// UnsatisfiableReason : no node is suitable for a pod, for another reason; the message is
	// the scheduler's. Remedy: see [my pod is Pending](pod-pending.md).
	UnsatisfiableReason condition.Reason = "Unsatisfiable"
	// InertSelectorReason : a constraint or an affinity has no effect: its `labelSelector`
	// matches none of the pods, or no pod or no node has its keys or values. Remedy: correct
	// what the message names, or remove the rule.
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
