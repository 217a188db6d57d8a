package v1beta1

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/apis/common/hosted"
)

// CellAnnotation on an OpenStackDataPlaneNode, or on its role, makes the node a
// compute of that NovaCell (seeds/004).
const CellAnnotation = "nova.openstack.org/cell"

// ComputesReleaseAnnotation on a NovaCell has its services in pods restart when it changes: its
// Nova writes status.computesRelease there.
const ComputesReleaseAnnotation = "nova.openstack.org/computes-release"

// CellMappingsAnnotation on a NovaCell has its services in pods restart when it changes, if it
// reaches other cells: its Nova writes status.changedMappings there.
const CellMappingsAnnotation = "nova.openstack.org/cell-mappings"

// Cell0Name is the cell for instances that failed to schedule. It has no computes.
const Cell0Name = "cell0"

// Conditions in addition to Ready, InputReady, ServiceConfigReady and DeploymentReady.
const (
	// NovaCellReadyCondition : the cell provides the configuration of its computes.
	NovaCellReadyCondition condition.Type = "NovaCellReady"
	// NovaAllCellsReadyCondition : every cell is Ready.
	NovaAllCellsReadyCondition condition.Type = "NovaAllCellReady"
	// NovaComputeServiceConfigReadyCondition : the configuration of the computes is generated.
	NovaComputeServiceConfigReadyCondition condition.Type = "NovaComputeServiceConfigReady"
	// NovaConductorReadyCondition : the inputs of the conductor are ready, or the conductor is
	// disabled; the message says which.
	NovaConductorReadyCondition condition.Type = "NovaConductorReady"
	// NovaAPIReadyCondition : the inputs of the API are ready, or no API is run; the message
	// says which.
	NovaAPIReadyCondition condition.Type = "NovaAPIReady"
	// NovaCellMappingsReadyCondition : the API knows the database and the message bus of every
	// cell, and no cell that is being removed. Present only if an API is run.
	NovaCellMappingsReadyCondition condition.Type = "NovaCellMappingsReady"
	// UpgradeCheckReadyCondition : the new images can take over databases and computes: see
	// [before an update](nova.md#before-an-update). Warnings are in the message. Present only
	// while an update is in progress; nothing changes before it is True.
	UpgradeCheckReadyCondition condition.Type = "UpgradeCheckReady"
	// UpdateReadyCondition : no [update](nova.md#updates) is in progress. Present only while
	// one is.
	UpdateReadyCondition condition.Type = "UpdateReady"
	// OnlineMigrationsReadyCondition : the data of every mapped cell has the format of the
	// schema: see [updates](nova.md#updates). Present only if an API is run; an update is not
	// complete before.
	OnlineMigrationsReadyCondition condition.Type = "OnlineMigrationsReady"
	// NovaDBPurgeReadyCondition : rows of deleted instances are
	// [removed](nova.md#deleted-instances) from the database of each cell as scheduled.
	// Present only if an API is run.
	NovaDBPurgeReadyCondition condition.Type = "NovaDBPurgeReady"
	// ComputeServiceReadyCondition : nova can put a guest on the compute: its service is up,
	// enabled and mapped to its cell. Where [no API is
	// asked](novaexternalcompute.md#the-service-in-nova) it is True with the reason
	// `NotObserved`.
	ComputeServiceReadyCondition condition.Type = "ComputeServiceReady"
	// DrainedCondition : nova has no instances on the host, and no migrations from or to it
	// that have not ended. Present only while the host is [drained](how-to/drain.md).
	DrainedCondition condition.Type = "Drained"
	// EvacuatedCondition : nova has no instances on the host, which is off, and no evacuations
	// from it that have not ended. Present only while the host is
	// [fenced](how-to/evacuate.md), and until nova uses it again.
	EvacuatedCondition condition.Type = "Evacuated"
	// MigrationsProgressingCondition : migrations from and to the host make progress, whoever has
	// asked for them. Present only while [one of them does
	// not](runbooks/EDPMGuestsStuck.md#migrations-that-stand-still), and the host is neither
	// drained nor fenced. It does not decide whether the compute is Ready.
	MigrationsProgressingCondition condition.Type = "MigrationsProgressing"
	// MigrationCAReadyCondition : the authority that signs the certificates of computes for
	// [live migration](how-to/live-migration.md) can be used. It does not decide whether the
	// cell is Ready.
	MigrationCAReadyCondition condition.Type = "MigrationCAReady"
	// MigrationKeyReadyCondition : there is a key by which computes copy disks of guests to one
	// another in [cold migrations](how-to/cold-migration.md); while it changes, the message says
	// how many computes still have the one before. It does not decide whether the cell is Ready.
	MigrationKeyReadyCondition condition.Type = "MigrationKeyReady"
	// ConsoleCAReadyCondition : the authority that signs the certificates of the console proxy
	// and of [consoles](how-to/consoles.md) on hosts can be used. Present only if the cell has,
	// or had, a console proxy. It does not decide whether the cell is Ready.
	ConsoleCAReadyCondition condition.Type = "ConsoleCAReady"
	// OptionsKnownCondition : the options of the images of the services are known, and those of
	// the computes of a cell, so that [`customServiceConfig` is
	// checked](how-to/custom-service-config.md#what-is-checked) before anything runs with it. It
	// does not decide whether the object is Ready.
	OptionsKnownCondition condition.Type = "OptionsKnown"
	// LiveMigrationReadyCondition : [live migration](how-to/live-migration.md) is configured,
	// the certificate of the host is valid, and the host has reached all other computes of the
	// cell. The message says if [cold migration](how-to/cold-migration.md) is not configured, and if
	// QEMU [has the key of libvirt](how-to/live-migration.md#computes-of-an-earlier-version). It
	// does not decide whether the compute is Ready.
	LiveMigrationReadyCondition condition.Type = "LiveMigrationReady"
	// ConfigRolledOutCondition : all pods, and all computes that have been deployed, run the
	// present configuration: what former [credentials](how-to/rotate-credentials.md) were for
	// can be revoked. It does not decide whether the object is Ready.
	ConfigRolledOutCondition condition.Type = "ConfigRolledOut"
	// NovaComputeServicesReadyCondition : the API can be asked for the services of computes,
	// or there are none, and maps new hosts. Present only if an API is run.
	NovaComputeServicesReadyCondition condition.Type = "NovaComputeServicesReady"
)

// Reasons of the conditions.
const (
	// InvalidSpecReason : a field that computes need is empty. Remedy: set the field that the
	// message names.
	InvalidSpecReason condition.Reason = "InvalidSpec"
	// InvalidConfigReason : a value cannot be written into a configuration file, for example a
	// password with a line break, or a file is not what the service reads. Remedy: correct what
	// the message names.
	InvalidConfigReason condition.Reason = "InvalidServiceConfig"
	// AnnotationMissingReason : neither the node nor its role is annotated with a cell, so the
	// node is not a compute; nothing is run. Remedy: set annotation `nova.openstack.org/cell`
	// on the node or its role, or delete the compute.
	AnnotationMissingReason condition.Reason = "CellAnnotationMissing"
	// CellMissingReason : the NovaCell does not exist. Remedy: create it, for example through
	// a [Nova](nova.md); it continues automatically.
	CellMissingReason condition.Reason = "NovaCellMissing"
	// CellNotReadyReason : the cell does not provide the configuration of its computes yet.
	// Remedy: see the conditions of the cell.
	CellNotReadyReason condition.Reason = "NovaCellNotReady"
	// CellZeroReason : the annotation names cell0, which has no computes. Remedy: delete the
	// node and create it again with another cell.
	CellZeroReason condition.Reason = "CellZeroHasNoComputes"
	// CellMismatchReason : the annotation names another cell than `cellName`; nothing is run.
	// Remedy: restore the annotation, or delete the node and create it again: see [the cell
	// rule](cell-rule.md).
	CellMismatchReason condition.Reason = "CellMismatch"
	// CellsNotReadyReason : some cells are not Ready; the message names the first. Remedy: see
	// the conditions of that NovaCell: the most frequent cause is a missing Secret of the
	// message bus.
	CellsNotReadyReason condition.Reason = "CellsNotReady"
	// ComputesRemainingReason : a cell was removed from `cellTemplates` but still has
	// computes. Remedy: delete their nodes and NovaComputes first, or add the cell to
	// `cellTemplates` again.
	ComputesRemainingReason condition.Reason = "ComputesRemaining"
	// CellHasHostsReason : a cell was removed from `cellTemplates`, and hosts are mapped to
	// it; the NovaCell is kept. Remedy: delete their compute services in nova, or add the cell
	// to `cellTemplates` again; the Job is retried within five minutes.
	CellHasHostsReason condition.Reason = "CellHasHosts"
	// CellHasInstancesReason : a cell was removed from `cellTemplates`, and has instances; the
	// NovaCell is kept. Remedy: delete the instances, or add the cell to `cellTemplates`
	// again; the Job is retried within five minutes.
	CellHasInstancesReason condition.Reason = "CellHasInstances"
	// QueueTypeChangedReason : the Secret with the message bus asks for other queues
	// (`quorumqueues`) in a virtual host that is in use; computes and pods keep their
	// configuration. Remedy: set `transport_url` to another virtual host, or `quorumqueues` to
	// the value that the message names.
	QueueTypeChangedReason condition.Reason = "QueueTypeChanged"
	// OptionsNotPrintedReason : an image cannot say which options it has; the message says why.
	// `customServiceConfig` is checked only where it is used, by the image itself. Remedy: nothing if the
	// image is as it is meant to be; else set one with python3 and oslo-config-generator.
	OptionsNotPrintedReason condition.Reason = "OptionsNotPrinted"
	// LogUnreadableReason : the log of the pod cannot be read in which a Job has printed the
	// options of an image; the message says why. It is tried again every minute. Remedy: bind the
	// operators' [ClusterRole for Secrets](install.md#rights) in the namespace, or look at the
	// node of the pod.
	LogUnreadableReason condition.Reason = "LogUnreadable"
	// OptionsRefusedReason : `customServiceConfig` has a value that the image cannot read; the
	// message has field, line and what is expected. Nothing is run on hosts, and no pod is
	// replaced. Remedy: correct the value; it continues automatically.
	OptionsRefusedReason condition.Reason = "OptionsRefused"
	// OptionsWarnedReason : the condition is True, and `customServiceConfig` has options that the
	// image does not know, or that have another name now; the message has field and line. Remedy:
	// correct the lines if they are mistakes.
	OptionsWarnedReason condition.Reason = "OptionsWarned"
	// MigrationCALostReason : the Secret with the authority of live migrations that the operators
	// made no longer exists, and computes have certificates that it signed, which stay valid
	// until they end. Remedy: restore the Secret from a backup; or name that of another authority
	// in `migrationCASecretName`, and for a new one of the operators clear the field again once
	// it is in use. Live migrations are refused while some computes have the certificate of the
	// other authority.
	MigrationCALostReason condition.Reason = "MigrationCALost"
	// MigrationCAInvalidReason : the Secret with the authority of live migrations has no
	// certificate and key of an authority that is valid now; the message says why. Remedy:
	// correct the Secret.
	MigrationCAInvalidReason condition.Reason = "MigrationCAInvalid"
	// ConsoleCAInvalidReason : the Secret with the authority of consoles has no certificate and
	// key of an authority that is valid now; the message says why. Remedy: restore the Secret, or
	// delete it: another authority is made, and [guests that
	// run](how-to/consoles.md#another-authority) have to be moved or restarted.
	ConsoleCAInvalidReason condition.Reason = "ConsoleCAInvalid"
	// ConsoleCANotReadyReason : the console proxy has no certificate that can be used; what runs
	// continues. Remedy: see the condition `ConsoleCAReady`.
	ConsoleCANotReadyReason condition.Reason = "ConsoleCANotReady"
	// MigrationCANotReadyReason : the cell has no authority of live migrations that can be used.
	// What is on the host stays. Remedy: see the condition `MigrationCAReady` of the cell.
	MigrationCANotReadyReason condition.Reason = "MigrationCANotReady"
	// MigrationCertificateInvalidReason : the Secret with the certificate of libvirt on the host
	// (`migrationCertificates` of the cell) cannot be used; the message says why. What is on the
	// host stays. Remedy: correct the Secret; it continues automatically.
	MigrationCertificateInvalidReason condition.Reason = "MigrationCertificateInvalid"
	// MigrationCertificateEndsReason : less than a fifth of the life of the certificate in the
	// Secret of the host (`migrationCertificates` of the cell) is left. Remedy: renew it there; with
	// cert-manager, look at its Certificate.
	MigrationCertificateEndsReason condition.Reason = "MigrationCertificateEnds"
	// MigrationAddressMissingReason : computes of the cell cannot connect to the host, because it
	// has no IP address in the network of the cell for live migration; live migration is not
	// configured on it. Remedy: set `ansibleHost` of the node to an IP address, or
	// `fixedIP` of the network that the message names.
	MigrationAddressMissingReason condition.Reason = "MigrationAddressMissing"
	// MigrationNotConfiguredReason : a version of the operators without live migration has
	// deployed the host, and an upgrade of the operators alone runs nothing on it. Remedy: run the
	// steps of the node again with `kubectl edpm rerun <node>`, which restarts libvirt and
	// nova-compute but no guest.
	MigrationNotConfiguredReason condition.Reason = "MigrationNotConfigured"
	// MigrationPeersChangeReason : computes join or leave the cell, or the key with which they
	// copy disks changes. Until no compute of the cell is in a run and the key can be used, hosts
	// accept the computes that they had before; then step `live-migration` is run on all of them.
	// Remedy: nothing.
	MigrationPeersChangeReason condition.Reason = "MigrationPeersChange"
	// PeerUnreachableReason : the host did not reach libvirt on the computes that the message
	// names over TLS; the compute itself is named if it does not answer at its own address.
	// Guests are not moved in clear text: a migration to them would fail. Remedy: see the
	// conditions of these computes, whether their hosts answer, and that nothing between the hosts
	// drops the ports; then `kubectl edpm rerun <node>`.
	PeerUnreachableReason condition.Reason = "PeerUnreachable"
	// DatabaseConflictReason : a database is that of another Nova with an API in the
	// namespace, which was created before, or is used twice; nothing is changed. Remedy: set
	// `apiDatabaseName`, and `cellDatabaseName` of each cell, to other databases.
	DatabaseConflictReason condition.Reason = "DatabaseConflict"
	// NotObservedReason : (True) no Nova with an API manages the cell, so no API is asked.
	// Remedy: nothing; to have it observed, run the API by
	// `apiServiceTemplate.replicas` of the [Nova](nova.md).
	NotObservedReason condition.Reason = "NotObserved"
	// ServiceNotReportedReason : nova does not know a service nova-compute of the host.
	// Remedy: nothing if nova-compute has just been started; else see its log on the host, and
	// check that the host has the name in nova that the message has.
	ServiceNotReportedReason condition.Reason = "ComputeServiceNotReported"
	// ServiceDuplicatedReason : nova has services of the host in two cells. Remedy: delete the
	// service in the cell that the host no longer belongs to: see the message.
	ServiceDuplicatedReason condition.Reason = "ComputeServiceDuplicated"
	// ServiceConflictReason : another compute of the same Nova has the host of this name; the
	// message names both. Nothing is written to nova. Remedy: correct `edpm_nova_host` on the
	// node with the wrong name. If both computes are recorded by it in `status.novaHost`,
	// delete one of the nodes with `edpm.openstack.org/skip-cleanup`.
	ServiceConflictReason condition.Reason = "ComputeServiceConflict"
	// ServiceDownReason : the service has not reported to nova for a minute, or it is forced
	// down; the message says since when. Nothing is run on the host. Remedy: see
	// [EDPMComputeServiceDown](runbooks/EDPMComputeServiceDown.md).
	ServiceDownReason condition.Reason = "ComputeServiceDown"
	// ServiceDisabledReason : the service is disabled, so the scheduler passes the host over;
	// the message has the reason. Remedy: enable it when the cause of the reason no longer
	// exists.
	ServiceDisabledReason condition.Reason = "ComputeServiceDisabled"
	// InstancesPresentReason : the compute is being deleted, or pods of it are not wanted any
	// more, and nova has instances there, or migrations from or to the host that have not ended;
	// the message has the number of instances, or names the guests. The service is
	// disabled, nothing is removed from the host, and the pods stay. Remedy: [drain the
	// host](how-to/drain.md), or migrate or delete the instances, and confirm or revert resizes;
	// it continues automatically. If the host is off, [evacuate them](how-to/evacuate.md).
	InstancesPresentReason condition.Reason = "InstancesPresent"
	// PodsLeavingReason : pods that are not wanted any more still run. Their services are
	// disabled, and are deleted in nova once the pods have ended. Remedy: nothing; if it stays
	// so, see the condition `PodNodesReady`.
	PodsLeavingReason condition.Reason = "PodsLeaving"
	// HostDrainedReason : annotation `edpm.openstack.org/drain` of the node, or a step that needs
	// an empty host, disables the service; the condition `Drained` says how far the drain is.
	// Remedy: nothing; `kubectl edpm undrain <node>` enables the service again, unless it is a
	// step: then it is enabled when the step has run.
	HostDrainedReason condition.Reason = "HostDrained"
	// DrainingReason : guests are moved off the host, or shut down; the message has their
	// number. Remedy: nothing; `kubectl edpm undrain <node>` ends it.
	DrainingReason condition.Reason = "Draining"
	// GuestsRemainReason : some guests cannot be moved; the message names them, and why.
	// Those that failed are tried again after a minute, and then less and less often. Remedy:
	// see [guests that cannot move](how-to/drain.md#guests-that-cannot-move).
	GuestsRemainReason condition.Reason = "GuestsRemain"
	// DrainNotPossibleReason : no Nova with an API manages the cell, so the operator cannot
	// move guests. Remedy: run the API by `apiServiceTemplate.replicas` of the
	// [Nova](nova.md), or move the guests and remove annotation `edpm.openstack.org/drain`.
	DrainNotPossibleReason condition.Reason = "DrainNotPossible"
	// HostFencedReason : the host is off, as annotation `edpm.openstack.org/fence` of the node or
	// its BareMetalHost says, or was. Its service is forced down, and nothing is run on the host;
	// the condition `Evacuated` says how far its guests are. Remedy: nothing while the host is
	// off; see [the way back](how-to/evacuate.md#the-way-back).
	HostFencedReason condition.Reason = "HostFenced"
	// EvacuatingReason : guests are evacuated, or are about to be; the message has their number.
	// Remedy: nothing; it continues automatically.
	EvacuatingReason condition.Reason = "Evacuating"
	// HostAliveReason : the host is fenced, and its nova-compute reports to nova: it is not off.
	// No guest is evacuated. Remedy: power the host off, or remove annotation
	// `edpm.openstack.org/fence`.
	HostAliveReason condition.Reason = "FencedHostAlive"
	// EvacuationNotPossibleReason : no Nova with an API manages the cell, so the operator
	// cannot evacuate guests. Remedy: run the API by `apiServiceTemplate.replicas` of the
	// [Nova](nova.md), or evacuate the guests and remove annotation `edpm.openstack.org/fence`.
	EvacuationNotPossibleReason condition.Reason = "EvacuationNotPossible"
	// HostEvacuatedReason : (True) nova has nothing on the host. Remedy: nothing; it can be
	// repaired, [replaced](how-to/replace-a-host.md) or [removed](how-to/scale-in.md).
	HostEvacuatedReason condition.Reason = "HostEvacuated"
	// HostReturningReason : the host is no longer declared off. nova uses it again once
	// its steps have been run, and its nova-compute has removed the evacuated
	// guests; the message says what is awaited. Remedy: nothing; see the conditions
	// `DeploymentReady` and `DataPlaneNodeReady`, and the log of nova-compute if it does not end.
	// With severity Error [evacuations do not
	// end](how-to/evacuate.md#evacuations-that-do-not-end).
	HostReturningReason condition.Reason = "HostReturning"
	// HostEmptyReason : (True) nova has nothing on the host. Remedy: nothing; it can be
	// rebooted, replaced or [removed](how-to/scale-in.md).
	HostEmptyReason condition.Reason = "HostEmpty"
	// GuestsStoppedReason : (True) the node has `edpm.openstack.org/drain: stop`, and all
	// guests that are on the host are shut off. Remedy: nothing; start the guests after the
	// drain.
	GuestsStoppedReason condition.Reason = "GuestsStopped"
	// MigrationsStuckReason : nothing has changed of a migration from or to the host for an hour, or
	// a cold migration was not confirmed for so long; the message names the guest. Remedy: see
	// [migrations that stand still](runbooks/EDPMGuestsStuck.md#migrations-that-stand-still).
	MigrationsStuckReason condition.Reason = "MigrationsStuck"
	// HostNotMappedReason : the host is not mapped to its cell yet. Remedy: nothing; if it
	// stays so, see the condition `NovaComputeServicesReady` of the Nova.
	HostNotMappedReason condition.Reason = "HostNotMapped"
)

// Those of a NovaExternalCompute that all services on hosts have.
const (
	DataPlaneNodeReadyCondition = hosted.DataPlaneNodeReadyCondition
	NodeMissingReason           = hosted.NodeMissingReason
	NodeNotReadyReason          = hosted.NodeNotReadyReason
	InvalidInventoryReason      = hosted.InvalidInventoryReason
	CleanupReason               = hosted.CleanupReason
	CleanupFailedReason         = hosted.CleanupFailedReason
	MachineConflictReason       = hosted.MachineConflictReason
)

// ServiceLeftEvent says that a compute was deleted and nova keeps its service.
const ServiceLeftEvent = "ComputeServiceLeft"

// Reasons why nova cannot be asked.
const (
	// KeystoneUnreachableReason : keystone does not answer; the message says how. Computes
	// that were up are shown as they were. Remedy: start it, or correct `keystoneAuthURL`; it
	// is tried again within half a minute.
	KeystoneUnreachableReason condition.Reason = "KeystoneUnreachable"
	// KeystoneAccessDeniedReason : keystone refuses the service user. Remedy: correct the
	// password in the Secret, or the user in keystone; another password is used immediately.
	KeystoneAccessDeniedReason condition.Reason = "KeystoneAccessDenied"
	// EndpointMissingReason : the catalogue of keystone has no internal endpoint of type
	// compute in the region of the Nova. Remedy: create the endpoint, or correct
	// `keystone.region`.
	EndpointMissingReason condition.Reason = "ComputeEndpointMissing"
	// PlacementMissingReason : the catalogue of keystone has no internal endpoint of type
	// placement in the region of the Nova, without which nova can put guests on no compute.
	// Remedy: create the endpoint, or correct `keystone.region`.
	PlacementMissingReason condition.Reason = "PlacementEndpointMissing"
	// CellUnreachableReason : nova's API does not reach the database of a cell, and knows
	// nothing of its computes; the message names one of their hosts. Remedy: start the
	// database, or correct its address and password in the [NovaCell](novacell.md).
	CellUnreachableReason condition.Reason = "CellDatabaseUnreachable"
	// APIUnreachableReason : nova's API does not answer; the message says how. Remedy: see the
	// pods of the API, and the address in the catalogue; it is tried again within half a
	// minute.
	APIUnreachableReason condition.Reason = "NovaAPIUnreachable"
	// APIAccessDeniedReason : nova's API does not let the service user list its services.
	// Remedy: give the user the role admin in the project service, or allow it in the policy
	// of nova.
	APIAccessDeniedReason condition.Reason = "NovaAPIAccessDenied"
)

// Reasons why an update is refused. Everything runs as before; to take the update back, set
// the images to what they were, or remove annotation edpm.openstack.org/update.
const (
	// ImageTooOldReason : the new image is older than the schema of a database, or than
	// services that use it; the message says what it has and what it meets. Nothing is changed.
	// Remedy: set an image of the release that is deployed, or of a later one.
	ImageTooOldReason condition.Reason = "ImageTooOld"
	// ComputesTooOldReason : computes are of a release that the new image does not support, so
	// that its API, scheduler and conductors would not start; the message names them. Nothing is
	// changed. Remedy: update to a release between theirs and the new one first, computes
	// included, and delete the services in nova of those that no longer exist.
	ComputesTooOldReason condition.Reason = "ComputesTooOld"
	// ServicesOlderReason : nova-compute of computes whose image is recorded, or a conductor or
	// scheduler that reports to nova, is of an earlier release than the one that is deployed; the
	// message names them with their service versions. Nothing is changed. Remedy: restart them with
	// the images that are deployed, computes on hosts by `kubectl edpm rerun <node>`, or stop them and run
	// `openstack compute service delete` for each; the Job is retried within five minutes.
	ServicesOlderReason condition.Reason = "ServicesOlder"
	// UpgradeCheckFailedReason : checks of `nova-status upgrade check` fail; the message has
	// their results. Nothing is changed. Remedy: correct what they name, or take the update
	// back; the Job is retried within five minutes, and at once with another value of
	// annotation `edpm.openstack.org/rerun`.
	UpgradeCheckFailedReason condition.Reason = "UpgradeCheckFailed"
	// DataNotMigratedReason : `db online_data_migrations` of the release that is deployed has not
	// ended for all cells; later releases may not read data in the former format. Nothing is
	// changed. Remedy: see condition `OnlineMigrationsReady`; it continues automatically when that
	// is True.
	DataNotMigratedReason condition.Reason = "DataNotMigrated"
	// ComputesDownReason : computes do not report to nova; the message names them. They would
	// be left on the old release. Nothing is changed. Remedy: see
	// [EDPMComputeServiceDown](runbooks/EDPMComputeServiceDown.md), or disable them by
	// `edpm.openstack.org/disable` on their nodes, or delete the nodes; it continues
	// automatically.
	ComputesDownReason condition.Reason = "ComputesDown"
	// ServicesLeftReason : nova has services nova-compute that are down and belong to no
	// compute, for example of hosts that no longer exist; the message names their hosts. Later
	// releases would refuse to start because of them. Nothing is changed. Remedy: run
	// `openstack compute service delete` for each; it continues automatically.
	ServicesLeftReason condition.Reason = "ComputeServicesLeft"
	// NotAskedReason : nova has not been asked for the services of computes yet. Remedy:
	// nothing: it continues automatically.
	NotAskedReason condition.Reason = "NotAsked"
)

// ComputesOlderReason : computes of a cell are of an earlier release than the conductor, so its
// data is not migrated and the update is not complete; the message names them. Remedy: update
// them, and delete the services in nova of those that no longer exist; it continues within five
// minutes.
const ComputesOlderReason condition.Reason = "ComputesOlder"

// Reasons of ConfigRolledOut.
const (
	// ConfigRollingOutReason : pods or computes do not run the present configuration yet; the
	// message has their number, and names some. Former Secrets are held for them. Remedy: see
	// the conditions of the computes that the message names, and of what they wait for; delete
	// computes that are lost. It continues automatically.
	ConfigRollingOutReason condition.Reason = "ConfigRollingOut"
	// SecretNotHeldReason : pods or computes do not run the present configuration yet, and a
	// Secret that they may use cannot be held by a finalizer; the message says why. Remedy: do
	// not revoke or delete its credentials until the condition is True; correct what the message
	// names.
	SecretNotHeldReason condition.Reason = "SecretNotHeld"
)

// SecretLeftEvent says that an object was deleted, and that a Secret keeps the finalizer by
// which it held it.
const SecretLeftEvent = "SecretLeft"

// UpdatingReason : a step of the update is not complete; the message says what it waits for.
// Later steps keep their images. Remedy: see the condition `DeploymentReady` of what the
// message names; the update continues automatically.
const UpdatingReason condition.Reason = "Updating"
