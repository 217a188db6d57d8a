package metal

import (
	"errors"
	"fmt"
	"strings"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// WriteError turns an error of a write to a host into a *phase.Halt if admission, which is
// not ours, refused it, or did not answer. what says what the write is to do, and remedy
// what to do about it. Other errors are returned with what.
func WriteError(host *metal3v1.BareMetalHost, what, remedy string, err error) error {
	if !apply.IsRefusal(err) {
		return fmt.Errorf("%s BareMetalHost %s: %w", strings.ToLower(what), host.Name, err)
	}
	halt := phase.Stalled(dataplanev1.ProvisionReadyCondition, dataplanev1.MetalWriteRefusedReason,
		"%s BareMetalHost %s is refused: %s. %s", what, host.Name, escapeForeignText(err.Error()), remedy)
	halt.After = apply.RefusedRetry
	return halt
}

// IsRefusal reports whether an error is that of a write that was refused.
func IsRefusal(err error) bool {
	var halt *phase.Halt
	return errors.As(err, &halt) && halt.Reason == dataplanev1.MetalWriteRefusedReason
}
