// Package hosted holds what the kinds have in common whose services run on hosts
// outside Kubernetes: parts of their spec and status, conditions and reasons.
//
// +kubebuilder:object:generate=true
package hosted

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/apis/common"
)

// ServiceSpec is the part of a spec that all services on hosts have. All of it but
// customServiceConfig and the image is kept up to date by the controller that
// watches the nodes.
type ServiceSpec struct {
	// DataplaneNodeName is the OpenStackDataPlaneNode that the service runs on.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="dataplaneNodeName cannot be changed: create an object for the other node instead"
	DataplaneNodeName string `json:"dataplaneNodeName"`

	// CustomServiceConfig is an oslo.config snippet with a higher priority than
	// the generated configuration. No operator ever writes it.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	CustomServiceConfig string `json:"customServiceConfig,omitempty"`

	// InventoryConfigMapName is a ConfigMap whose key inventory is an Ansible
	// inventory that contains the node.
	// +optional
	InventoryConfigMapName string `json:"inventoryConfigMapName,omitempty"`

	// SSHKeySecretName names a Secret whose key ssh-privatekey is the key with
	// which Ansible logs in.
	// +optional
	SSHKeySecretName string `json:"sshKeySecretName,omitempty"`

	// JumpHost is the host through which runs reach the host of the node.
	// +optional
	JumpHost *common.JumpHost `json:"jumpHost,omitempty"`

	// NetworkAttachments of the runner Pods.
	// +optional
	// +listType=atomic
	NetworkAttachments []string `json:"networkAttachments,omitempty"`

	// Deploy is desired state: true (the default) keeps the service converged,
	// false computes and shows everything and runs nothing.
	// +optional
	Deploy *bool `json:"deploy,omitempty"`

	// AnsibleEEContainerImage is the execution environment of the runs.
	// +optional
	AnsibleEEContainerImage string `json:"ansibleEEContainerImage,omitempty"`
}

// ServiceStatus is the part of a status that all services on hosts have.
type ServiceStatus struct {
	// ObservedGeneration of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the service.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions condition.Conditions `json:"conditions,omitempty"`

	// Ledger of what ran successfully, by step.
	common.Ledger `json:",inline"`
}

// DataPlaneNodeReadyCondition : phases -1 and 0 of the node are complete.
//
// The other conditions of all services are lib-common's InputReady, ServiceConfigReady and
// DeploymentReady.
const DataPlaneNodeReadyCondition condition.Type = "DataPlaneNodeReady"

// Reasons of InputReady and ServiceConfigReady.
const (
	// NodeMissingReason : the node does not exist. Remedy: create the node, or delete the
	// object.
	NodeMissingReason condition.Reason = "DataPlaneNodeMissing"
	// AnnotationMissingReason : neither the node nor its role has the annotation that gives
	// nodes the service; nothing is run. Remedy: set the annotation that the message names on
	// the node or its role, or delete the object.
	AnnotationMissingReason condition.Reason = "AnnotationMissing"
	// InvalidSpecReason : a field that is copied from the node is still empty, or the
	// `deployStrategy` of the node is invalid. Remedy: set `ansibleSSHPrivateKeySecret` on the
	// node or its role, or correct what the message names.
	InvalidSpecReason condition.Reason = "InvalidSpec"
	// InvalidInventoryReason : the inventory is invalid, does not have the host, or has a
	// variable that changes how hosts are [reached and
	// trusted](security.md#how-hosts-are-reached). Remedy: correct `inventoryConfigMapName`,
	// or the ConfigMap if you created it.
	InvalidInventoryReason condition.Reason = "InvalidInventory"
	// InvalidConfigReason : `customServiceConfig` is invalid; the message has the line.
	// Remedy: correct it: see [how-to](how-to/custom-service-config.md).
	InvalidConfigReason condition.Reason = "InvalidServiceConfig"
)

// NodeNotReadyReason : phase 0 of the node is not complete, or the node is being deleted.
// Remedy: see the conditions of the node: `kubectl edpm status <node>`.
const NodeNotReadyReason condition.Reason = "DataPlaneNodeNotReady"

// Reasons of DeploymentReady of a service that is being deleted.
const (
	// CleanupReason : the object is being deleted, and its service is being removed from the
	// host. Remedy: nothing: it continues automatically.
	CleanupReason condition.Reason = "CleaningUp"
	// CleanupFailedReason : the host cannot be cleaned up; the message says why, and what is
	// left on it. Remedy: fix the host and run `kubectl edpm rerun <node> --step <service>`,
	// or skip clean-up with the annotation `edpm.openstack.org/skip-cleanup`: see [removing a
	// node](how-to/scale-in.md).
	CleanupFailedReason condition.Reason = "CleanupFailed"
	// MachineConflictReason : the object is being deleted, and the clean-up would remove the
	// services of another node that is deployed on the same machine. Remedy: set
	// `edpm.openstack.org/skip-cleanup`, or delete the other node first: see [one host, two
	// nodes](how-to/replace-a-host.md#one-host-two-nodes).
	MachineConflictReason condition.Reason = "MachineConflict"
)
