package placement

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// rollOut is that of a draw in a real cluster, and a simulation that follows it.
type rollOut struct {
	*cluster
	draw *draw
	seen map[string]int
	// history leads from the beginning to the simulation s.
	history []func(*simulation) error
	s       *simulation
	// real are the pods that were created, by ordinal, of which fits were placed. Of
	// those with equal classes one can take the place of another.
	real  map[int32]*corev1.Pod
	fits  map[int32]bool
	class map[int32]string
	// reported is what the scheduler of the simulation says of each pod, at any time.
	reported map[string][]string
}

// play takes the steps of the StatefulSet controller (updateStatefulSet and
// updateStatefulSetAfterInvariantEstablished in pkg/controller/statefulset) with
// podManagementPolicy Parallel.
func (r *rollOut) play() error {
	missing, unavailable, available := r.s.workload.order(r.s.existing)
	r.seen["unavailable pods that are replaced"] += len(unavailable)
	if err := r.replace(nil, missing); err != nil {
		return err
	}
	if err := r.replace(slices.Concat(r.s.surplus(), unavailable), unavailable); err != nil {
		return err
	}
	for i := range available {
		if err := r.giveUp(); err != nil {
			return err
		}
		if err := r.replace(available[i:i+1], available[i:i+1]); err != nil {
			return err
		}
	}
	return r.giveUp()
}

// replace deletes the pods of some ordinals, all at once, creates those of others, and
// follows what kube-scheduler does.
func (r *rollOut) replace(deleted, created []int32) error {
	for _, ordinal := range deleted {
		pod := r.s.existing[ordinal]
		if err := errors.Join(r.deleteReal(pod), r.do(func(s *simulation) error { return s.remove(pod) })); err != nil {
			return err
		}
	}
	if err := r.create(created); err != nil {
		return err
	}
	return r.follow()
}

// do takes a step in the simulation, and notes it.
func (r *rollOut) do(step func(*simulation) error) error {
	r.history = append(r.history, step)
	return step(r.s)
}

func (r *rollOut) deleteReal(pod *corev1.Pod) error {
	return errors.Join(r.deleteNow(pod), r.withoutFinalizers(pod), r.released(r.draw, pod))
}

// giveUp deletes what waits, and has stopped the roll-out: in the simulation it waits no
// longer either.
func (r *rollOut) giveUp() error {
	for _, w := range r.s.waiting {
		for _, reason := range reasons(w.last.message()) {
			r.seen[reason]++
		}
		if err := r.deleteNow(r.real[w.ordinal]); err != nil {
			return err
		}
	}
	return r.do(func(s *simulation) error { return s.giveUp(func(*waitingPod) bool { return true }) })
}

// create creates pods as the StatefulSet controller does: one, then two at once, then
// four, and so on. Where there are quotas, which refuse pods in the order in which they
// come, they come one by one.
func (r *rollOut) create(ordinals []int32) error {
	for _, ordinal := range ordinals {
		if err := r.do(func(s *simulation) error { return s.create(ordinal) }); err != nil {
			return err
		}
	}
	refusals := make([]error, r.draw.workload.Replicas)
	for batch := 1; len(ordinals) > 0; batch *= 2 {
		now := ordinals[:min(batch, len(ordinals))]
		if r.draw.policed() {
			now = ordinals[:1]
		}
		pods := map[int32]*corev1.Pod{}
		for _, ordinal := range now {
			pods[ordinal] = r.s.workload.pod(ordinal)
		}
		if err := each(now, func(ordinal int32) error {
			err := r.createAsIs(pods[ordinal])
			if apierrors.IsForbidden(err) {
				refusals[ordinal], err = err, nil
			}
			return err
		}); err != nil {
			return err
		}
		for _, ordinal := range now {
			if err := r.compareAdmission(ordinal, pods[ordinal], refusals[ordinal]); err != nil {
				return err
			}
		}
		ordinals = ordinals[len(now):]
	}
	return nil
}

// compareAdmission holds the prediction to whether the API server creates a pod.
func (r *rollOut) compareAdmission(ordinal int32, pod *corev1.Pod, refusal error) error {
	w := r.waitingPod(ordinal)
	r.class[ordinal] = pod.Name
	switch {
	case refusal != nil && w != nil:
		return fmt.Errorf("pod %s: the API server refuses it: %w; the prediction does not", pod.Name, refusal)
	case refusal != nil:
		r.seen[refusalOf(refusal)]++
		return agreeOnRefusal(r.s.results[ordinal].Message, pod, refusal)
	case w == nil:
		return fmt.Errorf("pod %s: the API server accepts it; by the prediction it does not: %s", pod.Name, r.s.results[ordinal].Message)
	}
	r.class[ordinal] = w.class
	r.real[ordinal] = pod
	r.counted = append(r.counted, pod)
	return nil
}

func (r *rollOut) waitingPod(ordinal int32) *waitingPod {
	at := slices.IndexFunc(r.s.waiting, func(w *waitingPod) bool { return w.ordinal == ordinal })
	if at < 0 {
		return nil
	}
	return r.s.waiting[at]
}

// placedPod is a pod that kube-scheduler has placed.
type placedPod struct {
	ordinal int32
	node    string
}

// follow waits until kube-scheduler has placed all pods that fit, and holds its
// decisions to what the simulation says. It makes them one after the other, but pods are
// bound in the background: any order may explain them.
func (r *rollOut) follow() error {
	waiting := collectNames(r.s.waiting, func(w *waitingPod) string { return string(r.real[w.ordinal].UID) })
	for _, w := range r.s.waiting {
		if err := r.await(r.real[w.ordinal], func(pod *corev1.Pod) bool { return decided(pod).kind != "" }); err != nil {
			return fmt.Errorf("waiting for what kube-scheduler says of %s: %w", w.pod.Name, err)
		}
	}
	for {
		placed := r.placedOf(waiting)
		order, reported, err := r.explain(placed)
		if err != nil {
			// One that did not fit before may have been placed meanwhile, and be bound after those that it made room for.
			if r.awaitMore(soon, waiting, len(placed)) != nil {
				return err
			}
			continue
		}
		fits := filter(r.s.waiting, func(w *waitingPod) bool { return w.last.node != "" })
		if len(fits) == 0 {
			r.history = append(r.history, func(s *simulation) error { _, err := playOrder(r.ctx, s, order); return err })
			for name, messages := range reported {
				r.reported[name] = append(r.reported[name], messages...)
			}
			return r.agreeOnMessages(placed)
		}
		if err := errors.Join(r.bind(placed), r.awaitMore(retried, waiting, len(placed))); err != nil {
			return fmt.Errorf("by the prediction %s fits on %v: %w", fits[0].pod.Name, fits[0].last.feasible, err)
		}
	}
}

// bind does what kube-scheduler does with pods that were promised a volume when there is one, which no provisioner makes
// here. Those that did not fit before are not tried again until then.
func (r *rollOut) bind(placed []placedPod) error {
	for _, p := range placed {
		pod := r.latest[r.real[p.ordinal].UID]
		if pod.Spec.NodeName != "" {
			continue
		}
		r.seen[decided(pod).kind]++
		target := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: p.node}}
		if err := r.SubResource("binding").Create(r.ctx, pod, target); err != nil {
			return err
		}
		if err := r.await(pod, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }); err != nil {
			return err
		}
	}
	return nil
}

// placedOf returns those of the pods that were placed, in the order in which that was
// seen.
func (r *rollOut) placedOf(uids []string) []placedPod {
	var placed []placedPod
	for _, pod := range r.bound {
		if slices.Contains(uids, string(pod.UID)) {
			ordinal, _ := r.s.workload.ordinal(pod)
			placed = append(placed, placedPod{ordinal, decided(pod).node})
		}
	}
	return placed
}

func (r *rollOut) awaitMore(limit time.Duration, uids []string, than int) error {
	return r.awaitAny(limit, func() bool { return len(r.placedOf(uids)) > than })
}

// explain makes the simulation the one in which kube-scheduler could take these
// decisions, and returns their order and what it reported of the pods that wait meanwhile.
func (r *rollOut) explain(placed []placedPod) (order []placedPod, reported map[string][]string, err error) {
	for order := range permutations(placed) {
		s, again := r.again()
		if again != nil {
			return nil, nil, again
		}
		reported, why := playOrder(r.ctx, s, order)
		if why == nil {
			r.s.scheduler.stop()
			r.s = s
			return order, reported, nil
		}
		s.scheduler.stop()
		if err == nil {
			err = why // of the order in which they were seen
		}
	}
	return nil, nil, err
}

// again returns a simulation that has taken all steps before.
func (r *rollOut) again() (*simulation, error) {
	s, err := begun(r.ctx, r.draw)
	if err != nil {
		return nil, err
	}
	for _, step := range r.history {
		if err := step(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// playOrder places the pods of a simulation where kube-scheduler has placed them. It
// returns what the scheduler says of each pod meanwhile, if it does not fit.
func playOrder(ctx context.Context, s *simulation, order []placedPod) (map[string][]string, error) {
	reported := map[string][]string{}
	for i := 0; ; i++ {
		if err := s.tryAll(ctx, reported); err != nil || i == len(order) {
			return reported, err
		}
		at := slices.IndexFunc(s.waiting, func(w *waitingPod) bool { return w.ordinal == order[i].ordinal })
		w, node := s.waiting[at], order[i].node
		switch {
		case !slices.Contains(w.last.feasible, node):
			return nil, fmt.Errorf("pod %s: kube-scheduler chose %s; feasible by the prediction are %v: %s", w.pod.Name, node, w.last.feasible, w.last.message())
		case len(s.snapshot.Nodes) < 100 && !slices.Contains(w.last.best, node):
			return nil, fmt.Errorf("pod %s: kube-scheduler chose %s; the highest score by the prediction have %v", w.pod.Name, node, w.last.best)
		}
		s.waiting = slices.Delete(slices.Clone(s.waiting), at, at+1)
		if err := s.place(ctx, w, node); err != nil {
			return nil, err
		}
	}
}

// tryAll tries each pod that waits, and adds what the scheduler says.
func (s *simulation) tryAll(ctx context.Context, reported map[string][]string) error {
	for _, w := range s.waiting {
		var err error
		if w.last, err = s.scheduler.schedule(ctx, w.pod); err != nil {
			return err
		}
		if w.last.node == "" {
			reported[w.pod.Name] = append(reported[w.pod.Name], w.last.message())
		}
	}
	return nil
}

// agreeOnMessages holds the messages of pods that wait to what the scheduler says in the
// simulation. kube-scheduler may have tried them last before others were placed.
func (r *rollOut) agreeOnMessages(placed []placedPod) error {
	for _, p := range placed {
		r.fits[p.ordinal] = true
		r.seen[decided(r.latest[r.real[p.ordinal].UID]).kind]++
	}
	for _, w := range r.s.waiting {
		// The scheduler adds what it says of preemption.
		real := decided(r.latest[r.real[w.ordinal].UID]).message
		agrees := func(predicted string) bool {
			rest, ok := strings.CutPrefix(real, predicted)
			return ok && (rest == "" || strings.HasPrefix(rest, " "))
		}
		if !slices.ContainsFunc(r.reported[w.pod.Name], agrees) {
			return fmt.Errorf("pod %s: other reasons\nkube-scheduler: %s\nthe prediction:    %s", w.pod.Name, real, strings.Join(r.reported[w.pod.Name], "\n                or "))
		}
	}
	return nil
}

// comparePrediction holds what became of the pods to the plays of the prediction, which
// knows nothing of what kube-scheduler chose. Plays of some of the choices only, or of a
// cluster of which kube-scheduler looks at a part each time, are not certain.
func (r *rollOut) comparePrediction() error {
	plays, err := playAll(r.ctx, r.draw.snapshot, []Workload{r.draw.workload})
	if err != nil {
		return err
	}
	pods, _ := plays.pods(0)
	r.seen["pods whose place depends on chance"] += len(filter(pods, func(p PodPrediction) bool { return p.ByChance }))
	real := r.placedByClass(func(ordinal int32) bool { return r.fits[ordinal] })
	var played []map[string]int
	for _, play := range plays.outcomes {
		played = append(played, r.placedByClass(func(ordinal int32) bool { return play[0].results[ordinal].Fits }))
	}
	if slices.ContainsFunc(played, func(p map[string]int) bool { return maps.Equal(p, real) }) {
		return nil
	}
	if plays.complete && len(r.draw.snapshot.Nodes) < 100 {
		return fmt.Errorf("kube-scheduler placed %v; by the prediction these are placed: %v", real, played)
	}
	r.seen["roll-outs whose prediction over some choices differs"]++
	return nil
}

// placedByClass counts the pods that fit and that can take each other's place.
func (r *rollOut) placedByClass(fits func(int32) bool) map[string]int {
	placed := map[string]int{}
	for ordinal, class := range r.class {
		if fits(ordinal) {
			placed[class]++
		}
	}
	return placed
}

const (
	soon = time.Minute
	// retried is when kube-scheduler has tried every pod again. Its queueing hints know of most changes that make a pod
	// fit, but not of all: if the only pod is deleted that a pod's own affinity selects, the pod itself would be the
	// first one, and is tried again after five minutes (podMaxInUnschedulablePodsDuration), looked at every half a minute.
	retried = 7 * time.Minute
)

// awaitAny waits for changes of pods until it is so.
func (c *cluster) awaitAny(limit time.Duration, is func() bool) error {
	late := time.After(limit)
	for !is() {
		select {
		case event, open := <-c.pods:
			pod, isPod := event.Object.(*corev1.Pod)
			if !open || !isPod {
				return fmt.Errorf("the watch has ended: %v", event.Object)
			}
			c.note(pod)
		case <-late:
			return fmt.Errorf("nothing of it within %s", limit)
		}
	}
	return nil
}

// await waits until a pod is as it should be.
func (c *cluster) await(pod *corev1.Pod, ready func(*corev1.Pod) bool) error {
	return c.awaitAny(soon, func() bool { return c.latest[pod.UID] != nil && ready(c.latest[pod.UID]) })
}

// note notes what became of a pod, and which pods were placed when.
func (c *cluster) note(pod *corev1.Pod) {
	if before := c.latest[pod.UID]; decided(pod).node != "" && (before == nil || decided(before).node == "") {
		c.bound = append(c.bound, pod)
	}
	c.latest[pod.UID] = pod
}

// permutations yields all orders, the given one first.
func permutations[T any](of []T) func(func([]T) bool) {
	var from func(done, rest []T, yield func([]T) bool) bool
	from = func(done, rest []T, yield func([]T) bool) bool {
		if len(rest) == 0 {
			return yield(done)
		}
		for i := range rest {
			others := slices.Concat(rest[:i], rest[i+1:])
			if !from(append(slices.Clone(done), rest[i]), others, yield) {
				return false
			}
		}
		return true
	}
	return func(yield func([]T) bool) { from(nil, of, yield) }
}
