package v1beta1

import "github.com/openstack-k8s-operators/lib-common/modules/common/condition"

// Conditions in addition to Ready and lib-common's TopologyReady.
const (
	// GlanceReadyCondition : the Glance is Ready.
	GlanceReadyCondition condition.Type = "OpenStackControlPlaneGlanceReady"
	// NovaReadyCondition : the Nova is Ready.
	NovaReadyCondition condition.Type = "OpenStackControlPlaneNovaReady"
)

// Reasons of the conditions of services.
const (
	// ServiceNotReadyReason : the service is not Ready; the message says why. Remedy: see the
	// conditions of the service.
	ServiceNotReadyReason condition.Reason = "ServiceNotReady"
	// InvalidSpecReason : the API server rejects the service that the template describes.
	// Remedy: correct the field of the template that the message names.
	InvalidSpecReason condition.Reason = "InvalidSpec"
)
