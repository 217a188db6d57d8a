package edpm

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm"
)

// prune deletes finished runs beyond the history, and lets go of deleted ones,
// in both cases only once their results are recorded. Runs of owners that this
// manager does not look after are left to the one that does.
func (e *Engine) prune(ctx context.Context, g Group) error {
	runs, err := e.list(ctx, g.Namespace, groupIndex, g.index())
	if err != nil {
		return fmt.Errorf("listing the runs of %s: %w", g, err)
	}
	sort.Slice(runs, func(i, j int) bool { return runs[j].CreationTimestamp.Before(&runs[i].CreationTimestamp) })
	for i := range runs {
		run := &runs[i]
		_, mine := e.owners[run.Spec.OwnerKind]
		switch {
		case !mine:
		case unstarted(run):
			err = errors.Join(err, e.takeBack(ctx, run))
		case !run.Finished():
		case !run.DeletionTimestamp.IsZero():
			err = errors.Join(err, e.release(ctx, g, run))
		case i >= e.History:
			_, derr := e.discard(ctx, run)
			err = errors.Join(err, derr)
		}
	}
	return err
}

// release drops the finalizer of a deleted run whose successes are recorded. As
// long as one is not, or the cache does not show it, the run is looked at again:
// the status of owners does not wake the engine.
func (e *Engine) release(ctx context.Context, g Group, run *ansibleeev1.OpenStackAnsibleEE) error {
	for _, t := range run.Spec.Targets {
		recorded, err := e.recorded(ctx, run, t)
		if err != nil {
			return err
		}
		if !recorded {
			e.requeue(g)
			return nil
		}
	}
	patched := run.DeepCopy()
	if !controllerutil.RemoveFinalizer(patched, edpmv1.ResultsFinalizer) {
		return nil
	}
	err := e.client.Patch(ctx, patched, client.MergeFromWithOptions(run, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return nil // the newer object comes by itself
	}
	return client.IgnoreNotFound(err)
}

// discard deletes a run that nothing needs any more, and reports whether it did.
func (e *Engine) discard(ctx context.Context, run *ansibleeev1.OpenStackAnsibleEE) (bool, error) {
	for _, t := range run.Spec.Targets {
		if needed, err := e.needed(ctx, run, t); err != nil || needed {
			return false, err
		}
	}
	if err := client.IgnoreNotFound(e.client.Delete(ctx, run)); err != nil {
		return false, fmt.Errorf("deleting OpenStackAnsibleEE %s: %w", run.Name, err)
	}
	return true, nil
}

// recorded reports whether what the run did to the host of a target is in its
// owner's ledger, or will never be: the owner is gone.
func (e *Engine) recorded(ctx context.Context, aee *ansibleeev1.OpenStackAnsibleEE, t ansibleeev1.Target) (bool, error) {
	ledger, err := e.ledger(ctx, aee, t)
	if err != nil || ledger == nil {
		return err == nil, err
	}
	for _, step := range aee.StepNames() {
		if !recorded(ledger, step, newRun(aee, step, t.Host)) {
			return false, nil
		}
	}
	return true, nil
}

// needed reports whether the run is the newest of a step for a host that failed in it,
// or is not recorded yet.
func (e *Engine) needed(ctx context.Context, aee *ansibleeev1.OpenStackAnsibleEE, t ansibleeev1.Target) (bool, error) {
	ledger, err := e.ledger(ctx, aee, t)
	if err != nil || ledger == nil {
		return false, err
	}
	for _, key := range keysOf(aee, t.Host) {
		if !recorded(ledger, key.Step, newRun(aee, key.Step, t.Host)) {
			return true, nil
		}
		runs, err := e.history(ctx, key, t.OwnerUID)
		if last := newest(had(runs)); err != nil || last != nil && last.name == aee.Name && !last.converged() {
			return true, err
		}
	}
	return false, nil
}

// ledger of the owner of a target of the run; nil when the owner is gone.
func (e *Engine) ledger(ctx context.Context, aee *ansibleeev1.OpenStackAnsibleEE, t ansibleeev1.Target) (*edpmv1.Ledger, error) {
	owner, err := e.ownerOf(ctx, aee, t)
	if err != nil || owner == nil {
		return nil, err
	}
	return e.owners[aee.Spec.OwnerKind].Ledger(owner), nil
}

// ownerOf a target of the run; nil when it is gone.
func (e *Engine) ownerOf(ctx context.Context, aee *ansibleeev1.OpenStackAnsibleEE, t ansibleeev1.Target) (client.Object, error) {
	owner, ok := e.owners[aee.Spec.OwnerKind]
	if !ok {
		return nil, nil
	}
	obj := owner.New()
	err := e.client.Get(ctx, types.NamespacedName{Namespace: aee.Namespace, Name: t.OwnerName()}, obj)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", aee.Spec.OwnerKind, t.OwnerName(), err)
	}
	if obj.GetUID() != t.OwnerUID {
		return nil, nil
	}
	return obj, nil
}

// sweeper removes, once after a start, inputs whose run was never created
// because the manager died in between. It looks in the namespaces of owners: the
// manager need not have a right on the Secrets of others.
type sweeper struct{ *Engine }

// sweepAge spares inputs whose run may be about to be created.
const sweepAge = 10 * time.Minute

// NeedLeaderElection is true: only the leader creates runs.
func (sweeper) NeedLeaderElection() bool { return true }

// Start sweeps and returns.
func (s sweeper) Start(ctx context.Context) error {
	namespaces, err := s.namespaces(ctx)
	if err != nil {
		return err
	}
	for namespace := range namespaces {
		if err := s.sweepNamespace(ctx, namespace); err != nil {
			return err
		}
	}
	return nil
}

// namespaces are those of the owners.
func (s sweeper) namespaces(ctx context.Context) (map[string]bool, error) {
	found := map[string]bool{}
	for kind, owner := range s.owners {
		list := owner.List()
		if err := s.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing every %s: %w", kind, err)
		}
		_ = meta.EachListItem(list, func(item runtime.Object) error { // the function never fails
			found[item.(client.Object).GetNamespace()] = true
			return nil
		})
	}
	return found, nil
}

func (s sweeper) sweepNamespace(ctx context.Context, namespace string) error {
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := s.live.List(ctx, secrets, client.InNamespace(namespace), client.HasLabels{edpmv1.RunInputsLabel})
	if apierrors.IsForbidden(err) {
		return nil // the owners say so in their conditions
	}
	if err != nil {
		return fmt.Errorf("listing the inputs of runs in namespace %s: %w", namespace, err)
	}
	for i := range secrets.Items {
		if err := s.sweep(ctx, &secrets.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s sweeper) sweep(ctx context.Context, secret *metav1.PartialObjectMetadata) error {
	if s.Clock.Since(secret.CreationTimestamp.Time) < sweepAge {
		return nil
	}
	err := s.live.Get(ctx, client.ObjectKeyFromObject(secret), &ansibleeev1.OpenStackAnsibleEE{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	return client.IgnoreNotFound(s.client.Delete(ctx, secret))
}
