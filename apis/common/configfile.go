package common

// ConfigFile is a file made of one entry of a Secret or ConfigMap of the namespace.
//
// +kubebuilder:validation:XValidation:rule="has(self.secret) != has(self.configMap)",message="set exactly one of secret and configMap"
type ConfigFile struct {
	// Name of the file.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Secret that has the content.
	// +optional
	Secret *FileSource `json:"secret,omitempty"`

	// ConfigMap that has the content.
	// +optional
	ConfigMap *FileSource `json:"configMap,omitempty"`
}

// FileSource is an entry of a Secret or ConfigMap.
type FileSource struct {
	// Name of the Secret or ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Key of the entry; by default the name of the file.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// Source returns the entry that has the content, with its key, and the kind of its object; nil
// if the file has none.
func (f ConfigFile) Source() (kind string, from *FileSource) {
	kind, from = "Secret", f.Secret
	if from == nil {
		kind, from = "ConfigMap", f.ConfigMap
	}
	if from == nil {
		return "", nil
	}
	if from.Key == "" {
		from = &FileSource{Name: from.Name, Key: f.Name}
	}
	return kind, from
}
