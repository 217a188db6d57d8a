package v1beta1

import "github.com/openstack-k8s-operators/lib-common/modules/common/condition"

// GlanceAPIReadyCondition : every GlanceAPI of a Glance is Ready.
const GlanceAPIReadyCondition condition.Type = "GlanceAPIReady"

// Reasons of GlanceAPIReady.
const (
	// APIsNotReadyReason : some GlanceAPI is not Ready.
	APIsNotReadyReason condition.Reason = "APIsNotReady"
)
