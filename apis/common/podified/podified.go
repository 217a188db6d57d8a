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

	// UpdatedCount is the number of pods that are ready with the present configuration.
	// +kubebuilder:validation:Minimum=0
	// +optional
	UpdatedCount int32 `json:"updatedCount,omitempty"`

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

// Conditions in addition to lib-common's InputReady, ServiceConfigReady, TopologyReady,
// NetworkAttachmentsReady and DeploymentReady, and the PlacementReady of what has pods.
const (
	// PodNodesReadyCondition : all scheduled pods are on reachable nodes.
	PodNodesReadyCondition condition.Type = "PodNodesReady"
)

// Reasons of PodNodesReady.
const (
	// NodeNotReadyReason : pods are on a node that does not answer. Remedy: bring the node
	// back; its pods are evicted if it stays unavailable.
	NodeNotReadyReason condition.Reason = "NodeNotReady"
	// PodsTerminatingReason : pods were evicted from a node that does not answer, and are not
	// replaced while they are terminating. Remedy: bring the node back, delete the Node, or
	// force the deletion of the pods: the message has the commands.
	PodsTerminatingReason condition.Reason = "PodsTerminating"
)

// Reasons of DeploymentReady.
const (
	// RollingOutReason : pods are being created or replaced. Remedy: nothing: it continues
	// automatically.
	RollingOutReason condition.Reason = "RollingOut"
	// PodsPendingReason : the scheduler finds no node for a pod; the message is the
	// scheduler's. Remedy: see [my pod is Pending](pod-pending.md), and `PlacementReady`.
	PodsPendingReason condition.Reason = "PodsPending"
	// PodsNotReadyReason : pods are scheduled but not ready; the message names a container
	// that does not stay up. Remedy: see the log with the command in the message, or `kubectl
	// describe pod` of the pod that it names.
	PodsNotReadyReason condition.Reason = "PodsNotReady"
	// ProgramMissingReason : the image does not have the program of the service, nor its WSGI
	// application with a WSGI server; the message names image, program and application.
	// Remedy: set an image that has one of them.
	ProgramMissingReason condition.Reason = "ProgramMissing"
	// HeldReason : a change is held back because of `PlacementReady`, as the Topology has
	// `enforcement: Hold`. Remedy: do what `PlacementReady` says, or set `enforcement: Warn`.
	HeldReason condition.Reason = "Held"
	// ReplacingReason : the StatefulSet is being recreated, because an immutable field has
	// changed or because it was handed over from another operator; its pods keep running.
	// Remedy: nothing: it continues automatically.
	ReplacingReason condition.Reason = "Replacing"
	// RefusedReason : the API server rejects the StatefulSet or a Service. Remedy: correct
	// what the message names.
	RefusedReason condition.Reason = "Refused"
)

// Reasons of conditions that Jobs have to succeed for.
const (
	// JobRunningReason : the Job has not ended yet; the message names it. Remedy: nothing: it
	// continues automatically.
	JobRunningReason condition.Reason = "JobRunning"
	// JobFailingReason : the Job fails for another cause, or its pod does not start. Remedy:
	// see `kubectl logs` of the Job that the message names; it is retried within five minutes.
	JobFailingReason condition.Reason = "JobFailing"
	// JobFailedReason : the Job has failed and is not retried, because something other than
	// the operators ended it. Remedy: delete the Job: it is created again.
	JobFailedReason condition.Reason = "JobFailed"
	// DatabaseAccessDeniedReason : the database server denies access to the user or to the
	// database. Remedy: correct the user or its password in the Secret, or grant it the
	// database; another password is used immediately, else the Job is retried within five
	// minutes.
	DatabaseAccessDeniedReason condition.Reason = "DatabaseAccessDenied"
	// DatabaseMissingReason : the database does not exist on its server. Remedy: create it;
	// the Job is retried within five minutes.
	DatabaseMissingReason condition.Reason = "DatabaseMissing"
	// DatabaseUnreachableReason : the database server does not answer. Remedy: correct its
	// address, or start it; the Job is retried within five minutes.
	DatabaseUnreachableReason condition.Reason = "DatabaseUnreachable"
	// SchemaTooNewReason : the schema of the database is newer than the image. Remedy: set an
	// image of the version that updated the schema, or a newer one.
	SchemaTooNewReason condition.Reason = "SchemaTooNew"
)

// Reasons of InputReady and ServiceConfigReady.
const (
	// InvalidSpecReason : a field is missing. Remedy: set the field that the message names.
	InvalidSpecReason condition.Reason = "InvalidSpec"
	// InvalidConfigReason : oslo.config would reject a snippet, or a password cannot be
	// written into a file. Remedy: correct what the message names: see
	// [how-to](how-to/custom-service-config.md).
	InvalidConfigReason condition.Reason = "InvalidServiceConfig"
)
