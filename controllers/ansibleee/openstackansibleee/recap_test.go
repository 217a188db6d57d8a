package openstackansibleee

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

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
