package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/edpm-operators/edpm-operators/internal/names"
)

// podName names a pod for a person: with its namespace, if that is another one than that of
// the workloads.
func (s *situation) podName(pod *corev1.Pod) string {
	if pod.Namespace == s.workloads[0].Namespace {
		return pod.Name
	}
	return pod.Namespace + "/" + pod.Name
}

// podsThat returns the names of the pods that match, sorted.
func (s *situation) podsThat(match func(*corev1.Pod) bool) []string {
	return slices.Sorted(slices.Values(collectNames(filter(s.Pods, match), s.podName)))
}

// changePods replaces the pods that have one of the names.
func (s *situation) changePods(named []string, change func(*corev1.Pod)) {
	s.Pods = replaced(s.Pods, isNamed(named, s.podName), (*corev1.Pod).DeepCopy, change)
}

// deletePods deletes the pods that have one of the names.
func (s *situation) deletePods(named []string) {
	is := isNamed(named, s.podName)
	s.Pods = filter(s.Pods, func(p *corev1.Pod) bool { return !is(p) })
}

// stuckPods are the pods that do not fit, as the API server makes them.
func (s *situation) stuckPods() []*corev1.Pod {
	var result []*corev1.Pod
	for _, stuck := range s.stuck {
		w := &s.workloads[stuck.workload]
		ordinal, _ := w.ordinal(&corev1.Pod{ObjectMeta: metaOf(w.Namespace, stuck.name)})
		result = append(result, admit(w.pod(ordinal)))
	}
	return result
}

// isOld reports whether the roll-out of a workload with stuck pods deletes a pod while it is
// available.
func (s *situation) isOld(pod *corev1.Pod) bool {
	return isAvailable(pod) && slices.ContainsFunc(s.stuckWorkloads(), func(w *Workload) bool {
		ordinal, ok := w.ordinal(pod)
		return ok && ordinal < w.Replicas && !w.keeps(pod)
	})
}

// deleteOldPods deletes available pods of the old template: what has stopped the roll-out
// may be that they keep a pod of the new one from its place.
func deleteOldPods(s *situation) []remedy {
	old := s.podsThat(s.isOld)
	if len(old) == 0 {
		return nil
	}
	return only(divisible(old, func(some []string) remedy {
		r := remedy{
			text: always("delete the pods that run with the old template and keep others from their place; they are made again from the new one (kubectl delete pod -n %s): %s",
				s.workloads[0].Namespace, names.List(some, names.Few)),
			apply: func(s *situation) { s.deletePods(some) },
		}
		for _, name := range some {
			r.deletes = append(r.deletes, s.podOf(name))
		}
		return r
	}))
}

// podOf returns the pod of a workload that has a name.
func (s *situation) podOf(name string) stuckPod {
	at := slices.IndexFunc(s.workloads, func(w Workload) bool {
		return w.Owns(&corev1.Pod{ObjectMeta: metaOf(w.Namespace, name)})
	})
	return stuckPod{at, name}
}

func relaxPodAffinity(s *situation) []remedy {
	var variants []remedy
	if slices.ContainsFunc(s.stuckWorkloads(), func(w *Workload) bool { return len(requiredTerms(w.Template.Spec.Affinity)) > 0 }) {
		variants = append(variants, remedy{
			text:  always("relax the required affinity between pods"),
			apply: func(s *situation) { s.changeTemplates(func(t *corev1.PodTemplateSpec) { relax(t.Spec.Affinity) }) },
		})
	}
	if others := s.podsThat(s.refusesStuck()); len(others) > 0 {
		variants = append(variants, divisible(others, func(some []string) remedy {
			return remedy{
				text:  always("relax the required anti-affinity of other pods (%s)", names.List(some, names.Few)),
				apply: func(s *situation) { s.changePods(some, func(p *corev1.Pod) { relax(p.Spec.Affinity) }) },
			}
		}))
	}
	return variants
}

// relax drops the terms between pods that must hold.
func relax(a *corev1.Affinity) {
	if a != nil && a.PodAffinity != nil {
		a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
	}
	if a != nil && a.PodAntiAffinity != nil {
		a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
	}
}

// refusesStuck returns which pods have a required anti-affinity to a pod that is stuck. Those
// that the roll-out deletes get the terms of their template.
func (s *situation) refusesStuck() func(*corev1.Pod) bool {
	stuck := s.stuckPods()
	return func(p *corev1.Pod) bool {
		if p.Spec.Affinity == nil || p.Spec.Affinity.PodAntiAffinity == nil || s.isOld(p) {
			return false
		}
		return slices.ContainsFunc(p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, func(term corev1.PodAffinityTerm) bool {
			return slices.ContainsFunc(stuck, matcher(term, p.Namespace, s.Namespaces))
		})
	}
}

// eachPort calls a function with the ports of containers.
func eachPort(spec *corev1.PodSpec, do func(*corev1.ContainerPort)) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			for j := range containers[i].Ports {
				do(&containers[i].Ports[j])
			}
		}
	}
}

func freePorts(s *situation) []remedy {
	wanted := map[int32]bool{}
	for _, pod := range s.stuckPods() {
		eachPort(&pod.Spec, func(port *corev1.ContainerPort) { wanted[port.HostPort] = port.HostPort > 0 })
	}
	users := s.podsThat(func(p *corev1.Pod) (uses bool) {
		eachPort(&p.Spec, func(port *corev1.ContainerPort) { uses = uses || wanted[port.HostPort] })
		return uses
	})
	if len(users) == 0 {
		return nil
	}
	return only(divisible(users, func(some []string) remedy {
		return remedy{
			text: always("free the host ports that other pods use (%s)", names.List(some, names.Few)),
			apply: func(s *situation) {
				s.changePods(some, func(p *corev1.Pod) {
					p.Spec.HostNetwork = false
					eachPort(&p.Spec, func(port *corev1.ContainerPort) { port.HostPort = 0 })
				})
			},
		}
	}))
}

// endOtherPods ends pods that use the claims of stuck ones.
func endOtherPods(s *situation) []remedy {
	claims := map[string]bool{}
	for _, claim := range s.stuckClaims() {
		claims[claim.Namespace+"/"+claim.Name] = true
	}
	others := s.podsThat(func(p *corev1.Pod) bool {
		return !slices.ContainsFunc(s.workloads, func(w Workload) bool { return w.Owns(p) }) && slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && claims[p.Namespace+"/"+v.PersistentVolumeClaim.ClaimName]
		})
	})
	if len(others) == 0 {
		return nil
	}
	return only(divisible(others, func(some []string) remedy {
		return remedy{
			text:  always("end the other pods that use the volumes (%s)", names.List(some, names.Few)),
			apply: func(s *situation) { s.deletePods(some) },
		}
	}))
}
