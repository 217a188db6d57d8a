package common

import "github.com/openstack-k8s-operators/lib-common/modules/common/condition"

// UpdateAnnotation accepts the images that condition UpdateAvailable names: its value is
// the identifier there. Later images are not accepted by it.
const UpdateAnnotation = "edpm.openstack.org/update"

// UpdateAvailableCondition : the operators bring other images than those that run. Present
// only then; Ready does not depend on it.
const UpdateAvailableCondition condition.Type = "UpdateAvailable"

// NewImagesReason : the message names components, present and new images; nothing changes
// until they are accepted. Remedy: to accept them, run `kubectl edpm update <kind/name>`.
const NewImagesReason condition.Reason = "NewImages"

// Release is what an object runs.
type Release struct {
	// Images by component. They are recorded when they are first used and stay: those
	// that another version of the operators brings are used once they are accepted.
	// +optional
	Images map[string]string `json:"images,omitempty"`

	// Update has what the operators bring instead of some of the images.
	// +optional
	Update *Update `json:"update,omitempty"`
}

// Update is what the operators bring for an object that runs other images.
type Update struct {
	// ID identifies all images that the operators bring for the components of the object.
	// As the value of annotation edpm.openstack.org/update it accepts them.
	ID string `json:"id"`

	// Images by component that would be replaced.
	Images map[string]string `json:"images"`
}
