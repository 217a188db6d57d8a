package v1beta1

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// Names of the services that a control plane creates.
const (
	GlanceName = "glance"
	NovaName   = "nova"
)

// GlanceSection is what a control plane says of its image service.
type GlanceSection struct {
	// Enabled says whether there is an image service. One that is no longer
	// enabled is deleted; its PersistentVolumeClaims stay.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Template of the Glance, which is named glance.
	// +kubebuilder:default={}
	// +optional
	Template glancev1.GlanceSpec `json:"template,omitempty"`
}

// NovaSection is what a control plane says of its compute service.
type NovaSection struct {
	// Enabled says whether there is a compute service. One that is no longer
	// enabled is deleted.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Template of the Nova, which is named nova.
	Template novav1.NovaSpec `json:"template"`
}

// OpenStackControlPlaneSpec describes the podified services.
type OpenStackControlPlaneSpec struct {
	// Secret with the passwords of services that name none.
	// +optional
	Secret string `json:"secret,omitempty"`

	// StorageClass of services that name none.
	// +optional
	StorageClass string `json:"storageClass,omitempty"`

	// NodeSelector of services that set none.
	// +optional
	NodeSelector *map[string]string `json:"nodeSelector,omitempty"`

	// TopologyRef is the Topology of services that refer to none.
	// +optional
	TopologyRef *topologyv1.TopologyRef `json:"topologyRef,omitempty"`

	// Glance is the image service; without it there is none.
	// +optional
	Glance *GlanceSection `json:"glance,omitempty"`

	// Nova is the compute service; without it there is none.
	// +optional
	Nova *NovaSection `json:"nova,omitempty"`
}

// OpenStackControlPlaneStatus sums up the services.
type OpenStackControlPlaneStatus struct {
	// ObservedGeneration of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the control plane.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions condition.Conditions `json:"conditions,omitempty"`
}

// OpenStackControlPlane is the podified services of a cloud in one object, and
// what they have in common. There is one in a namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=edpm-operators"
// +kubebuilder:resource:shortName=oscp;oscps;osctlplane;osctlplanes,categories=edpm
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Topology",type=string,JSONPath=`.spec.topologyRef.name`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OpenStackControlPlane struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   OpenStackControlPlaneSpec   `json:"spec,omitempty"`
	Status OpenStackControlPlaneStatus `json:"status,omitempty"`
}

// OpenStackControlPlaneList is a list of OpenStackControlPlane.
//
// +kubebuilder:object:root=true
type OpenStackControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OpenStackControlPlane `json:"items"`
}

// GetConditions returns the conditions, to be changed in place.
func (c *OpenStackControlPlane) GetConditions() *condition.Conditions { return &c.Status.Conditions }

// SetObservedGeneration notes the generation that the status describes.
func (c *OpenStackControlPlane) SetObservedGeneration(n int64) { c.Status.ObservedGeneration = n }

func init() {
	register(&OpenStackControlPlane{}, &OpenStackControlPlaneList{})
}
