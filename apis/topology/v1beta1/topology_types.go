package v1beta1

import (
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Enforcement says what happens when pods would be unschedulable.
// +kubebuilder:validation:Enum=Warn;Hold
type Enforcement string

const (
	// Warn reports it in the condition PlacementReady and rolls out all the same.
	Warn Enforcement = "Warn"
	// Hold reports it likewise and keeps the running pods as they are.
	Hold Enforcement = "Hold"
)

// TopologySpec says where pods go. The rules that one object decides are those
// of core/v1 for Pods: what they refuse would only fail later, when a service
// writes its StatefulSet.
//
// +kubebuilder:validation:XValidation:rule="!has(self.topologySpreadConstraint)",message="there is no such field: write topologySpreadConstraints, in the plural, with the same content",fieldPath=".topologySpreadConstraint",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="has(self.topologySpreadConstraint) || has(self.topologySpreadConstraints) && size(self.topologySpreadConstraints) > 0 || has(self.affinity) && (has(self.affinity.nodeAffinity) || has(self.affinity.podAffinity) || has(self.affinity.podAntiAffinity))",message="is empty: set topologySpreadConstraints, affinity or both; for a service without a Topology remove its topologyRef or set it to {}"
type TopologySpec struct {
	// TopologySpreadConstraints of the pods, as in the spec of a Pod. One without
	// a labelSelector selects the pods of each consumer separately.
	// +optional
	// +listType=map
	// +listMapKey=topologyKey
	// +listMapKey=whenUnsatisfiable
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:XValidation:rule="self.maxSkew >= 1",message="is less than 1, but pods cannot always be spread evenly: set a number from 1",fieldPath=".maxSkew"
	// +kubebuilder:validation:items:XValidation:rule="size(self.topologyKey) > 0",message="is empty: set the label of the nodes whose values are the domains, for example topology.kubernetes.io/zone",fieldPath=".topologyKey"
	// +kubebuilder:validation:items:XValidation:rule="self.whenUnsatisfiable in ['DoNotSchedule', 'ScheduleAnyway']",message="is neither DoNotSchedule (pods wait until the constraint holds) nor ScheduleAnyway (they run in any case): set one of these",fieldPath=".whenUnsatisfiable"
	// +kubebuilder:validation:items:XValidation:rule="!has(self.minDomains) || self.minDomains >= 1",message="is less than 1: set a number from 1, or remove the field",fieldPath=".minDomains"
	// +kubebuilder:validation:items:XValidation:rule="!has(self.minDomains) || self.whenUnsatisfiable != 'ScheduleAnyway'",message="requires whenUnsatisfiable: DoNotSchedule: change that, or remove minDomains",fieldPath=".minDomains"
	// +kubebuilder:validation:items:XValidation:rule="!has(self.nodeAffinityPolicy) || self.nodeAffinityPolicy in ['Honor', 'Ignore']",message="is neither Honor (only nodes that the affinity allows are counted) nor Ignore (all nodes are): set one of these",fieldPath=".nodeAffinityPolicy"
	// +kubebuilder:validation:items:XValidation:rule="!has(self.nodeTaintsPolicy) || self.nodeTaintsPolicy in ['Honor', 'Ignore']",message="is neither Honor (only nodes whose taints are tolerated are counted) nor Ignore (all nodes are): set one of these",fieldPath=".nodeTaintsPolicy"
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// Affinity of the pods. Each of its three parts that is set takes the place
	// of what the service has by default; the others stay as they are.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// Enforcement says what to do when the pods of a service would be
	// unschedulable: Warn reports it and rolls out, Hold reports it and does not
	// change the running pods.
	// +kubebuilder:default=Warn
	// +optional
	Enforcement Enforcement `json:"enforcement,omitempty"`

	// TopologySpreadConstraint is always refused. It is here because people do
	// write it (seeds/002), and an unknown field would be dropped in silence.
	// +optional
	// +listType=atomic
	TopologySpreadConstraint []Misspelt `json:"topologySpreadConstraint,omitempty"`
}

// Misspelt is the content of a field that does not exist.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Misspelt struct{}

// MaxConsumers, MaxDomains and MaxNodes bound the lists in the status.
const (
	MaxConsumers = 100
	MaxDomains   = 64
	MaxNodes     = 5
)

// Consumer is an object that refers to a Topology.
type Consumer struct {
	// Kind of the object.
	Kind string `json:"kind"`
	// Name of the object. One of more than about 50 characters that has no pods
	// is shown cut, with a hash.
	Name string `json:"name"`
	// Pods of the object that were made with the Topology and have not ended.
	// +optional
	Pods int32 `json:"pods,omitempty"`
}

// Domain is a part of the cluster: the nodes that have the same value of the
// topologyKey.
type Domain struct {
	// Name is the value of the topologyKey.
	Name string `json:"name"`
	// Nodes of the domain.
	Nodes int32 `json:"nodes"`
	// Pods that the constraint counts in the domain.
	Pods int32 `json:"pods"`
}

// NodesLackingKey are the nodes that a constraint never puts a pod on.
type NodesLackingKey struct {
	// Count of the nodes.
	Count int32 `json:"count"`
	// Names of the first of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	Names []string `json:"names,omitempty"`
}

// ConstraintStatus is how the pods are spread, by the scheduler's own rule: the
// skew of a domain is its number of pods less that of the domain with fewest.
type ConstraintStatus struct {
	// TopologyKey of the constraint.
	TopologyKey string `json:"topologyKey"`
	// WhenUnsatisfiable of the constraint.
	WhenUnsatisfiable corev1.UnsatisfiableConstraintAction `json:"whenUnsatisfiable"`
	// MaxSkew of the constraint.
	MaxSkew int32 `json:"maxSkew"`
	// Domains of the cluster, the first 64 of them by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Domains []Domain `json:"domains,omitempty"`
	// DomainCount is the number of all domains.
	// +optional
	DomainCount int32 `json:"domainCount,omitempty"`
	// NodesLackingKey are the nodes without the topologyKey.
	// +optional
	NodesLackingKey NodesLackingKey `json:"nodesLackingKey,omitempty"`
	// Skew is the largest of all domains. A constraint without a labelSelector
	// is measured for each consumer, and the worst is shown.
	Skew int32 `json:"skew"`
	// Holds reports whether the skew is at most maxSkew, and with minDomains
	// whether there are that many domains.
	Holds bool `json:"holds"`
}

// TopologyStatus shows who uses the Topology and what became of it.
type TopologyStatus struct {
	// ObservedGeneration of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions of the Topology.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions condition.Conditions `json:"conditions,omitempty"`

	// Consumers are the objects that refer to the Topology, the first 100 of
	// them by kind and name.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Consumers []Consumer `json:"consumers,omitempty"`

	// ConsumerCount is the number of all consumers.
	// +optional
	ConsumerCount int32 `json:"consumerCount"`

	// Constraints, in the order of the spec.
	// +optional
	// +listType=map
	// +listMapKey=topologyKey
	// +listMapKey=whenUnsatisfiable
	// +kubebuilder:validation:MaxItems=16
	Constraints []ConstraintStatus `json:"constraints,omitempty"`

	// DomainsSummary has the pods of each domain, for example
	// zoneA=2,zoneB=2,zoneC=2; constraints are separated by "; ".
	// +optional
	DomainsSummary string `json:"domainsSummary,omitempty"`

	// SkewSummary is the skew over maxSkew of each constraint, for example 0/1.
	// +optional
	SkewSummary string `json:"skewSummary,omitempty"`
}

// Topology says how the pods of services are spread over the cluster and pinned
// to parts of it. Services refer to it by topologyRef; many can share one.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=edpm-operators"
// +kubebuilder:resource:shortName=topo,categories=edpm
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Consumers",type=integer,JSONPath=`.status.consumerCount`
// +kubebuilder:printcolumn:name="Domains",type=string,JSONPath=`.status.domainsSummary`
// +kubebuilder:printcolumn:name="Skew",type=string,JSONPath=`.status.skewSummary`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Topology struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TopologySpec   `json:"spec"`
	Status TopologyStatus `json:"status,omitempty"`
}

// TopologyList is a list of Topology.
//
// +kubebuilder:object:root=true
type TopologyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Topology `json:"items"`
}

// GetConditions returns the conditions, to be changed in place.
func (t *Topology) GetConditions() *condition.Conditions { return &t.Status.Conditions }

// SetObservedGeneration notes the generation that the status describes.
func (t *Topology) SetObservedGeneration(g int64) { t.Status.ObservedGeneration = g }

func init() {
	register(&Topology{}, &TopologyList{})
}
