package placement

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// complete fills in what the API server fills in when a pod is created, as far as
// the scheduler looks at it. Sources, all of Kubernetes 1.37: SetDefaults_Pod
// in pkg/apis/core/v1/defaults.go, mutatePodAffinity in
// pkg/registry/core/pod/strategy.go, and the admission plugins
// DefaultTolerationSeconds and LimitRanger. The differential test compares the outcome.
func (p *policies) complete(pod *corev1.Pod) (*corev1.Pod, error) {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			requestLimits(&containers[i].Resources)
			if pod.Spec.HostNetwork {
				exposeOnHost(containers[i].Ports)
			}
		}
	}
	if err := p.defaults(pod); err != nil {
		return nil, err
	}
	tolerateShortly(pod, corev1.TaintNodeNotReady)
	tolerateShortly(pod, corev1.TaintNodeUnreachable)
	for _, term := range affinityTerms(pod.Spec.Affinity) {
		matchLabelKeys(term, pod.Labels)
	}
	return pod, nil
}

// admit is complete in a namespace without LimitRanges.
func admit(pod *corev1.Pod) *corev1.Pod {
	admitted, _ := (&policies{}).complete(pod) // only LimitRanges can fail
	return admitted
}

// requestLimits requests what is limited but not requested.
func requestLimits(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		if _, ok := r.Requests[name]; !ok {
			r.Requests[name] = limit
		}
	}
}

func exposeOnHost(ports []corev1.ContainerPort) {
	for i := range ports {
		if ports[i].HostPort == 0 {
			ports[i].HostPort = ports[i].ContainerPort
		}
	}
}

// tolerateShortly adds the toleration that keeps a pod for some minutes on a
// node that is lost, unless the pod has its own.
func tolerateShortly(pod *corev1.Pod, taint string) {
	for _, t := range pod.Spec.Tolerations {
		if (t.Key == taint || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "") {
			return
		}
	}
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
		Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
	})
}

// affinityTerms returns all terms between pods, to be changed in place.
func affinityTerms(a *corev1.Affinity) []*corev1.PodAffinityTerm {
	var terms []*corev1.PodAffinityTerm
	add := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i := range required {
			terms = append(terms, &required[i])
		}
		for i := range preferred {
			terms = append(terms, &preferred[i].PodAffinityTerm)
		}
	}
	if a != nil && a.PodAffinity != nil {
		add(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a != nil && a.PodAntiAffinity != nil {
		add(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return terms
}

// matchLabelKeys adds the pod's own values of the named labels to the selector
// of an affinity term (KEP-3633). For spread constraints the scheduler does it.
func matchLabelKeys(term *corev1.PodAffinityTerm, labels map[string]string) {
	if term.LabelSelector == nil {
		return
	}
	add := func(keys []string, operator metav1.LabelSelectorOperator) {
		for _, key := range keys {
			if value, ok := labels[key]; ok {
				term.LabelSelector.MatchExpressions = append(term.LabelSelector.MatchExpressions,
					metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: []string{value}})
			}
		}
	}
	add(term.MatchLabelKeys, metav1.LabelSelectorOpIn)
	add(term.MismatchLabelKeys, metav1.LabelSelectorOpNotIn)
}
