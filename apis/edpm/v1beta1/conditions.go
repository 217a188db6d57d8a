package v1beta1

import "github.com/openstack-k8s-operators/lib-common/modules/common/condition"

// Conditions of an EDPMService next to those of all services on hosts.
const (
	// ServiceClassReadyCondition : the class exists, is valid, and has its files.
	ServiceClassReadyCondition condition.Type = "ServiceClassReady"
	// PrecedingServicesReadyCondition : the services of the node that the class comes after
	// are Ready.
	PrecedingServicesReadyCondition condition.Type = "PrecedingServicesReady"
)

// ServicesReadyCondition : the service is Ready on every node that the class selects.
const ServicesReadyCondition condition.Type = "ServicesReady"

// Reasons of ServiceClassReady.
const (
	// ClassMissingReason : the class does not exist in the namespace; nothing is run. Remedy:
	// create the class, or delete the object.
	ClassMissingReason condition.Reason = "ServiceClassMissing"
	// InvalidClassReason : a field of the class is invalid; the message names it. Admission
	// was off when it was written. Remedy: correct the field of the class.
	InvalidClassReason condition.Reason = "InvalidServiceClass"
)

// Reasons of PrecedingServicesReady, of which AfterCycle is also one of InputReady of a
// class.
const (
	// PrecedingNotReadyReason : a service of `spec.after` is not Ready on the node; the
	// message names it. Remedy: see `status.services` of the node: `kubectl edpm status
	// <node>`.
	PrecedingNotReadyReason condition.Reason = "PrecedingServiceNotReady"
	// PrecedingMissingReason : the node does not have a service of `spec.after`; the message
	// names it. Remedy: give the service to the node, or remove its name from `spec.after` of
	// the class.
	PrecedingMissingReason condition.Reason = "PrecedingServiceMissing"
	// AfterCycleReason : classes come after each other, so that none of them can start; the
	// message names them. Remedy: remove one of the names from `spec.after`.
	AfterCycleReason condition.Reason = "AfterCycle"
)

// Reasons of ServicesReady.
const (
	// ServicesNotReadyReason : the service is not Ready on some nodes; the message names the
	// first. Remedy: see the conditions of the EDPMService that the message names.
	ServicesNotReadyReason condition.Reason = "ServicesNotReady"
	// ClassInUseReason : the class is being deleted, and nodes have its service; the message
	// has their number and names up to ten. Remedy: remove the annotation of the class from
	// these nodes and their roles, or set it to `false`: the service is removed from their
	// hosts, and then the class.
	ClassInUseReason condition.Reason = "ServiceClassInUse"
)
