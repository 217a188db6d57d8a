package v1beta1

import "github.com/openstack-k8s-operators/lib-common/modules/common/condition"

// Conditions of OpenStackAnsibleEE in addition to Ready and InputReady.
const (
	// JobReadyCondition : the Job has succeeded on every host.
	JobReadyCondition condition.Type = "JobReady"

	// NetworkAttachmentsReadyCondition : the network attachments exist. Present only if the
	// spec names some.
	NetworkAttachmentsReadyCondition condition.Type = "NetworkAttachmentsReady"
)

// Reasons of JobReady.
const (
	// JobRunningReason : the Job is in progress. Remedy: nothing: it continues automatically.
	// `kubectl logs -f job/<run>` follows its output.
	JobRunningReason condition.Reason = "Running"
	// JobHostsBusyReason : another run uses a host of this one, possibly under another name,
	// and comes first: a host is in one run at a time. Remedy: nothing: it continues when the
	// run that the message names has finished or is deleted.
	JobHostsBusyReason condition.Reason = "HostsBusy"
	// JobFailedReason : at least one host failed; the message names the first. Remedy:
	// `status.hosts` has every host, `kubectl logs job/<run>` the whole output. A run that an
	// operator created is not retried: its owner starts another one for the failed hosts.
	JobFailedReason condition.Reason = "Failed"
	// JobLostReason : the Pod ended without leaving results, for example because it was
	// evicted. The outcome is unknown. Remedy: the most frequent cause is a lack of memory:
	// raise the limit of the namespace, or lower `batchSize`. The owners run these hosts again
	// automatically.
	JobLostReason condition.Reason = "Lost"
	// JobCancelledReason : the run was deleted before it finished. Remedy: nothing: its owners
	// run the hosts again that it had not finished.
	JobCancelledReason condition.Reason = "Cancelled"
	// JobNotStartedReason : the run was deleted before it had a Job: no host was touched.
	// Remedy: nothing: its owners start new runs if they still need them.
	JobNotStartedReason condition.Reason = "NotStarted"
)

// Reasons of InputReady and NetworkAttachmentsReady.
const (
	// InvalidSpecReason : no Job can be created from the spec. Remedy: correct the field that
	// the message names.
	InvalidSpecReason condition.Reason = "InvalidSpec"
	// NetworkAttachmentMissingReason : a NetworkAttachmentDefinition, or the kind itself, does
	// not exist. Remedy: create what the message names; it continues automatically.
	NetworkAttachmentMissingReason condition.Reason = "NetworkAttachmentMissing"
)
