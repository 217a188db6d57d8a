// Package common holds what the kinds of several API groups share: annotations,
// labels and the small types that appear in more than one status.
//
// +kubebuilder:object:generate=true
package common

import "github.com/openstack-k8s-operators/lib-common/modules/common/condition"

const (
	// RerunAnnotation asks for one more run with unchanged inputs, or of the Jobs of a service. Each new
	// value of the token causes exactly one run; removing it causes none.
	RerunAnnotation = "edpm.openstack.org/rerun"

	// SkipCleanupAnnotation with the value "true" lets a deleted object go
	// without running the cleanup playbook on its host.
	SkipCleanupAnnotation = "edpm.openstack.org/skip-cleanup"

	// IgnoreBusyAnnotation with the value "true" on a service on a host has steps run that
	// interrupt what its host does.
	IgnoreBusyAnnotation = "edpm.openstack.org/ignore-busy"

	// DisableAnnotation on a node has its compute service disabled in nova, with the
	// value as the reason.
	DisableAnnotation = "edpm.openstack.org/disable"

	// DrainAnnotation on a node has its compute service disabled in nova, and its guests
	// moved to other hosts: live, cold or stop.
	DrainAnnotation = "edpm.openstack.org/drain"

	// DrainParallelAnnotation on a node is how many of its guests are moved, or evacuated, at a
	// time.
	DrainParallelAnnotation = "edpm.openstack.org/drain-parallel"

	// FenceAnnotation on a node says that its host is off, and stays off until the annotation
	// is removed: the value is who says so. Its guests are evacuated.
	FenceAnnotation = "edpm.openstack.org/fence"

	// HostKeyAnnotation on a node is the public key of its host, as in
	// /etc/ssh/ssh_host_ed25519_key.pub. It takes the place of the key that was
	// recorded when the host was first met.
	HostKeyAnnotation = "edpm.openstack.org/host-key"

	// TakeOverAnnotation on a node names the tool whose nova-compute, libvirt and OVN its host
	// is taken over from. Without it such a host is refused.
	TakeOverAnnotation = "edpm.openstack.org/take-over"

	// ReplaceHostAnnotation on a node asks for another machine. Each new value of the
	// token has the BareMetalHost of the node released, and another one claimed;
	// removing it does nothing.
	ReplaceHostAnnotation = "edpm.openstack.org/replace-host"

	// BeforeClaimAnnotation on a BareMetalHost that a node has claimed has the fields of
	// its spec that are given back when it is released, as they were and as they were claimed.
	BeforeClaimAnnotation = "edpm.openstack.org/before-claim"

	// HostsAnnotation on a runner Pod lists its hosts, separated by commas.
	HostsAnnotation = "edpm.openstack.org/hosts"

	// StepLabel on a run, its Job and its Pod names the step.
	StepLabel = "edpm.openstack.org/step"

	// RoleLabel on a run, its Job and its Pod names the role of its hosts.
	RoleLabel = "edpm.openstack.org/role"

	// RunInputsLabel marks the Secrets that hold the inputs of one run.
	RunInputsLabel = "edpm.openstack.org/run-inputs"

	// OwnerAnnotation on a generated object names the object that it was made for,
	// as <kind>.<group>/<name>. It is how the object is known when it has lost its
	// owner reference, and how a person hands an object of another user over.
	OwnerAnnotation = "edpm.openstack.org/owner"

	// ResultsFinalizer keeps a run until its results are recorded by the owners
	// of its targets, so that deleting a run never makes it happen again.
	ResultsFinalizer = "edpm.openstack.org/results"
)

// Reasons of conditions that tell of a Secret or ConfigMap that an object names.
const (
	// SecretMissingReason : a Secret does not exist. Remedy: create the Secret that the
	// message names; it continues automatically.
	SecretMissingReason condition.Reason = "SecretMissing"
	// SecretKeyMissingReason : the Secret does not have the key that the message names.
	// Remedy: add the key to the Secret; it continues automatically.
	SecretKeyMissingReason condition.Reason = "SecretKeyMissing"
	// SecretForbiddenReason : the operators have no permissions for Secrets in the namespace.
	// Remedy: [bind](install.md#rights) the operators' ClusterRole for Secrets in the
	// namespace; it continues automatically.
	SecretForbiddenReason condition.Reason = "SecretForbidden"
	// SecretLimitReason : objects of the namespace refer to more or larger Secrets than the
	// manager caches for one namespace. Remedy: share Secrets between hosts, or remove
	// references that are not needed, which takes effect within ten minutes; or raise
	// [`--secrets-per-namespace`](operations.md#flags-of-the-manager).
	SecretLimitReason condition.Reason = "SecretLimit"
	// ConfigMapMissingReason : a ConfigMap does not exist. Remedy: create the ConfigMap that
	// the message names; it continues automatically.
	ConfigMapMissingReason condition.Reason = "ConfigMapMissing"
	// ConfigMapKeyMissingReason : the ConfigMap does not have the key that the message names.
	// Remedy: add the key to the ConfigMap; it continues automatically.
	ConfigMapKeyMissingReason condition.Reason = "ConfigMapKeyMissing"
)

// RunnerImageMissingReason : neither the object nor the manager sets an image for the
// execution environment. Remedy: build the image and [set it](install.md#images) for the
// manager, or in the field that the message names; setting it for the manager restarts the
// manager.
const RunnerImageMissingReason condition.Reason = "RunnerImageMissing"

// ImageMissingReason : neither the object nor the manager sets an image of a program that it
// deploys; the message names the program and the variable. What runs continues. Remedy: [set
// it](install.md#images) for the manager, which restarts the manager, or in the spec.
const ImageMissingReason condition.Reason = "ImageMissing"

// ConflictReason : an object with the name of a generated one exists already, and was not
// created for this object; the message names it. Remedy: delete the object that the message
// names if nothing needs it, or rename one of the two; it continues when the name is free.
const ConflictReason condition.Reason = "Conflict"
