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

func TestAPodConcludesItsJobOnlyWhenNothingFollows(t *testing.T) {
	const whole = `{"v":1,"hosts":{"a":[3,1,0,0,0]}}`
	for name, c := range map[string]struct {
		phase   corev1.PodPhase
		message string
		retries *int32
		want    ansibleeev1.JobStatus
	}{
		"it succeeded":                               {corev1.PodSucceeded, whole, ptr.To[int32](0), ansibleeev1.JobSucceeded},
		"it succeeded, whatever would follow":        {corev1.PodSucceeded, whole, ptr.To[int32](6), ansibleeev1.JobSucceeded},
		"it failed, and none follows":                {corev1.PodFailed, whole, ptr.To[int32](0), ansibleeev1.JobFailed},
		"it failed, and another follows":             {corev1.PodFailed, whole, ptr.To[int32](1), ""},
		"it left no recap":                           {corev1.PodFailed, "", ptr.To[int32](0), ""},
		"it left half a recap":                       {corev1.PodFailed, whole[:20], ptr.To[int32](0), ""},
		"its container has ended, it itself has not": {corev1.PodRunning, whole, ptr.To[int32](0), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{job: &batchv1.Job{Spec: batchv1.JobSpec{BackoffLimit: c.retries}}}
			got := s.concluded(&corev1.Pod{Status: corev1.PodStatus{Phase: c.phase, ContainerStatuses: []corev1.ContainerStatus{{
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: c.message}},
			}}}})
			switch {
			case c.want == "" && got != nil:
				t.Errorf("it concludes %s", got.status)
			case c.want != "" && (got == nil || got.status != c.want || len(got.recap.Hosts) != 1 || got.at.IsZero()):
				t.Errorf("it concludes %+v; want %s", got, c.want)
			}
		})
	}
}

func TestAnotherPodOfTheJobThatRunsKeepsTheRunGoing(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "ns", UID: "1"}, Spec: batchv1.JobSpec{BackoffLimit: ptr.To[int32](0)}}
	pod := func(name string, phase corev1.PodPhase) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: map[string]string{batchv1.JobNameLabel: "r"}}}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "r", UID: job.UID, Controller: ptr.To(true)}}
		p.Status.Phase = phase
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: `{"v":1,"hosts":{"a":[3,1,0,0,0]}}`}}}}
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
