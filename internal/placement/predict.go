package placement

import (
	"context"
	"errors"
	"maps"
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
	// Preferences are rules that need not hold and that have no effect.
	Preferences []Problem
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
	// Fits reports whether the pod fits whatever kube-scheduler chooses where it has a
	// choice.
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
// from its template, as the StatefulSet controller of Kubernetes 1.37 does with
// podManagementPolicy Parallel and maxUnavailable 1: all missing pods are created at once;
// then those that are not available are deleted and made again, all at once, and pods
// beyond the replicas are deleted; then available pods are replaced one at a time, from
// the highest ordinal down, each leaving its node first. Those that the workload keeps stay
// where they are, and all other pods of the snapshot stay. Claims that exist keep their
// volumes; others are made, and bound as their storage class says.
//
// A pod that does not fit waits, and is tried again whenever another one was placed or
// removed, as kube-scheduler does: mostly at once, after five minutes where none of its
// plugins expects that to help. No available pod is replaced while another one, of whatever
// ordinal, has no node: the roll-out has stopped. The prediction continues, so that all
// problems are reported at once, but nothing that happens after it helps the pods that
// wait. Pods that have a node are taken to become Ready.
//
// Of nodes that score alike kube-scheduler takes one at random, and of pods that wait any
// can be the next, which can decide what fits later. So the roll-out is played with all
// these choices, or with up to 64 where there are more: a pod fits if it does in all of
// them.
//
// The same arguments give the same prediction. The error is about the arguments (a name
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
	predictions, err := predictAll(ctx, snapshot, workloads)
	if err != nil {
		return nil, err
	}
	return predictions, withRemedies(ctx, snapshot, workloads, predictions)
}

// predictAll is PredictAll without remedies.
func predictAll(ctx context.Context, snapshot Snapshot, workloads []Workload) ([]Prediction, error) {
	all, err := playAll(ctx, snapshot, workloads)
	if err != nil {
		return nil, err
	}
	predictions := make([]Prediction, len(workloads))
	for i := range workloads {
		if predictions[i], err = all.prediction(i, &snapshot, &workloads[i]); err != nil {
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

	// The workload that is rolled out and its number, with the policies of its namespace
	// and its existing pods, by ordinal.
	workload Workload
	number   int
	storage  storage
	policies *policies
	existing map[int32]*corev1.Pod
	// results by ordinal.
	results []result
	// waiting are the pods that exist and have no node, those of earlier workloads
	// included, in the order in which they are tried next.
	waiting []*waitingPod
	// more reports whether pods are created after those that wait.
	more bool
}

// waitingPod is a pod that has no node yet.
type waitingPod struct {
	pod *corev1.Pod
	// workload is the number of its workload, which has the results.
	workload int
	ordinal  int32
	results  []result
	// class is the same for pods that can take each other's place.
	class string
	// last is the last answer of the scheduler about the pod.
	last outcome
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
	s.number++
	s.existing, s.results = map[int32]*corev1.Pod{}, make([]result, workload.Replicas)
	for _, pod := range s.snapshot.Pods {
		if ordinal, ok := workload.ordinal(pod); ok && !podutil.IsPodTerminal(pod) {
			s.existing[ordinal] = pod
		}
	}
	return s.objects.add(workload.statefulSet())
}

// rollOut plays the whole roll-out. Pods that find no place wait: giveUp notes their
// results.
func (s *simulation) rollOut(ctx context.Context, last bool) error {
	missing, unavailable, available := s.workload.order(s.existing)
	for ordinal, pod := range s.existing {
		if s.workload.keeps(pod) && ordinal < s.workload.Replicas {
			s.results[ordinal] = result{PodPrediction{Name: pod.Name, Node: pod.Spec.NodeName, Fits: true}, nil}
		}
	}
	s.more = !last || len(unavailable)+len(available) > 0
	if err := s.replace(ctx, nil, missing); err != nil {
		return err
	}
	s.more = !last || len(available) > 0
	if err := s.replace(ctx, slices.Concat(s.surplus(), unavailable), unavailable); err != nil {
		return err
	}
	for i := range available {
		// What waits has stopped the real roll-out before.
		if err := s.giveUp(func(w *waitingPod) bool { return w.workload == s.number }); err != nil {
			return err
		}
		s.more = !last || i < len(available)-1
		if err := s.replace(ctx, available[i:i+1], available[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// surplus are the ordinals of the pods beyond the replicas.
func (s *simulation) surplus() []int32 {
	return filter(slices.Sorted(maps.Keys(s.existing)), func(ordinal int32) bool { return ordinal >= s.workload.Replicas })
}

// replace removes the pods of some ordinals, all at once, creates those of others, and
// schedules what waits.
func (s *simulation) replace(ctx context.Context, removed, created []int32) error {
	for _, ordinal := range removed {
		if err := s.remove(s.existing[ordinal]); err != nil {
			return err
		}
	}
	for _, ordinal := range created {
		if err := s.create(ordinal); err != nil {
			return err
		}
	}
	return s.schedule(ctx)
}

// schedule tries the pods that wait until none of them fits. One that does not fit is
// tried again after another one was placed.
func (s *simulation) schedule(ctx context.Context) error {
	var refused []*waitingPod
	for len(s.waiting) > 0 {
		w := s.next()
		var err error
		if w.last, err = s.scheduler.schedule(ctx, w.pod); err != nil {
			return err
		}
		if w.last.node == "" {
			refused = append(refused, w)
			continue
		}
		s.waiting = append(s.waiting, refused...)
		refused = nil
		if s.more || len(s.waiting) > 0 { // the choice for the last pod changes nothing
			w.last.node = w.last.best[s.choices.take(len(w.last.best))]
		}
		if err := s.place(ctx, w, w.last.node); err != nil {
			return err
		}
	}
	s.waiting = refused
	return nil
}

// next takes one of the pods that wait. Which one is a choice, but for pods that can
// take each other's place.
func (s *simulation) next() *waitingPod {
	var first []int
	classes := map[string]bool{}
	for i, w := range s.waiting {
		if !classes[w.class] {
			classes[w.class] = true
			first = append(first, i)
		}
	}
	at := first[0]
	if len(first) > 1 {
		at = first[s.choices.take(len(first))]
	}
	w := s.waiting[at]
	s.waiting = slices.Delete(slices.Clone(s.waiting), at, at+1)
	return w
}

// place puts a pod on a node that it fits on.
func (s *simulation) place(ctx context.Context, w *waitingPod, node string) error {
	w.results[w.ordinal] = result{PodPrediction{Name: w.pod.Name, Node: node, Fits: true}, nil}
	return s.scheduler.place(ctx, w.last, node)
}

// giveUp notes why the chosen ones of the pods that wait find no place, and that they
// wait no longer.
func (s *simulation) giveUp(chosen func(*waitingPod) bool) error {
	for _, w := range s.waiting {
		if !chosen(w) {
			continue
		}
		why, err := s.explain(w.last)
		if err != nil {
			return err
		}
		w.results[w.ordinal] = result{PodPrediction{Name: w.pod.Name, Message: w.last.message()}, why}
	}
	s.waiting = filter(s.waiting, func(w *waitingPod) bool { return !chosen(w) })
	return nil
}

// remove plays that a pod is deleted.
func (s *simulation) remove(pod *corev1.Pod) error {
	return errors.Join(s.scheduler.remove(pod), s.policies.release(pod))
}

// create adds the pod of an ordinal to those that wait, or notes that the API server
// refuses it.
func (s *simulation) create(ordinal int32) error {
	pod, err := s.admit(ordinal)
	if denied(err) {
		o := outcome{pod: pod, denied: err}
		s.results[ordinal] = result{PodPrediction{Name: pod.Name, Message: o.message()}, []Problem{refused(o)}}
		return nil
	}
	if err == nil {
		s.waiting = append(s.waiting, &waitingPod{pod: pod, workload: s.number, ordinal: ordinal, results: s.results, class: s.class(pod, ordinal)})
	}
	return err
}

// class returns the class of a pod that was created. A pod that replaces an available one
// has a class of its own: if a pod of another workload that waits gets the room instead, a
// pod that served is lost.
func (s *simulation) class(pod *corev1.Pod, ordinal int32) string {
	class := s.workload.Name + s.objects.reach(pod)
	if old := s.existing[ordinal]; old != nil && isAvailable(old) {
		class += "/" + pod.Name
	}
	return class
}

// admit returns the pod of an ordinal as the API server makes it, and makes its
// claims first, as the StatefulSet controller does.
func (s *simulation) admit(ordinal int32) (*corev1.Pod, error) {
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
