// Package complete has a comment for each condition and reason.
package complete

import "github.com/openstack-k8s-operators/lib-common/modules/common/condition"

// ExampleReadyCondition : the example is ready.
const ExampleReadyCondition condition.Type = "ExampleReady"

// Reasons of ExampleReady.
const (
	// MissingReason : the example does not
	// exist. Remedy: create it.
	MissingReason condition.Reason = "ExampleMissing"
	// Label is no reason.
	Label = "example"
	// AliasReason has its text where it is defined.
	AliasReason = condition.ErrorReason
)
