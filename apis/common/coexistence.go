package common

import "github.com/openstack-k8s-operators/lib-common/modules/common/condition"

// What each of our resource definitions has as a label. One without it belongs to
// another operator.
const (
	PartOfLabel = "app.kubernetes.io/part-of"
	PartOf      = "edpm-operators"
)

// OperatorsRunningCondition : all selected operators are running; the message names them.
const OperatorsRunningCondition condition.Type = "edpm.openstack.org/OperatorsRunning"

// Reasons of OperatorsRunning.
const (
	// AllRunningReason : (True) no operator is disabled. Remedy: nothing.
	AllRunningReason condition.Reason = "AllRunning"
	// ForeignDefinitionReason : a resource definition belongs to another operator; the message
	// names the definition, and the operators that are disabled because of it. Remedy:
	// nothing, to keep the other operator. Otherwise remove it and its definition, and apply
	// the definition of this project: the manager restarts automatically.
	ForeignDefinitionReason condition.Reason = "ForeignDefinition"
	// MissingDefinitionReason : a resource definition that an operator needs does not exist;
	// the message names it. Remedy: apply all definitions with `kubectl apply --server-side -k
	// config/crd`, or only the missing one; the manager restarts automatically.
	MissingDefinitionReason condition.Reason = "MissingDefinition"
)
