package v1beta1

// TopologyRef refers to a Topology of the same namespace. A field that holds
// one is nil to inherit what the object above refers to, and an empty reference,
// topologyRef: {}, to refer to none at all. An empty name is written out, since
// server-side apply makes null of a structure that loses its last field.
type TopologyRef struct {
	// Name of the Topology. An empty name opts out of an inherited reference.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Namespace of the Topology. It can only be that of the object itself, and
	// should be omitted.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}
