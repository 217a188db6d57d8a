package placement

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// Workload is a StatefulSet to be. Its pods are <name>-<ordinal> and their
// claims <claim template>-<name>-<ordinal>, as the StatefulSet controller names
// them; those that the snapshot already has are taken as they are.
type Workload struct {
	Namespace, Name string
	Replicas        int32
	Template        corev1.PodTemplateSpec
	ClaimTemplates  []corev1.PersistentVolumeClaim
	// Kept are the names of pods that are as they should be: those with a node stay
	// there, the others wait for one. All other pods are made again from the template.
	Kept []string
}

// keeps reports whether a pod stays where it is.
func (w Workload) keeps(pod *corev1.Pod) bool {
	return pod != nil && pod.Spec.NodeName != "" && slices.Contains(w.Kept, pod.Name)
}

// lacks reports whether a pod has to be placed without another one leaving: it is
// missing, or as it should be but for a node.
func (w Workload) lacks(pod *corev1.Pod) bool {
	return pod == nil || pod.Spec.NodeName == "" && slices.Contains(w.Kept, pod.Name)
}

// nextRevision stands for the hash of the revision to be: it is only known once
// the StatefulSet is written, and differs from that of the pods that run.
const nextRevision = "next"

func (w Workload) validate() error {
	if w.Name == "" || w.Namespace == "" {
		return fmt.Errorf("workload %q in namespace %q: give both a name", w.Name, w.Namespace)
	}
	if w.Replicas < 0 {
		return fmt.Errorf("workload %s/%s: replicas is %d: use 0 or more", w.Namespace, w.Name, w.Replicas)
	}
	return nil
}

func (w Workload) podName(ordinal int32) string { return w.Name + "-" + strconv.Itoa(int(ordinal)) }

func (w Workload) claimName(template string, ordinal int32) string {
	return template + "-" + w.podName(ordinal)
}

// ordinal returns the ordinal of a pod of this workload, by its name: a name is
// unique, so a pod of that name is the workload's own or in its way.
func (w Workload) ordinal(pod *corev1.Pod) (int32, bool) {
	suffix, ok := strings.CutPrefix(pod.Name, w.Name+"-")
	if !ok || pod.Namespace != w.Namespace {
		return 0, false
	}
	n, err := strconv.ParseInt(suffix, 10, 32)
	return int32(n), err == nil && n >= 0 && strconv.FormatInt(n, 10) == suffix
}

// Owns returns whether a pod is one of this workload, by its name.
func (w Workload) Owns(pod *corev1.Pod) bool {
	_, ok := w.ordinal(pod)
	return ok
}

// order returns the ordinals whose pods the StatefulSet controller creates at once, as
// the missing ones with podManagementPolicy Parallel, those of the old revision that it
// deletes at once because they are unavailable, and those that it replaces one after the
// other with RollingUpdate, from the highest down.
func (w Workload) order(existing map[int32]*corev1.Pod) (missing, unavailable, available []int32) {
	for i := range w.Replicas {
		switch pod := existing[i]; {
		case w.lacks(pod):
			missing = append(missing, i)
		case w.keeps(pod):
		case isAvailable(pod):
			available = append(available, i)
		default:
			unavailable = append(unavailable, i)
		}
	}
	slices.Reverse(unavailable)
	slices.Reverse(available)
	return missing, unavailable, available
}

// isAvailable reports whether the StatefulSet controller counts a pod as available, where
// minReadySeconds is 0.
func isAvailable(pod *corev1.Pod) bool {
	return podutil.IsPodReady(pod) && pod.DeletionTimestamp == nil
}

// pod returns what the StatefulSet controller would create, before admission.
func (w Workload) pod(ordinal int32) *corev1.Pod {
	template := w.Template.DeepCopy()
	name := w.podName(ordinal)
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name, pod.UID = w.Namespace, name, types.UID("next-"+name)
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.statefulSet(), appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	labels := maps.Clone(template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[appsv1.StatefulSetPodNameLabel] = name
	labels[appsv1.PodIndexLabel] = strconv.Itoa(int(ordinal))
	labels[appsv1.ControllerRevisionHashLabelKey] = nextRevision
	pod.Labels = labels
	pod.Spec.Volumes = w.volumes(pod.Spec.Volumes, ordinal)
	return pod
}

// volumes replaces those of the template that a claim template takes the name of.
func (w Workload) volumes(fromTemplate []corev1.Volume, ordinal int32) []corev1.Volume {
	var result []corev1.Volume
	own := map[string]bool{}
	for _, c := range w.ClaimTemplates {
		own[c.Name] = true
		source := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: w.claimName(c.Name, ordinal)}
		result = append(result, corev1.Volume{Name: c.Name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: source}})
	}
	for _, v := range fromTemplate {
		if !own[v.Name] {
			result = append(result, v)
		}
	}
	return result
}

// claims returns the claims that the StatefulSet controller would create for a
// pod if they are not there.
func (w Workload) claims(ordinal int32) []*corev1.PersistentVolumeClaim {
	var result []*corev1.PersistentVolumeClaim
	for i := range w.ClaimTemplates {
		claim := w.ClaimTemplates[i].DeepCopy()
		claim.Name, claim.Namespace = w.claimName(claim.Name, ordinal), w.Namespace
		claim.UID = types.UID("next-" + claim.Name)
		claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
		result = append(result, claim)
	}
	return result
}

// statefulSet is what the scheduler looks up for the spreading that it does by
// default, softly, for pods without constraints.
func (w Workload) statefulSet() *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name, UID: types.UID("next-" + w.Name)},
		Spec:       appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: w.Template.Labels}},
	}
}
