// Package incomplete has constants without texts.
package incomplete

import "github.com/openstack-k8s-operators/lib-common/modules/common/condition"

const (
	// MissingReason says that the example does not exist.
	MissingReason condition.Reason = "ExampleMissing"
)

const ReadyCondition condition.Type = "ExampleReady"
