package v1beta1

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/apis/common/podified"
)

// GlanceAPIFinalizer keeps a GlanceAPI until it has released its Topology and no
// pod of it is left behind.
const GlanceAPIFinalizer = "glance.openstack.org/glanceapi"

// GlanceAPISpec describes one group of pods. All of it follows the Glance that
// created the object, if there is one.
type GlanceAPISpec struct {
	Backing    `json:",inline"`
	APIService `json:",inline"`

	// APIName is the name of the API in its Glance. Pods have it as the value of
	// the label glanceAPI. By default it is the name of the object.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="apiName cannot be changed: the pods are selected by it; create another GlanceAPI"
	APIName string `json:"apiName,omitempty"`

	// APIType says whom the pods serve.
	// +kubebuilder:default=single
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="apiType cannot be changed: create another GlanceAPI"
	// +optional
	APIType APIType `json:"apiType,omitempty"`
}

// GlanceAPIStatus is the state of the pods.
type GlanceAPIStatus struct {
	// ObservedGeneration of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the API.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions condition.Conditions `json:"conditions,omitempty"`

	// Release has the image of api.
	common.Release  `json:",inline"`
	podified.Status `json:",inline"`

	// APIEndpoint has the addresses of the API: public and internal.
	// +optional
	APIEndpoint map[string]string `json:"apiEndpoint,omitempty"`

	// Jobs has the hash of the inputs with which each Job succeeded last, by its
	// name. A Job does not run again with the same inputs.
	// +optional
	Jobs map[string]string `json:"jobs,omitempty"`
}

// GlanceAPI is one group of glance-api pods: a StatefulSet and its Services.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=edpm-operators"
// +kubebuilder:resource:categories=edpm
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.apiType`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="ReadyCount",type=integer,JSONPath=`.status.readyCount`
// +kubebuilder:printcolumn:name="Topology",type=string,JSONPath=`.status.lastAppliedTopology.name`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GlanceAPI struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GlanceAPISpec   `json:"spec,omitempty"`
	Status GlanceAPIStatus `json:"status,omitempty"`
}

// GlanceAPIList is a list of GlanceAPI.
//
// +kubebuilder:object:root=true
type GlanceAPIList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GlanceAPI `json:"items"`
}

// IsReady reports whether every pod is up for the current spec.
func (a *GlanceAPI) IsReady() bool {
	return a.Status.ObservedGeneration == a.Generation && a.Status.Conditions.IsTrue(condition.ReadyCondition)
}

// ShortName is the name of the API in its Glance.
func (a *GlanceAPI) ShortName() string {
	if a.Spec.APIName != "" {
		return a.Spec.APIName
	}
	return a.Name
}

// GetConditions returns the conditions, to be changed in place.
func (a *GlanceAPI) GetConditions() *condition.Conditions { return &a.Status.Conditions }

// GetRelease returns the images that are recorded, to be changed in place.
func (a *GlanceAPI) GetRelease() *common.Release { return &a.Status.Release }

// SetObservedGeneration notes the generation that the status describes.
func (a *GlanceAPI) SetObservedGeneration(n int64) { a.Status.ObservedGeneration = n }

func init() {
	register(&GlanceAPI{}, &GlanceAPIList{})
}
