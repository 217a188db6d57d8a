package metal

import (
	"cmp"
	"fmt"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// Verdict says how far a claimed host is.
type Verdict struct {
	// Reason is empty when the host runs its image.
	Reason   condition.Reason
	Severity condition.Severity
	Message  string
}

// Done reports whether the host runs its image.
func (v Verdict) Done() bool { return v.Reason == "" }

// Judge returns what the state of a host means that a node has claimed. before
// reports whether the node has seen it provisioned: then what is different now
// happened to a machine in use.
func Judge(host *metal3v1.BareMetalHost, before bool) Verdict {
	if v := judgeError(host); !v.Done() {
		return v
	}
	state := host.Status.Provisioning.State
	switch {
	case state == metal3v1.StateProvisioned && host.Spec.Image == nil && host.Spec.CustomDeploy == nil, state == metal3v1.StateDeprovisioning:
		return stopped(host, dataplanev1.MetalDeprovisionedReason,
			"is being deprovisioned, and this node did not ask for it: find out who removed spec.image. The node does not provision it again; set its annotation "+common.ReplaceHostAnnotation+" to have another machine")
	case state == metal3v1.StateProvisioned && !host.Status.PoweredOn:
		return off(host)
	case state == metal3v1.StateProvisioned, state == metal3v1.StateExternallyProvisioned && before:
		return Verdict{}
	case state == metal3v1.StateExternallyProvisioned:
		return stopped(host, dataplanev1.MetalDeprovisionedReason, "is externally provisioned since it was claimed: undo spec.externallyProvisioned, or set preProvisioned: true in the role")
	case before:
		return stopped(host, dataplanev1.MetalDeprovisionedReason,
			fmt.Sprintf("was provisioned and is %q now: wait if baremetal-operator reads a restored object again, else find out who deprovisioned it. The node does not provision it again; set its annotation %s to have another machine", state, common.ReplaceHostAnnotation))
	}
	return judgeProgress(host, state)
}

// judgeError judges the states in which nothing proceeds, whatever was wanted.
func judgeError(host *metal3v1.BareMetalHost) Verdict {
	switch {
	case !host.DeletionTimestamp.IsZero():
		return stopped(host, dataplanev1.MetalHostLostReason, "is being deleted while this node uses it: baremetal-operator deprovisions it. Delete the node too, or set annotation "+common.ReplaceHostAnnotation+" to have another machine")
	case has(host, metal3v1.PausedAnnotation):
		return Unattended(host)
	case host.Status.OperationalStatus == metal3v1.StatusError || host.Status.ErrorType != "":
		return Verdict{dataplanev1.MetalErrorReason, condition.SeverityWarning, fmt.Sprintf(
			"BareMetalHost %s: %s. baremetal-operator tries again; correct what the message names, or set annotation %s of the node to have another machine",
			host.Name, Complaint(host), common.ReplaceHostAnnotation)}
	}
	return Verdict{}
}

// Unattended says that baremetal-operator is not to do anything with a host, if that is so.
func Unattended(host *metal3v1.BareMetalHost) Verdict {
	for annotation, what := range map[string]string{metal3v1.PausedAnnotation: "paused", metal3v1.DetachedAnnotation: "detached"} {
		if has(host, annotation) {
			return stopped(host, dataplanev1.MetalPausedReason, "is "+what+": baremetal-operator does nothing. Remove annotation "+annotation)
		}
	}
	return Verdict{}
}

// maxForeign is how many characters are shown of what BMCs, and programs on the
// machine, have answered.
const maxForeign = 512

// Complaint is the error of a host, fit for a message.
func Complaint(host *metal3v1.BareMetalHost) string {
	return escapeForeignText(cmp.Or(host.Status.ErrorType, "error") + ": " + cmp.Or(host.Status.ErrorMessage, "no message"))
}

// escapeForeignText makes text that others have written fit for a message.
func escapeForeignText(text string) string {
	text = validate.WithoutControls(text)
	if runes := []rune(text); len(runes) > maxForeign {
		return string(runes[:maxForeign]) + "…"
	}
	return text
}

// judgeProgress judges the states from registration to the image.
func judgeProgress(host *metal3v1.BareMetalHost, state metal3v1.ProvisioningState) Verdict {
	if v := Unattended(host); !v.Done() {
		return v
	}
	waits := func(reason condition.Reason, text string) Verdict {
		return Verdict{reason, condition.SeverityInfo, fmt.Sprintf("BareMetalHost %s %s", host.Name, text)}
	}
	switch state {
	case metal3v1.StateNone, metal3v1.StateRegistering, metal3v1.StateMatchProfile:
		return waits(dataplanev1.MetalRegisteringReason, "is being registered: waiting for baremetal-operator. If this does not end, see whether baremetal-operator runs")
	case metal3v1.StateUnmanaged:
		return stopped(host, dataplanev1.MetalRegisteringReason, "is unmanaged: set spec.bmc.address and spec.bmc.credentialsName")
	case metal3v1.StateInspecting:
		return waits(dataplanev1.MetalInspectingReason, "is being inspected: waiting for baremetal-operator")
	case metal3v1.StatePreparing:
		return waits(dataplanev1.MetalPreparingReason, "is being prepared: waiting for baremetal-operator")
	case metal3v1.StateAvailable, metal3v1.StateReady, metal3v1.StateProvisioning:
		return waits(dataplanev1.MetalProvisioningReason, "is being provisioned: waiting for baremetal-operator to write the image. If this does not end, see whether baremetal-operator runs, and the console of the machine")
	}
	return waits(dataplanev1.MetalProvisioningReason, fmt.Sprintf("is %q: waiting for baremetal-operator", state))
}

func off(host *metal3v1.BareMetalHost) Verdict {
	if !host.Spec.Online {
		return stopped(host, dataplanev1.MetalPoweredOffReason, "is powered off because its spec.online is false: set it to true")
	}
	return Verdict{dataplanev1.MetalPoweredOffReason, condition.SeverityWarning,
		fmt.Sprintf("BareMetalHost %s is powered off, and spec.online is true: waiting for baremetal-operator to power it on. If it does not, see its events", host.Name)}
}

// IsOff reports whether a host is off and stays so until a user changes its object:
// baremetal-operator has read its power, and is to leave it. What it reads while it works
// with the host no longer, or fails to, can be out of date.
func IsOff(host *metal3v1.BareMetalHost) bool {
	if has(host, metal3v1.DetachedAnnotation) || host.Status.OperationalStatus == metal3v1.StatusDetached || !judgeError(host).Done() {
		return false
	}
	state := host.Status.Provisioning.State
	deployed := state == metal3v1.StateProvisioned || state == metal3v1.StateExternallyProvisioned
	return deployed && !host.Status.PoweredOn && !host.Spec.Online
}

func stopped(host *metal3v1.BareMetalHost, reason condition.Reason, text string) Verdict {
	return Verdict{reason, condition.SeverityError, fmt.Sprintf("BareMetalHost %s %s", host.Name, text)}
}
