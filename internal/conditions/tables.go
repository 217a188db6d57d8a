package conditions

import (
	"slices"
	"strings"
)

// Kinds in the tables.
const (
	role          = "OpenStackDataPlaneRole"
	node          = "OpenStackDataPlaneNode"
	ansibleEE     = "OpenStackAnsibleEE"
	nova          = "Nova"
	novaCell      = "NovaCell"
	novaCompute   = "NovaCompute"
	compute       = "NovaExternalCompute"
	ovnController = "OVNController"
	metadataAgent = "OVNMetadataAgent"
	edpmService   = "EDPMService"
	glanceAPI     = "GlanceAPI"
	controlPlane  = "OpenStackControlPlane"
)

// Tables for several kinds, to which the others refer.
const (
	step        = "step"
	hosted      = "hosted"
	metal       = "metal"
	podified    = "podified"
	job         = "job"
	topologyRef = "topologyRef"
)

// Tables returns all tables, those for many kinds first.
func Tables() []Table { return tables }

// What a condition or a reason means, and what helps, is in the comment of its constant,
// and here only where it is more for a kind. Conditions are in the order of the phases.
var tables = []Table{
	{Name: "common", Kinds: []string{"every kind"}, Link: "conditions.md", Conditions: []Condition{
		ready.withReasons(notChecked, failed),
	}},
	{Name: step, Title: "reasons of a step", Kinds: []string{node, compute, ovnController, metadataAgent, edpmService}, Link: "conditions.md#reasons-of-a-step", Conditions: []Condition{
		deploymentReady.withMeaning("every step has run on the host with the current inputs").withReasons(
			edpmPending, edpmHostBusy, edpmHostNotEmpty, edpmRunning, edpmFailed, edpmRefused, edpmRetriesExhausted, edpmRolloutHeld, edpmTooLarge, edpmPaused, edpmExcluded, edpmLimited),
		commonHostInSync.withReasons(commonHostDiffers, commonRepairAwaited, commonDriftReturned),
	}},
	{Name: topologyRef, Title: "as of every object with a topologyRef", Kinds: []string{role, node, ansibleEE, controlPlane, glanceAPI, nova, novaCompute, novaCell}, Link: "topology.md#conditions", Conditions: []Condition{
		topologyReady.withReasons(topologyTopologyMissing, topologyTopologyDeleting, topologyTopologyHeld),
	}},
	{Name: "release", Kinds: []string{nova, novaCell, novaCompute, compute, "Glance", glanceAPI, ovnController, metadataAgent}, Link: "upgrade.md#images", Conditions: []Condition{
		commonUpdateAvailable.withReasons(commonNewImages),
	}},
	kind("OpenStackDataPlane",
		inputReady.withMeaning("roles and nodes match the spec").withReasons(
			commonConflict.withMeaning("roles or nodes with these names exist already, and were not created by this data plane; the others are up to date"),
			dataplaneRejected),
		dataplaneNodesReady.withReasons(dataplaneNodesNotReady),
	),
	kind(role,
		inputReady.withMeaning("the role is valid and its inventory is published, or the message says why it is too large to be published").withReasons(
			dataplaneInvalidVars.withMeaning("`nodeTemplate.ansibleVars` is neither a mapping nor a string with a YAML mapping").withRemedy("correct the field"),
			inventoryConflict),
		topologyReady.withMeaning("runs can use the Topology of the role").withTable(topologyRef),
		dataplaneNodesReady.withReasons(dataplaneNodesNotReady),
	),
	kind(node,
		inputReady.withMeaning("the inputs of phase 0 are ready").withReasons(dataplaneRoleMissing).
			withReasons(secrets("no Secret with an SSH key is set, or a Secret of a service, mount or `env` does not exist", "")...).
			withReasons(configMaps("a ConfigMap of a service, mount or `env` does not exist", "a ConfigMap does not have the key that `env` refers to")...).
			withReasons(dataplaneServiceMissing, dataplaneInvalidVars, commonRunnerImageMissing, dataplaneInvalidSpec, inventoryConflict, dataplaneMachineConflict),
		topologyReady.withMeaning("runs can use the Topology of the node or of its role").withTable(topologyRef),
		dataplaneProvisionReady.withTable(metal).withReasons(dataplaneHostUnreachable, notReached),
		deploymentReady.withMeaning("phase 0 is complete: every service of the role ran with the current inputs").withTable(step).withReasons(dataplaneServicesRemaining),
	),
	{Name: metal, Title: "reasons of a machine", Kinds: []string{node}, Link: "openstackdataplanenode.md#bare-metal", Conditions: []Condition{
		dataplaneProvisionReady.withMeaning("the BareMetalHost of the node runs its image, and a run has reached it").
			withReasons(dataplaneInvalidSpec.
				withMeaning("`baremetalSetTemplate`, or the user data or network data that it refers to, cannot be used; the message names the field").
				withRemedy("correct the field, or set `preProvisioned: true` if the hosts run already")).
			withReasons(secrets("a Secret with user data, network data or certificates does not exist", "")...).
			withReasons(commonConflict.withMeaning("a Secret with the name of the one that the machine boots with exists already, and was not created for this node"),
				dataplaneMetalKindMissing, dataplaneMetalNoneFree, dataplaneMetalHostLost,
				dataplaneMetalRegistering, dataplaneMetalInspecting, dataplaneMetalPreparing, dataplaneMetalProvisioning,
				dataplaneMetalError, dataplaneMetalPaused, dataplaneMetalPoweredOff, dataplaneMetalDeprovisioned,
				dataplaneMetalAddressUnknown, dataplaneMetalHostKeyUnknown, dataplaneMetalReplaceRefused, dataplaneMetalWriteRefused, dataplaneMetalReleasing),
	}},
	kind(ansibleEE,
		inputReady.withMeaning("a Job can be created from the spec").withReasons(ansibleeeInvalidSpec, commonRunnerImageMissing).
			withReasons(secrets("a Secret that `env` refers to does not exist", "a Secret does not have the key that `env` refers to")...).
			withReasons(configMaps("a ConfigMap that `env` refers to does not exist", "a ConfigMap does not have the key that `env` refers to")...),
		ansibleeeNetworkAttachmentsReady.withReasons(ansibleeeNetworkAttachmentMissing),
		topologyReady.withMeaning("the Pod can use the Topology").withTable(topologyRef),
		ansibleeeJobReady.withReasons(ansibleeeJobRunning, ansibleeeJobHostsBusy,
			commonConflict.withMeaning("a Job or Secret with that name exists already, and was not created for this run"),
			ansibleeeJobFailed, ansibleeeJobLost, ansibleeeJobNotStarted, ansibleeeJobCancelled,
			ansibleeeInvalidSpec.withMeaning("the API server rejected the Job").withRemedy("correct what the message names")),
	),
	{Name: hosted, Title: "reasons of a service on a host", Kinds: []string{compute, ovnController, metadataAgent, edpmService}, Link: "conditions.md#reasons-of-a-service-on-a-host", Conditions: []Condition{
		hostedInputReady.
			withReasons(hostedNodeMissing, hostedAnnotationMissing, hostedInvalidSpec,
				commonConfigMapMissing.withMeaning("the inventory does not exist").withRemedy("see the conditions of the node, for which it is generated"),
				commonConfigMapKeyMissing.withMeaning("the ConfigMap does not have the key `inventory`").withRemedy("see the conditions of the node, for which it is generated"),
				hostedInvalidInventory, commonRunnerImageMissing, commonImageMissing).
			withReasons(secrets("the Secret with the SSH key does not exist", "the Secret does not have the key `ssh-privatekey`")...),
		hostedDataPlaneNodeReady.withReasons(hostedNodeNotReady,
			commonConflict.withMeaning("the object is owned by another object than the node, so nothing is run").withRemedy("delete the object; a new one is created for the node")),
		serviceConfigReady.withReasons(hostedInvalidConfig),
		deploymentReady.withMeaning("the steps of the service ran on the host with the current inputs").withTable(step).withReasons(hostedCleanup, hostedMachineConflict, hostedCleanupFailed),
	}},
	kind(nova,
		inputReady.withMeaning("the passwords exist").withReasons(
			secrets("the Secret of `spec.secret` does not exist", "the Secret of `spec.secret` does not have the key with the service password")...),
		optionsKnown,
		novaNovaAllCellsReady.withReasons(novaCellsNotReady,
			conflict("a NovaCell or Secret with the name of a cell exists already, and was not created by this Nova"),
			novaComputesRemaining),
		serviceConfigReady.withMeaning("the configuration is generated, and `customServiceConfig` and further files are valid; warnings are in the message").withTable(podified).withReasons(ofTexts...),
		novaNovaAPIReady.withTable(podified).
			withReasons(commonImageMissing, novaInvalidSpec.withMeaning("the API database or `cell0` is not configured").withRemedy("set what the message names, or `spec.apiServiceTemplate.replicas: 0`"),
				cellChooses, novaDatabaseConflict, novaInvalidConfig.withMeaning("the key `quorumqueues` of the Secret with the message bus for notifications is neither `true` nor `false`").withRemedy("correct or remove it")).
			withReasons(secrets("the Secret with the message bus of cell0 does not exist",
				"the Secret of `spec.secret` does not have the password of a database, or that with the message bus of cell0 not the key `transport_url`")...),
		dbSyncReady.withMeaning("the schema of the API database is up to date. Present only if an API is run").withTable(job),
		novaNovaCellMappingsReady.withTable(job).withReasons(novaCellHasHosts, novaCellHasInstances,
			novaCellNotReady.withMeaning("the database of a cell is not up to date yet, or the cell has not read the Secret of its message bus; the other cells can be used").withRemedy("see the condition of the NovaCell that the message names"),
			noMessageBus.withMeaning(noMessageBus.Means+"; the other cells can be used"), noTransportURL),
		novaUpgradeCheckReady.withTable(job).withReasons(novaImageTooOld, novaComputesTooOld, novaServicesOlder, novaUpgradeCheckFailed, novaDataNotMigrated, novaComputesDown, novaServicesLeft, novaNotAsked).withReasons(unobserved...),
		novaUpdateReady.withReasons(novaUpdating),
		novaOnlineMigrationsReady.withTable(job).withReasons(novaComputesOlder, cellChooses, noMessageBus, noTransportURL),
		novaNovaDBPurgeReady.withTable(job).withReasons(cellChooses, noMessageBus, noTransportURL, novaInvalidConfig),
		novaNovaComputeServicesReady.withTable(job).withReasons(unobserved...),
		novaConfigRolledOut.withReasons(novaConfigRollingOut, novaSecretNotHeld),
	),
	kind(novaCell,
		inputReady.withMeaning("the inputs of computes are ready").
			withReasons(novaInvalidSpec,
				novaInvalidConfig.withMeaning("the key `quorumqueues` of a Secret with a message bus is neither `true` nor `false`").withRemedy("correct or remove it"),
				novaQueueTypeChanged).
			withReasons(secrets("", "")...),
		novaNovaComputeServiceConfigReady.withReasons(novaInvalidConfig,
			conflict("a Secret with the name of the configuration exists already, and was not created for this cell"),
			commonSecretForbidden),
		optionsKnown,
		novaMigrationCAReady.withReasons(novaMigrationCALost, novaMigrationCAInvalid,
			conflict("a Secret with the name of the authority exists already, and was not created for this cell"),
			commonSecretMissing.withMeaning("the Secret of `migrationCASecretName` does not exist"), commonSecretForbidden, commonSecretLimit),
		novaConsoleCAReady.withReasons(novaConsoleCAInvalid,
			conflict("a Secret with the name of the authority exists already, and was not created for this cell"), commonSecretForbidden, commonSecretLimit),
		novaMigrationKeyReady.withReasons(
			conflict("a Secret with the name of the key exists already, and was not created for this cell"), commonSecretForbidden),
		serviceConfigReady.withMeaning("the configuration is generated, and `customServiceConfig` and further files are valid; warnings are in the message").withTable(podified).withReasons(ofTexts...),
		novaNovaConductorReady.withTable(podified).withReasons(commonImageMissing).withReasons(
			secrets("the Secret with the passwords of the databases does not exist", "the Secret does not have the password of a database, or `MetadataSecret` for the metadata service")...),
		dbSyncReady.withMeaning("the schema of the database of the cell is up to date. Present only if the cell has a conductor").withTable(job),
		serviceConfigReady.withMeaning("the configuration of the services in pods is generated. Present only if the cell has a conductor").withReasons(novaConsoleCANotReady),
		novaOnlineMigrationsReady.withMeaning("the data of the cell has the format of its schema: see [updates](nova.md#updates). Present only if the cell has a conductor and an API database, and no Nova, which migrates the data of its cells").withTable(job).
			withReasons(novaUpdating.withMeaning("services or computes of the cell do not run its images yet; the message says what is awaited").withRemedy("see what the message names; the data is migrated automatically after that"), novaComputesOlder),
		novaConfigRolledOut.withReasons(novaConfigRollingOut, novaSecretNotHeld),
	),
	kind(compute,
		hostedInputReady.withTable(hosted).withReasons(novaAnnotationMissing, novaCellMismatch),
		novaEvacuated.
			withReasons(novaEvacuating, novaHostAlive, novaEvacuationNotPossible, novaHostReturning, novaHostEvacuated,
				novaGuestsRemain.withMeaning("some guests cannot be evacuated; the message names them, and why. Those that failed are tried again after a minute, and then less and less often").
					withRemedy("see [guests that cannot be evacuated](how-to/evacuate.md#guests-that-cannot-be-evacuated)"),
				novaInvalidSpec.withMeaning("an annotation of the node has an invalid value; the message names it. Nothing is evacuated").withRemedy("correct or remove the annotation of the node"),
				novaServiceNotReported, novaServiceConflict).
			withReasons(unobserved...),
		novaDrained.
			withReasons(novaDraining, novaGuestsRemain, novaDrainNotPossible,
				novaInvalidSpec.withMeaning("an annotation of the drain has an invalid value; the message names it").withRemedy("correct or remove the annotation of the node"),
				novaServiceDown.withMeaning("the nova-compute of the host is down, without which nova moves no guest").withRemedy("see the condition `ComputeServiceReady`; if the host is off, [have its guests evacuated](how-to/evacuate.md)"),
				novaServiceNotReported, novaServiceConflict, novaHostEmpty, novaGuestsStopped).
			withReasons(unobserved...),
		novaMigrationsProgressing.withReasons(novaMigrationsStuck),
		novaNovaCellReady.withReasons(novaCellMissing, novaCellNotReady, novaCellZero, commonSecretForbidden, commonSecretLimit),
		hostedDataPlaneNodeReady.withTable(hosted),
		serviceConfigReady.withMeaning("`customServiceConfig`, further files and the templates of the cell are valid; warnings are in the message").withTable(hosted).withReasons(ofTexts...),
		deploymentReady.withMeaning("libvirt and nova ran on the host with the current inputs").withTable(hosted).withReasons(novaHostFenced),
		novaLiveMigrationReady.withTable(step).withReasons(novaMigrationNotConfigured, novaMigrationAddressMissing, novaMigrationCANotReady, novaMigrationCertificateInvalid, novaMigrationCertificateEnds,
			novaMigrationPeersChange, novaPeerUnreachable,
			commonSecretMissing.withMeaning("the Secret with the certificate of libvirt on the host (`migrationCertificates` of the cell) does not exist; what is on the host stays").withRemedy("create the Secret that the message names; it continues automatically"),
			commonSecretForbidden, commonSecretLimit),
		novaComputeServiceReady.
			withReasons(novaNotObserved, novaServiceNotReported, novaServiceDown, novaServiceDisabled, novaHostDrained, novaHostFenced, novaServiceDuplicated, novaServiceConflict, novaInstancesPresent, novaHostNotMapped).
			withReasons(unobserved...),
	),
	kind(novaCompute,
		novaNovaCellReady.withReasons(novaCellMissing, novaCellNotReady,
			novaCellZero.withMeaning("`cell0` has no computes").withRemedy("delete the NovaCompute and create it in another cell"),
			commonSecretForbidden, commonSecretLimit),
		serviceConfigReady.withMeaning("the configuration is generated, and `customServiceConfig` and further files are valid; warnings are in the message").withTable(podified).withReasons(ofTexts...),
		novaComputeServiceReady.withMeaning("nova can put guests on every pod: its service is up, enabled and mapped to its cell, and no pod is about to leave. Where [no API is asked](novaexternalcompute.md#the-service-in-nova) it is True with the reason `NotObserved`").
			withReasons(novaNotObserved, novaServiceNotReported.withRemedy("nothing if nova-compute has just been started; else see its log with the command in the message"),
				novaServiceDown.withMeaning("the service has not reported to nova for a minute, or it is forced down; the message says since when").withRemedy("see its log with the command in the message, and the message bus of the cell"),
				novaServiceDisabled, novaServiceDuplicated,
				novaServiceConflict.withMeaning("a NovaExternalCompute of the same Nova has the name of the pod in nova. Nothing is written to nova for the pod").withRemedy("delete the node of the NovaExternalCompute, and give its host another name"),
				novaInstancesPresent.withMeaning("pods are not wanted any more, or the NovaCompute is being deleted, and nova has instances on them; the message has their numbers. Their services are disabled, and the pods stay").withRemedy("delete the instances, or move them where the driver can; it continues automatically: see [scale in](how-to/scale-in.md#computes-in-pods)"),
				novaPodsLeaving, novaHostNotMapped).
			withReasons(unobserved...),
	),
	kind(ovnController,
		hostedInputReady.withTable(hosted),
		ovnConfigReady("`southbound`, and with `ssl:` also `tls-secret`"),
		hostedDataPlaneNodeReady.withTable(hosted),
		serviceConfigReady.withMeaning("always: `customServiceConfig` is empty").withTable(hosted),
		deploymentReady.withMeaning("ovn-controller runs on the host with the current inputs").withTable(hosted).withReasons(neutronMetadataAgentPresent),
	),
	kind(metadataAgent,
		hostedInputReady.withTable(hosted),
		ovnConfigReady("those of the OVNController, `metadata-shared-secret` and `nova-metadata-host`"),
		neutronOVNControllerReady.withReasons(neutronOVNControllerMissing, neutronOVNControllerNotReady),
		hostedDataPlaneNodeReady.withTable(hosted),
		serviceConfigReady.withTable(hosted),
		deploymentReady.withMeaning("the agent runs on the host with the current inputs").withTable(hosted),
	),
	kind("EDPMServiceClass",
		inputReady.withMeaning("the class is valid, and the Secrets and ConfigMaps that it names exist").withReasons(edpmInvalidClass, edpmAfterCycle).withReasons(filesMissing...),
		edpmServicesReady.withReasons(edpmServicesNotReady, edpmClassInUse),
	),
	kind(edpmService,
		hostedInputReady.withTable(hosted),
		edpmServiceClassReady.withReasons(edpmClassMissing, edpmInvalidClass).withReasons(filesMissing...),
		edpmPrecedingServicesReady.withReasons(edpmPrecedingNotReady, edpmPrecedingMissing, edpmAfterCycle),
		hostedDataPlaneNodeReady.withTable(hosted),
		serviceConfigReady.withTable(hosted),
		deploymentReady.withMeaning("the playbook of the class ran on the host with the current inputs").withTable(hosted),
	),
	kind("Glance",
		glanceGlanceAPIReady.withReasons(glanceAPIsNotReady, conflict("a GlanceAPI with that name exists already, and was not created by this Glance")),
	),
	{Name: podified, Title: "as of every service in pods", Kinds: []string{glanceAPI, nova, novaCompute, novaCell}, Link: "glance.md#conditions", Conditions: []Condition{
		inputReady.withMeaning("the inputs of the pods are ready").withReasons(podifiedInvalidSpec).withReasons(secrets("", "")...),
		serviceConfigReady.withMeaning("the configuration is generated").withReasons(podifiedInvalidConfig),
		networkAttachmentsReady.withReasons(ansibleeeNetworkAttachmentMissing),
		topologyReady.withMeaning("the pods can use the Topology").withTable(topologyRef),
		placementReady,
		deploymentReady.withMeaning("all pods match the spec and are ready").withReasons(podifiedRollingOut, podifiedPodsPending, podifiedPodsNotReady, podifiedProgramMissing, commonImageMissing, podifiedHeld, podifiedReplacing,
			conflict("a StatefulSet, Service, PodDisruptionBudget or Secret with that name exists already, and was not created for this object or was created by another operator; or pods do not have the labels by which they are selected, and the message has the command that sets them"),
			podifiedRefused, commonSecretForbidden, commonSecretLimit),
		podifiedPodNodesReady.withReasons(podifiedNodeNotReady, podifiedPodsTerminating),
	}},
	{Name: job, Title: "as of every Job", Kinds: []string{nova, novaCell, glanceAPI}, Link: "nova.md#jobs", Conditions: []Condition{
		dbSyncReady.withMeaning("the Job has succeeded with the current inputs").withReasons(
			podifiedJobRunning, podifiedDatabaseAccessDenied, podifiedDatabaseMissing, podifiedDatabaseUnreachable, podifiedSchemaTooNew, podifiedJobFailing, podifiedJobFailed, commonImageMissing,
			podifiedPodsPending.withMeaning("the scheduler finds no node for the pod of the Job; the message is the scheduler's").withRemedy("see [my pod is Pending](pod-pending.md)"),
			podifiedInvalidConfig.withMeaning(novaInvalidConfig.Means).withRemedy(novaInvalidConfig.Remedy),
			podifiedRefused.withMeaning("the API server rejects the Job"),
			conflict("a Job or Secret with that name exists already, and was not created for this object")),
	}},
	{Name: controlPlane, Kinds: []string{controlPlane}, Link: "controlplane.md#conditions", Conditions: []Condition{
		coreGlanceReady.withReasons(serviceNotReady...),
		coreNovaReady.withReasons(serviceNotReady...),
		topologyReady.withMeaning("the Topology of `spec.topologyRef` exists").withTable(topologyRef),
	}},
	kind("Topology",
		topologyConsumersReady.withReasons(topologyInUse),
		topologySpreadReady.withReasons(topologyNoDomain, topologySkewExceeded),
	),
	kind("StorageCluster",
		inputReady.withMeaning("the fields of the spec are consistent").withReasons(ocsInvalidSpec, ocsUnsupportedField),
		ocsNodesReady.withReasons(ocsNotEnoughNodes),
		ocsFailureDomainReady.withReasons(ocsTooFewDomains, ocsNodesOutsideDomains, ocsRefused),
		placementReady.withMeaning("all OSDs are scheduled or can be scheduled").withReasons(ocsDeviceClassUneven),
		ocsCephClusterReady.withReasons(ocsRookMissing, ocsLayoutOrphans, ocsDeviceSetOrphans, ocsLegacyPlacement, ocsEncryptionUnset, ocsEncryptionDiffers,
			commonConflict.withMeaning("the CephCluster is owned by another object, or existed before and was not handed over").
				withRemedy("hand it over with the annotation that the message names, or choose another name for the StorageCluster; it continues automatically"),
			ocsRefused),
	),
	{Name: "manager", Kinds: []string{"Pod of the manager"}, Link: "coexistence.md#what-it-says", Conditions: []Condition{
		commonOperatorsRunning.withReasons(commonAllRunning, commonForeignDefinition, commonMissingDefinition),
	}},
}

// Conditions and reasons of several tables.
var (
	hostedInputReady = inputReady.withMeaning("node, inventory and SSH key exist")
	placementReady   = topologyPlacementReady.withReasons(
		topologyVolumeNodeAffinityConflict, topologyMissingNodeLabel, topologyMinDomainsUnmet, topologyPodRefused, topologyUnsatisfiable, topologyInertSelector)
	inventoryConflict = commonConflict.withMeaning("a ConfigMap with the name of the inventory exists already, and was not created for this object")
	noMessageBus      = commonSecretMissing.withMeaning("the Secret with the message bus of a cell does not exist")
	noTransportURL    = commonSecretKeyMissing.withMeaning("the Secret with the message bus of a cell does not have the key `transport_url`")
	cellChooses       = novaCellNotReady.withMeaning("a cell has not read the Secret of its message bus yet").withRemedy("see the condition `InputReady` of the NovaCell that the message names")
	unobserved        = []Reason{novaKeystoneUnreachable, novaKeystoneAccessDenied, novaEndpointMissing, novaPlacementMissing, novaCellUnreachable, novaAPIUnreachable, novaAPIAccessDenied}
	serviceNotReady   = []Reason{coreServiceNotReady, conflict("an object with that name exists already, and was not created by this control plane"), coreInvalidSpec}
	filesMissing      = append(secrets("a Secret of `configFiles` does not exist", "a Secret of `configFiles` does not have the key"),
		configMaps("a ConfigMap of `configFiles` does not exist", "a ConfigMap of `configFiles` does not have the key")...)
	// optionsKnown is that of a Nova, and of a NovaCell.
	optionsKnown = novaOptionsKnown.withTable(job).withReasons(
		podifiedJobRunning.withMeaning("a Job reads the options of an image; the message names it, or the Nova or NovaCell that runs it"),
		novaOptionsNotPrinted, novaLogUnreadable,
		conflict("a ConfigMap with the name of the options of an image exists already, and was not created for a Nova or NovaCell"))
	// ofTexts are about what people write into the configuration of nova.
	ofTexts = slices.Concat([]Reason{novaOptionsRefused, novaOptionsWarned, novaInvalidConfig.withMeaning("a text or a further file is not what the service reads; the message has the object, the key and the line").withRemedy("correct it: see [how-to](how-to/custom-service-config.md)")},
		secrets("a Secret of `customServiceConfigSecrets` or `configFiles`, or of a template of the cell, does not exist; the message names the field", "a Secret of `configFiles` does not have the key, or it is empty"),
		configMaps("a ConfigMap of `configFiles` does not exist", "a ConfigMap of `configFiles` does not have the key"))
)

func ovnConfigReady(keys string) Condition {
	return neutronOVNConfigReady.withReasons(neutronInvalidOVNConfig).withReasons(
		secrets("the Secret with the OVN configuration, or the one that its key `tls-secret` names, does not exist", "a Secret does not have a key, or it is empty. Required are "+keys)...)
}

// conflict is about objects that another operator may have created.
func conflict(means string) Reason {
	return commonConflict.withMeaning(means).withRemedy("delete the objects that the message names if nothing needs them, or rename one of the two, or [hand them over](security.md#names-that-exist-already); it continues automatically")
}

// secrets returns why Secrets cannot be read. Empty texts stand for those of the constants.
func secrets(missing, keyMissing string) []Reason {
	return []Reason{commonSecretMissing.withMeaning(missing), commonSecretKeyMissing.withMeaning(keyMissing), commonSecretForbidden, commonSecretLimit}
}

func configMaps(missing, keyMissing string) []Reason {
	return []Reason{commonConfigMapMissing.withMeaning(missing), commonConfigMapKeyMissing.withMeaning(keyMissing)}
}

// kind returns the table of what a kind has for itself.
func kind(name string, conditions ...Condition) Table {
	return Table{Name: name, Kinds: []string{name}, Link: strings.ToLower(name) + ".md#conditions", Conditions: conditions}
}
