package placement

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Verdict is what would become of a roll-out.
type Verdict struct {
	// Pods of the workload, by ordinal.
	Pods []PodVerdict
	// Problems that a person should look at, the most telling first. There are
	// some whenever a pod does not fit; InertSelector also comes alone.
	Problems []Problem
	// Spread of each topology spread constraint of the template, in its order,
	// once the roll-out is done.
	Spread []Spread
	// Notes name what these pods depend on and the prediction leaves out.
	Notes []string
}

// PodVerdict is where one pod would go.
type PodVerdict struct {
	Name string
	// Node that the scheduler would choose; of several that score alike, the
	// first by name. Empty if the pod fits nowhere.
	Node string
	Fits bool
	// Message is the scheduler's own, of a pod that does not fit, or the API server's,
	// of one that it refuses.
	Message string
}

// Fits returns whether every pod would find a node.
func (v Verdict) Fits() bool {
	return !slices.ContainsFunc(v.Pods, func(p PodVerdict) bool { return !p.Fits })
}

// Predict returns what would happen if every pod of the workload were made anew
// from its template, in the order of the StatefulSet controller: missing pods
// from the lowest ordinal up, then those that run from the highest down, each
// leaving its node first. Those that the workload keeps stay where they are, and
// pods beyond the replicas go away. All other pods of the world stay. Claims that exist keep their volumes; others are made, and
// bound as their storage class says.
//
// A pod that fits nowhere stays pending; the real roll-out would wait there. The
// same arguments give the same verdict. The error is about the arguments (a name
// or a selector that is not valid) or says which step of the scheduler failed.
func Predict(ctx context.Context, world World, workload Workload) (Verdict, error) {
	verdicts, err := PredictAll(ctx, world, []Workload{workload})
	if err != nil {
		return Verdict{}, err
	}
	return verdicts[0], nil
}

// PredictAll returns what [Predict] returns for each workload, rolled out one after
// the other: each finds the pods of those before it, and what these have taken of
// volumes and quotas. No workload may have pods of another's name.
func PredictAll(ctx context.Context, world World, workloads []Workload) ([]Verdict, error) {
	s, err := newSimulation(ctx, &world)
	if err != nil {
		return nil, err
	}
	defer s.scheduler.stop()
	var verdicts []Verdict
	for _, workload := range workloads {
		verdict, err := s.play(ctx, workload)
		if err != nil {
			return nil, err
		}
		verdicts = append(verdicts, verdict)
	}
	return verdicts, nil
}

// simulation is roll-outs that are under way.
type simulation struct {
	world     *World
	objects   objects
	scheduler *scheduler
	// policies of each namespace, as far as they are used.
	byNamespace map[string]*policies

	// The workload that is rolled out, with the policies of its namespace and its
	// existing pods, by ordinal.
	workload Workload
	storage  storage
	policies *policies
	existing map[int32]*corev1.Pod
}

func newSimulation(ctx context.Context, world *World) (*simulation, error) {
	objects, err := newObjects(world)
	if err != nil {
		return nil, err
	}
	scheduler, err := newScheduler(ctx, objects, world.infos.with(world.Nodes, world.Pods))
	return &simulation{world: world, objects: objects, scheduler: scheduler, byNamespace: map[string]*policies{}}, err
}

// play rolls a workload out, after those that were rolled out before.
func (s *simulation) play(ctx context.Context, workload Workload) (Verdict, error) {
	if err := s.begin(workload); err != nil {
		return Verdict{}, err
	}
	outcomes, problems, err := s.rollOut(ctx)
	if err != nil {
		return Verdict{}, err
	}
	inert, err := workload.InertSelectors()
	if err != nil {
		return Verdict{}, err
	}
	spread, err := s.spread()
	notes := s.notes()
	return Verdict{Pods: verdicts(outcomes), Problems: merge(append(noted(problems, notes), inert...)), Spread: spread, Notes: notes}, err
}

func (s *simulation) begin(workload Workload) error {
	if err := workload.validate(); err != nil {
		return err
	}
	policies := s.byNamespace[workload.Namespace]
	if policies == nil {
		policies = newPolicies(s.world, workload.Namespace)
		s.byNamespace[workload.Namespace] = policies
	}
	s.workload, s.policies, s.storage, s.existing = workload, policies, storage{s.objects, policies}, map[int32]*corev1.Pod{}
	for _, pod := range s.world.Pods {
		if ordinal, ok := workload.ordinal(pod); ok && !ended(pod) {
			s.existing[ordinal] = pod
		}
	}
	return s.objects.add(workload.statefulSet())
}

// rollOut plays the whole roll-out and returns the outcome of each ordinal.
func (s *simulation) rollOut(ctx context.Context) ([]outcome, []Problem, error) {
	outcomes := make([]outcome, s.workload.Replicas)
	var problems []Problem
	create := func(ordinal int32) error {
		if pod := s.existing[ordinal]; s.workload.keeps(pod) {
			outcomes[ordinal] = outcome{pod: pod, node: pod.Spec.NodeName}
			return nil
		}
		o, err := s.try(ctx, ordinal)
		if err != nil {
			return err
		}
		outcomes[ordinal] = o
		if o.node != "" {
			return s.scheduler.place(ctx, o, o.node)
		}
		why, err := s.explain(o)
		problems = append(problems, why...)
		return err
	}
	err := s.inOrder(create, s.remove)
	return outcomes, problems, err
}

// inOrder takes the steps of the StatefulSet controller (updateStatefulSet in
// pkg/controller/statefulset): it makes missing pods, removes those beyond the
// replicas, and makes the others anew.
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
	pods := s.scheduler.snapshot.pods()
	self, err := s.policies.complete(s.workload.pod(0))
	if err != nil {
		return nil, err
	}
	var result []Spread
	for _, constraint := range self.Spec.TopologySpreadConstraints {
		spread, err := Measure(constraint, self, s.world.Nodes, pods)
		if err != nil {
			return nil, err
		}
		result = append(result, spread)
	}
	return result, nil
}

func verdicts(outcomes []outcome) []PodVerdict {
	result := make([]PodVerdict, len(outcomes))
	for i, o := range outcomes {
		result[i] = PodVerdict{Name: o.pod.Name, Node: o.node, Fits: o.node != "", Message: o.message()}
	}
	return result
}
