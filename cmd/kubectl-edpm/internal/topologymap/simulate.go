package topologymap

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/placement"
	"github.com/edpm-operators/edpm-operators/internal/topology"
)

// Simulation is what would become of StatefulSets if they followed a Topology.
type Simulation struct {
	Before   Map                 `json:"before"`
	After    Map                 `json:"after"`
	Problems []placement.Problem `json:"problems,omitempty"`
	// Pending are the pods that would find no node, with the scheduler's message.
	Pending []Prediction `json:"pending,omitempty"`
}

// Prediction of a pod that would find no node.
type Prediction struct {
	Pod     string `json:"pod"`
	Message string `json:"message"`
}

// Simulate returns the pictures before and after the StatefulSets would have been
// rolled out with the Topology, one after the other by name. It changes nothing,
// in the cluster or in its arguments. The pictures show the pods of the
// StatefulSets. Errors are those of the prediction.
func Simulate(ctx context.Context, snapshot placement.Snapshot, key string, t *topologyv1.Topology, sets []appsv1.StatefulSet) (Simulation, error) {
	sets = slices.SortedFunc(slices.Values(sets), func(a, b appsv1.StatefulSet) int { return cmp.Compare(a.Name, b.Name) })
	show := ownedBy(sets)
	before, err := New(snapshot, key, show)
	s := Simulation{Before: before}
	for i := range sets {
		if err == nil {
			snapshot, err = s.rollOut(ctx, snapshot, workloadOf(&sets[i], t))
		}
	}
	if err != nil {
		return s, err
	}
	s.After, err = New(snapshot, key, show)
	return s, err
}

// rollOut predicts one StatefulSet and returns the snapshot after it.
func (s *Simulation) rollOut(ctx context.Context, snapshot placement.Snapshot, w placement.Workload) (placement.Snapshot, error) {
	prediction, err := placement.Predict(ctx, snapshot, w)
	if err != nil {
		return snapshot, fmt.Errorf("predicting StatefulSet %s: %w", w.Name, err)
	}
	s.Problems = slices.Concat(s.Problems, prediction.Problems, prediction.Preferences)
	others := ownedBy([]appsv1.StatefulSet{*setOf(w)})
	snapshot.Pods = slices.DeleteFunc(slices.Clone(snapshot.Pods), others)
	for _, p := range prediction.Pods {
		snapshot.Pods = append(snapshot.Pods, podOf(w, p))
		if !p.Fits {
			s.Pending = append(s.Pending, Prediction{p.Name, p.Message})
		}
	}
	return snapshot, nil
}

// workloadOf is a StatefulSet as it would be with the Topology: what it has of
// another one is taken away first.
func workloadOf(set *appsv1.StatefulSet, t *topologyv1.Topology) placement.Workload {
	template := *set.Spec.Template.DeepCopy()
	template.Spec.TopologySpreadConstraints = nil
	template.Spec.Affinity = topology.Default(template.Labels["service"])
	topology.Apply(&template, t, set.Spec.Selector)
	return placement.Workload{
		Namespace: set.Namespace, Name: set.Name, Replicas: ptr.Deref(set.Spec.Replicas, 1),
		Template: template, ClaimTemplates: set.Spec.VolumeClaimTemplates,
	}
}

func podOf(w placement.Workload, v placement.PodPrediction) *corev1.Pod {
	template := w.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name, pod.Spec.NodeName = w.Namespace, v.Name, v.Node
	return pod
}

func setOf(w placement.Workload) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{}
	set.Namespace, set.Name = w.Namespace, w.Name
	return set
}

// ownedBy picks the pods of the StatefulSets, by their names.
func ownedBy(sets []appsv1.StatefulSet) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool {
		return slices.ContainsFunc(sets, func(s appsv1.StatefulSet) bool {
			return placement.Workload{Namespace: s.Namespace, Name: s.Name}.Owns(p)
		})
	}
}

// Text writes both pictures and what stands in the way.
func (s Simulation) Text(w io.Writer) error {
	if _, err := fmt.Fprintln(w, "Before"); err != nil {
		return err
	}
	if err := s.Before.Text(w); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nAfter")
	if err := s.After.Text(w); err != nil {
		return err
	}
	for _, v := range s.Pending {
		fmt.Fprintf(w, "\n%s would be Pending: %s\n", v.Pod, v.Message)
	}
	for _, p := range s.Problems {
		fmt.Fprintf(w, "\n%s: %s\n  Remedy: %s\n", p.Reason, p.Message, p.Remedy)
	}
	return nil
}

// SVG writes the picture after.
func (s Simulation) SVG(w io.Writer) error { return s.After.SVG(w) }
