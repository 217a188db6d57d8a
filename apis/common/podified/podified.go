// Package podified holds what the kinds have in common whose services run in
// pods of a StatefulSet: a part of their status, conditions and reasons.
//
// +kubebuilder:object:generate=true
package podified

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// Status is what a kind says of the pods of its service.
type Status struct {
	// ReadyCount is the number of pods that are ready.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=0
	ReadyCount int32 `json:"readyCount"`

	// Hash of what the pods were made from: input is that of the configuration
	// and of everything else that they read when they start.
	// +optional
	Hash map[string]string `json:"hash,omitempty"`

	// LastAppliedTopology is the Topology that the pods follow.
	// +optional
	LastAppliedTopology *topologyv1.TopologyRef `json:"lastAppliedTopology,omitempty"`
}

// InputHash is the key of Status.Hash.
const InputHash = "input"

// Conditions beside lib-common's InputReady, ServiceConfigReady, TopologyReady,
// NetworkAttachmentsReady and DeploymentReady, and the PlacementReady of what has pods.
const (
	// PodNodesReadyCondition : no pod is on a node that is lost.
	PodNodesReadyCondition condition.Type = "PodNodesReady"
)

// Reasons of PodNodesReady.
const (
	// NodeNotReadyReason : pods are on a node that does not answer, and will be
	// evicted when it stays so.
	NodeNotReadyReason condition.Reason = "NodeNotReady"
	// PodsTerminatingReason : pods are Terminating on a node that does not
	// answer, and nothing takes their place until it is known what became of them.
	PodsTerminatingReason condition.Reason = "PodsTerminating"
)

// Reasons of DeploymentReady.
const (
	// RollingOutReason : pods are being made or replaced.
	RollingOutReason condition.Reason = "RollingOut"
	// PodsPendingReason : the scheduler finds no node for a pod.
	PodsPendingReason condition.Reason = "PodsPending"
	// PodsNotReadyReason : pods have a node and are not ready.
	PodsNotReadyReason condition.Reason = "PodsNotReady"
	// ProgramMissingReason : the image of a pod does not have what the pod runs.
	ProgramMissingReason condition.Reason = "ProgramMissing"
	// HeldReason : a change is held back because pods would find no node.
	HeldReason condition.Reason = "Held"
	// ReplacingReason : the StatefulSet is made again, as a field changed that
	// cannot be changed in place, or as another operator handed it over.
	ReplacingReason condition.Reason = "Replacing"
	// RefusedReason : the API server refuses the StatefulSet or a Service.
	RefusedReason condition.Reason = "Refused"
)

// Reasons of conditions that Jobs have to succeed for.
const (
	// JobRunningReason : a Job has not succeeded yet.
	JobRunningReason condition.Reason = "JobRunning"
	// JobFailingReason : a Job fails for an unknown cause, or its pod does not start.
	JobFailingReason condition.Reason = "JobFailing"
	// JobFailedReason : a Job has failed and is not retried.
	JobFailedReason condition.Reason = "JobFailed"
	// DatabaseAccessDeniedReason : the database server denies a Job access.
	DatabaseAccessDeniedReason condition.Reason = "DatabaseAccessDenied"
	// DatabaseMissingReason : the database of a Job does not exist on its server.
	DatabaseMissingReason condition.Reason = "DatabaseMissing"
	// DatabaseUnreachableReason : the database server does not answer a Job.
	DatabaseUnreachableReason condition.Reason = "DatabaseUnreachable"
	// SchemaTooNewReason : the schema is newer than the image that is to update it.
	SchemaTooNewReason condition.Reason = "SchemaTooNew"
)

// Reasons of InputReady and ServiceConfigReady.
const (
	InvalidSpecReason   condition.Reason = "InvalidSpec"
	InvalidConfigReason condition.Reason = "InvalidServiceConfig"
)
