// Package common holds what the kinds of several API groups share: annotations,
// labels and the small types that appear in more than one status.
//
// +kubebuilder:object:generate=true
package common

import "github.com/openstack-k8s-operators/lib-common/modules/common/condition"

const (
	// RerunAnnotation asks for one more run with unchanged inputs. Each new
	// value of the token causes exactly one run; removing it causes none.
	RerunAnnotation = "edpm.openstack.org/rerun"

	// SkipCleanupAnnotation with the value "true" lets a deleted object go
	// without running the cleanup playbook on its host.
	SkipCleanupAnnotation = "edpm.openstack.org/skip-cleanup"

	// DisableAnnotation on a node has its compute service disabled in nova, with the
	// value as the reason.
	DisableAnnotation = "edpm.openstack.org/disable"
	// HostKeyAnnotation on a node is the public key of its host, as in
	// /etc/ssh/ssh_host_ed25519_key.pub. It takes the place of the key that was
	// recorded when the host was first met.
	HostKeyAnnotation = "edpm.openstack.org/host-key"

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
	// owner reference, and how a person hands an object of somebody else over.
	OwnerAnnotation = "edpm.openstack.org/owner"

	// ResultsFinalizer keeps a run until its results are recorded by the owners
	// of its targets, so that deleting a run never makes it happen again.
	ResultsFinalizer = "edpm.openstack.org/results"
)

// Reasons of conditions that tell of a Secret or ConfigMap that an object names.
const (
	SecretMissingReason    condition.Reason = "SecretMissing"
	SecretKeyMissingReason condition.Reason = "SecretKeyMissing"
	// SecretForbiddenReason : the operators may not read Secrets in the namespace.
	SecretForbiddenReason condition.Reason = "SecretForbidden"
	// SecretLimitReason : objects of the namespace name more Secrets than are held.
	SecretLimitReason         condition.Reason = "SecretLimit"
	ConfigMapMissingReason    condition.Reason = "ConfigMapMissing"
	ConfigMapKeyMissingReason condition.Reason = "ConfigMapKeyMissing"
)

// RunnerImageMissingReason : neither the object nor the manager names an image of
// the execution environment.
const RunnerImageMissingReason condition.Reason = "RunnerImageMissing"

// ConflictReason : an object of the name that is wanted for a generated one exists
// already, and is not ours. It is left alone.
const ConflictReason condition.Reason = "Conflict"
