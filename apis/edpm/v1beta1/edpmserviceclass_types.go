package v1beta1

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/edpm-operators/edpm-operators/apis/common"
)

// EDPMServiceClassFinalizer keeps a class while nodes have its service: it says how the
// service is removed from them.
const EDPMServiceClassFinalizer = "edpm.openstack.org/edpmserviceclass"

// EDPMServiceClassSpec says what a service is and which nodes have it.
//
// +kubebuilder:validation:XValidation:rule="has(self.playbook) != has(self.play)",message="set exactly one of playbook (the name of a playbook of the image) and play (the text of a playbook)"
// +kubebuilder:validation:XValidation:rule="has(self.cleanupPlaybook) != has(self.cleanupPlay)",message="set exactly one of cleanupPlaybook and cleanupPlay: without them the service would stay on hosts that no longer have it"
type EDPMServiceClassSpec struct {
	// Annotation that selects nodes: one that has it, or else whose role has it, gets the
	// service. Any value selects but the empty one and "false", with which a node opts out
	// of what its role has.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="annotation cannot be changed: nodes that have the service by it would lose it. Create another class with the other annotation"
	Annotation string `json:"annotation"`

	// Play is the text of the playbook that brings the service to a host: a YAML list of
	// plays.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Play string `json:"play,omitempty"`

	// Playbook of the image that brings the service to a host: a fully qualified name, or
	// a path under /runner/project.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Playbook string `json:"playbook,omitempty"`

	// CleanupPlay is the text of the playbook that removes the service from a host.
	// +optional
	// +kubebuilder:validation:MinLength=1
	CleanupPlay string `json:"cleanupPlay,omitempty"`

	// CleanupPlaybook of the image that removes the service from a host, as playbook.
	// +optional
	// +kubebuilder:validation:MinLength=1
	CleanupPlaybook string `json:"cleanupPlaybook,omitempty"`

	// Image of the service: the variable edpm_service_image of the playbooks.
	// +optional
	Image string `json:"image,omitempty"`

	// OpenStackAnsibleEERunnerImage is the execution environment of the runs; by default
	// that of the operator.
	// +optional
	OpenStackAnsibleEERunnerImage string `json:"openStackAnsibleEERunnerImage,omitempty"`

	// ConfigFiles that the playbook finds on the runner, by name in the variable
	// edpm_config_files. A change of their content is a change of the service.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:XValidation:rule="self.name.matches('^[A-Za-z0-9._-]+$') && !(self.name in ['.', '..'])",message="name must be that of a file, without directories: letters, digits, dots, hyphens and underscores"
	ConfigFiles []common.ConfigFile `json:"configFiles,omitempty"`

	// CustomServiceConfig is an oslo.config snippet for all nodes: the file
	// 01-<class>.conf. That of an EDPMService has a higher priority.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	CustomServiceConfig string `json:"customServiceConfig,omitempty"`

	// Vars are variables of the playbooks: a mapping, or the text of a YAML mapping. The
	// ansibleVars of a node or its role win.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Vars *apiextensionsv1.JSON `json:"vars,omitempty"`

	// After are services that must be Ready on a node before the service is brought to it,
	// by their names in status.services of the node: nova, or other classes.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	After []string `json:"after,omitempty"`

	// DeployStrategy says how the service is rolled out over the nodes of a role. What it
	// does not set is as the node and its role have it.
	// +optional
	DeployStrategy ServiceDeployStrategy `json:"deployStrategy,omitempty"`

	// TaskTimeoutSeconds is how long one task of a playbook may take on a host; then it
	// fails there. 600 by default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=7200
	TaskTimeoutSeconds *int32 `json:"taskTimeoutSeconds,omitempty"`

	// Leftovers names what stays on a host that cannot be cleaned up, for the message that
	// says so: "unit edpm_agent, and /var/lib/agent".
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Leftovers string `json:"leftovers,omitempty"`
}

// ServiceDeployStrategy is what a class can set of the deployStrategy of nodes.
type ServiceDeployStrategy struct {
	// Deploy : false computes and shows everything of the service and runs nothing. True
	// (the default) does as the node says.
	// +optional
	Deploy *bool `json:"deploy,omitempty"`

	// BatchSize is the most hosts that one run has.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	// +optional
	BatchSize *int32 `json:"batchSize,omitempty"`

	// MaxUnavailable is the most hosts of a role, as a number or a percentage, that the
	// service may have in a run or failed at the same time.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?|100)%$`
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// MaxFailures is the most hosts of a role on which the service may have failed before
	// no further host is started.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxFailures *int32 `json:"maxFailures,omitempty"`
}

// EDPMServiceClassStatus sums up the nodes that have the service.
type EDPMServiceClassStatus struct {
	// ObservedGeneration of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the class.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions condition.Conditions `json:"conditions,omitempty"`

	// Nodes that have the service.
	// +optional
	Nodes int32 `json:"nodes,omitempty"`

	// ReadyNodes are those on which it is Ready.
	// +optional
	ReadyNodes int32 `json:"readyNodes,omitempty"`

	// NodesSummary is the number of Ready nodes over all, for example 3/5.
	// +optional
	NodesSummary string `json:"nodesSummary,omitempty"`
}

// EDPMServiceClass is a service on hosts: the playbooks that bring it there and remove
// it, its configuration, and the annotation that selects nodes. Each selected node has
// it, by an EDPMService, and shows it in status.services under the name of the class.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=edpm-operators"
// +kubebuilder:resource:shortName=edpmclass;edpmclasses,categories=edpm
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Nodes",type=string,JSONPath=`.status.nodesSummary`
// +kubebuilder:printcolumn:name="Annotation",type=string,JSONPath=`.spec.annotation`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 50",message="metadata.name must have at most 50 characters, lower case letters, digits and hyphens: it is the name of the service on nodes"
// +kubebuilder:validation:XValidation:rule="!(self.metadata.name in ['nova', 'libvirt', 'ovn-controller', 'ovn-metadata']) && !self.metadata.name.endsWith('-cleanup')",message="metadata.name is reserved: nova, libvirt, ovn-controller and ovn-metadata are services of edpm-operators, and names that end with -cleanup are steps that remove a service. Choose another name"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.after) || !(self.metadata.name in self.spec.after)",message="spec.after names the class itself, which would wait for itself: remove that entry"
type EDPMServiceClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   EDPMServiceClassSpec   `json:"spec"`
	Status EDPMServiceClassStatus `json:"status,omitempty"`
}

// EDPMServiceClassList is a list of EDPMServiceClass.
//
// +kubebuilder:object:root=true
type EDPMServiceClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EDPMServiceClass `json:"items"`
}

// GetConditions returns the conditions, to be changed in place.
func (c *EDPMServiceClass) GetConditions() *condition.Conditions { return &c.Status.Conditions }

// SetObservedGeneration notes the generation that the status describes.
func (c *EDPMServiceClass) SetObservedGeneration(g int64) { c.Status.ObservedGeneration = g }

// CleanupStep returns the name of the step that removes the service of a class.
func CleanupStep(class string) string { return class + "-cleanup" }

// DefaultsFile is the file with customServiceConfig of a class, and OverrideFile that
// with the one of a service.
func DefaultsFile(class string) string { return "01-" + class + ".conf" }

// OverrideFile is the file with customServiceConfig of a service.
func OverrideFile(class string) string { return "02-" + class + "-override.conf" }

func init() {
	register(&EDPMServiceClass{}, &EDPMServiceClassList{})
}
