package metal

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// refusedRetry is how soon a write that was refused is tried again: what the refusal
// depends on need not be in an object that is watched.
const refusedRetry = time.Minute

// WriteError turns an error of a write to a host into a *phase.Halt if admission, which is
// not ours, refused it, or did not answer. what says what the write is to do, and remedy
// what to do about it. Other errors are returned with what.
func WriteError(host *metal3v1.BareMetalHost, what, remedy string, err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !refused(status) && !unanswered(status) {
		return fmt.Errorf("%s BareMetalHost %s: %w", strings.ToLower(what), host.Name, err)
	}
	halt := phase.Stalled(dataplanev1.ProvisionReadyCondition, dataplanev1.MetalWriteRefusedReason,
		"%s BareMetalHost %s is refused: %s. %s", what, host.Name, escapeForeignText(err.Error()), remedy)
	halt.After = refusedRetry
	return halt
}

// IsRefusal reports whether an error is that of a write that was refused.
func IsRefusal(err error) bool {
	var halt *phase.Halt
	return errors.As(err, &halt) && halt.Reason == dataplanev1.MetalWriteRefusedReason
}

// refused reports whether the API server, a webhook or a policy does not accept the object. A
// webhook chooses the code of its denial, which can be that of a conflict.
func refused(err apierrors.APIStatus) bool {
	status := err.Status()
	return strings.Contains(status.Message, "denied the request") ||
		slices.Contains([]int32{http.StatusBadRequest, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}, status.Code)
}

// unanswered reports whether a webhook could not be asked.
func unanswered(err apierrors.APIStatus) bool {
	status := err.Status()
	return status.Code == http.StatusInternalServerError && strings.Contains(status.Message, "failed calling webhook")
}
