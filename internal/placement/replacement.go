package placement

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Replacement is where a pod would go if it were deleted and made again as it is.
type Replacement struct {
	// Nodes with the highest score, by name: kube-scheduler takes any of them. There is none
	// if the pod would not fit.
	Nodes []string
	// Message is the scheduler's own, of a pod that would not fit.
	Message string
}

// Replace returns where each of the pods would go if it alone were deleted and made again.
// One that the snapshot does not have is taken as a new pod. The error says which step of
// the scheduler failed.
func Replace(ctx context.Context, snapshot Snapshot, pods []*corev1.Pod) ([]Replacement, error) {
	snapshot.infos = snapshot.infos.with(snapshot.Nodes, snapshot.Pods)
	var all []Replacement
	for _, pod := range pods {
		replacement, err := replace(ctx, &snapshot, pod)
		if err != nil {
			return nil, err
		}
		all = append(all, replacement)
	}
	return all, nil
}

func replace(ctx context.Context, snapshot *Snapshot, pod *corev1.Pod) (Replacement, error) {
	s, err := newSimulation(ctx, snapshot)
	if err != nil {
		return Replacement{}, err
	}
	defer s.scheduler.stop()
	at := slices.IndexFunc(snapshot.Pods, func(p *corev1.Pod) bool { return p.Namespace == pod.Namespace && p.Name == pod.Name })
	if at >= 0 {
		if err := s.scheduler.remove(snapshot.Pods[at]); err != nil {
			return Replacement{}, err
		}
	}
	again := pod.DeepCopy()
	again.UID, again.DeletionTimestamp, again.Spec.NodeName, again.Status = types.UID("next-"+pod.Name), nil, "", corev1.PodStatus{}
	o, err := s.scheduler.schedule(ctx, again)
	return Replacement{Nodes: o.best, Message: o.message()}, err
}
