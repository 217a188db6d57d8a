package openstackdataplane

import (
	"fmt"
	"strings"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

const (
	// maxNamed is how many rejections a condition names, and maxText how many
	// bytes of each.
	maxNamed, maxText = 10, 300
	// retry is when what was rejected is tried again: it can have been rejected
	// because of something that this controller does not watch.
	retry = time.Minute
)

// rejections of roles and nodes, in the order in which they came.
type rejections struct {
	texts     []string
	conflicts int
}

// note reports whether the error says that the object is not taken as it is, and
// keeps it if so.
func (r *rejections) note(err error) bool {
	conflict := apply.IsConflict(err)
	if !conflict && !rejected(err) {
		return false
	}
	if conflict {
		r.conflicts++
	}
	r.texts = append(r.texts, short(err.Error()))
	return true
}

// rejected reports whether another try with the same object will end in the same
// way until a person changes something.
func rejected(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

func short(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "..."
}

// halt names the rejections among so many objects, and is nil without any.
func (r *rejections) halt(all int) error {
	n := len(r.texts)
	if n == 0 {
		return nil
	}
	reason, more := dataplanev1.RejectedReason, ""
	if r.conflicts == n {
		reason = common.ConflictReason
	}
	if n > maxNamed {
		more = fmt.Sprintf("; and %d more", n-maxNamed)
	}
	h := phase.Stalled(condition.InputReadyCondition, reason, "%d of %d roles and nodes are rejected: %s%s", n, all, strings.Join(r.texts[:min(n, maxNamed)], "; "), more)
	h.After = retry
	return h
}
