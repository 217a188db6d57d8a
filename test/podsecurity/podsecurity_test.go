package podsecurity

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestLevel(t *testing.T) {
	pod := func(c corev1.Container, hostPID bool) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{Spec: corev1.PodSpec{HostPID: hostPID, Containers: []corev1.Container{c}}}
	}
	strict := corev1.Container{Name: "c", SecurityContext: &corev1.SecurityContext{
		RunAsNonRoot: ptr.To(true), AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}}
	for want, p := range map[string]corev1.PodTemplateSpec{
		"restricted": pod(strict, false), "baseline": pod(corev1.Container{Name: "c"}, false), "privileged": pod(strict, true),
	} {
		if got, why := Level(p); got != want || (want == "restricted") != (len(why) == 0) {
			t.Errorf("Level: %s, as stricter ones forbid %q; want %s", got, why, want)
		}
	}
}
