package edpm

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
)

// isUnstarted reports whether a run can be withdrawn: its Pod has not begun to run,
// for example because an image or a network does not exist.
func isUnstarted(run *ansibleeev1.OpenStackAnsibleEE) bool {
	return isPending(run) && run.DeletionTimestamp.IsZero()
}

// isPending reports whether the Pod of a run has not begun to run.
func isPending(run *ansibleeev1.OpenStackAnsibleEE) bool {
	return run.Status.JobStatus == "" || run.Status.JobStatus == ansibleeev1.JobPending
}

// review notes which of the runs that have not started the owner of the target
// wants no more as they are.
func (e *Engine) review(l *common.Ledger, t *Target, w want, runs []*run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range runs {
		if r.object != nil && isUnstarted(r.object) {
			e.refuse(t.Key(), r.object, !t.stillWants(l, w, r, runs))
		}
	}
}

// stillWants reports whether a run of the target would be started as this one is.
func (t *Target) stillWants(l *common.Ledger, w want, r *run, runs []*run) bool {
	if !isAskedFor(r, w) || r.target.Access != w.access || !t.fits(r.object) {
		return false
	}
	var ended []*run
	for _, other := range runs {
		if other.finished {
			ended = append(ended, other)
		}
	}
	state := judge(l, t.Step.Name, ended, w, Backoff{})
	if state.Phase != Pending && !state.hasFailed() {
		return false
	}
	restricted, err := restriction(t, &State{})
	return err != nil || restricted == ""
}

const (
	// startup is how long it usually takes until a Job is known to have started.
	startup = 10 * time.Second
	// stuckAfter is how long the Pod of a run may take to start while others want it.
	stuckAfter = time.Minute
)

// takeBack deletes a run that has not started and that is not wanted as it is. An
// owner that was not heard of since the start of the manager wants it. The
// finalizer keeps the run until it is certain whether it has touched a host: its
// Pod can start at the same time.
func (e *Engine) takeBack(ctx context.Context, run *ansibleeev1.OpenStackAnsibleEE) error {
	refusing, leaving, err := e.refusals(ctx, run)
	if err != nil || refusing == 0 {
		return err
	}
	if run.Status.JobName != "" {
		// Nothing is lost with a check: its other hosts are in the next one.
		all, patience := refusing == len(run.Spec.Targets) || run.Spec.Check, stuckAfter
		if all {
			patience = startup
		}
		if left := patience - e.Clock.Since(run.CreationTimestamp.Time); left > 0 {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.enqueue(groupOf(run), left)
			return nil
		}
		if !all && leaving == 0 {
			return nil
		}
	}
	// Not if its status has changed: it may have started.
	err = e.runs.client.Delete(ctx, run, client.Preconditions{UID: &run.UID, ResourceVersion: &run.ResourceVersion})
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("withdrawing OpenStackAnsibleEE %s: %w", run.Name, err)
	}
	return nil
}

// refusals counts the targets whose owners refuse the run or no longer exist, or whose check gives
// way to a run, and those among them whose owners no longer exist or are about to be deleted.
func (e *Engine) refusals(ctx context.Context, run *ansibleeev1.OpenStackAnsibleEE) (refusing, leaving int, err error) {
	for _, t := range run.Spec.Targets {
		owner, err := e.owners.of(ctx, run, t)
		if err != nil {
			return 0, 0, err
		}
		e.mu.Lock()
		refused := e.verdicts.refuses(run, t.Host) || e.planner.displaces(run, t)
		e.mu.Unlock()
		if owner == nil || refused {
			refusing++
		}
		if owner == nil || refused && !owner.GetDeletionTimestamp().IsZero() {
			leaving++
		}
	}
	return refusing, leaving, nil
}
