package placement

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// Prediction is what would become of a roll-out.
type Prediction struct {
	// Pods of the workload, by ordinal.
	Pods []PodPrediction
	// Problems that a person should look at, the most telling first. There are
	// some whenever a pod does not fit; InertSelector also comes alone.
	Problems []Problem
	// Spread of each topology spread constraint of the template, in its order,
	// once the roll-out is done.
	Spread []Spread
	// Notes name what these pods depend on and the prediction leaves out.
	Notes []string
}

// PodPrediction is where one pod would go.
type PodPrediction struct {
	Name string
	// Node that the scheduler would choose; of several that score alike, the
	// first by name. Empty if the pod does not fit.
	Node string
	// Fits reports whether the pod fits whichever of the nodes that score alike
	// kube-scheduler takes for the pods before it.
	Fits bool
	// ByChance reports that it fits for some of these choices and not for others.
	ByChance bool
	// Message is the scheduler's own, of a pod that does not fit, or the API server's,
	// of one that it refuses.
	Message string
}

// Fits returns whether every pod is certain to find a node.
func (v Prediction) Fits() bool {
	return !slices.ContainsFunc(v.Pods, func(p PodPrediction) bool { return !p.Fits })
}

// Predict returns what would happen if every pod of the workload were recreated
// from its template, in the order of the StatefulSet controller: missing pods
// from the lowest ordinal up, then those that run from the highest down, each
// leaving its node first. Those that the workload keeps stay where they are, and
// pods beyond the replicas go away. All other pods of the snapshot stay. Claims that exist keep their volumes; others are made, and
// bound as their storage class says.
//
// Of nodes that score alike kube-scheduler takes one at random, which can decide where
// a later pod fits. So the roll-out is played with all these choices, or with up to 64
// where there are more: a pod fits if it does in all of them.
//
// A pod that fits nowhere stays pending; the real roll-out would wait there. The
// same arguments give the same prediction. The error is about the arguments (a name
// or a selector that is not valid) or says which step of the scheduler failed.
func Predict(ctx context.Context, snapshot Snapshot, workload Workload) (Prediction, error) {
	predictions, err := PredictAll(ctx, snapshot, []Workload{workload})
	if err != nil {
		return Prediction{}, err
	}
	return predictions[0], nil
}

// PredictAll returns what [Predict] returns for each workload, rolled out one after
// the other: each finds the pods of those before it, and what these have taken of
// volumes and quotas. No workload may have pods of another's name.
func PredictAll(ctx context.Context, snapshot Snapshot, workloads []Workload) ([]Prediction, error) {
	all, err := playAll(ctx, snapshot, workloads)
	if err != nil {
		return nil, err
	}
	predictions := make([]Prediction, len(workloads))
	for i := range workloads {
		if predictions[i], err = all.prediction(i, &workloads[i]); err != nil {
			return nil, err
		}
	}
	return predictions, nil
}

// simulation is roll-outs that are under way.
type simulation struct {
	snapshot  *Snapshot
	objects   objects
	scheduler *scheduler
	choices   *choices
	// policies of each namespace, as far as they are used.
	byNamespace map[string]*policies

	// The workload that is rolled out, with the policies of its namespace and its
	// existing pods, by ordinal.
	workload Workload
	storage  storage
	policies *policies
	existing map[int32]*corev1.Pod
	// results by ordinal.
	results []result
	// last is whether no other workload follows.
	last bool
}

func newSimulation(ctx context.Context, snapshot *Snapshot) (*simulation, error) {
	objects, err := newObjects(snapshot)
	if err != nil {
		return nil, err
	}
	scheduler, err := newScheduler(ctx, objects, snapshot.infos.with(snapshot.Nodes, snapshot.Pods))
	return &simulation{snapshot: snapshot, objects: objects, scheduler: scheduler, byNamespace: map[string]*policies{}}, err
}

// begin makes the workload the one that is rolled out.
func (s *simulation) begin(workload Workload) error {
	if err := workload.validate(); err != nil {
		return err
	}
	policies := s.byNamespace[workload.Namespace]
	if policies == nil {
		policies = newPolicies(s.snapshot, workload.Namespace)
		s.byNamespace[workload.Namespace] = policies
	}
	s.workload, s.policies, s.storage = workload, policies, storage{s.objects, policies}
	s.existing, s.results = map[int32]*corev1.Pod{}, make([]result, workload.Replicas)
	for _, pod := range s.snapshot.Pods {
		if ordinal, ok := workload.ordinal(pod); ok && !podutil.IsPodTerminal(pod) {
			s.existing[ordinal] = pod
		}
	}
	return s.objects.add(workload.statefulSet())
}

// rollOut plays the whole roll-out and notes the result of each ordinal.
func (s *simulation) rollOut(ctx context.Context) error {
	toMake := s.toMake()
	create := func(ordinal int32) error {
		if pod := s.existing[ordinal]; s.workload.keeps(pod) {
			s.note(ordinal, outcome{pod: pod, node: pod.Spec.NodeName}, nil)
			return nil
		}
		o, err := s.try(ctx, ordinal)
		if err != nil {
			return err
		}
		if toMake--; o.node == "" {
			why, err := s.explain(o)
			s.note(ordinal, o, why)
			return err
		}
		if toMake > 0 || !s.last { // the choice for the last pod changes nothing
			o.node = o.best[s.choices.take(len(o.best))]
		}
		s.note(ordinal, o, nil)
		return s.scheduler.place(ctx, o, o.node)
	}
	return s.inOrder(create, s.remove)
}

func (s *simulation) note(ordinal int32, o outcome, why []Problem) {
	s.results[ordinal] = result{PodPrediction{Name: o.pod.Name, Node: o.node, Fits: o.node != "", Message: o.message()}, why}
}

// toMake is how many pods are made.
func (s *simulation) toMake() int {
	made := 0
	for ordinal := range s.workload.Replicas {
		if !s.workload.keeps(s.existing[ordinal]) {
			made++
		}
	}
	return made
}

// inOrder takes the steps of the StatefulSet controller (updateStatefulSet in
// pkg/controller/statefulset): it makes missing pods, removes those beyond the
// replicas, and makes the others again.
func (s *simulation) inOrder(create func(int32) error, remove func(*corev1.Pod) error) error {
	missing, running := s.workload.order(s.existing)
	for _, ordinal := range missing {
		if err := create(ordinal); err != nil {
			return err
		}
	}
	for ordinal, pod := range s.existing {
		if ordinal >= s.workload.Replicas {
			if err := remove(pod); err != nil {
				return err
			}
		}
	}
	for _, ordinal := range running {
		if err := create(ordinal); err != nil {
			return err
		}
	}
	return nil
}

// remove plays that a pod is deleted.
func (s *simulation) remove(pod *corev1.Pod) error {
	return errors.Join(s.scheduler.remove(pod), s.policies.release(pod))
}

// try returns where the pod of an ordinal would go once the one that is there
// has gone.
func (s *simulation) try(ctx context.Context, ordinal int32) (outcome, error) {
	if old := s.existing[ordinal]; old != nil {
		if err := s.remove(old); err != nil {
			return outcome{}, err
		}
	}
	pod, err := s.create(ordinal)
	if denied(err) {
		return outcome{pod: pod, denied: err}, nil
	}
	if err != nil {
		return outcome{}, err
	}
	return s.scheduler.schedule(ctx, pod)
}

// create returns the pod of an ordinal as the API server makes it, and makes its
// claims first, as the StatefulSet controller does.
func (s *simulation) create(ordinal int32) (*corev1.Pod, error) {
	pod := s.workload.pod(ordinal)
	for _, claim := range s.workload.claims(ordinal) {
		if err := s.storage.provide(claim); err != nil {
			return pod, err
		}
	}
	if _, err := s.policies.complete(pod); err != nil {
		return pod, err
	}
	return pod, s.policies.admitPod(pod)
}

func (s *simulation) spread() ([]Spread, error) {
	pods := s.scheduler.lister.pods()
	self, err := s.policies.complete(s.workload.pod(0))
	if err != nil {
		return nil, err
	}
	var result []Spread
	for _, constraint := range self.Spec.TopologySpreadConstraints {
		spread, err := Measure(constraint, self, s.snapshot.Nodes, pods)
		if err != nil {
			return nil, err
		}
		result = append(result, spread)
	}
	return result, nil
}
