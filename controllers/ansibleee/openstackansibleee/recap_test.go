package openstackansibleee

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

const wholeRecap = `{"v":1,"hosts":{"a":[3,1,0,0,0]}}`

// endedPod returns a Pod in a phase whose container has ended with a code and left a message.
func endedPod(phase corev1.PodPhase, restarts corev1.RestartPolicy, code int32, message string) *corev1.Pod {
	return &corev1.Pod{
		Spec: corev1.PodSpec{RestartPolicy: restarts, Containers: []corev1.Container{{Name: "runner"}}},
		Status: corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message}},
		}}},
	}
}

func TestAPodConcludesItsJobOnlyWhenNothingFollows(t *testing.T) {
	const never, onFailure = corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure
	once, retried := ptr.To[int32](0), ptr.To[int32](1)
	for name, c := range map[string]struct {
		pod     *corev1.Pod
		retries *int32
		want    ansibleeev1.JobStatus
	}{
		"it succeeded":                                {endedPod(corev1.PodSucceeded, never, 0, wholeRecap), once, ansibleeev1.JobSucceeded},
		"it succeeded, whatever would follow":         {endedPod(corev1.PodSucceeded, never, 0, wholeRecap), retried, ansibleeev1.JobSucceeded},
		"it failed, and none follows":                 {endedPod(corev1.PodFailed, never, 2, wholeRecap), once, ansibleeev1.JobFailed},
		"it failed, and another follows":              {endedPod(corev1.PodFailed, never, 2, wholeRecap), retried, ""},
		"it left no recap":                            {endedPod(corev1.PodFailed, never, 2, ""), once, ""},
		"it left half a recap":                        {endedPod(corev1.PodFailed, never, 2, wholeRecap[:20]), once, ""},
		"its container succeeded":                     {endedPod(corev1.PodRunning, never, 0, wholeRecap), once, ansibleeev1.JobSucceeded},
		"its container failed":                        {endedPod(corev1.PodRunning, never, 2, wholeRecap), once, ansibleeev1.JobFailed},
		"its container failed, and a Pod follows":     {endedPod(corev1.PodRunning, never, 2, wholeRecap), retried, ""},
		"its container failed, and is restarted":      {endedPod(corev1.PodRunning, onFailure, 2, wholeRecap), once, ""},
		"its container succeeded in a Pod that lasts": {endedPod(corev1.PodRunning, corev1.RestartPolicyAlways, 0, wholeRecap), once, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{job: &batchv1.Job{Spec: batchv1.JobSpec{BackoffLimit: c.retries}}}
			switch got := s.concluded(c.pod); {
			case c.want == "" && got != nil:
				t.Errorf("it concludes %s", got.status)
			case c.want != "" && (got == nil || got.status != c.want || len(got.recap.Hosts) != 1 || got.at.IsZero()):
				t.Errorf("it concludes %+v; want %s", got, c.want)
			}
		})
	}
}

func TestAPodEndsWithTheLastOfItsContainers(t *testing.T) {
	pod := endedPod(corev1.PodRunning, corev1.RestartPolicyNever, 0, wholeRecap)
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "injected"})
	if podEnded(pod) {
		t.Error("it has ended while nothing is known of a container")
	}
	pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: "injected"})
	if podEnded(pod) {
		t.Error("it has ended while a container runs")
	}
	pod.Status.ContainerStatuses[1].State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1}
	if phaseOf(pod) != corev1.PodFailed {
		t.Errorf("it is %s after one of its containers failed", phaseOf(pod))
	}
}

func TestAnotherPodOfTheJobThatRunsKeepsTheRunGoing(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "ns", UID: "1"}, Spec: batchv1.JobSpec{BackoffLimit: ptr.To[int32](0)}}
	pod := func(name string, phase corev1.PodPhase) *corev1.Pod {
		p := endedPod(phase, corev1.RestartPolicyNever, 0, wholeRecap)
		p.ObjectMeta = metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: map[string]string{batchv1.JobNameLabel: "r"}}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "r", UID: job.UID, Controller: ptr.To(true)}}
		if phase == corev1.PodRunning || phase == corev1.PodPending {
			p.Status.ContainerStatuses = nil
		}
		return p
	}
	for other, concluded := range map[corev1.PodPhase]bool{corev1.PodRunning: false, corev1.PodPending: false, corev1.PodFailed: true} {
		reader := fake.NewClientBuilder().WithObjects(pod("a", other), pod("b", corev1.PodSucceeded)).
			WithIndex(&corev1.Pod{}, podJobIndex, func(o client.Object) []string { return []string{o.GetLabels()[batchv1.JobNameLabel]} }).Build()
		s := &scope{Reconciler: &Reconciler{Client: reader}, job: job, run: &ansibleeev1.OpenStackAnsibleEE{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "ns"}}}
		end, err := s.conclusion(t.Context())
		if err != nil || (end != nil) != concluded {
			t.Errorf("with a Pod that is %s it concludes %+v, error %v", other, end, err)
		}
	}
}
