package v1beta1

import "github.com/openstack-k8s-operators/lib-common/modules/common/condition"

// GlanceAPIReadyCondition : every GlanceAPI is Ready.
const GlanceAPIReadyCondition condition.Type = "GlanceAPIReady"

// Reasons of GlanceAPIReady.
const (
	// APIsNotReadyReason : a GlanceAPI is not Ready; the message names the first and says why.
	// Remedy: see the conditions of that GlanceAPI.
	APIsNotReadyReason condition.Reason = "APIsNotReady"
)
