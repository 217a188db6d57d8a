package v1beta1

import (
	"cmp"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/edpm-operators/edpm-operators/apis/common"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// MaxTargets is the most hosts that one run can have. The recap of a run comes
// back in the termination message of its container, which holds 4,096 bytes:
// this many hosts with names of 63 characters always fit.
const MaxTargets = 50

// MaxSteps is the most steps that one run can have.
const MaxSteps = 32

// DefaultEnvConfigMap is the ConfigMap whose entries are environment variables of
// every run that names no other. It need not exist.
const DefaultEnvConfigMap = "openstack-aee-default-env"

// Labels of every Job and Pod of a run: RunnerLabel is "true", and RunnerApp is the value
// of the label app.
const (
	RunnerLabel = "osaee"
	RunnerApp   = "openstackansibleee"
)

// OpenStackAnsibleEESpec says what to run, where and how.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.playbook) && has(self.playbookContents))",message="playbook and playbookContents exclude each other: set one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.steps) || !has(self.playbook) && !has(self.playbookContents)",message="steps have their own playbooks: remove playbook and playbookContents"
type OpenStackAnsibleEESpec struct {
	// Playbook of the image: a fully qualified name (namespace.collection.playbook)
	// or a path under /runner/project. Without it and without playbookContents,
	// playbook.yaml is run.
	// +optional
	Playbook string `json:"playbook,omitempty"`

	// PlaybookContents is the text of a playbook: a YAML list of plays.
	// +optional
	PlaybookContents string `json:"playbookContents,omitempty"`

	// Image of the execution environment.
	// +optional
	Image string `json:"image,omitempty"`

	// Args replaces the arguments of the container.
	// +optional
	// +listType=atomic
	Args []string `json:"args,omitempty"`

	// Name of the container.
	// +kubebuilder:default=openstackansibleee
	// +optional
	Name string `json:"name,omitempty"`

	// EnvConfigMapName names a ConfigMap whose entries become environment
	// variables of the runner. It need not exist.
	// +kubebuilder:default=openstack-aee-default-env
	// +optional
	EnvConfigMapName string `json:"envConfigMapName,omitempty"`

	// Env of the runner container.
	// +optional
	// +listType=map
	// +listMapKey=name
	Env []corev1.EnvVar `json:"env,omitempty"`

	// RestartPolicy of the runner Pod.
	// +kubebuilder:validation:Enum=OnFailure;Never
	// +kubebuilder:default=Never
	// +optional
	RestartPolicy corev1.RestartPolicy `json:"restartPolicy,omitempty"`

	// PreserveJobs keeps the finished Job and its logs. When false they are
	// removed ten minutes after the end.
	// +kubebuilder:default=true
	// +optional
	PreserveJobs *bool `json:"preserveJobs,omitempty"`

	// UID that the runner runs as.
	// +kubebuilder:default=1001
	// +kubebuilder:validation:Minimum=1
	// +optional
	UID *int64 `json:"uid,omitempty"`

	// BackoffLimit is how often Kubernetes retries the whole run.
	// +kubebuilder:default=6
	// +kubebuilder:validation:Minimum=0
	// +optional
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`

	// Inventory is the text of an Ansible inventory.
	// +optional
	Inventory string `json:"inventory,omitempty"`

	// SSHKeySecretName names a Secret whose key ssh-privatekey is the key with
	// which Ansible logs in.
	// +optional
	SSHKeySecretName string `json:"sshKeySecretName,omitempty"`

	// JumpHost is the host through which all hosts of the run are reached.
	// +optional
	JumpHost *common.JumpHost `json:"jumpHost,omitempty"`

	// InputsSecretName names a Secret that holds the inputs of a run: its key
	// inventory is the inventory, and every other key a file under /runner/config.
	// +optional
	InputsSecretName string `json:"inputsSecretName,omitempty"`

	// ExtraMounts of the runner Pod.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ExtraMounts []ExtraMount `json:"extraMounts,omitempty"`

	// NetworkAttachments are network attachment definitions of the namespace.
	// +optional
	// +listType=atomic
	NetworkAttachments []string `json:"networkAttachments,omitempty"`

	// TopologyRef is the Topology that the runner Pod follows. It is read when the
	// Job is created; what becomes of it later matters to other runs only.
	// +optional
	TopologyRef *topologyv1.TopologyRef `json:"topologyRef,omitempty"`

	// CmdLine holds more arguments for ansible-playbook.
	// +optional
	CmdLine string `json:"cmdLine,omitempty"`

	// AnsibleTags : only tasks with these tags are run.
	// +optional
	AnsibleTags string `json:"ansibleTags,omitempty"`

	// AnsibleSkipTags : tasks with these tags are not run.
	// +optional
	AnsibleSkipTags string `json:"ansibleSkipTags,omitempty"`

	// AnsibleLimit is a host pattern: only matching hosts are touched.
	// +optional
	AnsibleLimit string `json:"ansibleLimit,omitempty"`

	// TaskTimeoutSeconds is how long one task of the playbook may take on a host; then
	// it fails there. A task that sets timeout itself keeps that. 600 by default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=7200
	TaskTimeoutSeconds *int32 `json:"taskTimeoutSeconds,omitempty"`

	// ServiceAccountName of the runner Pod. It gets no token in any case.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// DNSConfig of the runner Pod.
	// +optional
	DNSConfig *corev1.PodDNSConfig `json:"dnsConfig,omitempty"`

	// Check runs Ansible in check mode: nothing on the hosts is changed, and the results say
	// which tasks would change them.
	// +optional
	Check bool `json:"check,omitempty"`

	// ExtraVars are variables with the highest precedence.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ExtraVars map[string]apiextensionsv1.JSON `json:"extraVars,omitempty"`

	// Step that the run carries out, or the names of all its steps, separated by
	// commas. Set by the execution engine.
	// +optional
	Step string `json:"step,omitempty"`

	// Steps of a run that carries out several: one after the other, as one playbook.
	// A host that fails in one of them takes no part in those that follow. Set by the
	// execution engine.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Steps []RunStep `json:"steps,omitempty"`

	// Removal is true when the run takes a service off its hosts. Set by the execution
	// engine.
	// +optional
	Removal bool `json:"removal,omitempty"`

	// Role that the hosts of the run have, set by the execution engine.
	// +optional
	Role string `json:"role,omitempty"`

	// OwnerKind is the kind of the objects that own the targets. Set by the
	// execution engine.
	// +optional
	OwnerKind string `json:"ownerKind,omitempty"`

	// Service that the run brings to its hosts or removes, where objects of the owner
	// kind are for different services. Set by the execution engine.
	// +optional
	Service string `json:"service,omitempty"`

	// Targets are the hosts of the run and what each is brought to, set by the
	// execution engine.
	// +optional
	// +listType=map
	// +listMapKey=host
	// +kubebuilder:validation:MaxItems=50
	Targets []Target `json:"targets,omitempty"`
}

// Target is one host of a run.
type Target struct {
	// Host is the name of the host in the inventory, and of the object that owns
	// the target unless owner has another one.
	Host string `json:"host"`

	// Owner is the name of the object that owns the target, if it is not that of the
	// host.
	// +optional
	Owner string `json:"owner,omitempty"`

	// Hash of everything that decides the outcome on the host. A run of several steps has it
	// in steps.
	// +optional
	Hash string `json:"hash,omitempty"`

	// OwnerUID is the UID of the object that owns the target. An object of the
	// same name that is created later knows nothing of this run.
	// +optional
	OwnerUID types.UID `json:"ownerUID,omitempty"`

	// Access is a hash of how the host is reached. A change of it alone does not
	// cause a run, but lets a failed one be tried again at once.
	// +optional
	Access string `json:"access,omitempty"`

	// Rerun is the token that asked for this run.
	// +optional
	Rerun string `json:"rerun,omitempty"`

	// Tokens are the rerun tokens of the role, the node and the service of the
	// host, by these names, when the run was created. One of them is effective.
	// +optional
	Tokens map[string]string `json:"tokens,omitempty"`

	// Serial number of this run among those of the step on this host, from 1.
	// +optional
	Serial int64 `json:"serial,omitempty"`

	// Machine is the address and port by which the host is reached. Two hosts
	// with the same machine are never in two runs at once, whatever their names
	// are. Empty when it is not known.
	// +optional
	Machine string `json:"machine,omitempty"`

	// Attempt counts the runs for this hash, from 1.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`

	// Steps of a run that carries out several, in the order of spec.steps. They have
	// the hash, the serial number and the attempt.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Steps []TargetStep `json:"steps,omitempty"`
}

// JobStatus is the state of the Job of a run.
// +kubebuilder:validation:Enum=Pending;Running;Succeeded;Failed
type JobStatus string

// States of a run. Succeeded and Failed are final until the spec changes.
const (
	JobPending   JobStatus = "Pending"
	JobRunning   JobStatus = "Running"
	JobSucceeded JobStatus = "Succeeded"
	JobFailed    JobStatus = "Failed"
)

// HostStatus is Ansible's recap for one host.
type HostStatus struct {
	// Name of the host in the inventory.
	Name string `json:"name"`
	// OK counts the tasks that went well.
	OK int32 `json:"ok"`
	// Changed counts the tasks that changed the host.
	Changed int32 `json:"changed"`
	// Failed counts the tasks that failed.
	Failed int32 `json:"failed"`
	// Unreachable counts the tasks for which the host did not answer.
	Unreachable int32 `json:"unreachable"`
	// Skipped counts the tasks that did not apply.
	Skipped int32 `json:"skipped"`
	// Message says which task failed and why. Of a host that is well it says what is pending there, such as a reboot.
	// +optional
	Message string `json:"message,omitempty"`
	// HostKey is the public key that the host showed, if none was known before.
	// +optional
	HostKey string `json:"hostKey,omitempty"`
	// StepsDone counts the steps of the run that the host has done: of each, it
	// reached the end of the last play. It is missing in results of runner images
	// that do not record it.
	// +optional
	StepsDone *int32 `json:"stepsDone,omitempty"`
	// StepsBegun counts the steps of the run that the host has begun, if there are more than
	// those that it has done and the one after them.
	// +optional
	StepsBegun *int32 `json:"stepsBegun,omitempty"`
	// NotConnected is true when ssh never logged in to the host, so that nothing
	// ran on it.
	// +optional
	NotConnected bool `json:"notConnected,omitempty"`
	// Refused is true when the task that failed does so each time with the same inputs,
	// for example because the image of a service refuses its configuration.
	// +optional
	Refused bool `json:"refused,omitempty"`
	// HostNotEmpty is true when the task that failed needs a host without guests.
	// +optional
	HostNotEmpty bool `json:"hostNotEmpty,omitempty"`
	// Differences are the tasks of a check that would change the host.
	// +optional
	// +listType=atomic
	Differences []StepDifference `json:"differences,omitempty"`
}

// StepDifference is a task of a step that would change a host.
type StepDifference struct {
	// Step of the run, by its number from 1.
	Step int32 `json:"step"`

	common.Difference `json:",inline"`
}

// Converged reports whether the host has done the run: no task failed, and it
// reached the end of the last play. A host for which no task ran at all was not
// touched, and so has not converged.
func (h HostStatus) Converged() bool {
	return h.Failed == 0 && h.Unreachable == 0 && h.OK > 0 && (h.StepsDone == nil || *h.StepsDone > 0)
}

// Untouched reports whether it is certain that no task ran on the host, because
// ssh never logged in to it or the run ended before its turn. A host that became
// unreachable may have been in the middle of its first task.
func (h HostStatus) Untouched() bool {
	return h.OK == 0 && h.Changed == 0 && h.Failed == 0 && (h.Unreachable == 0 || h.NotConnected)
}

// OpenStackAnsibleEEStatus is what became of the run.
type OpenStackAnsibleEEStatus struct {
	// ObservedGeneration of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Hash of the inputs of the last Job, key input.
	// +optional
	Hash map[string]string `json:"hash,omitempty"`

	// Conditions of the run.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions condition.Conditions `json:"conditions,omitempty"`

	// JobStatus is the state of the Job.
	// +kubebuilder:default=Pending
	// +optional
	JobStatus JobStatus `json:"JobStatus,omitempty"`

	// JobName is the name of the Job.
	// +optional
	JobName string `json:"jobName,omitempty"`

	// Hosts are the per-host results.
	// +optional
	// +listType=map
	// +listMapKey=name
	Hosts []HostStatus `json:"hosts,omitempty"`

	// HostsSummary is the number of converged hosts over all, for example 48/50.
	// +optional
	HostsSummary string `json:"hostsSummary,omitempty"`

	// StartTime of the Job.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// CompletionTime of the Job, also when it failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// OpenStackAnsibleEE is one run of Ansible in a Job.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=edpm-operators"
// +kubebuilder:resource:shortName=osaee;osaees;osansible;osansibles,categories=edpm
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Step",type=string,JSONPath=`.spec.step`
// +kubebuilder:printcolumn:name="Hosts",type=string,JSONPath=`.status.hostsSummary`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must have at most 63 characters, because the run gets a Job of the same name: choose a shorter name"
type OpenStackAnsibleEE struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   OpenStackAnsibleEESpec   `json:"spec,omitempty"`
	Status OpenStackAnsibleEEStatus `json:"status,omitempty"`
}

// OpenStackAnsibleEEList is a list of OpenStackAnsibleEE.
//
// +kubebuilder:object:root=true
type OpenStackAnsibleEEList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OpenStackAnsibleEE `json:"items"`
}

// Finished reports whether the state of the run is final. That it is being deleted
// makes a new generation, and no other state.
func (r *OpenStackAnsibleEE) Finished() bool {
	current := r.Status.ObservedGeneration == r.Generation || !r.DeletionTimestamp.IsZero()
	return current && (r.Status.JobStatus == JobSucceeded || r.Status.JobStatus == JobFailed)
}

// Host returns the result for the named host, and false when there is none.
func (r *OpenStackAnsibleEE) Host(name string) (HostStatus, bool) {
	for _, h := range r.Status.Hosts {
		if h.Name == name {
			return h, true
		}
	}
	return HostStatus{}, false
}

// Target returns the target for the named host, and false when there is none.
func (r *OpenStackAnsibleEE) Target(host string) (Target, bool) {
	for _, t := range r.Spec.Targets {
		if t.Host == host {
			return t, true
		}
	}
	return Target{}, false
}

// OwnerName returns the name of the object that owns the target.
func (t Target) OwnerName() string { return cmp.Or(t.Owner, t.Host) }

// Machines returns the machines of the targets that are known.
func (r *OpenStackAnsibleEE) Machines() []string {
	var machines []string
	for _, t := range r.Spec.Targets {
		if t.Machine != "" {
			machines = append(machines, t.Machine)
		}
	}
	return machines
}

// GetConditions returns the conditions, to be changed in place.
func (r *OpenStackAnsibleEE) GetConditions() *condition.Conditions { return &r.Status.Conditions }

// SetObservedGeneration notes the generation that the status describes.
func (r *OpenStackAnsibleEE) SetObservedGeneration(g int64) { r.Status.ObservedGeneration = g }

func init() {
	register(&OpenStackAnsibleEE{}, &OpenStackAnsibleEEList{})
}
