package v1beta1

import "github.com/openstack-k8s-operators/lib-common/modules/common/condition"

// Conditions of OpenStackAnsibleEE beside Ready and InputReady.
const (
	// JobReadyCondition is True once the Job has succeeded on every host.
	JobReadyCondition condition.Type = "JobReady"

	// NetworkAttachmentsReadyCondition says whether the network attachment
	// definitions exist. It is there only when the spec names some.
	NetworkAttachmentsReadyCondition condition.Type = "NetworkAttachmentsReady"
)

// Reasons of JobReady.
const (
	// JobRunningReason : the Job has not finished.
	JobRunningReason condition.Reason = "Running"
	// JobHostsBusyReason : another run has a host of this one and comes first.
	JobHostsBusyReason condition.Reason = "HostsBusy"
	// JobFailedReason : the Job has finished and at least one host failed.
	JobFailedReason condition.Reason = "Failed"
	// JobLostReason : the Job ended without a recap, so the outcome of its hosts is unknown.
	JobLostReason condition.Reason = "Lost"
	// JobCancelledReason : the run was deleted before it finished.
	JobCancelledReason condition.Reason = "Cancelled"
	// JobNotStartedReason : the run was deleted before it had a Job, so that no
	// host was touched.
	JobNotStartedReason condition.Reason = "NotStarted"
)

// Reasons of InputReady and NetworkAttachmentsReady.
const (
	// InvalidSpecReason : the spec cannot be turned into a Job.
	InvalidSpecReason condition.Reason = "InvalidSpec"
	// NetworkAttachmentMissingReason : a network attachment definition does not exist.
	NetworkAttachmentMissingReason condition.Reason = "NetworkAttachmentMissing"
)
