package openstackansibleee

import (
	"context"
	"fmt"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// Runs that end in another way than by the end of their Job.

// missingJob ends a run whose Job was created and then removed by a user.
// Whether it has done its work is unknown; it is not simply created again, as
// its Pod may still be at work.
func (s *scope) missingJob(ctx context.Context) error {
	err := s.Live.Get(ctx, client.ObjectKeyFromObject(s.run), &batchv1.Job{})
	if err == nil {
		return phase.Waiting(ansibleeev1.JobReadyCondition, ansibleeev1.JobRunningReason, "Job %s is being created", s.run.Name)
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	pods := &corev1.PodList{}
	if err := s.Live.List(ctx, pods, client.InNamespace(s.run.Namespace), client.MatchingLabels{batchv1.JobNameLabel: s.run.Name}); err != nil {
		return fmt.Errorf("listing the Pods of Job %s: %w", s.run.Name, err)
	}
	for i := range pods.Items {
		if p := pods.Items[i].Status.Phase; p != corev1.PodSucceeded && p != corev1.PodFailed {
			halt := phase.Waiting(ansibleeev1.JobReadyCondition, ansibleeev1.JobRunningReason, "Job %s was removed: waiting for its Pod %s to finish", s.run.Name, pods.Items[i].Name)
			halt.After = 2 * time.Second
			return halt
		}
	}
	s.fail()
	return phase.Stalled(ansibleeev1.JobReadyCondition, ansibleeev1.JobLostReason, "Job %s was removed before its outcome was read", s.run.Name)
}

// fail ends the run here and now.
func (s *scope) fail() {
	s.run.Status.JobStatus, s.run.Status.CompletionTime = ansibleeev1.JobFailed, ptr.To(metav1.Now())
}

// cancel is the only phase of a deleted run: it ends its Job, waits until no
// Pod can touch a host any more, and says that the outcome is unknown. What has
// been done already is read all the same, or it would be done again.
func (s *scope) cancel(ctx context.Context) error {
	status := &s.run.Status
	s.run.Status.Conditions.MarkTrue(condition.InputReadyCondition, condition.InputReadyMessage)
	if ended(status.JobStatus) {
		return s.settled()
	}
	job := &batchv1.Job{}
	err := s.Live.Get(ctx, client.ObjectKeyFromObject(s.run), job)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err != nil || !metav1.IsControlledBy(job, s.run) {
		never, err := s.neverStarted(ctx)
		if err != nil {
			return err
		}
		s.fail()
		if never {
			return phase.Stalled(ansibleeev1.JobReadyCondition, ansibleeev1.JobNotStartedReason, "The run was deleted before it had a Job: no host was touched")
		}
		return phase.Stalled(ansibleeev1.JobReadyCondition, ansibleeev1.JobCancelledReason, "The run was deleted before it finished")
	}
	s.job = job
	if done, err := s.done(ctx); err != nil || done {
		return err
	}
	if job.DeletionTimestamp.IsZero() {
		if err := s.deleteJob(ctx, job); err != nil {
			return err
		}
	}
	return phase.Waiting(ansibleeev1.JobReadyCondition, ansibleeev1.JobCancelledReason, "Cancelling: waiting for the Job to finish")
}

// neverStarted reports whether a deleted run certainly never had a Job, and removes
// its inputs then. They become the run's own before the Job is created, and go only
// after it has ended: as long as they are no one's there was none. Nothing else
// would tell of a Job that a manager created before it died and that a user removed.
func (s *scope) neverStarted(ctx context.Context) (bool, error) {
	if !s.ownInputs() || s.run.Status.JobName != "" || s.run.Status.Hash[inputKey] != "" {
		return false, nil
	}
	inputs := &metav1.PartialObjectMetadata{}
	inputs.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := s.Live.Get(ctx, client.ObjectKey{Namespace: s.run.Namespace, Name: s.run.Spec.InputsSecretName}, inputs)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the inputs of the run: %w", err)
	}
	if len(inputs.OwnerReferences) > 0 || inputs.Labels[common.RunInputsLabel] != "true" {
		return false, nil
	}
	return true, s.dropInputs(ctx)
}

// done reports whether the Job of a deleted run has ended, and takes its outcome.
// A Pod that has ended is about to end its Job.
func (s *scope) done(ctx context.Context) (bool, error) {
	if jobFinished(s.job) {
		return true, s.outcome(ctx)
	}
	pod, err := s.lastPod(ctx, s.Live, client.MatchingLabels{batchv1.JobNameLabel: s.job.Name})
	if err != nil || pod == nil || !s.job.DeletionTimestamp.IsZero() {
		return false, err
	}
	if ended := phaseOf(pod); ended == corev1.PodSucceeded || s.failsFor(ended) {
		return true, phase.Waiting(ansibleeev1.JobReadyCondition, ansibleeev1.JobCancelledReason, "Cancelling: the Pod has finished, waiting for the status of its Job")
	}
	return false, nil
}
