package v1beta1

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/apis/common/podified"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// PasswordSelector names the keys of a Nova's Secret.
type PasswordSelector struct {
	// +kubebuilder:default=NovaPassword
	// +optional
	Service string `json:"service,omitempty"`
	// +kubebuilder:default=NovaAPIDatabasePassword
	// +optional
	APIDatabase string `json:"apiDatabase,omitempty"`
	// CellDatabase is the key of the password of the users of the cell databases.
	// Cells whose database it is for get a conductor.
	// +kubebuilder:default=NovaCellDatabasePassword
	// +optional
	CellDatabase string `json:"cellDatabase,omitempty"`
	// +kubebuilder:default=MetadataSecret
	// +optional
	MetadataSecret string `json:"metadataSecret,omitempty"`
}

// NovaCellDBPurge is when rows of deleted instances are archived, which moves them to
// the shadow tables of the database, and when they are purged from there.
//
// The fields are those of the OpenStack operators; suspend is added.
type NovaCellDBPurge struct {
	// Schedule of the CronJob, in the time zone of kube-controller-manager.
	// +kubebuilder:default="0 0 * * *"
	// +kubebuilder:validation:Pattern=`^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|([^\s]+\s+){4}[^\s]+)$`
	// +kubebuilder:validation:MaxLength=100
	// +optional
	Schedule string `json:"schedule,omitempty"`
	// ArchiveAge is for how many days rows stay after the instance was deleted.
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=36500
	// +optional
	ArchiveAge int32 `json:"archiveAge,omitempty"`
	// PurgeAge is for how many days after the instance was deleted they are kept in
	// the shadow tables.
	// +kubebuilder:default=90
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=36500
	// +optional
	PurgeAge int32 `json:"purgeAge,omitempty"`
	// Suspend turns it off.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// NovaCellTemplate is what a Nova says of one of its cells.
type NovaCellTemplate struct {
	// CellDatabaseInstance is the Service of the MySQL or MariaDB server of the cell, or
	// a host name with a dot in it or an address.
	// +kubebuilder:default=openstack
	// +optional
	CellDatabaseInstance string `json:"cellDatabaseInstance,omitempty"`
	// +optional
	CellDatabaseUser string `json:"cellDatabaseUser,omitempty"`
	// CellDatabaseName is the name of the database, by default nova_<cell>. Two Novas
	// that share a server need different names.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	CellDatabaseName string `json:"cellDatabaseName,omitempty"`
	// CellMessageBusSecretName is the Secret with the key transport_url. By
	// default it is the one that the infra operator makes for a TransportURL
	// named <nova>-<cell>-transport: rabbitmq-transport-url-<nova>-<cell>-transport.
	// +optional
	CellMessageBusSecretName string `json:"cellMessageBusSecretName,omitempty"`
	// DBPurge is when rows of deleted instances are removed from the database, which
	// a Nova does that runs an API.
	// +kubebuilder:default={}
	// +optional
	DBPurge NovaCellDBPurge `json:"dbPurge,omitempty,omitzero"`
	// HasAPIAccess reports whether the cell reaches the API database.
	// +optional
	HasAPIAccess bool `json:"hasAPIAccess,omitempty"`
	// NoVNCProxyBaseURL is the public address of the console proxy of the cell.
	// +optional
	NoVNCProxyBaseURL string `json:"noVNCProxyBaseURL,omitempty"`
	LiveMigration     `json:",inline"`
	// NodeSelector of the pods of the cell; {} means none where the parent has one.
	// +optional
	NodeSelector *map[string]string `json:"nodeSelector,omitempty"`
	// TopologyRef is the Topology of the pods of the cell; {} means none where the
	// parent has one.
	// +optional
	TopologyRef *topologyv1.TopologyRef `json:"topologyRef,omitempty"`
	// NovaComputeContainerImage of new computes of the cell, on hosts and in pods, that name
	// no image. Computes on hosts whose image no one chose follow when it changes.
	// +optional
	NovaComputeContainerImage string `json:"novaComputeContainerImage,omitempty"`
	// ComputeTemplates are layers of the configuration of computes on hosts: each has a higher
	// priority than those before it. Without any, those of the NovaCell are left as they are.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	ComputeTemplates []NovaComputeTemplate `json:"computeTemplates,omitempty"`
	// ConductorServiceTemplate of the conductor, which runs if the cell has a database.
	// +optional
	ConductorServiceTemplate NovaConductorTemplate `json:"conductorServiceTemplate,omitempty,omitzero"`
	// MetadataServiceTemplate of the metadata service of the cell, which runs if the
	// cell has a database and replicas is at least 1.
	// +optional
	MetadataServiceTemplate NovaEndpointTemplate `json:"metadataServiceTemplate,omitempty,omitzero"`
	// NoVNCProxyServiceTemplate of the console proxy of the cell, which runs if the
	// cell has a database and replicas is at least 1.
	// +optional
	NoVNCProxyServiceTemplate NovaEndpointTemplate `json:"noVNCProxyServiceTemplate,omitempty,omitzero"`
}

// NovaSpec describes a compute service and its cells.
type NovaSpec struct {
	// Secret with the passwords that passwordSelectors name. A Nova needs one; in
	// an OpenStackControlPlane it may be that of the control plane.
	// +optional
	Secret string `json:"secret,omitempty"`

	// PasswordSelectors name the keys of the Secret.
	// +kubebuilder:default={}
	// +optional
	PasswordSelectors PasswordSelector `json:"passwordSelectors,omitempty,omitzero"`

	// KeystoneAuthURL of the identity service.
	// +kubebuilder:validation:MinLength=1
	KeystoneAuthURL string `json:"keystoneAuthURL"`

	// ServiceUser of nova in keystone.
	// +kubebuilder:default=nova
	// +optional
	ServiceUser string `json:"serviceUser,omitempty"`

	// Keystone is the region and the domains of the services.
	// +kubebuilder:default={}
	// +optional
	Keystone KeystoneScope `json:"keystone,omitempty,omitzero"`

	SharedServices `json:",inline"`

	// CellTemplates of the cells, by short name. Each becomes a NovaCell named
	// <nova>-<cell>. A short name has at most 35 characters.
	// +kubebuilder:default={cell0: {cellDatabaseUser: nova_cell0, hasAPIAccess: true}, cell1: {cellDatabaseUser: nova_cell1, cellDatabaseInstance: openstack-cell1, hasAPIAccess: true}}
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	CellTemplates map[string]NovaCellTemplate `json:"cellTemplates,omitempty"`

	// APIServiceTemplate of the API, which runs if replicas is at least 1. The Nova
	// then prepares the API database and maps the cells: the Secret needs the
	// passwords of the databases, and cellTemplates cell0 with hasAPIAccess.
	// +optional
	APIServiceTemplate NovaEndpointTemplate `json:"apiServiceTemplate,omitempty,omitzero"`
	// SchedulerServiceTemplate of the scheduler, which runs if the API does.
	// +optional
	SchedulerServiceTemplate NovaServiceTemplate `json:"schedulerServiceTemplate,omitempty,omitzero"`

	// APIDatabaseInstance is the Service of the MySQL or MariaDB server of the API
	// database, or a host name with a dot in it or an address.
	// +kubebuilder:default=openstack
	// +optional
	APIDatabaseInstance string `json:"apiDatabaseInstance,omitempty"`
	// APIDatabaseName is the name of the API database. Two Novas that share a server
	// need different names.
	// +kubebuilder:default=nova_api
	// +optional
	// +kubebuilder:validation:MaxLength=64
	APIDatabaseName string `json:"apiDatabaseName,omitempty"`
	// +kubebuilder:default=nova_api
	// +optional
	APIDatabaseUser string `json:"apiDatabaseUser,omitempty"`
	// NodeSelector of the pods of cells that set none.
	// +optional
	NodeSelector *map[string]string `json:"nodeSelector,omitempty"`

	// TopologyRef is the Topology of cells that refer to none; {} means none where
	// the parent has one.
	// +optional
	TopologyRef *topologyv1.TopologyRef `json:"topologyRef,omitempty"`
}

// NovaStatus sums up the cells.
type NovaStatus struct {
	// ObservedGeneration of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the compute service.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions condition.Conditions `json:"conditions,omitempty"`

	// Release has the images of api, scheduler and noVNCProxy, of conductor for cells that
	// name none, and of compute for computes that name none.
	common.Release `json:",inline"`

	// Deployed has the images that the components have reached while an update is in progress:
	// those of status.images replace them in the order of nova.
	// +optional
	Deployed map[string]string `json:"deployed,omitempty"`

	// ComputesRelease identifies the images that the computes of all cells had when an update
	// was complete. Services in pods of the cells restart once when it changes.
	// +optional
	ComputesRelease string `json:"computesRelease,omitempty"`

	// UpgradeCheck is the last check of images that has passed while an update is in progress.
	// Without one nothing has been changed.
	// +optional
	UpgradeCheck *UpgradeCheck `json:"upgradeCheck,omitempty"`

	ConfigStatus `json:",inline"`

	// CellMappings identifies the message buses and databases by which cells are mapped.
	// +optional
	CellMappings string `json:"cellMappings,omitempty"`

	// ChangedMappings is the same once a mapping has changed. Conductors that reach other
	// cells restart when it changes, as they keep the connections of before.
	// +optional
	ChangedMappings string `json:"changedMappings,omitempty"`

	// CellsSummary is the number of ready cells over all, for example 2/2.
	// +optional
	CellsSummary string `json:"cellsSummary,omitempty"`

	// API is the state of the pods of the API, if there is one.
	// +optional
	API *podified.Status `json:"api,omitempty"`

	// Scheduler is the state of the pods of the scheduler, if there is one.
	// +optional
	Scheduler *podified.Status `json:"scheduler,omitempty"`

	// Jobs has the hash of the inputs with which each Job succeeded last, by its
	// name. A Job does not run again with the same inputs.
	// +optional
	Jobs map[string]string `json:"jobs,omitempty"`
}

// UpgradeCheck is a check that new images can take over databases and computes.
type UpgradeCheck struct {
	// Images that were checked, by component: the update goes to these.
	Images map[string]string `json:"images"`

	// Warnings of the check.
	// +optional
	Warnings string `json:"warnings,omitempty"`
}

// Nova is a compute service: it creates a NovaCell for each of its cells.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=edpm-operators"
// +kubebuilder:resource:path=nova,categories=edpm
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Cells",type=string,JSONPath=`.status.cellsSummary`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Nova struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:XValidation:rule="has(self.secret) && self.secret != ''",message="secret is required: set it to the Secret with the passwords of nova"
	Spec   NovaSpec   `json:"spec"`
	Status NovaStatus `json:"status,omitempty"`
}

// NovaList is a list of Nova.
//
// +kubebuilder:object:root=true
type NovaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Nova `json:"items"`
}

// GetConditions returns the conditions, to be changed in place.
func (n *Nova) GetConditions() *condition.Conditions { return &n.Status.Conditions }

// GetRelease returns the images that are recorded, to be changed in place.
func (n *Nova) GetRelease() *common.Release { return &n.Status.Release }

// SetObservedGeneration notes the generation that the status describes.
func (n *Nova) SetObservedGeneration(g int64) { n.Status.ObservedGeneration = g }

// RunsAPI reports whether the Nova runs an API, which can be asked for the state of
// computes. Without, another one may know them.
func (n *Nova) RunsAPI() bool {
	replicas := n.Spec.APIServiceTemplate.Replicas
	return replicas != nil && *replicas > 0
}

// IsReady reports whether every cell is up for the current spec.
func (n *Nova) IsReady() bool {
	return n.Status.ObservedGeneration == n.Generation && n.Status.Conditions.IsTrue(condition.ReadyCondition)
}

// NovaFinalizer keeps a Nova that has an API until it has released its Topology and
// no pod of it is left behind.
const NovaFinalizer = "nova.openstack.org/nova"

// CellName is the name of the NovaCell of a cell of a Nova (seeds/004).
func CellName(nova, cell string) string { return nova + "-" + cell }

// APIName is the name of the StatefulSet and the Service of the API of a Nova.
func APIName(nova string) string { return nova + "-api" }

// SchedulerName is the name of the StatefulSet of the scheduler of a Nova.
func SchedulerName(nova string) string { return nova + "-scheduler" }

func init() {
	register(&Nova{}, &NovaList{})
}
