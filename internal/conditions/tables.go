package conditions

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	hostedv1 "github.com/edpm-operators/edpm-operators/apis/common/hosted"
	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/common/podified"
	openstackv1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	neutronv1 "github.com/edpm-operators/edpm-operators/apis/neutron/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
)

// Kinds in the tables.
const (
	dataPlane      = "OpenStackDataPlane"
	role           = "OpenStackDataPlaneRole"
	node           = "OpenStackDataPlaneNode"
	ansibleEE      = "OpenStackAnsibleEE"
	nova           = "Nova"
	novaCell       = "NovaCell"
	novaCompute    = "NovaCompute"
	compute        = "NovaExternalCompute"
	ovnController  = "OVNController"
	metadataAgent  = "OVNMetadataAgent"
	serviceClass   = "EDPMServiceClass"
	edpmService    = "EDPMService"
	glance         = "Glance"
	glanceAPI      = "GlanceAPI"
	controlPlane   = "OpenStackControlPlane"
	topologyKind   = "Topology"
	storageCluster = "StorageCluster"
	managerPod     = "Pod of the manager"
	everyKind      = "every kind"
	podifiedTable  = "podified"
	stepTable      = "step"
	hostedTable    = "hosted"
	consumersTable = "topologyRef"
	jobTable       = "job"
)

// Remedies that several reasons share.
const (
	patience     = "nothing: it continues automatically"
	createInput  = "create what the message names; it continues automatically"
	removeOwn    = "delete the object that the message names if nothing needs it, or rename one of the two; it continues when the name is free"
	removeOrGive = "delete the objects that the message names if nothing needs them, or rename one of the two, or [hand them over](security.md#names-that-exist-already); it continues automatically"
	createSecret = "create the Secret, or add the key; it continues automatically"
	fewerSecrets = "share Secrets between hosts, or remove references that are not needed, which takes effect within ten minutes; or raise [`--secrets-per-namespace`](operations.md#flags-of-the-manager)"
	grantSecrets = "[bind](install.md#rights) the operators' ClusterRole for Secrets in the namespace; it continues automatically"
)

// noImage describes RunnerImageMissing.
const noImage = "neither the object nor the manager sets an image for the execution environment"

// setImage is what to do about it.
const setImage = "build the image and [set it](install.md#images) for the manager, or in the field that the message names; setting it for the manager restarts the manager"

// noRoom describes SecretLimit.
const noRoom = "objects of the namespace refer to more or larger Secrets than the manager caches for one namespace"

// noRight describes SecretForbidden.
const noRight = "the operators have no permissions for Secrets in the namespace"

func name(p edpm.Phase) condition.Reason { return condition.Reason(p) }

// Tables returns all tables, those for many kinds first.
func Tables() []Table {
	return []Table{
		ofEveryKind(), step(), topologyRef(),
		ofDataPlane(), ofRole(), ofNode(), ofMachine(), ofAnsibleEE(),
		hosted(), ofNova(), ofNovaCell(), ofCompute(), ofNovaCompute(), ofOVNController(), ofMetadataAgent(),
		ofServiceClass(), ofEDPMService(),
		ofGlance(), podified(), job(), ofControlPlane(), ofTopology(), ofStorageCluster(), ofManager(),
	}
}

// ofEveryKind is what internal/phase reports for every kind.
func ofEveryKind() Table {
	return Table{Name: "common", Kinds: []string{everyKind}, Link: "conditions.md", Conditions: []Condition{
		{Type: condition.ReadyCondition, Means: "all other conditions are True; else it repeats the worst of them", Reasons: []Reason{
			{condition.InitReason, "a phase has not been checked yet, because an earlier one is not complete", "see the conditions that are False"},
			{condition.ErrorReason, "a fault of the environment, for example an API server that does not answer; the message has the details", "fix what the message names; it is retried automatically, with increasing delays"},
		}},
	}}
}

// step is what internal/edpm reports for hosts on which Ansible is to be run.
func step() Table {
	return Table{Name: stepTable, Title: "reasons of a step", Kinds: []string{node, compute, ovnController, metadataAgent, edpmService}, Link: "conditions.md#reasons-of-a-step", Conditions: []Condition{
		{Type: condition.DeploymentReadyCondition, Means: "every step has run on the host with the current inputs", Reasons: []Reason{
			{name(edpm.Pending), "a run starts as soon as its batch is complete", patience},
			{name(edpm.Running), "a run is in progress; the message names it", "nothing: it continues automatically. `kubectl edpm logs <node> -f` follows its output"},
			{name(edpm.Failed), "the last run failed on this host; the message has the failed task, the number of the attempt, and the time of the next one", "fix the cause, which `kubectl edpm logs <node>` shows; the step is retried automatically, and immediately when the inputs or the access to the host change"},
			{name(edpm.RetriesExhausted), "as `Failed`, but retries are exhausted (removal only)", "see [scale in](how-to/scale-in.md#a-host-that-cannot-be-cleaned-up)"},
			{name(edpm.RolloutHeld), "not started because of `maxUnavailable`, `maxFailures` or `--max-concurrent-runs`, or because the API server rejects the run; the message says which, and names up to three failed hosts", "fix the failed hosts, raise the limit, or fix the error of the API server; it is retried automatically"},
			{name(edpm.TooLarge), "the files, variables or `env` of the host are too large for a run; the message names the largest", "shorten it"},
			{name(edpm.Paused), "there is something to run, and `deploy` is false", "set `deploy: true`"},
			{name(edpm.Excluded), "there is something to run, and `ansibleLimit` does not match the host", "change or remove the limit"},
			{name(edpm.Limited), "a run restricted by tags succeeded; the other tasks are still to be run", "remove `ansibleTags` and `ansibleSkipTags`"},
		}},
	}}
}

// topologyRef is what objects that refer to a Topology report.
func topologyRef() Table {
	kinds := []string{role, node, ansibleEE, controlPlane, glanceAPI, nova, novaCompute, novaCell}
	return Table{Name: consumersTable, Title: "as of every object with a topologyRef", Kinds: kinds, Link: "topology.md#conditions", Conditions: []Condition{
		{Type: condition.TopologyReadyCondition, Means: "the Topology that the object refers to can be used. Present only if the object refers to one", Reasons: []Reason{
			{topologyv1.TopologyMissingReason, "the Topology does not exist in the namespace. Running pods continue", "create it, or refer to another one; it continues automatically"},
			{topologyv1.TopologyDeletingReason, "the Topology is being deleted and accepts no new users. Running pods continue", "refer to another Topology, or to none"},
			{topologyv1.TopologyHeldReason, "the Topology, or its last change, has `enforcement: Hold`, and pods would be unschedulable. Pods keep using the Topology that the message names, which is not removed", "do what `PlacementReady` says, set `enforcement: Warn`, or refer to the previous Topology again"},
		}},
	}}
}

func ofDataPlane() Table {
	return Table{Name: dataPlane, Kinds: []string{dataPlane}, Link: "openstackdataplane.md#conditions", Conditions: []Condition{
		{Type: condition.InputReadyCondition, Means: "roles and nodes match the spec", Reasons: []Reason{
			{common.ConflictReason, "roles or nodes with these names exist already, and were not created by this data plane; the others are up to date", removeOwn},
			{dataplanev1.RejectedReason, "the API server or a webhook rejects roles or nodes, or their deletion; the message names up to ten of them with the reasons. The others are up to date", "correct what the message names; it is retried every minute"},
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
		{Type: condition.InputReadyCondition, Means: "the role is valid and its inventory is published, or the message says why it is too large to be published", Reasons: []Reason{
			{dataplanev1.InvalidVarsReason, "`nodeTemplate.ansibleVars` is neither a mapping nor a string with a YAML mapping", "correct the field"},
			{common.ConflictReason, "a ConfigMap with the name of the inventory exists already, and was not created for this object", removeOwn},
		}},
		{Type: condition.TopologyReadyCondition, Means: "runs can use the Topology of the role", Like: consumersTable},
		nodesReady(),
	}}
}

func ofNode() Table {
	return Table{Name: node, Kinds: []string{node}, Link: "openstackdataplanenode.md#conditions", Conditions: []Condition{
		{Type: condition.InputReadyCondition, Means: "the inputs of phase 0 are ready", Reasons: []Reason{
			{dataplanev1.RoleMissingReason, "`spec.role` is empty, or the role does not exist", "set `spec.role`, or create the role"},
			{common.SecretMissingReason, "no Secret with an SSH key is set, or a Secret of a service, mount or `env` does not exist", createInput},
			{common.SecretKeyMissingReason, "the Secret does not have the key that the message names", "add the key to the Secret; it continues automatically"},
			{common.SecretForbiddenReason, noRight, grantSecrets},
			{common.SecretLimitReason, noRoom, fewerSecrets},
			{common.ConfigMapMissingReason, "a ConfigMap of a service, mount or `env` does not exist", createInput},
			{common.ConfigMapKeyMissingReason, "a ConfigMap does not have the key that `env` refers to", createInput},
			{dataplanev1.ServiceMissingReason, "the role names a service that is not built in and for which no OpenStackDataPlaneService exists", "create the OpenStackDataPlaneService, or remove the name from the role"},
			{dataplanev1.InvalidVarsReason, "`ansibleVars` is neither a mapping nor a string with a YAML mapping, or it or `env` has a variable that changes how hosts are [reached and trusted](security.md#how-hosts-are-reached)", "correct the field or remove the variable that the message names"},
			{common.RunnerImageMissingReason, noImage, setImage},
			{dataplanev1.InvalidSpecReason, "a field is invalid, or is too long for the inventory; the message names it", "correct the field"},
			{common.ConflictReason, "a ConfigMap with the name of the inventory exists already, and was not created for this object", removeOwn},
			{dataplanev1.MachineConflictReason, "another node has the same address and port, or the same host key; the message names it. Nothing is run for either", "correct `ansibleHost` of one of them, or delete one: see [one host, two nodes](how-to/replace-a-host.md#one-host-two-nodes)"},
		}},
		{Type: condition.TopologyReadyCondition, Means: "runs can use the Topology of the node or of its role", Like: consumersTable},
		{Type: dataplanev1.ProvisionReadyCondition, Means: "phase -1 is complete: the host answers", Like: metalTable, Reasons: []Reason{
			{dataplanev1.HostUnreachableReason, "the host did not answer, or its host key has changed; the message has the error of SSH", "fix the host, or correct its address, user, port or key; it is retried automatically, and immediately when one of them changes. For a reinstalled host see [keys of hosts](how-to/replace-a-host.md#keys-of-hosts)"},
			{condition.RequestedReason, "(Unknown) no run has reached the host yet", patience},
		}},
		{Type: condition.DeploymentReadyCondition, Means: "phase 0 is complete: every service of the role ran with the current inputs", Like: stepTable, Reasons: []Reason{
			{dataplanev1.ServicesRemainingReason, "the node is being deleted and waits until the services on its host are removed; the message names them", "wait; if one of them reports `CleanupFailed`, see [removing a node](how-to/scale-in.md)"},
		}},
	}}
}

// hosted is what internal/hosted reports for services on hosts.
func hosted() Table {
	return Table{Name: hostedTable, Title: "reasons of a service on a host", Kinds: []string{compute, ovnController, metadataAgent, edpmService}, Link: "conditions.md#reasons-of-a-service-on-a-host", Conditions: []Condition{
		{Type: condition.InputReadyCondition, Means: "node, inventory and SSH key exist", Reasons: []Reason{
			{hostedv1.NodeMissingReason, "the node does not exist", "create the node, or delete the object"},
			{hostedv1.AnnotationMissingReason, "neither the node nor its role has the annotation that gives nodes the service; nothing is run", "set the annotation that the message names on the node or its role, or delete the object"},
			{hostedv1.InvalidSpecReason, "a field that is copied from the node is still empty, or the `deployStrategy` of the node is invalid", "set `ansibleSSHPrivateKeySecret` on the node or its role, or correct what the message names"},
			{common.ConfigMapMissingReason, "the inventory does not exist", "see the conditions of the node, for which it is generated"},
			{common.ConfigMapKeyMissingReason, "the ConfigMap does not have the key `inventory`", "see the conditions of the node, for which it is generated"},
			{hostedv1.InvalidInventoryReason, "the inventory is invalid, does not have the host, or has a variable that changes how hosts are [reached and trusted](security.md#how-hosts-are-reached)", "correct `inventoryConfigMapName`, or the ConfigMap if you created it"},
			{common.RunnerImageMissingReason, noImage, setImage},
			{common.SecretMissingReason, "the Secret with the SSH key does not exist", createSecret},
			{common.SecretKeyMissingReason, "the Secret does not have the key `ssh-privatekey`", createSecret},
			{common.SecretForbiddenReason, noRight, grantSecrets},
			{common.SecretLimitReason, noRoom, fewerSecrets},
		}},
		{Type: hostedv1.DataPlaneNodeReadyCondition, Means: "phases -1 and 0 of the node are complete", Reasons: []Reason{
			{hostedv1.NodeNotReadyReason, "phase 0 of the node is not complete, or the node is being deleted", "see the conditions of the node: `kubectl edpm status <node>`"},
			{common.ConflictReason, "the object is owned by another object than the node, so nothing is run", "delete the object; a new one is created for the node"},
		}},
		{Type: condition.ServiceConfigReadyCondition, Means: "`customServiceConfig` is valid", Reasons: []Reason{
			{hostedv1.InvalidConfigReason, "`customServiceConfig` is invalid; the message has the line", "correct it: see [how-to](how-to/custom-service-config.md)"},
		}},
		{Type: condition.DeploymentReadyCondition, Means: "the steps of the service ran on the host with the current inputs", Like: stepTable, Reasons: []Reason{
			{hostedv1.CleanupReason, "the object is being deleted, and its service is being removed from the host", patience},
			{hostedv1.MachineConflictReason, "the object is being deleted, and the clean-up would remove the services of another node that is deployed on the same machine", "set `edpm.openstack.org/skip-cleanup`, or delete the other node first: see [one host, two nodes](how-to/replace-a-host.md#one-host-two-nodes)"},
			{hostedv1.CleanupFailedReason, "the host cannot be cleaned up; the message says why, and what is left on it", "fix the host and run `kubectl edpm rerun <node> --step <service>`, or skip clean-up with the annotation `edpm.openstack.org/skip-cleanup`: see [removing a node](how-to/scale-in.md)"},
		}},
	}}
}

func ofAnsibleEE() Table {
	return Table{Name: ansibleEE, Kinds: []string{ansibleEE}, Link: "openstackansibleee.md#conditions", Conditions: []Condition{
		{Type: condition.InputReadyCondition, Means: "a Job can be created from the spec", Reasons: []Reason{
			{ansibleeev1.InvalidSpecReason, "no Job can be created from the spec", "correct the field that the message names"},
			{common.RunnerImageMissingReason, noImage, setImage},
			{common.SecretMissingReason, "a Secret that `env` refers to does not exist", createInput},
			{common.SecretKeyMissingReason, "a Secret does not have the key that `env` refers to", createInput},
			{common.SecretForbiddenReason, noRight, grantSecrets},
			{common.SecretLimitReason, noRoom, fewerSecrets},
			{common.ConfigMapMissingReason, "a ConfigMap that `env` refers to does not exist", createInput},
			{common.ConfigMapKeyMissingReason, "a ConfigMap does not have the key that `env` refers to", createInput},
		}},
		{Type: ansibleeev1.NetworkAttachmentsReadyCondition, Means: "the network attachments exist. Present only if the spec names some", Reasons: []Reason{
			{ansibleeev1.NetworkAttachmentMissingReason, "a network attachment definition, or the kind itself, does not exist", createInput},
		}},
		{Type: condition.TopologyReadyCondition, Means: "the Pod can use the Topology", Like: consumersTable},
		{Type: ansibleeev1.JobReadyCondition, Means: "the Job has succeeded on every host", Reasons: []Reason{
			{ansibleeev1.JobRunningReason, "the Job is in progress", "nothing: it continues automatically. `kubectl logs -f job/<run>` follows its output"},
			{ansibleeev1.JobHostsBusyReason, "another run uses a host of this one, possibly under another name, and comes first: a host is in one run at a time", "nothing: it continues when the run that the message names has finished or is deleted"},
			{common.ConflictReason, "a Job or Secret with that name exists already, and was not created for this run", removeOwn},
			{ansibleeev1.JobFailedReason, "at least one host failed; the message names the first", "`status.hosts` has every host, `kubectl logs job/<run>` the whole output. A run that an operator created is not retried: its owner starts another one for the failed hosts"},
			{ansibleeev1.JobLostReason, "the Pod ended without leaving results, for example because it was evicted. The outcome is unknown", "the most frequent cause is a lack of memory: raise the limit of the namespace, or lower `batchSize`. The owners run these hosts again automatically"},
			{ansibleeev1.JobNotStartedReason, "the run was deleted before it had a Job: no host was touched", "nothing: its owners start new runs if they still need them"},
			{ansibleeev1.JobCancelledReason, "the run was deleted before it finished", "nothing: its owners run the hosts again that it had not finished"},
			{ansibleeev1.InvalidSpecReason, "the API server rejected the Job", "correct what the message names"},
		}},
	}}
}

func ofNova() Table {
	return Table{Name: nova, Kinds: []string{nova}, Link: "nova.md#conditions", Conditions: []Condition{
		{Type: condition.InputReadyCondition, Means: "the passwords exist", Reasons: []Reason{
			{common.SecretMissingReason, "the Secret of `spec.secret` does not exist", createSecret},
			{common.SecretKeyMissingReason, "the Secret of `spec.secret` does not have the key with the service password", createSecret},
			{common.SecretForbiddenReason, noRight, grantSecrets},
			{common.SecretLimitReason, noRoom, fewerSecrets},
		}},
		{Type: novav1.NovaAllCellsReadyCondition, Means: "every cell is Ready", Reasons: []Reason{
			{novav1.CellsNotReadyReason, "some cells are not Ready; the message names the first", "see the conditions of that NovaCell: the most frequent cause is a missing Secret of the message bus"},
			{common.ConflictReason, "a NovaCell or Secret with the name of a cell exists already, and was not created by this Nova", removeOrGive},
			{novav1.ComputesRemainingReason, "a cell was removed from `cellTemplates` but still has computes", "delete their nodes and NovaComputes first, or add the cell to `cellTemplates` again"},
		}},
		{Type: novav1.NovaAPIReadyCondition, Means: "the inputs of the API are ready, or no API is run; the message says which", Like: podifiedTable, Reasons: []Reason{
			{novav1.InvalidSpecReason, "the API database, `cell0` or an image is not configured", "set what the message names, or `spec.apiServiceTemplate.replicas: 0`"},
			{novav1.CellNotReadyReason, "cell0 has not read the Secret of its message bus yet", "see the condition `InputReady` of the NovaCell that the message names"},
			{novav1.DatabaseConflictReason, "a database is that of another Nova with an API in the namespace, which was created before, or is used twice; nothing is changed", "set `apiDatabaseName`, and `cellDatabaseName` of each cell, to other databases"},
			{common.SecretMissingReason, "the Secret with the message bus of cell0 does not exist", createSecret},
			{common.SecretKeyMissingReason, "the Secret of `spec.secret` does not have the password of a database, or that with the message bus of cell0 not the key `transport_url`", createSecret},
			{common.SecretForbiddenReason, noRight, grantSecrets},
			{common.SecretLimitReason, noRoom, fewerSecrets},
		}},
		{Type: condition.DBSyncReadyCondition, Means: "the schema of the API database is up to date. Present only if an API is run", Like: jobTable},
		{Type: novav1.NovaCellMappingsReadyCondition, Means: "the API knows the database and the message bus of every cell, and no cell that is to be removed. Present only if an API is run", Like: jobTable, Reasons: []Reason{
			{novav1.CellHasHostsReason, "a cell was removed from `cellTemplates`, and hosts are mapped to it; the NovaCell is kept", "delete their compute services in nova, or add the cell to `cellTemplates` again; the Job is retried within five minutes"},
			{novav1.CellHasInstancesReason, "a cell was removed from `cellTemplates`, and has instances; the NovaCell is kept", "delete the instances, or add the cell to `cellTemplates` again; the Job is retried within five minutes"},
			{novav1.CellNotReadyReason, "the database of a cell is not up to date yet; the other cells can be used", "see the condition `DBSyncReady` of the NovaCell that the message names"},
			{common.SecretMissingReason, "the Secret with the message bus of a cell does not exist; the other cells can be used", createSecret},
			{common.SecretKeyMissingReason, "the Secret with the message bus of a cell does not have the key `transport_url`", createSecret},
		}},
		{Type: novav1.NovaDBPurgeReadyCondition, Means: "rows of deleted instances are [removed](nova.md#deleted-instances) from the database of each cell as scheduled. Present only if an API is run", Like: jobTable, Reasons: []Reason{
			{common.SecretMissingReason, "the Secret with the message bus of a cell does not exist", createSecret},
			{common.SecretKeyMissingReason, "the Secret with the message bus of a cell does not have the key `transport_url`", createSecret},
			{novav1.InvalidConfigReason, "a value cannot be written into a configuration file, for example a password with a line break", "correct the value that the message names"},
		}},
		{Type: novav1.NovaComputeServicesReadyCondition, Means: "the API can be asked for the services of computes, or there are none, and maps new hosts. Present only if an API is run", Like: jobTable, Reasons: unasked()},
	}}
}

// job is what internal/podified reports for Jobs.
func job() Table {
	return Table{Name: jobTable, Title: "as of every Job", Kinds: []string{nova, novaCell, glanceAPI}, Link: "nova.md#jobs", Conditions: []Condition{
		{Type: condition.DBSyncReadyCondition, Means: "the Job has succeeded with the current inputs", Reasons: []Reason{
			{podifiedv1.JobRunningReason, "the Job has not ended yet; the message names it", patience},
			{podifiedv1.DatabaseAccessDeniedReason, "the database server denies access to the user or to the database", "correct the user or its password in the Secret, or grant it the database; another password is used immediately, else the Job is retried within five minutes"},
			{podifiedv1.DatabaseMissingReason, "the database does not exist on its server", "create it; the Job is retried within five minutes"},
			{podifiedv1.DatabaseUnreachableReason, "the database server does not answer", "correct its address, or start it; the Job is retried within five minutes"},
			{podifiedv1.SchemaTooNewReason, "the schema of the database is newer than the image", "set an image of the version that updated the schema, or a newer one"},
			{podifiedv1.JobFailingReason, "the Job fails for another cause, or its pod does not start", "see `kubectl logs` of the Job that the message names; it is retried within five minutes"},
			{podifiedv1.JobFailedReason, "the Job has failed and is not retried, because something else than the suite ended it", "delete the Job: it is created again"},
			{podifiedv1.PodsPendingReason, "the scheduler finds no node for the pod of the Job; the message is the scheduler's", "see [my pod is Pending](pod-pending.md)"},
			{podifiedv1.InvalidConfigReason, "a value cannot be written into a configuration file, for example a password with a line break", "correct the value that the message names"},
			{podifiedv1.RefusedReason, "the API server rejects the Job", "correct what the message names"},
			{common.ConflictReason, "a Job or Secret with that name exists already, and was not created for this object", removeOrGive},
		}},
	}}
}

func ofNovaCell() Table {
	return Table{Name: novaCell, Kinds: []string{novaCell}, Link: "novacell.md#conditions", Conditions: []Condition{
		{Type: condition.InputReadyCondition, Means: "the inputs of computes are ready", Reasons: []Reason{
			{novav1.InvalidSpecReason, "a field that computes need is empty", "set the field that the message names"},
			{novav1.InvalidConfigReason, "the key `quorumqueues` of the Secret with the message bus is neither `true` nor `false`", "correct or remove it"},
			{novav1.QueueTypeChangedReason, "the Secret with the message bus asks for other queues (`quorumqueues`) in a virtual host that is in use; computes and pods keep their configuration", "set `transport_url` to another virtual host, or `quorumqueues` to the value that the message names"},
			{common.SecretMissingReason, "a Secret does not exist", createSecret},
			{common.SecretKeyMissingReason, "a Secret does not have a key", createSecret},
			{common.SecretForbiddenReason, noRight, grantSecrets},
			{common.SecretLimitReason, noRoom, fewerSecrets},
		}},
		{Type: novav1.NovaComputeServiceConfigReadyCondition, Means: "the configuration of the computes is generated", Reasons: []Reason{
			{novav1.InvalidConfigReason, "a value cannot be written into a configuration file, for example a password with a line break", "correct the value that the message names"},
			{common.ConflictReason, "a Secret with the name of the configuration exists already, and was not created for this cell", removeOrGive},
			{common.SecretForbiddenReason, noRight, grantSecrets},
		}},
		{Type: novav1.NovaConductorReadyCondition, Means: "the inputs of the conductor are ready, or the conductor is disabled; the message says which", Like: podifiedTable, Reasons: []Reason{
			{common.SecretMissingReason, "the Secret with the passwords of the databases does not exist", createSecret},
			{common.SecretKeyMissingReason, "the Secret does not have the password of a database, or `MetadataSecret` for the metadata service", createSecret},
			{common.SecretForbiddenReason, noRight, grantSecrets},
			{common.SecretLimitReason, noRoom, fewerSecrets},
		}},
		{Type: condition.DBSyncReadyCondition, Means: "the schema of the database of the cell is up to date. Present only if the cell has a conductor", Like: jobTable},
	}}
}

func ofCompute() Table {
	return Table{Name: compute, Kinds: []string{compute}, Link: "novaexternalcompute.md#conditions", Conditions: []Condition{
		{Type: condition.InputReadyCondition, Means: "node, inventory and SSH key exist", Like: hostedTable, Reasons: []Reason{
			{novav1.AnnotationMissingReason, "neither the node nor its role is annotated with a cell, so the node is not a compute; nothing is run", "set annotation `nova.openstack.org/cell` on the node or its role, or delete the compute"},
			{novav1.CellMismatchReason, "the annotation names another cell than `cellName`; nothing is run", "restore the annotation, or delete the node and create it again: see [the cell rule](cell-rule.md)"},
		}},
		{Type: novav1.NovaCellReadyCondition, Means: "the cell provides the configuration of its computes", Reasons: []Reason{
			{novav1.CellMissingReason, "the cell does not exist", "create it, for example through a [Nova](nova.md); it continues automatically"},
			{novav1.CellNotReadyReason, "the cell does not provide the configuration of its computes yet", "see the conditions of the cell"},
			{novav1.CellZeroReason, "the annotation names cell0, which has no computes", "delete the node and create it again with another cell"},
			{common.SecretForbiddenReason, noRight, grantSecrets},
			{common.SecretLimitReason, noRoom, fewerSecrets},
		}},
		{Type: hostedv1.DataPlaneNodeReadyCondition, Means: "phases -1 and 0 of the node are complete", Like: hostedTable},
		{Type: condition.ServiceConfigReadyCondition, Means: "`customServiceConfig` is valid", Like: hostedTable},
		{Type: condition.DeploymentReadyCondition, Means: "libvirt and nova ran on the host with the current inputs", Like: hostedTable},
		{Type: novav1.ComputeServiceReadyCondition, Means: "nova can put a guest on the compute: its service is up, enabled and mapped to its cell. Where [no API is asked](novaexternalcompute.md#the-service-in-nova) it is True with the reason `NotObserved`", Reasons: append([]Reason{
			{novav1.NotObservedReason, "(True) the cell belongs to no Nova that runs an API, so nobody is asked", "nothing; to have it observed, run the API by `apiServiceTemplate.replicas` of the [Nova](nova.md)"},
			{novav1.ServiceNotReportedReason, "nova does not know a service nova-compute of the host", "nothing if nova-compute has just been started; else see its log on the host, and check that the host has the name in nova that the message has"},
			{novav1.ServiceDownReason, "the service has not reported to nova for a minute, or it is forced down; the message says since when. Nothing is run on the host", "see [EDPMComputeServiceDown](runbooks/EDPMComputeServiceDown.md)"},
			{novav1.ServiceDisabledReason, "the service is disabled, so the scheduler passes the host over; the message has the reason", "enable it when the cause of the reason no longer exists"},
			{novav1.ServiceDuplicatedReason, "nova has services of the host in two cells", "delete the one that is left from the other cell: see the message"},
			{novav1.ServiceConflictReason, "another compute of the same Nova has the host of this name; the message names both. Nothing is written to nova", "correct `edpm_nova_host` on the node with the wrong name. If both computes are recorded by it in `status.novaHost`, delete one of the nodes with `edpm.openstack.org/skip-cleanup`"},
			{novav1.InstancesPresentReason, "the compute is being deleted, and nova has instances on it; the message has their number. Its service is disabled, and nothing is removed from the host", "migrate or delete the instances; it continues automatically. If the host is dead, set `edpm.openstack.org/skip-cleanup`: see [scale in](how-to/scale-in.md#a-host-that-is-dead)"},
			{novav1.HostNotMappedReason, "the host is not mapped to its cell yet", "nothing; if it stays so, see the condition `NovaComputeServicesReady` of the Nova"},
		}, unasked()...)},
	}}
}

// unasked are the reasons why nova cannot be asked for services of computes.
func unasked() []Reason {
	return []Reason{
		{novav1.KeystoneUnreachableReason, "keystone does not answer; the message says how. Computes that were up are shown as they were", "start it, or correct `keystoneAuthURL`; it is tried again within half a minute"},
		{novav1.KeystoneAccessDeniedReason, "keystone refuses the service user", "correct the password in the Secret, or the user in keystone; another password is used immediately"},
		{novav1.EndpointMissingReason, "the catalogue of keystone has no internal endpoint of type compute in the region of the Nova", "create the endpoint, or correct `keystone.region`"},
		{novav1.PlacementMissingReason, "the same with type placement: without it nova can put guests on no compute", "create the endpoint, or correct `keystone.region`"},
		{novav1.CellUnreachableReason, "nova's API does not reach the database of a cell, and knows nothing of its computes; the message names one of their hosts", "start the database, or correct its address and password in the [NovaCell](novacell.md)"},
		{novav1.APIUnreachableReason, "nova's API does not answer; the message says how", "see the pods of the API, and the address in the catalogue; it is tried again within half a minute"},
		{novav1.APIAccessDeniedReason, "nova's API does not let the service user list its services", "give the user the role admin in the project service, or allow it in the policy of nova"},
	}
}

func ofServiceClass() Table {
	return Table{Name: serviceClass, Kinds: []string{serviceClass}, Link: "edpmserviceclass.md#conditions", Conditions: []Condition{
		{Type: condition.InputReadyCondition, Means: "the class is valid, and the Secrets and ConfigMaps that it names exist", Reasons: append([]Reason{
			{edpmv1.InvalidClassReason, "a field of the class is invalid; the message names it. Admission was off when it was written", "correct the field"},
			{edpmv1.AfterCycleReason, "classes come after each other, so that none of them can start; the message names them", "remove one of the names from `spec.after`"},
		}, filesMissing()...)},
		{Type: edpmv1.ServicesReadyCondition, Means: "the service is Ready on every node that the class selects", Reasons: []Reason{
			{edpmv1.ServicesNotReadyReason, "the service is not Ready on some nodes; the message names the first", "see the conditions of the EDPMService that the message names"},
			{edpmv1.ClassInUseReason, "the class is being deleted, and nodes have its service; the message has their number and names up to ten", "remove the annotation of the class from these nodes and their roles, or set it to `false`: the service is removed from their hosts, and then the class"},
		}},
	}}
}

// filesMissing are the reasons why configFiles of a class cannot be read.
func filesMissing() []Reason {
	return []Reason{
		{common.SecretMissingReason, "a Secret of `configFiles` does not exist", createInput},
		{common.SecretKeyMissingReason, "a Secret of `configFiles` does not have the key", "add the key to the Secret; it continues automatically"},
		{common.SecretForbiddenReason, noRight, grantSecrets},
		{common.SecretLimitReason, noRoom, fewerSecrets},
		{common.ConfigMapMissingReason, "a ConfigMap of `configFiles` does not exist", createInput},
		{common.ConfigMapKeyMissingReason, "a ConfigMap of `configFiles` does not have the key", createInput},
	}
}

func ofEDPMService() Table {
	return Table{Name: edpmService, Kinds: []string{edpmService}, Link: "edpmservice.md#conditions", Conditions: []Condition{
		{Type: condition.InputReadyCondition, Means: "node, inventory and SSH key exist", Like: hostedTable},
		{Type: edpmv1.ServiceClassReadyCondition, Means: "the class exists, is valid, and has its files", Reasons: append([]Reason{
			{edpmv1.ClassMissingReason, "the class does not exist in the namespace; nothing is run", "create the class, or delete the object"},
			{edpmv1.InvalidClassReason, "a field of the class is invalid; the message names it", "correct the class"},
		}, filesMissing()...)},
		{Type: edpmv1.PrecedingServicesReadyCondition, Means: "the services of the node that the class comes after are Ready", Reasons: []Reason{
			{edpmv1.PrecedingNotReadyReason, "a service of `spec.after` is not Ready on the node; the message names it", "see `status.services` of the node: `kubectl edpm status <node>`"},
			{edpmv1.PrecedingMissingReason, "the node does not have a service of `spec.after`; the message names it", "give the service to the node, or remove its name from `spec.after` of the class"},
			{edpmv1.AfterCycleReason, "classes come after each other; the message names them", "remove one of the names from `spec.after`"},
		}},
		{Type: hostedv1.DataPlaneNodeReadyCondition, Means: "phases -1 and 0 of the node are complete", Like: hostedTable},
		{Type: condition.ServiceConfigReadyCondition, Means: "`customServiceConfig` is valid", Like: hostedTable},
		{Type: condition.DeploymentReadyCondition, Means: "the playbook of the class ran on the host with the current inputs", Like: hostedTable},
	}}
}

func ofNovaCompute() Table {
	return Table{Name: novaCompute, Kinds: []string{novaCompute}, Link: "novacompute.md#conditions", Conditions: []Condition{
		{Type: novav1.NovaCellReadyCondition, Means: "the cell provides the configuration of its computes", Reasons: []Reason{
			{novav1.CellMissingReason, "the NovaCell does not exist", "create it, for example through a [Nova](nova.md); it continues automatically"},
			{novav1.CellNotReadyReason, "the cell does not provide the configuration of its computes yet", "see the conditions of the cell"},
			{novav1.CellZeroReason, "`cell0` has no computes", "delete the NovaCompute and create it in another cell"},
			{common.SecretForbiddenReason, noRight, grantSecrets},
			{common.SecretLimitReason, noRoom, fewerSecrets},
		}},
	}}
}

func ofOVNController() Table {
	return Table{Name: ovnController, Kinds: []string{ovnController}, Link: "ovncontroller.md#conditions", Conditions: []Condition{
		{Type: condition.InputReadyCondition, Means: "node, inventory and SSH key exist", Like: hostedTable},
		ovnConfigReady("`southbound`, and with `ssl:` also `tls-secret`"),
		{Type: hostedv1.DataPlaneNodeReadyCondition, Means: "phases -1 and 0 of the node are complete", Like: hostedTable},
		{Type: condition.ServiceConfigReadyCondition, Means: "always: `customServiceConfig` is empty", Like: hostedTable},
		{Type: condition.DeploymentReadyCondition, Means: "ovn-controller runs on the host with the current inputs", Like: hostedTable, Reasons: []Reason{
			{neutronv1.MetadataAgentPresentReason, "the object is being deleted, and the metadata agent is removed from the host first", "nothing if the node is deleted: its OVNMetadataAgent is deleted too. Else delete the OVNMetadataAgent"},
		}},
	}}
}

func ofMetadataAgent() Table {
	return Table{Name: metadataAgent, Kinds: []string{metadataAgent}, Link: "ovnmetadataagent.md#conditions", Conditions: []Condition{
		{Type: condition.InputReadyCondition, Means: "node, inventory and SSH key exist", Like: hostedTable},
		ovnConfigReady("those of the OVNController, `metadata-shared-secret` and `nova-metadata-host`"),
		{Type: neutronv1.OVNControllerReadyCondition, Means: "the OVNController of the node is Ready", Reasons: []Reason{
			{neutronv1.OVNControllerMissingReason, "the node has no OVNController", "see the entry `ovn-controller` in `status.services` of the node; without one, set the annotation that the message names"},
			{neutronv1.OVNControllerNotReadyReason, "the OVNController is not Ready, or is being deleted", "see the conditions of the OVNController: `kubectl edpm status <node>`"},
		}},
		{Type: hostedv1.DataPlaneNodeReadyCondition, Means: "phases -1 and 0 of the node are complete", Like: hostedTable},
		{Type: condition.ServiceConfigReadyCondition, Means: "`customServiceConfig` is valid", Like: hostedTable},
		{Type: condition.DeploymentReadyCondition, Means: "the agent runs on the host with the current inputs", Like: hostedTable},
	}}
}

func ovnConfigReady(keys string) Condition {
	return Condition{Type: neutronv1.OVNConfigReadyCondition, Means: "the [OVN configuration](how-to/ovn-on-hosts.md#the-ovn-configuration) is valid", Reasons: []Reason{
		{common.SecretMissingReason, "the Secret with the OVN configuration, or the one that its key `tls-secret` names, does not exist", createSecret},
		{common.SecretKeyMissingReason, "a Secret does not have a key, or it is empty. Required are " + keys, "add the key that the message names; it continues automatically"},
		{neutronv1.InvalidOVNConfigReason, "a key has an invalid value; the message has the Secret, the key and what is valid, and never the value", "correct the key; it continues automatically"},
		{common.SecretForbiddenReason, noRight, grantSecrets},
		{common.SecretLimitReason, noRoom, fewerSecrets},
	}}
}

func ofGlance() Table {
	return Table{Name: glance, Kinds: []string{glance}, Link: "glance.md#conditions", Conditions: []Condition{
		{Type: glancev1.GlanceAPIReadyCondition, Means: "every GlanceAPI is Ready", Reasons: []Reason{
			{glancev1.APIsNotReadyReason, "a GlanceAPI is not Ready; the message names the first and says why", "see the conditions of that GlanceAPI"},
			{common.ConflictReason, "a GlanceAPI with that name exists already, and was not created by this Glance", removeOrGive},
		}},
	}}
}

// podified is what internal/podified reports for services in pods.
func podified() Table {
	return Table{Name: podifiedTable, Title: "as of every service in pods", Kinds: []string{glanceAPI, nova, novaCompute, novaCell}, Link: "glance.md#conditions", Conditions: []Condition{
		{Type: condition.InputReadyCondition, Means: "the inputs of the pods are ready", Reasons: []Reason{
			{podifiedv1.InvalidSpecReason, "a field is missing", "set the field that the message names"},
			{common.SecretMissingReason, "a Secret does not exist", createSecret},
			{common.SecretKeyMissingReason, "a Secret does not have a key", createSecret},
			{common.SecretForbiddenReason, noRight, grantSecrets},
			{common.SecretLimitReason, noRoom, fewerSecrets},
		}},
		{Type: condition.ServiceConfigReadyCondition, Means: "the configuration is generated", Reasons: []Reason{
			{podifiedv1.InvalidConfigReason, "oslo.config would reject a snippet, or a password cannot be written into a file", "correct what the message names: see [how-to](how-to/custom-service-config.md)"},
		}},
		{Type: condition.NetworkAttachmentsReadyCondition, Means: "the network attachments exist", Reasons: []Reason{
			{ansibleeev1.NetworkAttachmentMissingReason, "a NetworkAttachmentDefinition does not exist", createInput},
		}},
		{Type: condition.TopologyReadyCondition, Means: "the pods can use the Topology", Like: consumersTable},
		placementReady(),
		{Type: condition.DeploymentReadyCondition, Means: "all pods match the spec and are ready", Reasons: []Reason{
			{podifiedv1.RollingOutReason, "pods are being created or replaced", patience},
			{podifiedv1.PodsPendingReason, "the scheduler finds no node for a pod; the message is the scheduler's", "see [my pod is Pending](pod-pending.md), and `PlacementReady`"},
			{podifiedv1.PodsNotReadyReason, "pods are scheduled but not ready; the message names a container that does not stay up", "see the log with the command in the message, or `kubectl describe pod` of the pod that it names"},
			{podifiedv1.ProgramMissingReason, "the image does not have the program of the service, nor its WSGI application with a WSGI server; the message names image, program and application", "set an image that has one of them"},
			{podifiedv1.HeldReason, "a change is held back because of `PlacementReady`, as the Topology has `enforcement: Hold`", "do what `PlacementReady` says, or set `enforcement: Warn`"},
			{podifiedv1.ReplacingReason, "the StatefulSet is being recreated, because an immutable field has changed or because it was handed over from another operator; its pods keep running", patience},
			{common.ConflictReason, "a StatefulSet, Service, PodDisruptionBudget or Secret with that name exists already, and was not created for this object or was created by another operator; or pods do not have the labels by which they are selected, and the message has the command that sets them", removeOrGive},
			{podifiedv1.RefusedReason, "the API server rejects the StatefulSet or a Service", "correct what the message names"},
			{common.SecretForbiddenReason, noRight, grantSecrets},
			{common.SecretLimitReason, noRoom, fewerSecrets},
		}},
		{Type: podifiedv1.PodNodesReadyCondition, Means: "no pod is on a node that does not answer", Reasons: []Reason{
			{podifiedv1.NodeNotReadyReason, "pods are on a node that does not answer", "bring the node back; its pods are evicted if it stays unavailable"},
			{podifiedv1.PodsTerminatingReason, "pods were evicted from a node that does not answer, and are not replaced while they are terminating", "bring the node back, delete the Node, or force the deletion of the pods: the message has the commands"},
		}},
	}}
}

func placementReady() Condition {
	return Condition{Type: topologyv1.PlacementReadyCondition, Means: "every pod is scheduled, or would be if it were created from the current spec", Reasons: []Reason{
		{topologyv1.VolumeNodeAffinityConflictReason, "the volume of a pod can only be reached from nodes that refuse the pod", "allow the pod on the nodes that can reach its volume, or use external storage"},
		{topologyv1.MissingNodeLabelReason, "nodes do not have the label that a constraint needs", "label the nodes; the message has the command"},
		{topologyv1.MinDomainsUnmetReason, "there are fewer domains than `minDomains`", "label more nodes, or lower `minDomains`"},
		{topologyv1.PodRefusedReason, "the API server would reject a pod or its claim, because of a LimitRange or ResourceQuota of the namespace", "correct the requests and limits, or raise the quota: the message names both"},
		{topologyv1.UnsatisfiableReason, "no node is suitable for a pod, for another reason; the message is the scheduler's", "see [my pod is Pending](pod-pending.md)"},
		{topologyv1.InertSelectorReason, "the `labelSelector` of a constraint matches none of the pods, so that the constraint has no effect", "correct the `labelSelector`, or remove it"},
	}}
}

func ofControlPlane() Table {
	reasons := []Reason{
		{openstackv1.ServiceNotReadyReason, "the service is not Ready; the message says why", "see the conditions of the service"},
		{common.ConflictReason, "an object with that name exists already, and was not created by this control plane", removeOrGive},
		{openstackv1.InvalidSpecReason, "the API server rejects the service that the template describes", "correct the field of the template that the message names"},
	}
	return Table{Name: controlPlane, Kinds: []string{controlPlane}, Link: "controlplane.md#conditions", Conditions: []Condition{
		{Type: openstackv1.GlanceReadyCondition, Means: "the Glance is Ready", Reasons: reasons},
		{Type: openstackv1.NovaReadyCondition, Means: "the Nova is Ready", Reasons: reasons},
		{Type: condition.TopologyReadyCondition, Means: "the Topology of `spec.topologyRef` exists", Like: consumersTable},
	}}
}

func ofTopology() Table {
	return Table{Name: topologyKind, Kinds: []string{topologyKind}, Link: "topology.md#conditions", Conditions: []Condition{
		{Type: topologyv1.ConsumersReadyCondition, Means: "objects can refer to the Topology", Reasons: []Reason{
			{topologyv1.InUseReason, "the Topology is being deleted, and objects still use it; the message names them", "refer to another Topology in these objects, or remove the reference"},
		}},
		{Type: topologyv1.SpreadReadyCondition, Means: "the running pods satisfy every constraint with `DoNotSchedule`", Reasons: []Reason{
			{topologyv1.NoDomainReason, "no node has the label of a constraint with `DoNotSchedule`: pods would stay Pending", "label the nodes, or correct `topologyKey`"},
			{topologyv1.SkewExceededReason, "the skew of the running pods exceeds `maxSkew`, or there are fewer domains than `minDomains`", "delete pods of the domain with the most pods, one at a time: the scheduler does not move running pods"},
		}},
	}}
}

func ofStorageCluster() Table {
	placement := placementReady()
	placement.Means = "every OSD is scheduled, or would be: there is a node with room for it"
	return Table{Name: storageCluster, Kinds: []string{storageCluster}, Link: "storagecluster.md#conditions", Conditions: []Condition{
		{Type: condition.InputReadyCondition, Means: "the fields of the spec are consistent", Reasons: []Reason{
			{ocsv1.InvalidSpecReason, "fields contradict each other, and the webhook was unavailable when they were written", "correct the field that the message names"},
		}},
		{Type: ocsv1.NodesReadyCondition, Means: "there are enough nodes for the OSDs", Reasons: []Reason{
			{ocsv1.NotEnoughNodesReason, "fewer nodes are selected than the OSDs need. Existing OSDs are not changed", "label more nodes; the message has the command"},
		}},
		{Type: ocsv1.FailureDomainReadyCondition, Means: "there are enough failure domains, and every node for OSDs is in one", Reasons: []Reason{
			{ocsv1.TooFewDomainsReason, "there are fewer failure domains than copies of the data, or than `replica` asks for. OSDs are created nevertheless", "add storage nodes with other values of the label, or lower `replica`"},
			{ocsv1.NodesOutsideDomainsReason, "nodes do not have the label of the failure domain, and get no OSD", "label the nodes that the message names"},
		}},
		placement,
		{Type: ocsv1.CephClusterReadyCondition, Means: "the CephCluster has the device sets", Reasons: []Reason{
			{ocsv1.RookMissingReason, "the resource definition of CephCluster does not exist", "install Rook; it continues automatically"},
			{ocsv1.LayoutOrphansReason, "`deviceSetLayout` would orphan OSDs. The CephCluster is not changed", "set the layout that the message names"},
			{ocsv1.DeviceSetOrphansReason, "device sets with OSDs were removed from the spec. The CephCluster is not changed", "add the device sets again, or set the annotation that the message names"},
			{ocsv1.LegacyPlacementReason, "more than the count of a device set with OSDs that was found in the CephCluster has changed, which would recreate their pods with another placement. The CephCluster is not changed", "restore the device set, or set the annotation that the message names"},
			{ocsv1.EncryptionUnsetReason, "a new device set would be unencrypted while others are encrypted, and the spec does not set `encrypted`. The CephCluster is not changed", "set `encrypted` of the device set"},
			{ocsv1.EncryptionDiffersReason, "`encrypted` in the spec differs from device sets of the CephCluster. The CephCluster is not changed", "set `encrypted` as the message says, or add a device set"},
			{common.ConflictReason, "the CephCluster is owned by another object, or existed before and was not handed over", "hand it over with the annotation that the message names, or choose another name for the StorageCluster; it continues automatically"},
			{ocsv1.RefusedReason, "the API server rejects the CephCluster; the message has its error", "correct what the message names"},
		}},
	}}
}

// ofManager is what the manager reports about itself.
func ofManager() Table {
	return Table{Name: "manager", Kinds: []string{managerPod}, Link: "coexistence.md#what-it-says", Conditions: []Condition{
		{Type: common.OperatorsRunningCondition, Means: "all selected operators are running; the message names them", Reasons: []Reason{
			{common.AllRunningReason, "(True) no operator is disabled", "nothing"},
			{common.ForeignDefinitionReason, "a resource definition belongs to another operator; the message names the definition, and the operators that are disabled because of it", "nothing, to keep the other operator. Otherwise remove it and its definition, and apply the definition of this project: the manager restarts automatically"},
			{common.MissingDefinitionReason, "a resource definition that an operator needs does not exist; the message names it", "apply all definitions with `kubectl apply --server-side -k config/crd`, or only the missing one; the manager restarts automatically"},
		}},
	}}
}
