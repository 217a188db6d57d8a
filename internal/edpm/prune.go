package edpm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
)

// everyGroup stands in the queue for the history of all groups together.
var everyGroup = Group{}

// pruneDelay is how long ends of runs are gathered into one look at all of them.
const pruneDelay = 30 * time.Second

// pruner removes finished runs, once their results are recorded. It has no state.
type pruner struct {
	client client.Client
	owners owners
	// history of a step of a host for an owner, as Engine.history returns it.
	history func(context.Context, Key, types.UID) ([]*run, error)
}

func (e *Engine) pruner() pruner { return pruner{e.runs.client, e.owners, e.history} }

// prune deletes finished runs beyond the history, and those that failed as a later one
// did, takes back those that are not wanted,
// and lets go of deleted ones, once their results are recorded. Runs of owners that this
// manager does not look after are left to the one that does.
func (e *Engine) prune(ctx context.Context, g Group) error {
	runs, err := e.runs.ofGroup(ctx, g)
	if err != nil {
		return err
	}
	sort.Slice(runs, func(i, j int) bool { return runs[j].CreationTimestamp.Before(&runs[i].CreationTimestamp) })
	later := map[failureKey]bool{}
	for i := range runs {
		run := &runs[i]
		switch {
		case !e.owners.manages(run):
		case isUnstarted(run):
			err = errors.Join(err, e.takeBack(ctx, run))
		case !run.Finished():
		case !run.DeletionTimestamp.IsZero():
			err = errors.Join(err, e.release(ctx, g, run))
		case repeatsFailure(run, later) || i >= e.History:
			_, derr := e.pruner().discard(ctx, run)
			err = errors.Join(err, derr)
		}
	}
	return err
}

// failureKey is a way to fail in a step on a host: with the same inputs, in the same task
// or without an answer.
type failureKey struct {
	Key
	owner       types.UID
	hash, cause string
}

// repeatsFailure reports whether a run failed on all of its hosts, on each as a later run
// did. It adds its failures to those of later runs.
func repeatsFailure(aee *ansibleeev1.OpenStackAnsibleEE, later map[failureKey]bool) bool {
	repeats := true
	for _, t := range aee.Spec.Targets {
		failures := failuresOf(aee, t.Host)
		repeats = repeats && len(failures) > 0
		for _, f := range failures {
			repeats = repeats && later[f]
		}
		for _, f := range failures {
			later[f] = true
		}
	}
	return repeats
}

// failuresOf are the steps in which a run failed on a host. There are none if another one
// went well, or nothing is known of it.
func failuresOf(aee *ansibleeev1.OpenStackAnsibleEE, host string) []failureKey {
	var failures []failureKey
	for _, key := range keysOf(aee, host) {
		r := newRun(aee, key.Step, host)
		switch {
		case r.void:
			continue
		case !r.known || r.converged():
			return nil
		}
		cause, _, _ := strings.Cut(r.result.Message, ": ")
		if r.result.Unreachable > 0 {
			cause = ""
		}
		failures = append(failures, failureKey{key, r.target.OwnerUID, r.target.Hash, cause})
	}
	return failures
}

// release drops the finalizer of a deleted run whose successes are recorded. As
// long as one is not, or the cache does not show it, the run is looked at again:
// the status of owners does not wake the engine.
func (e *Engine) release(ctx context.Context, g Group, run *ansibleeev1.OpenStackAnsibleEE) error {
	recorded, err := e.pruner().isRecorded(ctx, run)
	if err == nil && !recorded {
		e.requeue(g)
	}
	if err != nil || !recorded {
		return err
	}
	patched := run.DeepCopy()
	if !controllerutil.RemoveFinalizer(patched, common.ResultsFinalizer) {
		return nil
	}
	err = e.runs.client.Patch(ctx, patched, client.MergeFromWithOptions(run, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return nil // the newer object comes by itself
	}
	return client.IgnoreNotFound(err)
}

// pruneOldest deletes the oldest finished runs while there are more than
// total of them, except those that are needed. The history of a group
// bounds them by roles and steps; their Pods count for the whole cluster, which
// removes finished ones, needed or not, from 12,500 on
// (kube-controller-manager, --terminated-pod-gc-threshold).
func (p pruner) pruneOldest(ctx context.Context, total int) error {
	list := &ansibleeev1.OpenStackAnsibleEEList{}
	if err := p.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing all runs: %w", err)
	}
	var kept []*ansibleeev1.OpenStackAnsibleEE
	for i := range list.Items {
		run := &list.Items[i]
		if p.owners.manages(run) && len(run.Spec.Targets) > 0 && run.Finished() && run.DeletionTimestamp.IsZero() {
			kept = append(kept, run)
		}
	}
	slices.SortFunc(kept, func(a, b *ansibleeev1.OpenStackAnsibleEE) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	excess := len(kept) - total
	for _, run := range kept {
		if excess <= 0 {
			break
		}
		deleted, err := p.discard(ctx, run)
		if err != nil {
			return err
		}
		if deleted {
			excess--
		}
	}
	return nil
}

// discard deletes a run that nothing needs any more, and reports whether it did.
func (p pruner) discard(ctx context.Context, run *ansibleeev1.OpenStackAnsibleEE) (bool, error) {
	for _, t := range run.Spec.Targets {
		if needed, err := p.isNeeded(ctx, run, t); err != nil || needed {
			return false, err
		}
	}
	if err := client.IgnoreNotFound(p.client.Delete(ctx, run)); err != nil {
		return false, fmt.Errorf("deleting OpenStackAnsibleEE %s: %w", run.Name, err)
	}
	return true, nil
}

// isRecorded reports whether what the run did to its hosts is in the ledgers of their
// owners, or will never be: an owner is gone. A check did nothing to them.
func (p pruner) isRecorded(ctx context.Context, aee *ansibleeev1.OpenStackAnsibleEE) (bool, error) {
	if aee.Spec.Check {
		return true, nil
	}
	for _, t := range aee.Spec.Targets {
		ledger, err := p.owners.ledger(ctx, aee, t)
		if err != nil {
			return false, err
		}
		for _, step := range aee.StepNames() {
			if ledger != nil && !isRecorded(ledger, step, newRun(aee, step, t.Host)) {
				return false, nil
			}
		}
	}
	return true, nil
}

// isNeeded reports whether the run is the newest of a step for a host that failed in it,
// or is not recorded yet. No check is: another one finds the same.
func (p pruner) isNeeded(ctx context.Context, aee *ansibleeev1.OpenStackAnsibleEE, t ansibleeev1.Target) (bool, error) {
	if aee.Spec.Check {
		return false, nil
	}
	ledger, err := p.owners.ledger(ctx, aee, t)
	if err != nil || ledger == nil {
		return false, err
	}
	for _, key := range keysOf(aee, t.Host) {
		if !isRecorded(ledger, key.Step, newRun(aee, key.Step, t.Host)) {
			return true, nil
		}
		runs, err := p.history(ctx, key, t.OwnerUID)
		if last := newest(effective(runs)); err != nil || last != nil && last.name == aee.Name && !last.converged() {
			return true, err
		}
	}
	return false, nil
}
