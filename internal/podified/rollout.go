package podified

import (
	"fmt"
	"slices"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	podifiedv1 "github.com/edpm-operators/edpm-operators/apis/common/podified"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/names"
)

// updated counts the pods that are ready with the configuration that is wanted. Pods that a
// set is about to replace are not told from those that are not ready yet.
func (p *deployment) updated() int32 {
	if p.set == nil || p.set.Status.ObservedGeneration < p.set.Generation || hashOf(p.set) != p.hash() {
		return 0
	}
	return min(p.set.Status.UpdatedReplicas, p.set.Status.ReadyReplicas)
}

// hashOf is the hash of the configuration that a set gives its pods.
func hashOf(set *appsv1.StatefulSet) string {
	for _, container := range set.Spec.Template.Spec.Containers {
		for _, variable := range container.Env {
			if variable.Name == hashVariable {
				return variable.Value
			}
		}
	}
	return ""
}

// rollout says what became of the pods.
func (p *deployment) rollout() {
	p.Status.UpdatedCount = p.updated()
	if p.set == nil {
		p.progress(podifiedv1.RollingOutReason, condition.SeverityInfo, "StatefulSet %s does not exist yet", p.Name)
		return
	}
	s := p.set.Status
	p.Status.ReadyCount = s.ReadyReplicas
	waiting, unready := filter(p.pods, unscheduled), filter(p.pods, func(pod *corev1.Pod) bool { return !up(pod) })
	failing := p.firstCause(unready)
	switch {
	case p.held:
		p.progress(podifiedv1.HeldReason, condition.SeverityWarning, "Rollout of StatefulSet %s is on hold (see %s). %d of %d pods of the current revision are ready. %s",
			p.Name, topologyv1.PlacementReadyCondition, s.ReadyReplicas, p.Replicas, unplaced(waiting))
	case len(waiting) > 0:
		p.progress(podifiedv1.PodsPendingReason, condition.SeverityWarning, "%s", unplaced(waiting))
	case failing.Reason != "":
		p.progress(failing.Reason, condition.SeverityWarning, "%d of %d pods of StatefulSet %s are ready; %s", s.ReadyReplicas, p.Replicas, p.Name, failing.Text)
	case s.ObservedGeneration < p.set.Generation || s.UpdatedReplicas < p.Replicas || s.Replicas > p.Replicas:
		p.progress(podifiedv1.RollingOutReason, condition.SeverityInfo, "%d of %d pods of StatefulSet %s are up to date%s", s.UpdatedReplicas, p.Replicas, p.Name, failures(unready))
	case s.ReadyReplicas < p.Replicas:
		p.progress(podifiedv1.PodsNotReadyReason, condition.SeverityInfo, "%d of %d pods of StatefulSet %s are ready%s",
			s.ReadyReplicas, p.Replicas, p.Name, why(unready))
	default:
		p.mark().MarkTrue(condition.DeploymentReadyCondition, "%d of %d pods of StatefulSet %s are ready", s.ReadyReplicas, p.Replicas, p.Name)
	}
}

// progress says why the pods are not all up. What change found stands.
func (p *deployment) progress(reason condition.Reason, severity condition.Severity, format string, args ...any) {
	p.mark().MarkFalse(condition.DeploymentReadyCondition, reason, severity, format, args...)
}

// unplaced says which pods the scheduler finds no node for, and why; empty for none.
func unplaced(pods []*corev1.Pod) string {
	if len(pods) == 0 {
		return ""
	}
	return fmt.Sprintf("The scheduler finds no node for %s: %s", names.List(podNames(pods), names.Few), statusOf(pods[0], corev1.PodScheduled).Message)
}

// unscheduled reports whether the scheduler has looked at a pod in vain.
func unscheduled(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && statusOf(pod, corev1.PodScheduled).Status == corev1.ConditionFalse
}

// firstCause is that of the first of the pods which has ended with a known one; empty for none.
func (p *deployment) firstCause(pods []*corev1.Pod) trouble {
	for _, pod := range pods {
		name, ended := lastFailure(pod)
		if ended == nil {
			continue
		}
		if known := knownCause(ended, p.Causes); known.Reason != "" {
			return trouble{known.Reason, fmt.Sprintf("container %s of pod %s, image %s: %s", name, pod.Name, imageOf(pod, name), known.Text)}
		}
	}
	return trouble{}
}

func imageOf(pod *corev1.Pod, container string) string {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name == container {
			return c.Image
		}
	}
	return ""
}

// failures says what fails in the first of the pods that has such; empty for none.
func failures(pods []*corev1.Pod) string {
	for _, pod := range pods {
		if text := failing(pod); text != "" {
			return "; " + text
		}
	}
	return ""
}

// why says what keeps pods from being ready: what fails, or of the first of them what the
// kubelet says.
func why(pods []*corev1.Pod) string {
	if len(pods) == 0 {
		return ""
	}
	if text := failures(pods); text != "" {
		return text
	}
	if message := statusOf(pods[0], corev1.PodReady).Message; message != "" {
		return "; " + pods[0].Name + ": " + message
	}
	return "; waiting for " + names.List(podNames(pods), names.Few)
}

func filter(pods []*corev1.Pod, keep func(*corev1.Pod) bool) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return !keep(pod) })
}
