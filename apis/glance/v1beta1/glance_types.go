package v1beta1

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// GlanceAPITemplate is what a Glance says of one of its APIs.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.type) || has(self.type) && self.type == oldSelf.type",message="The GlanceAPI layout (type) cannot be modified. To proceed, please add a new API with the desired layout and then decommission the previous API"
type GlanceAPITemplate struct {
	// Type is the layout of the pods: split, single or edge. By default it is
	// single with the file backend and split with any other. It cannot be changed.
	// +optional
	Type Layout `json:"type,omitempty"`

	APIService `json:",inline"`
}

// GlanceSpec describes an image service and its APIs.
type GlanceSpec struct {
	Backing `json:",inline"`

	// GlanceAPIs by name. Each becomes one or two GlanceAPIs, named
	// <glance>-<api>-<type>.
	// +kubebuilder:validation:MaxProperties=512
	// +optional
	GlanceAPIs map[string]GlanceAPITemplate `json:"glanceAPIs,omitempty"`

	// KeystoneEndpoint is the API that the catalog of the cloud is to name:
	// status.apiEndpoint has its addresses. With one API it is that.
	// +optional
	KeystoneEndpoint string `json:"keystoneEndpoint,omitempty"`

	// NodeSelector of the pods of APIs that set none.
	// +optional
	NodeSelector *map[string]string `json:"nodeSelector,omitempty"`

	// TopologyRef is the Topology of APIs that refer to none; {} means none where
	// the parent has one.
	// +optional
	TopologyRef *topologyv1.TopologyRef `json:"topologyRef,omitempty"`

	// CustomServiceConfig of APIs that have none.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	CustomServiceConfig string `json:"customServiceConfig,omitempty"`

	// CustomServiceConfigSecrets of APIs that name none.
	// +optional
	// +listType=atomic
	CustomServiceConfigSecrets []string `json:"customServiceConfigSecrets,omitempty"`

	// Storage of the pods of APIs, field by field where they set none.
	// +optional
	Storage Storage `json:"storage,omitempty"`
}

// GlanceStatus sums up the APIs.
type GlanceStatus struct {
	// ObservedGeneration of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the image service.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions condition.Conditions `json:"conditions,omitempty"`

	// Release has the image of api, for all GlanceAPIs.
	common.Release `json:",inline"`

	// GlanceAPIReadyCounts is the number of ready pods, by API.
	// +optional
	GlanceAPIReadyCounts map[string]int32 `json:"glanceAPIReadyCounts,omitempty"`

	// APIEndpoint has the addresses of the API that keystoneEndpoint names:
	// public and internal.
	// +optional
	APIEndpoint map[string]string `json:"apiEndpoint,omitempty"`

	// APIsSummary is the number of ready GlanceAPIs over all, for example 4/5.
	// +optional
	APIsSummary string `json:"apisSummary,omitempty"`
}

// Glance is an image service: it creates the GlanceAPIs of each of its APIs.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=edpm-operators"
// +kubebuilder:resource:path=glances,categories=edpm
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="APIs",type=string,JSONPath=`.status.apisSummary`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Glance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GlanceSpec   `json:"spec,omitempty"`
	Status GlanceStatus `json:"status,omitempty"`
}

// GlanceList is a list of Glance.
//
// +kubebuilder:object:root=true
type GlanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Glance `json:"items"`
}

// IsReady reports whether every API is up for the current spec.
func (g *Glance) IsReady() bool {
	return g.Status.ObservedGeneration == g.Generation && g.Status.Conditions.IsTrue(condition.ReadyCondition)
}

// GetConditions returns the conditions, to be changed in place.
func (g *Glance) GetConditions() *condition.Conditions { return &g.Status.Conditions }

// GetRelease returns the images that are recorded, to be changed in place.
func (g *Glance) GetRelease() *common.Release { return &g.Status.Release }

// SetObservedGeneration notes the generation that the status describes.
func (g *Glance) SetObservedGeneration(n int64) { g.Status.ObservedGeneration = n }

func init() {
	register(&Glance{}, &GlanceList{})
}
