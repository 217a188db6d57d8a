package openstackansibleee

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/internal/recap"
)

// lostError says that the outcome of a run cannot be known.
type lostError struct{ err error }

func (e lostError) Unwrap() error { return e.err }

func (e lostError) Error() string { return fmt.Sprintf("The outcome is unknown: %v", e.err) }

func isRecapError(err error) bool { return errors.As(err, &lostError{}) }

// readRecap returns the recap that the last Pod of the Job left. The cache may
// know of the end of the Job before that of its Pod, so that the API server is
// asked before a recap is given up for lost.
func (s *scope) readRecap(ctx context.Context) (recap.Recap, error) {
	result, err := s.recapFrom(ctx, s.Client, client.MatchingFields{podJobIndex: s.job.Name})
	if errors.Is(err, recap.ErrNone) {
		return s.recapFrom(ctx, s.Live, client.MatchingLabels{batchv1.JobNameLabel: s.job.Name})
	}
	return result, err
}

func (s *scope) recapFrom(ctx context.Context, reader client.Reader, selector client.ListOption) (recap.Recap, error) {
	pod, err := s.lastPod(ctx, reader, selector)
	if err != nil {
		return recap.Recap{}, err
	}
	message := ""
	if pod != nil {
		message = terminationMessage(pod)
	}
	result, err := recap.Parse(message)
	if err != nil {
		return recap.Recap{}, lostError{err}
	}
	return result, nil
}

// lastPod of the Job, or nil.
func (s *scope) lastPod(ctx context.Context, reader client.Reader, selector client.ListOption) (*corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := reader.List(ctx, pods, client.InNamespace(s.run.Namespace), selector); err != nil {
		return nil, fmt.Errorf("listing the Pods of Job %s: %w", s.job.Name, err)
	}
	var last *corev1.Pod
	for i := range pods.Items {
		pod := &pods.Items[i]
		if metav1.IsControlledBy(pod, s.job) && (last == nil || !pod.CreationTimestamp.Before(&last.CreationTimestamp)) {
			last = pod
		}
	}
	return last, nil
}

func terminationMessage(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Terminated != nil {
			return c.State.Terminated.Message
		}
	}
	return ""
}

func jobCondition(job *batchv1.Job, t batchv1.JobConditionType) bool {
	for _, c := range job.Status.Conditions {
		if c.Type == t && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

func jobFinished(job *batchv1.Job) bool {
	return jobCondition(job, batchv1.JobComplete) || jobCondition(job, batchv1.JobFailed)
}

// endOf a finished Job.
func endOf(job *batchv1.Job) *metav1.Time {
	if job.Status.CompletionTime != nil {
		return job.Status.CompletionTime
	}
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobFailed {
			return c.LastTransitionTime.DeepCopy()
		}
	}
	return nil
}
