package apply

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// RefusedRetry is how soon a write that was refused is tried again: what the refusal depends on
// need not be in an object that is watched.
const RefusedRetry = time.Minute

// IsRefusal reports whether an error is that of a write that the API server, a webhook or a policy
// does not accept, or that a webhook could not be asked about. It is false for a conflict, and
// for an API server that does not answer.
func IsRefusal(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && (refused(status) || unanswered(status))
}

// IsUnanswered reports whether an error is that of a write that a webhook could not be asked about.
func IsUnanswered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && unanswered(status)
}

// IsDryRunUnsupported reports whether an error is that of a dry run which a webhook with side effects
// keeps from being made: it says nothing of the write.
func IsDryRunUnsupported(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && strings.Contains(status.Status().Message, "does not support dry run")
}

// refused reports whether the object is not accepted. A webhook chooses the code of its denial,
// which can be that of a conflict.
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
