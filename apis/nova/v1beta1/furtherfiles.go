package v1beta1

import "github.com/edpm-operators/edpm-operators/apis/common"

// FurtherFiles are files that a service of nova reads next to its options. Which names a service
// reads is checked when they are written:
//
//   - the API: policy.yaml and api-paste.ini
//   - the metadata service: api-paste.ini and vendor_data.json
//   - nova-compute: policy.yaml, provider*.yaml (definitions of resource providers) and
//     vendor_data.json
type FurtherFiles struct {
	// DefaultConfigOverwrite are files that the service reads next to its options, by name: of
	// the API policy.yaml and api-paste.ini, of the metadata service api-paste.ini and
	// vendor_data.json, of nova-compute policy.yaml, provider*.yaml and vendor_data.json.
	// All files together have at most 262,144 bytes.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	DefaultConfigOverwrite map[string]string `json:"defaultConfigOverwrite,omitempty"`
	// ConfigFiles are such files whose content is in Secrets or ConfigMaps.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	ConfigFiles []common.ConfigFile `json:"configFiles,omitempty"`
}

// HasFiles reports whether there are any.
func (f FurtherFiles) HasFiles() bool {
	return len(f.DefaultConfigOverwrite) > 0 || len(f.ConfigFiles) > 0
}
