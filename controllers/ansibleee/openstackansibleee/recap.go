package openstackansibleee

import (
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/recap"
)

// lostError says that the outcome of a run cannot be known.
type lostError struct{ err error }

func (e lostError) Unwrap() error { return e.err }

func (e lostError) Error() string { return fmt.Sprintf("The outcome is unknown: %v", e.err) }

func isRecapError(err error) bool { return errors.As(err, &lostError{}) }

// conclusion is how the Job of a run ended.
type conclusion struct {
	status ansibleeev1.JobStatus
	at     *metav1.Time
	recap  recap.Recap
	lost   error // why there is no recap
}

// conclusion of the Job, nil while it has none. A Pod that has ended with a recap,
// and that will not be replaced, is one: its Job says so only a second or more later.
// No other Pod of the Job may run, whoever created it: the next run must not meet it.
func (s *scope) conclusion(ctx context.Context) (*conclusion, error) {
	if !jobFinished(s.job) {
		pods, err := s.podsOf(ctx, s.Client, client.MatchingFields{podJobIndex: s.job.Name})
		if err != nil || len(pods) == 0 || slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return !podEnded(p) }) {
			return nil, err
		}
		return s.concluded(latest(pods)), nil
	}
	result, lost := s.readRecap(ctx)
	if lost != nil && !isRecapError(lost) {
		return nil, lost
	}
	end := &conclusion{status: ansibleeev1.JobFailed, at: endOf(s.job), recap: result, lost: lost}
	if jobCondition(s.job, batchv1.JobComplete) {
		end.status = ansibleeev1.JobSucceeded
	}
	return end, nil
}

// concluded returns what the Pod says of the Job's end, nil unless it is certain.
func (s *scope) concluded(pod *corev1.Pod) *conclusion {
	result, err := recap.Parse(terminationMessage(pod))
	if err != nil {
		return nil
	}
	// The clock is our own: that of the Pod's node may be wrong.
	end := &conclusion{status: ansibleeev1.JobSucceeded, at: ptr.To(metav1.Now()), recap: result}
	switch phase := phaseOf(pod); {
	case phase == corev1.PodSucceeded:
		return end
	case s.failsFor(phase):
		end.status = ansibleeev1.JobFailed
		return end
	}
	return nil
}

// failsFor reports whether a Pod of this phase fails the Job: no other follows it.
func (s *scope) failsFor(phase corev1.PodPhase) bool {
	return phase == corev1.PodFailed && ptr.Deref(s.job.Spec.BackoffLimit, 0) == 0
}

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
	pods, err := s.podsOf(ctx, reader, selector)
	return latest(pods), err
}

// podsOf returns the Pods of the Job.
func (s *scope) podsOf(ctx context.Context, reader client.Reader, selector client.ListOption) ([]*corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := reader.List(ctx, list, client.InNamespace(s.run.Namespace), selector); err != nil {
		return nil, fmt.Errorf("listing the Pods of Job %s: %w", s.job.Name, err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], s.job) {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}

// latest is the Pod that was created last, nil if there is none.
func latest(pods []*corev1.Pod) *corev1.Pod {
	var last *corev1.Pod
	for _, pod := range pods {
		if last == nil || !pod.CreationTimestamp.Before(&last.CreationTimestamp) {
			last = pod
		}
	}
	return last
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

// startOf a Job, which its Pod can be ahead of.
func startOf(job *batchv1.Job) *metav1.Time {
	if job.Status.StartTime == nil {
		return job.CreationTimestamp.DeepCopy()
	}
	return job.Status.StartTime
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
