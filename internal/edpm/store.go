package edpm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/internal/apply"
)

// Field indexes on OpenStackAnsibleEE.
const (
	// targetIndex has the hosts of a run, with the kind of their owners. Not their steps: what is indexed
	// is in memory for each of them.
	targetIndex = "edpm.target"
	// groupIndex has the group.
	groupIndex = "edpm.group"
	// busyIndex has the hosts of runs that have not finished.
	busyIndex = "edpm.busy"
	// activeIndex has the value active for runs that have not finished.
	activeIndex = "edpm.active"
	active      = "true"
)

// indexes are the functions that compute them.
var indexes = map[string]client.IndexerFunc{targetIndex: indexTargets, groupIndex: indexGroup, busyIndex: indexBusy, activeIndex: indexActive}

func indexTargets(obj client.Object) []string {
	run := obj.(*ansibleeev1.OpenStackAnsibleEE)
	if len(run.StepNames()) == 0 {
		return nil // a person made it
	}
	hosts := make([]string, 0, len(run.Spec.Targets))
	for _, t := range run.Spec.Targets {
		hosts = append(hosts, Key{Kind: run.Spec.OwnerKind, Host: t.Host}.index())
	}
	return hosts
}

func indexGroup(obj client.Object) []string {
	run := obj.(*ansibleeev1.OpenStackAnsibleEE)
	if len(run.Spec.Targets) == 0 {
		return nil
	}
	return []string{groupOf(run).index()}
}

func indexBusy(obj client.Object) []string {
	run := obj.(*ansibleeev1.OpenStackAnsibleEE)
	if run.Finished() {
		return nil
	}
	var hosts []string
	for _, t := range run.Spec.Targets {
		hosts = append(hosts, t.Host)
	}
	return hosts
}

func indexActive(obj client.Object) []string {
	if run := obj.(*ansibleeev1.OpenStackAnsibleEE); len(run.Spec.Targets) == 0 || run.Finished() {
		return nil
	}
	return []string{active}
}

// runStore reads runs from the cache, and creates them. It has no state.
type runStore struct {
	client client.Client
	// live is a reader that does not cache.
	live client.Reader
}

// list returns runs by an index. They are the cache's own: not to be changed.
func (s runStore) list(ctx context.Context, namespace, index, value string) ([]ansibleeev1.OpenStackAnsibleEE, error) {
	runs := &ansibleeev1.OpenStackAnsibleEEList{}
	err := s.client.List(ctx, runs, client.InNamespace(namespace), client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy)
	return runs.Items, err
}

// ofGroup returns the runs of a group, as list does.
func (s runStore) ofGroup(ctx context.Context, g Group) ([]ansibleeev1.OpenStackAnsibleEE, error) {
	runs, err := s.list(ctx, g.Namespace, groupIndex, g.index())
	if err != nil {
		return nil, fmt.Errorf("listing the runs of %s: %w", g, err)
	}
	return runs, nil
}

// ofStep returns the runs of a step of a host, or its checks, as list does.
func (s runStore) ofStep(ctx context.Context, key Key) ([]ansibleeev1.OpenStackAnsibleEE, error) {
	runs, err := s.list(ctx, key.Namespace, targetIndex, key.index())
	if err != nil {
		return nil, fmt.Errorf("listing the runs of %s on %s: %w", key.Step, key.Host, err)
	}
	return slices.DeleteFunc(runs, func(r ansibleeev1.OpenStackAnsibleEE) bool {
		return r.Spec.Check != key.Check || !slices.Contains(r.StepNames(), key.Step)
	}), nil
}

// active returns the runs of all namespaces that have not ended, as list does.
func (s runStore) active(ctx context.Context) ([]ansibleeev1.OpenStackAnsibleEE, error) {
	runs, err := s.list(ctx, metav1.NamespaceAll, activeIndex, active)
	if err != nil {
		return nil, fmt.Errorf("listing the runs that are under way: %w", err)
	}
	return runs, nil
}

// create creates a run and, before it, its inputs. After an error it reports
// whether the run may exist all the same.
func (s runStore) create(ctx context.Context, secret *corev1.Secret, run *ansibleeev1.OpenStackAnsibleEE) (doubtful bool, err error) {
	err = s.client.Create(ctx, secret)
	made := err == nil
	if apierrors.IsAlreadyExists(err) {
		err = s.reuseInputs(ctx, secret)
	}
	if err != nil {
		return false, fmt.Errorf("creating Secret %s: %w", secret.Name, err)
	}
	if err := s.createRun(ctx, run); err != nil {
		if isDenied(err) && made {
			err = errors.Join(err, client.IgnoreNotFound(s.client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID})))
		}
		return !isRejected(err) && !apply.IsConflict(err) && !errors.Is(err, errBeingDeleted), fmt.Errorf("creating OpenStackAnsibleEE %s: %w", run.Name, err)
	}
	return false, nil
}

// errBeingDeleted refuses to take a run for the wanted one that a person has deleted: it ends.
var errBeingDeleted = errors.New("an earlier run with this name is being deleted")

// createRun creates a run, unless it exists already.
func (s runStore) createRun(ctx context.Context, run *ansibleeev1.OpenStackAnsibleEE) error {
	err := s.client.Create(ctx, run)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	present := &ansibleeev1.OpenStackAnsibleEE{}
	if err := s.live.Get(ctx, client.ObjectKeyFromObject(run), present); err != nil {
		return err
	}
	if !present.DeletionTimestamp.IsZero() {
		return errBeingDeleted
	}
	if !equality.Semantic.DeepEqual(present.Spec.Targets, run.Spec.Targets) {
		return &apply.ConflictError{Kind: "OpenStackAnsibleEE", Name: run.Name, For: "step " + run.Spec.Step}
	}
	return nil
}

// reuseInputs decides about inputs of the same name. They are used when their run exists,
// or was never created and they are what the run is to have. Those of a run that is
// gone are about to be collected, and others may have been put there by another user,
// or with other known hosts: they are removed, to be created again. A Secret
// that is not marked as the inputs of a run is none, and is left alone.
func (s runStore) reuseInputs(ctx context.Context, secret *corev1.Secret) error {
	key := client.ObjectKeyFromObject(secret)
	err := s.live.Get(ctx, key, &ansibleeev1.OpenStackAnsibleEE{})
	if err == nil || !apierrors.IsNotFound(err) {
		return err
	}
	present := &corev1.Secret{}
	if err := s.live.Get(ctx, key, present); err != nil {
		return err
	}
	if present.Labels[common.RunInputsLabel] != "true" {
		return &apply.ConflictError{Kind: "Secret", Name: secret.Name, For: "the inputs of a run"}
	}
	if len(present.OwnerReferences) == 0 && maps.EqualFunc(present.Data, secret.Data, bytes.Equal) {
		return nil
	}
	if err := s.client.Delete(ctx, present, client.Preconditions{UID: &present.UID}); err != nil {
		return err
	}
	return errors.New("inputs of another run with this name exist and are being removed")
}

// isRejected reports whether the API server has certainly not done what it was asked.
func isRejected(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500
}

// isDenied reports whether the API server does not take an object as it is, or not
// from us, or one that is not ours has its name. Another try with the same object
// will not be taken either.
func isDenied(err error) bool {
	return apply.IsConflict(err) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}
