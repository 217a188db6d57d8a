package v1beta1

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/apis/common/hosted"
)

// EDPMServiceFinalizer keeps a service until it is off the host.
const EDPMServiceFinalizer = "edpm.openstack.org/edpmservice"

// EDPMServiceSpec says which node has a service of which class. All of it but
// customServiceConfig and the image is kept up to date by the controller that watches
// the nodes.
type EDPMServiceSpec struct {
	hosted.ServiceSpec `json:",inline"`

	// ClassName is the EDPMServiceClass that says what the service is.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="className cannot be changed: the service of the former class would stay on the host; delete this object, and create one for the other class"
	ClassName string `json:"className"`
}

// EDPMServiceStatus is the state of the service on the node.
type EDPMServiceStatus struct {
	// ServiceStatus with the ledger of the step, which is named like the class.
	hosted.ServiceStatus `json:",inline"`

	// ObservedClassGeneration is the generation of the EDPMServiceClass that the status is of.
	// +optional
	ObservedClassGeneration int64 `json:"observedClassGeneration,omitempty"`
}

// EDPMService is the service of an EDPMServiceClass on one node. It is created for each
// node that the class selects, named <class>-<node>.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=edpm-operators"
// +kubebuilder:resource:shortName=edpmsvc;edpmsvcs,categories=edpm
// +kubebuilder:selectablefield:JSONPath=`.spec.className`
// +kubebuilder:selectablefield:JSONPath=`.spec.dataplaneNodeName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.className`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.dataplaneNodeName`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type EDPMService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   EDPMServiceSpec   `json:"spec"`
	Status EDPMServiceStatus `json:"status,omitempty"`
}

// EDPMServiceList is a list of EDPMService.
//
// +kubebuilder:object:root=true
type EDPMServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EDPMService `json:"items"`
}

// GetConditions returns the conditions, to be changed in place.
func (s *EDPMService) GetConditions() *condition.Conditions { return &s.Status.Conditions }

// SetObservedGeneration notes the generation that the status describes.
func (s *EDPMService) SetObservedGeneration(g int64) { s.Status.ObservedGeneration = g }

// GetLedger returns what ran successfully for the service.
func (s *EDPMService) GetLedger() *common.Ledger { return &s.Status.Ledger }

// Hosted returns what the service has in common with all services on hosts.
func (s *EDPMService) Hosted() (*hosted.ServiceSpec, *hosted.ServiceStatus) {
	return &s.Spec.ServiceSpec, &s.Status.ServiceStatus
}

func init() {
	register(&EDPMService{}, &EDPMServiceList{})
}
