package cache

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"
)

// maxControllers is of how many controllers, such as ReplicaSets, a Pod is remembered.
const maxControllers = 4096

// sharedPods lets the cached Pods of one controller share what they have in common,
// which is most of what is held of them. Cached objects are not changed.
type sharedPods struct {
	// last are the *corev1.Pod that came last, by the UID of their controller.
	last *lru.Cache
}

func newSharedPods() *sharedPods { return &sharedPods{lru.New(maxControllers)} }

// share replaces the parts of a Pod that equal those of the one before.
func (s *sharedPods) share(pod *corev1.Pod) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return
	}
	if last, found := s.last.Get(owner.UID); found {
		reuse(pod, last.(*corev1.Pod))
	}
	s.last.Add(owner.UID, pod)
}

func reuse(pod, last *corev1.Pod) {
	pod.Namespace = either(pod.Namespace, last.Namespace)
	pod.GenerateName = either(pod.GenerateName, last.GenerateName)
	pod.Labels = either(pod.Labels, last.Labels)
	pod.Annotations = either(pod.Annotations, last.Annotations)
	pod.OwnerReferences = either(pod.OwnerReferences, last.OwnerReferences)
	mine, theirs := &pod.Spec, &last.Spec
	mine.Containers = either(mine.Containers, theirs.Containers)
	mine.InitContainers = either(mine.InitContainers, theirs.InitContainers)
	mine.NodeSelector = either(mine.NodeSelector, theirs.NodeSelector)
	mine.Tolerations = either(mine.Tolerations, theirs.Tolerations)
	mine.Affinity = either(mine.Affinity, theirs.Affinity)
	mine.TopologySpreadConstraints = either(mine.TopologySpreadConstraints, theirs.TopologySpreadConstraints)
	mine.SecurityContext = either(mine.SecurityContext, theirs.SecurityContext)
}

// either returns the other value if it equals the first.
func either[T any](mine, other T) T {
	if equality.Semantic.DeepEqual(mine, other) {
		return other
	}
	return mine
}
