package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Concerns reports whether an object that comes or changes can give the pods of the
// workload a place: a volume or what is known of storage if they have volumes, a
// Namespace if they choose other pods by namespace, a pod if a rule that must hold
// selects it, a LimitRange or quota in its namespace, and a node always. That a pod
// leaves its node is for the caller to know: its room concerns every workload.
func (w Workload) Concerns(obj client.Object) bool {
	switch o := obj.(type) {
	case *corev1.Pod:
		return w.selects(o)
	case *corev1.Namespace:
		return slices.ContainsFunc(requiredTerms(w.Template.Spec.Affinity), func(t corev1.PodAffinityTerm) bool { return t.NamespaceSelector != nil })
	case *storagev1.CSIStorageCapacity:
		return w.mayUse(o.StorageClassName)
	case *corev1.PersistentVolume, *corev1.PersistentVolumeClaim, *storagev1.StorageClass, *storagev1.CSINode, *storagev1.CSIDriver:
		return w.hasVolumes()
	case *corev1.LimitRange, *corev1.ResourceQuota:
		return o.GetNamespace() == w.Namespace
	}
	return true
}

// hasVolumes reports whether the pods have volumes that the scheduler looks at.
func (w Workload) hasVolumes() bool {
	return len(w.ClaimTemplates) > 0 || slices.ContainsFunc(w.Template.Spec.Volumes, func(v corev1.Volume) bool { return !containerOnly(v) })
}

// mayUse reports whether a claim of the pods may be of the class: one that names
// none may be of any.
func (w Workload) mayUse(class string) bool {
	return slices.ContainsFunc(w.ClaimTemplates, func(c corev1.PersistentVolumeClaim) bool {
		return ptr.Deref(c.Spec.StorageClassName, class) == class
	}) || slices.ContainsFunc(w.Template.Spec.Volumes, func(v corev1.Volume) bool { return !containerOnly(v) })
}

// selects reports whether a rule that must hold for the pods counts the given one.
func (w Workload) selects(pod *corev1.Pod) bool {
	self := admit(w.pod(0))
	terms := requiredTerms(self.Spec.Affinity)
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return maySelect(t, self.Namespace, pod) }) ||
		pod.Namespace == self.Namespace && slices.ContainsFunc(self.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
			selector, err := Selector(c, self.Labels)
			return c.WhenUnsatisfiable == corev1.DoNotSchedule && err == nil && selector.Matches(labels.Set(pod.Labels))
		})
}

// maySelect reports whether a term selects a pod, or would if its namespace had other
// labels, which can change.
func maySelect(term corev1.PodAffinityTerm, own string, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
	if err != nil || !selector.Matches(labels.Set(pod.Labels)) {
		return false
	}
	if term.NamespaceSelector != nil || slices.Contains(term.Namespaces, pod.Namespace) {
		return true
	}
	return len(term.Namespaces) == 0 && pod.Namespace == own
}

// requiredTerms returns the terms between pods that must hold.
func requiredTerms(a *corev1.Affinity) []corev1.PodAffinityTerm {
	var terms []corev1.PodAffinityTerm
	if a != nil && a.PodAffinity != nil {
		terms = append(terms, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
	}
	if a != nil && a.PodAntiAffinity != nil {
		terms = append(terms, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
	}
	return terms
}
