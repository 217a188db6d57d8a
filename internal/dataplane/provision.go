package dataplane

import (
	"encoding/json"
	"fmt"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/metal"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// ReplaceToken is that of the annotation of a node, empty without one.
func ReplaceToken(node *dataplanev1.OpenStackDataPlaneNode) string {
	return edpm.ShortToken(node.Annotations[common.ReplaceHostAnnotation])
}

// Replacing reports whether the annotation of a node asks for another machine than the
// one that it has.
func Replacing(node *dataplanev1.OpenStackDataPlaneNode) bool {
	token, claimed := ReplaceToken(node), node.Status.BareMetalHost
	return token != "" && claimed != nil && claimed.Replacement != token
}

// PendingMachine returns the condition of a node whose machine is not there yet, nil if the node
// needs none or has it. It is what the claim has reported, and until that has seen the
// node as it is, that it is waited for.
func PendingMachine(node *dataplanev1.OpenStackDataPlaneNode, role *dataplanev1.OpenStackDataPlaneRole) *phase.Halt {
	if !needsMachine(node, role) {
		return nil
	}
	if halt := ReportedMachine(node); halt != nil {
		return halt
	}
	switch {
	case Replacing(node):
		return phase.Waiting(dataplanev1.ProvisionReadyCondition, dataplanev1.MetalProvisioningReason, "Replacing: waiting until the machine is released")
	case !hasMachine(node):
		return phase.Waiting(dataplanev1.ProvisionReadyCondition, dataplanev1.MetalProvisioningReason, "Looking for a BareMetalHost")
	}
	return nil
}

// ReportedMachine returns the condition that the claim of a machine has reported, nil if it waits
// for nothing.
func ReportedMachine(node *dataplanev1.OpenStackDataPlaneNode) *phase.Halt {
	p := node.Status.Provisioning
	if p == nil || p.Reason == "" {
		return nil
	}
	return &phase.Halt{Type: dataplanev1.ProvisionReadyCondition, Reason: condition.Reason(p.Reason), Severity: condition.Severity(p.Severity), Message: p.Message}
}

// needsMachine reports whether the node is not to be configured without a machine. One
// on which something was run before its role asked for one is; one that was restored
// without its status may have one, until the claim has looked.
func needsMachine(node *dataplanev1.OpenStackDataPlaneNode, role *dataplanev1.OpenStackDataPlaneRole) bool {
	status := &node.Status
	switch claimed := status.BareMetalHost; {
	case claimed != nil && claimed.Claimed, Replacing(node):
		return true
	case claimed == nil && status.Unknown() && status.Provisioning == nil && controllerutil.ContainsFinalizer(node, dataplanev1.MachineFinalizer):
		return true
	case !metal.Asked(role):
		return false
	case claimed != nil || len(status.Runs) == 0 || ReplaceToken(node) != "":
		return true
	}
	return status.Unknown() && status.Provisioning == nil
}

// hasMachine reports whether the node has a machine that it reaches, and knows.
func hasMachine(node *dataplanev1.OpenStackDataPlaneNode) bool {
	claimed := node.Status.BareMetalHost
	return claimed != nil && claimed.Claimed && claimed.Provisioned && (node.Spec.AnsibleHost != "" || claimed.Address != "") &&
		(node.Status.HostKey != "" || node.Annotations[common.HostKeyAnnotation] != "")
}

// OutdatedMachineNote says that what the machine of a node was given is no longer what is wanted.
func OutdatedMachineNote(node *dataplanev1.OpenStackDataPlaneNode) string {
	claimed := node.Status.BareMetalHost
	if claimed == nil || !claimed.Outdated {
		return ""
	}
	return fmt.Sprintf(". Image, user data or network data have changed since BareMetalHost %s was provisioned: they take effect on another machine: set annotation %s of the node to have one", claimed.Name, common.ReplaceHostAnnotation)
}

// MissingMachineNote says why a node whose role provisions from bare metal has no machine,
// and what to do if it should have one.
func MissingMachineNote(node *dataplanev1.OpenStackDataPlaneNode, role *dataplanev1.OpenStackDataPlaneRole) string {
	if node.Status.BareMetalHost != nil || !metal.Asked(role) {
		return ""
	}
	return fmt.Sprintf(". No BareMetalHost was claimed, because something ran on the host before role %s asked for one, or the node was restored without its status: set annotation %s to have one", role.Name, common.ReplaceHostAnnotation)
}

// MachineState returns what the status of a node has of its machine, to be compared.
func MachineState(node *dataplanev1.OpenStackDataPlaneNode) string {
	text, _ := json.Marshal([]any{ptr.Deref(node.Status.BareMetalHost, dataplanev1.ClaimedHost{}), node.Status.BareMetalHost == nil, node.Status.Provisioning, node.Status.HostKey}) // which have nothing that JSON has not
	return string(text)
}
