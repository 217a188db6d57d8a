package v1beta1

import (
	"cmp"
	"slices"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/apis/common/podified"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// NovaConductorTemplate is what can be set for the conductor of a cell.
type NovaConductorTemplate struct {
	NovaServiceTemplate `json:",inline"`

	// TopologyRef is the Topology that the pods follow; {} means none where the
	// cell has one.
	// +optional
	TopologyRef *topologyv1.TopologyRef `json:"topologyRef,omitempty"`
}

// NovaEndpointTemplate is what can be set for a podified nova service that others
// connect to.
type NovaEndpointTemplate struct {
	NovaServiceTemplate `json:",inline"`
	FurtherFiles        `json:",inline"`

	// TLS of the endpoint; without it, it is served without encryption.
	// +optional
	TLS *NovaEndpointTLS `json:"tls,omitempty"`
}

// NovaEndpointTLS is the certificate of an endpoint.
type NovaEndpointTLS struct {
	// SecretName of the Secret with the keys tls.crt and tls.key. The pods are
	// replaced when it changes.
	// +kubebuilder:validation:MinLength=1
	SecretName string `json:"secretName"`
}

// NovaServiceTemplate is what can be set for every podified nova service.
type NovaServiceTemplate struct {
	// +optional
	ContainerImage string `json:"containerImage,omitempty"`
	// Replicas of the service; 0 runs none. By default conductor and scheduler have
	// one, API, metadata service and console proxy none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=32
	Replicas *int32 `json:"replicas,omitempty"`
	// +optional
	NodeSelector *map[string]string `json:"nodeSelector,omitempty"`
	// CustomServiceConfig is an oslo.config snippet with a higher priority than
	// the generated configuration.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	CustomServiceConfig string `json:"customServiceConfig,omitempty"`
	// CustomServiceConfigSecrets are Secrets whose values are oslo.config snippets, with the
	// highest priority: for options with passwords.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	CustomServiceConfigSecrets []string `json:"customServiceConfigSecrets,omitempty"`
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty,omitzero"`
	// +optional
	// +listType=atomic
	NetworkAttachments []string `json:"networkAttachments,omitempty"`
}

// NovaComputeTemplate is configuration that computes of a cell on hosts have in common.
type NovaComputeTemplate struct {
	// Roles are the OpenStackDataPlaneRoles of the computes that have it. Without any, all
	// computes of the cell on hosts do.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	Roles []string `json:"roles,omitempty"`
	// CustomServiceConfig is an oslo.config snippet with a higher priority than the generated
	// configuration and templates before it, and a lower one than that of the compute.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	CustomServiceConfig string `json:"customServiceConfig,omitempty"`
	// CustomServiceConfigSecrets are Secrets whose values are oslo.config snippets, which come
	// right after customServiceConfig: for options with passwords.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	CustomServiceConfigSecrets []string `json:"customServiceConfigSecrets,omitempty"`
	FurtherFiles               `json:",inline"`
	// Images of the computes. Those that the spec of a compute names come before them.
	// +optional
	Images NovaComputeImages `json:"images,omitempty,omitzero"`
}

// IsFor reports whether computes of the role have the template.
func (t NovaComputeTemplate) IsFor(role string) bool {
	return len(t.Roles) == 0 || slices.Contains(t.Roles, role)
}

// NovaComputeImages are images of computes on hosts, by the components in their status.
type NovaComputeImages struct {
	// Compute is the image of nova-compute, instead of that of the cell: these computes do not
	// follow an update of the cell, and are counted as pinned.
	// +optional
	Compute string `json:"compute,omitempty"`
	// Libvirt is the image of the libvirt daemons.
	// +optional
	Libvirt string `json:"libvirt,omitempty"`
}

// KeystoneScope is the region and the domains in which the services of a cell
// are found and authenticate.
type KeystoneScope struct {
	// Region of the services.
	// +kubebuilder:default=regionOne
	// +optional
	Region string `json:"region,omitempty"`
	// UserDomainName of the service user.
	// +kubebuilder:default=Default
	// +optional
	UserDomainName string `json:"userDomainName,omitempty"`
	// ProjectDomainName of the service project.
	// +kubebuilder:default=Default
	// +optional
	ProjectDomainName string `json:"projectDomainName,omitempty"`
	// CAFile on the compute with which the services' certificates are verified.
	// +optional
	CAFile string `json:"caFile,omitempty"`
}

// SharedServices are services of the cloud that all services of nova can use, none of which
// it needs, and whom they trust.
type SharedServices struct {
	// MemcachedServers are the servers, as host:port, in which the services in pods keep
	// tokens that keystone has found valid.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9._:\[\]-]+$`
	MemcachedServers []string `json:"memcachedServers,omitempty"`

	// NotificationsBusSecretName is the Secret whose key transport_url is the message bus
	// on which nova notifies others, for example ceilometer, of what becomes of servers.
	// Its key quorumqueues says whether the queues there are quorum queues; without it they
	// are as those of the cell. Without a Secret there are no notifications.
	// +optional
	NotificationsBusSecretName string `json:"notificationsBusSecretName,omitempty"`

	// CABundleSecretName is the Secret whose key tls-ca-bundle.pem has the certificates of
	// all authorities that services in pods and Jobs trust, in place of those of the image.
	// Hosts have their own: see the playbook edpm.operators.trust_certificates.
	// +optional
	CABundleSecretName string `json:"caBundleSecretName,omitempty"`

	// DatabaseTLS has services in pods and Jobs verify the certificate of their databases by
	// caBundleSecretName, and the host name in it.
	// +optional
	DatabaseTLS bool `json:"databaseTLS,omitempty"`
}

// NovaCellSpec describes one cell. Everything is optional in the schema, as
// seeds/004 has a cell without a spec; what is needed and missing is said in
// the condition InputReady.
type NovaCellSpec struct {
	// CellName is the short name of the cell, for example cell1. By default it
	// is the name of the object.
	// +optional
	// +kubebuilder:validation:MaxLength=35
	CellName string `json:"cellName,omitempty"`

	// Secret whose key ServicePassword is the password of the service user. Its keys
	// ServiceUser, CellDatabaseUser and APIDatabaseUser take the place of serviceUser,
	// cellDatabaseUser and apiDatabaseUser, so that user and password change in one write.
	// +optional
	Secret string `json:"secret,omitempty"`

	// CellMessageBusSecretName is the Secret whose key transport_url is the
	// message bus of the cell.
	// +optional
	CellMessageBusSecretName string `json:"cellMessageBusSecretName,omitempty"`

	// KeystoneAuthURL of the identity service.
	// +optional
	KeystoneAuthURL string `json:"keystoneAuthURL,omitempty"`

	// ServiceUser of nova in keystone.
	// +kubebuilder:default=nova
	// +optional
	ServiceUser string `json:"serviceUser,omitempty"`

	// Keystone is the region and the domains of the services.
	// +kubebuilder:default={}
	// +optional
	Keystone KeystoneScope `json:"keystone,omitempty,omitzero"`

	SharedServices `json:",inline"`

	// NoVNCProxyBaseURL is the public address of the console proxy, for example
	// http://console.example.org/vnc_lite.html. Without it computes offer no VNC console.
	// +optional
	NoVNCProxyBaseURL string `json:"noVNCProxyBaseURL,omitempty"`

	LiveMigration `json:",inline"`

	// CellDatabaseHostname of the MySQL or MariaDB server of the cell. With it the
	// cell has a conductor, and the Secret needs the key CellDatabasePassword.
	// +optional
	CellDatabaseHostname string `json:"cellDatabaseHostname,omitempty"`
	// +kubebuilder:default=nova
	// +optional
	CellDatabaseUser string `json:"cellDatabaseUser,omitempty"`
	// CellDatabaseName is the name of the database, by default nova_<cellName>.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	CellDatabaseName string `json:"cellDatabaseName,omitempty"`
	// APIDatabaseHostname of the server of the API database, for cells that reach
	// it. With it the Secret needs the key APIDatabasePassword.
	// +optional
	APIDatabaseHostname string `json:"apiDatabaseHostname,omitempty"`
	// +kubebuilder:default=nova
	// +optional
	APIDatabaseUser string `json:"apiDatabaseUser,omitempty"`
	// APIDatabaseName is the name of the API database.
	// +kubebuilder:default=nova_api
	// +optional
	// +kubebuilder:validation:MaxLength=64
	APIDatabaseName string `json:"apiDatabaseName,omitempty"`
	// NodeSelector of the pods of the cell.
	// +optional
	NodeSelector *map[string]string `json:"nodeSelector,omitempty"`
	// TopologyRef is the Topology of the pods of the cell, and of the NovaComputes
	// that refer to none.
	// +optional
	TopologyRef *topologyv1.TopologyRef `json:"topologyRef,omitempty"`
	// NovaComputeContainerImage of new computes of the cell, on hosts and in pods, that name
	// no image. Computes on hosts whose image no one chose follow when it changes.
	// +optional
	NovaComputeContainerImage string `json:"novaComputeContainerImage,omitempty"`
	// ComputeTemplates are layers of the configuration of computes on hosts: each has a higher
	// priority than those before it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	ComputeTemplates []NovaComputeTemplate `json:"computeTemplates,omitempty"`
	// ConductorServiceTemplate of the conductor.
	// +optional
	ConductorServiceTemplate NovaConductorTemplate `json:"conductorServiceTemplate,omitempty,omitzero"`
	// MetadataServiceTemplate of the metadata service of the cell, which runs if the
	// cell has a database and replicas is at least 1. The Secret then needs the key
	// MetadataSecret.
	// +optional
	MetadataServiceTemplate NovaEndpointTemplate `json:"metadataServiceTemplate,omitempty,omitzero"`
	// NoVNCProxyServiceTemplate of the console proxy of the cell, which runs if the
	// cell has a database and replicas is at least 1.
	// +optional
	NoVNCProxyServiceTemplate NovaEndpointTemplate `json:"noVNCProxyServiceTemplate,omitempty,omitzero"`
}

// NovaCellStatus is the state of the cell.
type NovaCellStatus struct {
	// ObservedGeneration of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the cell.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions condition.Conditions `json:"conditions,omitempty"`

	// Release has the images of conductor, metadata, noVNCProxy and compute.
	common.Release `json:",inline"`

	// Hash of the generated configuration, by name of its Secret.
	// +optional
	Hash map[string]string `json:"hash,omitempty"`

	// ComputeConfigInputs is the hash of the inputs that the configuration of the computes
	// was made from. It is made again when they change, not when another version of the
	// operators would write something else.
	// +optional
	ComputeConfigInputs string `json:"computeConfigInputs,omitempty"`

	// ComputeConfigSecretName is the Secret with the generated configuration
	// of the computes.
	// +optional
	ComputeConfigSecretName string `json:"computeConfigSecretName,omitempty"`

	// MigrationPeers identifies the computes on hosts, with their addresses, that let one another
	// in for live migration. It changes when no compute is in a run.
	// +optional
	MigrationPeers string `json:"migrationPeers,omitempty"`

	// MigrationCA is the authority of live migrations that is in use.
	// +optional
	MigrationCA *AuthorityStatus `json:"migrationCA,omitempty"`

	// QEMUAuthority is what the authority of QEMU is used for on hosts of the cell: Only, unless
	// versions of the operators have deployed hosts that gave libvirt and QEMU one certificate.
	// +optional
	QEMUAuthority QEMUAuthority `json:"qemuAuthority,omitempty"`

	// ConsoleCA is the authority by which the console proxy and the consoles of guests on hosts
	// know one another, from the first time that the cell had a console proxy.
	// +optional
	ConsoleCA *AuthorityStatus `json:"consoleCA,omitempty"`

	// MigrationKey is the key by which computes on hosts copy disks of guests to one another.
	// +optional
	MigrationKey *MigrationKeyStatus `json:"migrationKey,omitempty"`

	// Conductor is the state of the pods of the conductor, if there is one.
	// +optional
	Conductor *podified.Status `json:"conductor,omitempty"`

	// Metadata is the state of the pods of the metadata service, if there is one.
	// +optional
	Metadata *podified.Status `json:"metadata,omitempty"`

	// NoVNCProxy is the state of the pods of the console proxy, if there is one.
	// +optional
	NoVNCProxy *podified.Status `json:"noVNCProxy,omitempty"`

	// MessageBus is how the cell uses its message bus, from the first time that its
	// configuration was made.
	// +optional
	MessageBus *MessageBusStatus `json:"messageBus,omitempty"`

	// Jobs has the hash of the inputs with which each Job succeeded last, by its
	// name. A Job does not run again with the same inputs.
	// +optional
	Jobs map[string]string `json:"jobs,omitempty"`

	ConfigStatus `json:",inline"`

	// Computes counts the computes of the cell on hosts. Absent if there are none.
	// +optional
	Computes *ComputesStatus `json:"computes,omitempty"`

	// ComputeUpdate is how computes follow the last change of their image. Absent before the
	// first one.
	// +optional
	ComputeUpdate *ComputeUpdate `json:"computeUpdate,omitempty"`

	// ComputesRelease is the image of the last update that all computes have followed. Services in pods restart once when it changes: until then they send nothing
	// to computes that earlier releases do not understand.
	// +optional
	ComputesRelease string `json:"computesRelease,omitempty"`
}

// ComputesStatus counts the computes of a cell on hosts. Each that has been deployed is
// current, outdated or pinned; those that are busy or failed are among them.
type ComputesStatus struct {
	// Total of the computes.
	Total int32 `json:"total"`

	// Current computes are deployed with the image of the cell and their configuration.
	Current int32 `json:"current"`

	// Outdated computes are not, or not yet.
	Outdated int32 `json:"outdated"`

	// Busy computes are in a run.
	Busy int32 `json:"busy"`

	// Failed computes have failed in their last run.
	Failed int32 `json:"failed"`

	// OwnConfig counts those with a configuration of their own, in customServiceConfig,
	// customServiceConfigSecrets or files, next to what computeTemplates give them.
	// +optional
	OwnConfig int32 `json:"ownConfig,omitempty"`

	// Pinned computes have another image than the cell because computeTemplates name one, or
	// because a user or another program than the operators set it in their spec. They do not
	// follow.
	// +optional
	Pinned int32 `json:"pinned,omitempty"`

	// PinnedNames are the first of them.
	// +optional
	// +listType=atomic
	PinnedNames []string `json:"pinnedNames,omitempty"`
}

// ComputeUpdate is how the computes of a cell follow a change of their image.
type ComputeUpdate struct {
	// Image that they get.
	Image string `json:"image"`

	// First is the compute that gets it before the others; empty when they follow.
	// +optional
	First string `json:"first,omitempty"`

	// Verified reports whether the first compute runs the image and reports to nova: the
	// others follow.
	// +optional
	Verified bool `json:"verified,omitempty"`

	// Pods is the NovaCompute whose pods get the image next, once it is verified, or have it and
	// are not all up with it yet. They get it one after the other; empty when all have.
	// +optional
	Pods string `json:"pods,omitempty"`
}

// ConfigStatus says who runs the present configuration of an object, and which Secrets are
// kept for that.
type ConfigStatus struct {
	// ConfigRollout counts the pods and computes that run the present configuration.
	// +optional
	ConfigRollout *ConfigRollout `json:"configRollout,omitempty"`

	// HeldSecrets are the Secrets with credentials that are held by a finalizer: those that the
	// spec names, and former ones as long as a pod or a compute may use them.
	// +optional
	// +listType=set
	HeldSecrets []string `json:"heldSecrets,omitempty"`
}

// ConfigRollout counts pods and computes by their configuration.
type ConfigRollout struct {
	// Total of the pods, and of the computes that have been deployed.
	Total int32 `json:"total"`

	// Current of them run the present configuration.
	Current int32 `json:"current"`

	// Outdated are the first of the others: computes, and StatefulSets of pods.
	// +optional
	// +listType=atomic
	Outdated []string `json:"outdated,omitempty"`

	// Inputs identifies what the configuration was made from.
	// +optional
	Inputs string `json:"inputs,omitempty"`
}

// MessageBusStatus is how a cell uses its message bus.
type MessageBusStatus struct {
	// VirtualHostHash is a hash of what names the virtual host of RabbitMQ, the hosts and
	// the path of transport_url, which is secret.
	VirtualHostHash string `json:"virtualHostHash"`

	// HostHashes has a hash of each host together with the virtual host, by which that is
	// recognized with other ports, and with more or fewer hosts. Earlier versions did not note
	// them.
	// +optional
	// +listType=atomic
	HostHashes []string `json:"hostHashes,omitempty"`

	// QuorumQueues reports whether the queues are quorum queues. RabbitMQ does not change
	// queues and exchanges that exist, so that it does not change in a virtual host.
	QuorumQueues bool `json:"quorumQueues"`

	// Requested is the value of quorumqueues in the Secret when the cell was configured last.
	// Earlier versions ignored it: only another value is a request.
	// +optional
	Requested *bool `json:"requested,omitempty"`
}

// AuthorityStatus is an authority that signs certificates.
type AuthorityStatus struct {
	// SecretName of its Secret.
	SecretName string `json:"secretName"`
	// Hash of its certificates.
	Hash string `json:"hash"`
	// NotAfter is when its certificate ends.
	NotAfter metav1.Time `json:"notAfter"`
}

// NovaCell is a cell of nova: a message bus, a database and the computes on them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=edpm-operators"
// +kubebuilder:resource:categories=edpm
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Cell",type=string,JSONPath=`.spec.cellName`
// +kubebuilder:printcolumn:name="Computes",type=integer,JSONPath=`.status.computes.total`
// +kubebuilder:printcolumn:name="Outdated",type=integer,JSONPath=`.status.computes.outdated`
// +kubebuilder:printcolumn:name="Own Config",type=integer,JSONPath=`.status.computes.ownConfig`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NovaCell struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NovaCellSpec   `json:"spec,omitempty"`
	Status NovaCellStatus `json:"status,omitempty"`
}

// NovaCellList is a list of NovaCell.
//
// +kubebuilder:object:root=true
type NovaCellList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NovaCell `json:"items"`
}

// DatabaseName of the cell: spec.cellDatabaseName, or nova_<short name>.
func (c *NovaCell) DatabaseName() string {
	return cmp.Or(c.Spec.CellDatabaseName, CellDatabaseName(c.ShortName()))
}

// CellDatabaseName is the default name of the database of a cell, by its short name.
func CellDatabaseName(cell string) string { return "nova_" + cell }

// ShortName of the cell: spec.cellName, or the name of the object.
func (c *NovaCell) ShortName() string {
	if c.Spec.CellName != "" {
		return c.Spec.CellName
	}
	return c.Name
}

// ConfiguresComputes reports whether computes of the cell can be configured. A
// conductor that is being replaced does not change that.
func (c *NovaCell) ConfiguresComputes() bool {
	return c.Status.ObservedGeneration == c.Generation && c.Status.Conditions.IsTrue(NovaComputeServiceConfigReadyCondition)
}

// IsReady reports whether the cell is up for the current spec.
func (c *NovaCell) IsReady() bool {
	return c.Status.ObservedGeneration == c.Generation && c.Status.Conditions.IsTrue(condition.ReadyCondition)
}

// GetConditions returns the conditions, to be changed in place.
func (c *NovaCell) GetConditions() *condition.Conditions { return &c.Status.Conditions }

// GetRelease returns the images that are recorded, to be changed in place.
func (c *NovaCell) GetRelease() *common.Release { return &c.Status.Release }

// SetObservedGeneration notes the generation that the status describes.
func (c *NovaCell) SetObservedGeneration(g int64) { c.Status.ObservedGeneration = g }

func init() {
	register(&NovaCell{}, &NovaCellList{})
}

// GeneratedConfigKey is the key of the generated configuration in the Secret
// of a cell, and the name of the file on the computes.
const GeneratedConfigKey = "01-nova.conf"

// ComputeConfigSecretName is the name of the Secret with the generated
// configuration of the computes of a cell.
func ComputeConfigSecretName(cell string) string { return cell + "-compute-config" }

// MigrationCASecretName is the name of the Secret with the authority of live migrations
// that the operators make for a cell.
func MigrationCASecretName(cell string) string { return cell + "-migration-ca" }

// ConsoleCASecretName is the name of the Secret with the authority of consoles of a cell.
func ConsoleCASecretName(cell string) string { return cell + "-console-ca" }

// MigrationKeySecretName is the name of the Secret with the key by which computes of a cell
// copy disks of guests to one another.
func MigrationKeySecretName(cell string) string { return cell + "-migration-key" }

// RotateMigrationKeyAnnotation on a NovaCell is a token: with each new value the computes of the
// cell get another key to copy disks of guests to one another.
const RotateMigrationKeyAnnotation = "nova.openstack.org/rotate-migration-key"

// Keys of the Secret of a cell. Users are those of the spec if it has none: who changes them
// there changes user and password in one write.
const (
	ServiceUserKey          = "ServiceUser"
	CellDatabaseUserKey     = "CellDatabaseUser"
	APIDatabaseUserKey      = "APIDatabaseUser"
	ServicePasswordKey      = "ServicePassword"
	CellDatabasePasswordKey = "CellDatabasePassword"
	APIDatabasePasswordKey  = "APIDatabasePassword"
	MetadataSecretKey       = "MetadataSecret"
)

// HeldSecretsFinalizer keeps a Nova or a NovaCell until it has released the Secrets that it
// holds.
const HeldSecretsFinalizer = "nova.openstack.org/held-secrets"

// NovaCellFinalizer keeps a cell that has a conductor until it has released its
// Topology and no pod of it is left behind.
const NovaCellFinalizer = "nova.openstack.org/novacell"

// ConductorName is the name of the StatefulSet of the conductor of a cell.
func ConductorName(cell string) string { return cell + "-conductor" }

// MetadataName is the name of the StatefulSet and the Service of the metadata
// service of a cell.
func MetadataName(cell string) string { return cell + "-metadata" }

// NoVNCProxyName is the name of the StatefulSet and the Service of the console proxy
// of a cell.
func NoVNCProxyName(cell string) string { return cell + "-novncproxy" }
