package conditions

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	corev1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/podified"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
)

// Kinds that the tables speak of.
const (
	dataPlane      = "OpenStackDataPlane"
	role           = "OpenStackDataPlaneRole"
	node           = "OpenStackDataPlaneNode"
	ansibleEE      = "OpenStackAnsibleEE"
	nova           = "Nova"
	novaCell       = "NovaCell"
	novaCompute    = "NovaCompute"
	compute        = "NovaExternalCompute"
	glance         = "Glance"
	glanceAPI      = "GlanceAPI"
	controlPlane   = "OpenStackControlPlane"
	topologyKind   = "Topology"
	storageCluster = "StorageCluster"
	managerPod     = "Pod of the manager"
	everyKind      = "every kind"
	podifiedTable  = "podified"
	stepTable      = "step"
	consumersTable = "topologyRef"
)

// Remedies that many reasons have in common.
const (
	patience     = "nothing: it continues automatically"
	createInput  = "create what the message names; it continues automatically"
	removeOwn    = "delete the object that the message names if nothing needs it, or rename one of the two; it continues when the name is free"
	removeOrGive = "delete the objects that the message names if nothing needs them, or rename one of the two, or [hand them over](security.md#names-that-exist-already); it continues automatically"
	createSecret = "create the Secret, or add the key; it continues automatically"
	fewerSecrets = "let hosts share Secrets, or remove what is not needed, which helps within ten minutes; or raise [`--secrets-per-namespace`](operations.md#flags-of-the-manager)"
	grantSecrets = "[bind](install.md#rights) the operators' ClusterRole for Secrets in the namespace; it continues automatically"
)

// noImage is what RunnerImageMissing means.
const noImage = "neither the object nor the manager names an image of the execution environment"

// setImage is what to do about it.
const setImage = "build the image and [set it](install.md#images) for the manager, or name it where the message says; the manager is restarted by that and resumes"

// noRoom is what SecretLimit means.
const noRoom = "objects of the namespace name more Secrets, or larger ones, than the manager keeps in memory for one namespace"

// noRight is what SecretForbidden means.
const noRight = "the operators have no rights on Secrets in the namespace"

func name(p edpm.Phase) condition.Reason { return condition.Reason(p) }

// Tables returns all tables, those that hold for many kinds first.
func Tables() []Table {
	return []Table{
		common(), step(), topologyRef(),
		ofDataPlane(), ofRole(), ofNode(), ofAnsibleEE(),
		ofNova(), ofNovaCell(), ofCompute(), ofNovaCompute(),
		ofGlance(), podified(), ofControlPlane(), ofTopology(), ofStorageCluster(), ofManager(),
	}
}

// common is what internal/phase says for every kind.
func common() Table {
	return Table{Name: "common", Kinds: []string{everyKind}, Link: "conditions.md", Conditions: []Condition{
		{Type: condition.ReadyCondition, Means: "all other conditions are True; else it repeats the worst of them", Reasons: []Reason{
			{condition.InitReason, "a phase has not been looked at yet, because one before it did not get through", "see the conditions that are False"},
			{condition.ErrorReason, "a fault of the environment, for example an API server that does not answer; the message has the details", "fix what the message names; it is tried again at growing intervals"},
		}},
	}}
}

// step is what internal/edpm says of hosts on which Ansible is to be run.
func step() Table {
	return Table{Name: stepTable, Title: "reasons of a step", Kinds: []string{node, compute}, Link: "conditions.md#reasons-of-a-step", Conditions: []Condition{
		{Type: condition.DeploymentReadyCondition, Means: "every step has run on the host with the current inputs", Reasons: []Reason{
			{name(edpm.Pending), "a run will start as soon as its batch is gathered", patience},
			{name(edpm.Running), "a run is under way; the message names it", "`kubectl edpm logs <node> -f` shows it"},
			{name(edpm.Failed), "the last run failed on this host; the message has the failed task, the attempt, and when the next one is made", "fix the cause, which `kubectl edpm logs <node>` shows; it is retried automatically, and at once when the access to the host or the inputs change"},
			{name(edpm.GaveUp), "as `Failed`, but the attempts are used up (removal only)", "see [scale in](how-to/scale-in.md#a-host-that-cannot-be-cleaned-up)"},
			{name(edpm.Held), "not started because of `maxUnavailable`, `maxFailures` or `--max-concurrent-runs`, or because the API server refuses the run; the message says which, and names up to three hosts that have failed", "fix the failed hosts, or raise the limit; fix what the API server complains of. It is retried automatically"},
			{name(edpm.TooLarge), "files, variables or `env` of the host are larger than a run can carry; the message names the largest", "shorten it"},
			{name(edpm.Paused), "there is something to run, and `deploy` is false", "set `deploy: true`"},
			{name(edpm.Excluded), "there is something to run, and `ansibleLimit` leaves the host out", "change or remove the limit"},
			{name(edpm.Limited), "a run restricted by tags went well; the rest is still to be run", "remove `ansibleTags` and `ansibleSkipTags`"},
		}},
	}}
}

// topologyRef is what objects say that refer to a Topology.
func topologyRef() Table {
	kinds := []string{role, node, ansibleEE, controlPlane, glanceAPI, novaCompute, novaCell}
	return Table{Name: consumersTable, Title: "as of every object with a topologyRef", Kinds: kinds, Link: "topology.md#conditions", Conditions: []Condition{
		{Type: condition.TopologyReadyCondition, Means: "the Topology that the object refers to can be followed. Only there when it refers to one", Reasons: []Reason{
			{topologyv1.TopologyMissingReason, "there is no such Topology in the namespace. What is running continues", "create it, or refer to another one; it recovers automatically"},
			{topologyv1.TopologyDeletingReason, "the Topology is being deleted, and takes no new users. What is running continues", "refer to another Topology, or to none"},
			{topologyv1.TopologyHeldReason, "the Topology, or its last change, has `enforcement: Hold` and pods would find no node. They follow what the message names, and it stays held", "do what `PlacementReady` says, set `enforcement: Warn`, or refer to the former Topology again"},
			{topologyv1.TopologyFullReason, "1,000 objects hold the Topology, all nodes of a role counted as one", "create another Topology with the same spec, and refer to that"},
		}},
	}}
}

func ofDataPlane() Table {
	return Table{Name: dataPlane, Kinds: []string{dataPlane}, Link: "openstackdataplane.md#conditions", Conditions: []Condition{
		{Type: condition.InputReadyCondition, Means: "roles and nodes are as described", Reasons: []Reason{
			{edpmv1.ConflictReason, "roles or nodes of these names exist already, and were not created by this data plane; the others are as described", removeOwn},
			{dataplanev1.RejectedReason, "the API server or a webhook rejects roles or nodes, or their deletion; the message names ten of them with the reasons, and the others are as described", "correct what the message names; what is rejected is tried again every minute"},
		}},
		nodesReady(),
	}}
}

func nodesReady() Condition {
	return Condition{Type: dataplanev1.NodesReadyCondition, Means: "all nodes are Ready", Reasons: []Reason{
		{dataplanev1.NodesNotReadyReason, "some nodes are not Ready; the message names the first", "`kubectl edpm status` shows which, and why"},
	}}
}

func ofRole() Table {
	return Table{Name: role, Kinds: []string{role}, Link: "openstackdataplanerole.md#conditions", Conditions: []Condition{
		{Type: condition.InputReadyCondition, Means: "the role can be read and its inventory is published, or the message says why it is too large for that", Reasons: []Reason{
			{dataplanev1.InvalidVarsReason, "`nodeTemplate.ansibleVars` is no mapping and no text of one", "correct the field"},
			{edpmv1.ConflictReason, "a ConfigMap of the name of the inventory exists already, and was not created for this object", removeOwn},
		}},
		{Type: condition.TopologyReadyCondition, Means: "runs can follow the Topology of the role", Like: consumersTable},
		nodesReady(),
	}}
}

func ofNode() Table {
	return Table{Name: node, Kinds: []string{node}, Link: "openstackdataplanenode.md#conditions", Conditions: []Condition{
		{Type: condition.InputReadyCondition, Means: "everything is there that phase 0 needs", Reasons: []Reason{
			{dataplanev1.RoleMissingReason, "`spec.role` is empty or names no role", "create the role, or name another"},
			{edpmv1.SecretMissingReason, "no key to log in with, or a Secret of a service, mount or `env` is missing", createInput},
			{edpmv1.SecretKeyMissingReason, "the Secret lacks the key that the message names", "add the key to the Secret; it continues automatically"},
			{edpmv1.SecretForbiddenReason, noRight, grantSecrets},
			{edpmv1.SecretLimitReason, noRoom, fewerSecrets},
			{edpmv1.ConfigMapMissingReason, "a ConfigMap of a service, mount or `env` is missing", createInput},
			{edpmv1.ConfigMapKeyMissingReason, "a ConfigMap lacks the key that `env` takes", createInput},
			{dataplanev1.ServiceMissingReason, "the role names a service that is neither built in nor an object", "create the OpenStackDataPlaneService, or take the name out of the role"},
			{dataplanev1.InvalidVarsReason, "`ansibleVars` is no mapping and no text of one, or it or `env` has a variable that changes how hosts are [reached and trusted](security.md#how-hosts-are-reached)", "correct the field, or remove the variable, that the message names"},
			{edpmv1.RunnerImageMissingReason, noImage, setImage},
			{dataplanev1.InvalidSpecReason, "a field cannot be read, or is too long for the inventory; the message names it", "correct the field"},
			{edpmv1.ConflictReason, "a ConfigMap of the name of the inventory exists already, and was not created for this object", removeOwn},
			{dataplanev1.MachineConflictReason, "another node has the same address and port, or the same host key; the message names it. Nothing is run for either", "correct `ansibleHost` of one of them, or delete one: see [one host, two nodes](how-to/replace-a-host.md#one-host-two-nodes)"},
		}},
		{Type: condition.TopologyReadyCondition, Means: "runs can follow the Topology of the node or of its role", Like: consumersTable},
		{Type: dataplanev1.ProvisionReadyCondition, Means: "phase -1 is done: the host is there and answers", Reasons: []Reason{
			{dataplanev1.HostUnreachableReason, "the host did not answer, or showed another key than it had; the message has the error of SSH", "fix host, address, user, port or key; it is retried automatically, and at once when one of them changes. For a host that was reinstalled: [keys of hosts](how-to/replace-a-host.md#keys-of-hosts)"},
			{dataplanev1.BaremetalNotYetReason, "the role asks for provisioning, which is not supported yet", "provision the hosts otherwise and set `preProvisioned: true`, or remove `baremetalSetTemplate.baremetalHosts`"},
			{condition.RequestedReason, "(Unknown) no run has reached the host yet", patience},
		}},
		{Type: condition.DeploymentReadyCondition, Means: "phase 0 is done: every service of the role ran with the current inputs", Like: stepTable, Reasons: []Reason{
			{dataplanev1.ServicesRemainingReason, "the node is being deleted and waits for services to be taken off its host; the message names them", "wait; if one says `CleanupFailed` see [removing a node](how-to/scale-in.md)"},
		}},
	}}
}

func ofAnsibleEE() Table {
	return Table{Name: ansibleEE, Kinds: []string{ansibleEE}, Link: "openstackansibleee.md#conditions", Conditions: []Condition{
		{Type: condition.InputReadyCondition, Means: "the spec can become a Job", Reasons: []Reason{
			{ansibleeev1.InvalidSpecReason, "the spec cannot become a Job", "correct the field that the message names"},
			{edpmv1.RunnerImageMissingReason, noImage, setImage},
			{edpmv1.SecretMissingReason, "a Secret that `env` takes a value from is missing", createInput},
			{edpmv1.SecretKeyMissingReason, "a Secret lacks the key that `env` takes", createInput},
			{edpmv1.SecretForbiddenReason, noRight, grantSecrets},
			{edpmv1.SecretLimitReason, noRoom, fewerSecrets},
			{edpmv1.ConfigMapMissingReason, "a ConfigMap that `env` takes a value from is missing", createInput},
			{edpmv1.ConfigMapKeyMissingReason, "a ConfigMap lacks the key that `env` takes", createInput},
		}},
		{Type: ansibleeev1.NetworkAttachmentsReadyCondition, Means: "the network attachments exist. Only there when the spec names some", Reasons: []Reason{
			{ansibleeev1.NetworkAttachmentMissingReason, "a network attachment definition, or the kind itself, does not exist", createInput},
		}},
		{Type: condition.TopologyReadyCondition, Means: "the Pod can follow the Topology", Like: consumersTable},
		{Type: ansibleeev1.JobReadyCondition, Means: "the Job has succeeded on every host", Reasons: []Reason{
			{ansibleeev1.JobRunningReason, "the Job is under way", "`kubectl logs -f job/<run>` shows it"},
			{ansibleeev1.JobHostsBusyReason, "another run has a host of this one, perhaps under another name, and comes first: a host is in one run at a time", "nothing: it continues when the run that the message names has ended or is deleted"},
			{edpmv1.ConflictReason, "a Job or Secret of that name exists already, and was not created for this run", removeOwn},
			{ansibleeev1.JobFailedReason, "at least one host failed; the message names the first", "`status.hosts` has every host, `kubectl logs job/<run>` the whole output. A run of an operator is not tried again: its owner starts another one for the hosts that failed"},
			{ansibleeev1.JobLostReason, "the Pod ended without leaving results, for example because it was evicted. The outcome is unknown", "most often memory: raise the limit of the namespace, or lower `batchSize`. Owners run these hosts again by themselves"},
			{ansibleeev1.JobNotStartedReason, "the run was deleted before it had a Job: no host was touched", "nothing: owners run what they want now"},
			{ansibleeev1.JobCancelledReason, "the run was deleted before it finished", "nothing: owners run again what was cut short"},
			{ansibleeev1.InvalidSpecReason, "the API server refused the Job", "correct what the message names"},
		}},
	}}
}

func ofNova() Table {
	return Table{Name: nova, Kinds: []string{nova}, Link: "nova.md#conditions", Conditions: []Condition{
		{Type: condition.InputReadyCondition, Means: "the passwords are there", Reasons: []Reason{
			{edpmv1.SecretMissingReason, "`spec.secret` is missing", createSecret},
			{edpmv1.SecretKeyMissingReason, "`spec.secret` lacks the key for the service password", createSecret},
			{edpmv1.SecretForbiddenReason, noRight, grantSecrets},
			{edpmv1.SecretLimitReason, noRoom, fewerSecrets},
		}},
		{Type: novav1.NovaAllCellsReadyCondition, Means: "every cell is Ready", Reasons: []Reason{
			{novav1.CellsNotReadyReason, "some cells are not Ready; the message names the first", "see the conditions of that NovaCell: most often the Secret of the message bus is missing"},
			{edpmv1.ConflictReason, "a NovaCell or Secret of the name of a cell exists already, and was not created by this Nova", removeOrGive},
			{novav1.ComputesRemainingReason, "a cell is gone from `cellTemplates`, but has computes", "remove their nodes and NovaComputes first, or put the cell back"},
		}},
	}}
}

func ofNovaCell() Table {
	return Table{Name: novaCell, Kinds: []string{novaCell}, Link: "novacell.md#conditions", Conditions: []Condition{
		{Type: condition.InputReadyCondition, Means: "everything is there that computes need", Reasons: []Reason{
			{novav1.InvalidSpecReason, "a field that computes need is empty", "set the field that the message names"},
			{edpmv1.SecretMissingReason, "a Secret is missing", createSecret},
			{edpmv1.SecretKeyMissingReason, "a Secret lacks a key", createSecret},
			{edpmv1.SecretForbiddenReason, noRight, grantSecrets},
			{edpmv1.SecretLimitReason, noRoom, fewerSecrets},
		}},
		{Type: novav1.NovaComputeServiceConfigReadyCondition, Means: "the configuration of the computes is made", Reasons: []Reason{
			{novav1.InvalidConfigReason, "a value cannot be written into a configuration file, for example a password with a line break", "correct the value that the message names"},
			{edpmv1.ConflictReason, "a Secret of the name of the configuration exists already, and was not created for this cell", removeOrGive},
			{edpmv1.SecretForbiddenReason, noRight, grantSecrets},
		}},
		{Type: novav1.NovaConductorReadyCondition, Means: "the conductor has what it needs, or none is to run, as the message then says", Like: podifiedTable, Reasons: []Reason{
			{edpmv1.SecretMissingReason, "the Secret with the passwords of the databases is missing", createSecret},
			{edpmv1.SecretKeyMissingReason, "a password of a database is missing in the Secret", createSecret},
			{edpmv1.SecretForbiddenReason, noRight, grantSecrets},
			{edpmv1.SecretLimitReason, noRoom, fewerSecrets},
		}},
	}}
}

func ofCompute() Table {
	return Table{Name: compute, Kinds: []string{compute}, Link: "novaexternalcompute.md#conditions", Conditions: []Condition{
		{Type: condition.InputReadyCondition, Means: "node, inventory and key are there", Reasons: []Reason{
			{novav1.NodeMissingReason, "there is no node of that name", "create the node, or delete the compute"},
			{novav1.AnnotationMissingReason, "neither the node nor its role names a cell, so the node is not to be a compute; nothing is run", "set annotation `nova.openstack.org/cell` on the node or its role, or delete the compute"},
			{novav1.CellMismatchReason, "the annotations say another cell than `cellName`; nothing is run", "restore the annotation, or delete the node and create it again: see [the cell rule](cell-rule.md)"},
			{novav1.InvalidSpecReason, "a field that follows the node is still empty, or the node's `deployStrategy` cannot be read", "set `ansibleSSHPrivateKeySecret` on the node or its role, or correct what the message names"},
			{edpmv1.ConfigMapMissingReason, "the inventory is not there yet", "see the conditions of the node, which makes it"},
			{edpmv1.ConfigMapKeyMissingReason, "the ConfigMap has no key `inventory`", "see the conditions of the node, which makes it"},
			{novav1.InvalidInventoryReason, "the inventory cannot be read, lacks the host, or has a variable that changes how hosts are [reached and trusted](security.md#how-hosts-are-reached)", "correct `inventoryConfigMapName`, or the ConfigMap if it is yours"},
			{edpmv1.RunnerImageMissingReason, noImage, setImage},
			{edpmv1.SecretMissingReason, "the Secret with the SSH key is missing", createSecret},
			{edpmv1.SecretKeyMissingReason, "the Secret has no key `ssh-privatekey`", createSecret},
			{edpmv1.SecretForbiddenReason, noRight, grantSecrets},
			{edpmv1.SecretLimitReason, noRoom, fewerSecrets},
		}},
		{Type: novav1.NovaCellReadyCondition, Means: "the cell configures its computes", Reasons: []Reason{
			{novav1.CellMissingReason, "the cell does not exist", "create it, for example through a [Nova](nova.md); it continues automatically"},
			{novav1.CellNotReadyReason, "the cell does not configure its computes yet", "see the conditions of the cell"},
			{novav1.CellZeroReason, "the annotation names cell0, which has no computes", "delete the node and create it again with another cell"},
			{edpmv1.SecretForbiddenReason, noRight, grantSecrets},
			{edpmv1.SecretLimitReason, noRoom, fewerSecrets},
		}},
		{Type: novav1.DataPlaneNodeReadyCondition, Means: "phases -1 and 0 of the node are done", Reasons: []Reason{
			{novav1.NodeNotReadyReason, "phase 0 is not through, or the node is being deleted", "see the conditions of the node: `kubectl edpm status <node>`"},
			{edpmv1.ConflictReason, "the compute belongs to something else than the node, so nothing is run", "delete it; the node gets a compute of its own"},
		}},
		{Type: condition.ServiceConfigReadyCondition, Means: "`customServiceConfig` can be read", Reasons: []Reason{
			{novav1.InvalidConfigReason, "`customServiceConfig` cannot be read; the message has the line", "correct it: see [how-to](how-to/custom-service-config.md)"},
		}},
		{Type: condition.DeploymentReadyCondition, Means: "libvirt and nova ran on the host with the current inputs", Like: stepTable, Reasons: []Reason{
			{novav1.CleanupReason, "it is being deleted, and its services are being taken off the host", patience},
			{novav1.MachineConflictReason, "it is being deleted, and another node is deployed on the same machine, whose services the clean-up would remove", "set `edpm.openstack.org/skip-cleanup`, or delete the other node first: see [one host, two nodes](how-to/replace-a-host.md#one-host-two-nodes)"},
			{novav1.CleanupFailedReason, "the host cannot be cleaned up; the message says why, and what is left on it", "fix the host and `kubectl edpm rerun <node> --step nova`, or let go with `edpm.openstack.org/skip-cleanup`: see [removing a node](how-to/scale-in.md)"},
		}},
	}}
}

func ofNovaCompute() Table {
	return Table{Name: novaCompute, Kinds: []string{novaCompute}, Link: "novacompute.md#conditions", Conditions: []Condition{
		{Type: novav1.NovaCellReadyCondition, Means: "the cell configures its computes", Reasons: []Reason{
			{novav1.CellMissingReason, "there is no such NovaCell", "create it, for example through a [Nova](nova.md); it continues automatically"},
			{novav1.CellNotReadyReason, "it does not configure its computes yet", "see the conditions of the cell"},
			{novav1.CellZeroReason, "`cell0` has no computes", "delete the NovaCompute and create it in another cell"},
			{edpmv1.SecretForbiddenReason, noRight, grantSecrets},
			{edpmv1.SecretLimitReason, noRoom, fewerSecrets},
		}},
	}}
}

func ofGlance() Table {
	return Table{Name: glance, Kinds: []string{glance}, Link: "glance.md#conditions", Conditions: []Condition{
		{Type: glancev1.GlanceAPIReadyCondition, Means: "every GlanceAPI is Ready", Reasons: []Reason{
			{glancev1.APIsNotReadyReason, "a GlanceAPI is not Ready; the message names the first and says why", "see the conditions of that GlanceAPI"},
			{edpmv1.ConflictReason, "a GlanceAPI of that name exists already, and was not created by this Glance", removeOrGive},
		}},
	}}
}

// podified is what internal/podified says of services in pods.
func podified() Table {
	return Table{Name: podifiedTable, Title: "as of every service in pods", Kinds: []string{glanceAPI, novaCompute, novaCell}, Link: "glance.md#conditions", Conditions: []Condition{
		{Type: condition.InputReadyCondition, Means: "everything is there that the pods need", Reasons: []Reason{
			{podifiedv1.InvalidSpecReason, "a field is missing", "set the field that the message names"},
			{edpmv1.SecretMissingReason, "a Secret is missing", createSecret},
			{edpmv1.SecretKeyMissingReason, "a Secret lacks a key", createSecret},
			{edpmv1.SecretForbiddenReason, noRight, grantSecrets},
			{edpmv1.SecretLimitReason, noRoom, fewerSecrets},
		}},
		{Type: condition.ServiceConfigReadyCondition, Means: "the configuration is made", Reasons: []Reason{
			{podifiedv1.InvalidConfigReason, "oslo.config would refuse a snippet, or a password cannot be written into a file", "correct what the message names: see [how-to](how-to/custom-service-config.md)"},
		}},
		{Type: condition.NetworkAttachmentsReadyCondition, Means: "the network attachments exist", Reasons: []Reason{
			{ansibleeev1.NetworkAttachmentMissingReason, "a NetworkAttachmentDefinition does not exist", createInput},
		}},
		{Type: condition.TopologyReadyCondition, Means: "the pods can follow the Topology", Like: consumersTable},
		placementReady(),
		{Type: condition.DeploymentReadyCondition, Means: "all pods are as the spec says, and ready", Reasons: []Reason{
			{podifiedv1.RollingOutReason, "pods are being made or replaced", patience},
			{podifiedv1.PodsPendingReason, "the scheduler finds no node; the message is its own", "see [my pod is Pending](pod-pending.md), and `PlacementReady`"},
			{podifiedv1.PodsNotReadyReason, "pods have a node and are not ready", "`kubectl describe pod` and `kubectl logs` of the pod that the message names"},
			{podifiedv1.HeldReason, "a change is held back because of `PlacementReady`, as the Topology has `enforcement: Hold`", "do what `PlacementReady` says, or set `enforcement: Warn`"},
			{podifiedv1.ReplacingReason, "the StatefulSet is made again, as a field changed that cannot be changed in place, or as another operator handed it over; its pods keep running", patience},
			{edpmv1.ConflictReason, "a StatefulSet, Service or Secret of that name exists already, and was not created for this object or was created by another operator; or pods lack the labels by which they are selected, and the message has the command", removeOrGive},
			{podifiedv1.RefusedReason, "the API server refuses the StatefulSet or a Service", "correct what the message names"},
			{edpmv1.SecretForbiddenReason, noRight, grantSecrets},
			{edpmv1.SecretLimitReason, noRoom, fewerSecrets},
		}},
		{Type: podifiedv1.PodNodesReadyCondition, Means: "no pod is on a node that is lost", Reasons: []Reason{
			{podifiedv1.NodeNotReadyReason, "pods are on a node that does not answer", "bring the node back; its pods are evicted when it stays away"},
			{podifiedv1.PodsTerminatingReason, "pods were evicted from a node that does not answer, and nothing takes their place", "bring the node back, delete the Node, or force the deletion of the pods: the message has the commands"},
		}},
	}}
}

func placementReady() Condition {
	return Condition{Type: topologyv1.PlacementReadyCondition, Means: "every pod has a node, or would find one if it were made as the spec says now", Reasons: []Reason{
		{topologyv1.VolumeNodeAffinityConflictReason, "the volume of a pod can only be reached from nodes that refuse the pod", "let the pod go where its volume is, or use storage that is external"},
		{topologyv1.MissingNodeLabelReason, "nodes lack the label that a constraint needs", "label the nodes; the message has the command"},
		{topologyv1.MinDomainsUnmetReason, "there are fewer domains than `minDomains`", "label more nodes, or lower `minDomains`"},
		{topologyv1.PodRefusedReason, "the API server would not create a pod or its claim, because of a LimitRange or ResourceQuota of the namespace", "correct the requests and limits, or raise the quota: the message names both"},
		{topologyv1.UnsatisfiableReason, "no node takes a pod, for another reason; the message is the scheduler's", "see [my pod is Pending](pod-pending.md)"},
		{topologyv1.InertSelectorReason, "a constraint selects none of the pods, and spreads nothing", "correct its `labelSelector`, or leave it out"},
	}}
}

func ofControlPlane() Table {
	reasons := []Reason{
		{corev1.ServiceNotReadyReason, "the service is not Ready; the message says why", "see its conditions"},
		{edpmv1.ConflictReason, "an object of that name exists already, and was not created by this control plane", removeOrGive},
		{corev1.InvalidSpecReason, "the API server refuses the service that the template describes", "correct the field of the template that the message names"},
	}
	return Table{Name: controlPlane, Kinds: []string{controlPlane}, Link: "controlplane.md#conditions", Conditions: []Condition{
		{Type: corev1.GlanceReadyCondition, Means: "the Glance is Ready", Reasons: reasons},
		{Type: corev1.NovaReadyCondition, Means: "the Nova is Ready", Reasons: reasons},
		{Type: condition.TopologyReadyCondition, Means: "the Topology of `spec.topologyRef` exists", Like: consumersTable},
	}}
}

func ofTopology() Table {
	return Table{Name: topologyKind, Kinds: []string{topologyKind}, Link: "topology.md#conditions", Conditions: []Condition{
		{Type: topologyv1.ConsumersReadyCondition, Means: "those who refer to the Topology can do so", Reasons: []Reason{
			{topologyv1.InUseReason, "the Topology is deleted and still held; the message says by whom", "let them refer to another one, or to none"},
		}},
		{Type: topologyv1.SpreadReadyCondition, Means: "the running pods keep to every constraint that is `DoNotSchedule`", Reasons: []Reason{
			{topologyv1.NoDomainReason, "no node has the label of a constraint that is `DoNotSchedule`: pods would wait for ever", "label the nodes, or correct `topologyKey`"},
			{topologyv1.SkewExceededReason, "the running pods are further apart than `maxSkew` allows, or there are fewer domains than `minDomains`", "delete pods of the fullest domain, one after the other: the scheduler only places new ones"},
		}},
	}}
}

func ofStorageCluster() Table {
	placement := placementReady()
	placement.Means = "every OSD has a node, or would find one with room for it"
	return Table{Name: storageCluster, Kinds: []string{storageCluster}, Link: "storagecluster.md#conditions", Conditions: []Condition{
		{Type: condition.InputReadyCondition, Means: "the fields of the spec go together", Reasons: []Reason{
			{ocsv1.InvalidSpecReason, "fields contradict each other, and the webhook was away when they were written", "correct the field that the message names"},
		}},
		{Type: ocsv1.NodesReadyCondition, Means: "there are enough nodes for the OSDs", Reasons: []Reason{
			{ocsv1.NotEnoughNodesReason, "fewer nodes are selected than the OSDs need. What is there is left as it is", "label more nodes; the message has the command"},
		}},
		{Type: ocsv1.FailureDomainReadyCondition, Means: "there are enough failure domains, and every node for OSDs is in one", Reasons: []Reason{
			{ocsv1.TooFewDomainsReason, "there are fewer failure domains than copies of the data, or than `replica` asks for. OSDs are made all the same", "add storage nodes with other values of the label, or lower `replica`"},
			{ocsv1.NodesOutsideDomainsReason, "nodes lack the label of the failure domain, and get no OSD", "label the nodes that the message names"},
		}},
		placement,
		{Type: ocsv1.CephClusterReadyCondition, Means: "the CephCluster has the device sets", Reasons: []Reason{
			{ocsv1.RookMissingReason, "the cluster has no kind CephCluster", "install Rook; it continues automatically"},
			{ocsv1.LayoutOrphansReason, "`deviceSetLayout` would orphan OSDs. The CephCluster is left as it is", "write the layout that the message names"},
			{ocsv1.DeviceSetOrphansReason, "the spec no longer has device sets with OSDs. The CephCluster is left as it is", "write the device sets again, or set the annotation that the message names"},
			{ocsv1.LegacyPlacementReason, "a device set with OSDs that was found in the CephCluster has changed in more than its count, which would make their pods again with another placement. The CephCluster is left as it is", "write the set as it was, or set the annotation that the message names"},
			{ocsv1.EncryptionUnsetReason, "a new device set would be plain beside encrypted ones, and the spec does not say so. The CephCluster is left as it is", "set `encrypted` of the device set"},
			{ocsv1.EncryptionDiffersReason, "the spec asks for another encryption than device sets of the CephCluster have. The CephCluster is left as it is", "set `encrypted` as the message says, or add a device set"},
			{edpmv1.ConflictReason, "the CephCluster belongs to something else, or was there before and nobody has handed it over", "hand it over with the annotation that the message names, or name the StorageCluster otherwise; it continues automatically"},
			{ocsv1.RefusedReason, "the API server refuses the CephCluster; the message has its words", "correct what the message names"},
		}},
	}}
}

// ofManager is what the manager says of itself.
func ofManager() Table {
	return Table{Name: "manager", Kinds: []string{managerPod}, Link: "coexistence.md#what-it-says", Conditions: []Condition{
		{Type: edpmv1.OperatorsRunningCondition, Means: "every operator runs that was chosen; the message names them", Reasons: []Reason{
			{edpmv1.AllRunningReason, "(True) no operator is left out", "nothing"},
			{edpmv1.ForeignDefinitionReason, "a kind of an operator belongs to another one; the message names the definition, and the operators that are left out because of it", "nothing, if the other operator is to stay. Else remove it and its definition, and apply ours: the manager starts again by itself"},
			{edpmv1.MissingDefinitionReason, "a resource definition does not exist that an operator needs", "`kubectl apply --server-side -k config/crd`, or in part; the manager starts again by itself"},
		}},
	}}
}
