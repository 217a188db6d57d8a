package v1beta1

import "github.com/openstack-k8s-operators/lib-common/modules/common/condition"

// Conditions of an EDPMService beside those of all services on hosts.
const (
	// ServiceClassReadyCondition : the class of the service exists, and so do the Secrets
	// and ConfigMaps that it names.
	ServiceClassReadyCondition condition.Type = "ServiceClassReady"
	// PrecedingServicesReadyCondition : the services of the node that the class comes after
	// are Ready.
	PrecedingServicesReadyCondition condition.Type = "PrecedingServicesReady"
)

// ServicesReadyCondition of an EDPMServiceClass is True once the service is Ready on all
// of its nodes.
const ServicesReadyCondition condition.Type = "ServicesReady"

// Reasons of ServiceClassReady.
const (
	// ClassMissingReason : the class of the service does not exist.
	ClassMissingReason condition.Reason = "ServiceClassMissing"
	// InvalidClassReason : a field of the class is invalid.
	InvalidClassReason condition.Reason = "InvalidServiceClass"
)

// Reasons of PrecedingServicesReady, of which AfterCycle is also one of InputReady of a
// class.
const (
	// PrecedingNotReadyReason : a service that the class comes after is not Ready on the
	// node.
	PrecedingNotReadyReason condition.Reason = "PrecedingServiceNotReady"
	// PrecedingMissingReason : the node does not have a service that the class comes after.
	PrecedingMissingReason condition.Reason = "PrecedingServiceMissing"
	// AfterCycleReason : classes come after each other.
	AfterCycleReason condition.Reason = "AfterCycle"
)

// Reasons of ServicesReady.
const (
	// ServicesNotReadyReason : the service is not Ready on some of its nodes.
	ServicesNotReadyReason condition.Reason = "ServicesNotReady"
	// ClassInUseReason : the class is being deleted, and nodes have the service.
	ClassInUseReason condition.Reason = "ServiceClassInUse"
)
