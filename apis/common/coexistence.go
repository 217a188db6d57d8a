package common

import "github.com/openstack-k8s-operators/lib-common/modules/common/condition"

// What each of our resource definitions has as a label. One without it belongs to
// another operator.
const (
	PartOfLabel = "app.kubernetes.io/part-of"
	PartOf      = "edpm-operators"
)

// OperatorsRunningCondition is True on a Pod of the manager when every operator
// runs that was chosen.
const OperatorsRunningCondition condition.Type = "edpm.openstack.org/OperatorsRunning"

// Reasons of OperatorsRunning.
const (
	// AllRunningReason : every operator runs that was chosen.
	AllRunningReason condition.Reason = "AllRunning"
	// ForeignDefinitionReason : a resource definition belongs to another operator.
	ForeignDefinitionReason condition.Reason = "ForeignDefinition"
	// MissingDefinitionReason : a resource definition does not exist.
	MissingDefinitionReason condition.Reason = "MissingDefinition"
)
