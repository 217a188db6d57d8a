package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// Layout of the pods of an API: into which groups they are divided.
//
// +kubebuilder:validation:Enum=split;single;edge
type Layout string

// Layouts (glance-operator docs/design-decisions.md).
const (
	// LayoutSplit has two groups, one for users and one for other services.
	LayoutSplit Layout = "split"
	// LayoutSingle has one group for both.
	LayoutSingle Layout = "single"
	// LayoutEdge has one group for the services of an edge site.
	LayoutEdge Layout = "edge"
)

// APIType of a GlanceAPI says whom its pods serve.
//
// +kubebuilder:validation:Enum=external;internal;single;edge
type APIType string

// Types of a GlanceAPI.
const (
	APIExternal APIType = "external"
	APIInternal APIType = "internal"
	APISingle   APIType = "single"
	APIEdge     APIType = "edge"
)

// Types returns the groups of pods that a layout has.
func (l Layout) Types() []APIType {
	switch l {
	case LayoutSplit:
		return []APIType{APIExternal, APIInternal}
	case LayoutEdge:
		return []APIType{APIEdge}
	}
	return []APIType{APISingle}
}

// Endpoints of a GlanceAPI.
const (
	EndpointPublic   = "public"
	EndpointInternal = "internal"
)

// Endpoints returns by which of them pods of this type are reached.
func (t APIType) Endpoints() []string {
	switch t {
	case APIExternal:
		return []string{EndpointPublic}
	case APIInternal, APIEdge:
		return []string{EndpointInternal}
	}
	return []string{EndpointPublic, EndpointInternal}
}

// Storage of the pods: the staging area, and the images with the file backend.
type Storage struct {
	// StorageClass of the PersistentVolumeClaims; empty means that of the cluster.
	// +optional
	StorageClass string `json:"storageClass,omitempty"`
	// StorageRequest is the size of each claim, for example 10G.
	// +optional
	StorageRequest *resource.Quantity `json:"storageRequest,omitempty"`
	// External says that pods need no claims: their staging area is lost with
	// the pod, or mounted from elsewhere. An API can say false where all others
	// are external. Without a storageRequest the default is true.
	// +optional
	External *bool `json:"external,omitempty"`
}

// Override changes what the operator makes.
type Override struct {
	// Service changes the Services, by endpoint: public and internal.
	// +optional
	Service map[string]ServiceOverride `json:"service,omitempty"`
}

// ServiceOverride changes one Service.
type ServiceOverride struct {
	// Metadata is added to that of the Service.
	// +optional
	Metadata *ServiceMetadata `json:"metadata,omitempty"`
	// Spec takes the place of fields of the Service.
	// +optional
	Spec *ServiceSpec `json:"spec,omitempty"`
	// EndpointURL is the address that status.apiEndpoint shows, for example that
	// of a route before the Service.
	// +optional
	EndpointURL string `json:"endpointURL,omitempty"`
}

// ServiceMetadata is what can be added to the metadata of a Service.
type ServiceMetadata struct {
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ServiceSpec is what can be changed of a Service.
type ServiceSpec struct {
	// +optional
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	Type corev1.ServiceType `json:"type,omitempty"`
	// +optional
	LoadBalancerClass *string `json:"loadBalancerClass,omitempty"`
	// +optional
	// +listType=atomic
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty"`
	// +optional
	// +kubebuilder:validation:Enum=Cluster;Local
	ExternalTrafficPolicy corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`
}

// APIService is what can be set in an entry of glanceAPIs and in a GlanceAPI.
type APIService struct {
	// Replicas of each group of pods.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=32
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// NodeSelector of the pods; {} means none where the parent has one.
	// +optional
	NodeSelector *map[string]string `json:"nodeSelector,omitempty"`

	// TopologyRef is the Topology that the pods follow; {} means none where the
	// parent has one.
	// +optional
	TopologyRef *topologyv1.TopologyRef `json:"topologyRef,omitempty"`

	// CustomServiceConfig is an oslo.config snippet with a higher priority than
	// the generated configuration. No operator ever changes it.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	CustomServiceConfig string `json:"customServiceConfig,omitempty"`

	// CustomServiceConfigSecrets are Secrets whose values are oslo.config
	// snippets, with the highest priority: for addresses that hold passwords.
	// +optional
	// +listType=atomic
	CustomServiceConfigSecrets []string `json:"customServiceConfigSecrets,omitempty"`

	// Resources of the container.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// NetworkAttachments of the pods: NetworkAttachmentDefinitions of the namespace.
	// +optional
	// +listType=atomic
	NetworkAttachments []string `json:"networkAttachments,omitempty"`

	// Override changes the Services.
	// +optional
	Override Override `json:"override,omitempty"`

	// Storage of the pods. What is not set is that of the parent.
	// +optional
	Storage Storage `json:"storage,omitempty"`
}

// PasswordSelector names the keys of the Secret with the passwords.
type PasswordSelector struct {
	// Service is the key of the password of the service user.
	// +kubebuilder:default=GlancePassword
	// +optional
	Service string `json:"service,omitempty"`
	// Database is the key of the password of the database user.
	// +kubebuilder:default=GlanceDatabasePassword
	// +optional
	Database string `json:"database,omitempty"`
}

// Backing is what the pods of all APIs of a Glance work with.
type Backing struct {
	// ContainerImage with glance-api and glance-manage; by default that of the operator.
	// +optional
	ContainerImage string `json:"containerImage,omitempty"`

	// Secret with the passwords that passwordSelectors name.
	// +optional
	Secret string `json:"secret,omitempty"`

	// PasswordSelectors name the keys of the Secret.
	// +kubebuilder:default={}
	// +optional
	PasswordSelectors PasswordSelector `json:"passwordSelectors,omitempty"`

	// DatabaseHostname of the MySQL or MariaDB server. Without it, and without
	// a connection in the custom configuration, each pod keeps a database of
	// its own, which is only good for trying things out.
	// +optional
	DatabaseHostname string `json:"databaseHostname,omitempty"`

	// DatabaseAccount is the user of the database.
	// +kubebuilder:default=glance
	// +optional
	DatabaseAccount string `json:"databaseAccount,omitempty"`

	// KeystoneAuthURL of the identity service. Without it the API refuses
	// whatever needs a token.
	// +optional
	KeystoneAuthURL string `json:"keystoneAuthURL,omitempty"`

	// ServiceUser of glance in keystone.
	// +kubebuilder:default=glance
	// +optional
	ServiceUser string `json:"serviceUser,omitempty"`
}
