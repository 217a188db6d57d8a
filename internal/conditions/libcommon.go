package conditions

import "github.com/openstack-k8s-operators/lib-common/modules/common/condition"

// Conditions and reasons of lib-common, whose comments are not ours. Those without a
// meaning mean something else for each kind.
var (
	ready                   = Condition{Type: condition.ReadyCondition, Means: "all other conditions are True; else it repeats the worst of them"}
	inputReady              = Condition{Type: condition.InputReadyCondition}
	serviceConfigReady      = Condition{Type: condition.ServiceConfigReadyCondition, Means: "`customServiceConfig` is valid"}
	networkAttachmentsReady = Condition{Type: condition.NetworkAttachmentsReadyCondition, Means: "the network attachments exist"}
	topologyReady           = Condition{Type: condition.TopologyReadyCondition, Means: "the Topology that the object refers to can be used. Present only if the object refers to one"}
	dbSyncReady             = Condition{Type: condition.DBSyncReadyCondition}
	deploymentReady         = Condition{Type: condition.DeploymentReadyCondition}

	notChecked = Reason{condition.InitReason, "the phase waits for an earlier condition", "see the conditions that are False"}
	failed     = Reason{condition.ErrorReason, "a fault of the environment, for example an API server that does not answer; the message has the details", "fix what the message names; it is retried automatically, with increasing delays"}
	notReached = Reason{condition.RequestedReason, "(Unknown) no run has reached the host yet", "nothing: it continues automatically"}
)
