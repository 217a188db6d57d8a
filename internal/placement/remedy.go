package placement

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// maxRemedies is how many remedies of a problem are given.
	maxRemedies = 3
	// maxNarrowing is how often a remedy is tried with fewer members.
	maxNarrowing = 12
)

// situation is a cluster and the roll-outs in it, to be changed: objects are replaced,
// never written.
type situation struct {
	Snapshot
	workloads []Workload
	// stuck are the pods that do not fit in the beginning.
	stuck []stuckPod
}

// stuckPod is a pod of the workload of a number that does not fit.
type stuckPod struct {
	workload int
	name     string
}

// remedy is what a person can do.
type remedy struct {
	// text says it of a problem.
	text  func(Problem) string
	apply func(*situation)
	// loses reports whether data is lost.
	loses bool
	// deletes are pods that are deleted and made again: it only helps if they fit, too.
	deletes []stuckPod
	// members are the names of the objects that it changes, and of is the remedy that changes
	// only some of them. One that is not divisible has none.
	members []string
	of      func(members []string) remedy
}

func only(r remedy) []remedy { return []remedy{r} }

// divisible returns the remedy that changes all members, and can be narrowed to some.
func divisible(members []string, of func([]string) remedy) remedy {
	r := of(members)
	r.members, r.of = members, of
	return r
}

// isNamed returns which objects have one of the names.
func isNamed[T any](some []string, name func(T) string) func(T) bool {
	chosen := map[string]bool{}
	for _, n := range some {
		chosen[n] = true
	}
	return func(object T) bool { return chosen[name(object)] }
}

// remedies are those that help against each problem of each workload.
type remedies struct {
	ctx   context.Context
	start situation
	// all that could be done, what changes least first.
	all []*trial
	// together are those that were found to help together.
	together []*trial
}

// trial is the model with remedies, and the stuck pods that fit then, once that was asked
// for: in one play, and with all choices that kube-scheduler has.
type trial struct {
	remedies  []remedy
	fits, all map[stuckPod]bool
	// narrower are those with fewer members that were found to help.
	narrower []*trial
}

// newRemedies returns everything that could be done about pods that do not fit. Each is
// tried when it is asked for.
func newRemedies(ctx context.Context, snapshot Snapshot, workloads []Workload, predictions []Prediction) *remedies {
	r := &remedies{ctx: ctx, start: situation{Snapshot: snapshot, workloads: workloads}}
	for i := range predictions {
		for _, pod := range predictions[i].Pods {
			if !pod.Fits {
				r.start.stuck = append(r.start.stuck, stuckPod{i, pod.Name})
			}
		}
	}
	for _, change := range changes {
		for _, remedy := range change(&r.start) {
			r.all = append(r.all, &trial{remedies: only(remedy)})
		}
	}
	return r
}

// try returns the stuck pods that fit once these remedies were applied, in at most so
// many plays.
func (r *remedies) try(plays int, chosen ...remedy) (map[stuckPod]bool, error) {
	s := r.start
	for _, remedy := range chosen {
		remedy.apply(&s)
	}
	all, err := playUpTo(r.ctx, s.Snapshot, s.workloads, plays)
	if err != nil {
		return nil, err
	}
	fits := map[stuckPod]bool{}
	for _, remedy := range chosen {
		if !slices.ContainsFunc(remedy.deletes, func(p stuckPod) bool { return !all.fit(p) }) {
			continue
		}
		return fits, nil // pods that run would be lost
	}
	for _, stuck := range r.start.stuck {
		fits[stuck] = all.fit(stuck)
	}
	return fits, nil
}

// fit reports whether a pod fits in all plays.
func (p plays) fit(pod stuckPod) bool {
	return !slices.ContainsFunc(p.outcomes, func(play []rolledOut) bool {
		return slices.ContainsFunc(play[pod.workload].results, func(r result) bool { return r.Name == pod.name && !r.Fits })
	})
}

// of returns what helps against a problem of the workload of a number, the first of which
// helps whatever kube-scheduler chooses: single remedies, or several together, that change as
// few objects as was found. That data is lost is only among them if nothing else helps.
func (r *remedies) of(workload int, p Problem) ([][]remedy, error) {
	trials, err := r.known(workload, p)
	if err == nil && len(trials) == 0 {
		trials, err = r.combined(workload, p)
	}
	var helpful [][]remedy
	for i, t := range trials {
		if err != nil {
			break
		}
		if t, err = r.narrowed(t, workload, p, i == 0); err == nil {
			helpful = append(helpful, t.remedies)
		}
	}
	return helpful, err
}

// known returns what helps of the remedies that are tried alone, and of those that helped
// together before. None of them loses data.
func (r *remedies) known(workload int, p Problem) ([]*trial, error) {
	var helpful []*trial
	given := map[string]bool{} // variants of a remedy have one text
	for _, t := range slices.Concat(r.all, r.together) {
		if len(helpful) > 0 && (len(t.remedies) > 1 || len(helpful) == maxRemedies) {
			break
		}
		if given[t.remedies[0].text(p)] || slices.ContainsFunc(t.remedies, func(r remedy) bool { return r.loses }) {
			continue
		}
		switch helps, err := r.helps(t, workload, p, len(helpful) == 0); {
		case err != nil:
			return nil, err
		case helps:
			helpful, given[t.remedies[0].text(p)] = append(helpful, t), true
		}
	}
	return helpful, nil
}

// combined returns remedies that help together, if there are some.
func (r *remedies) combined(workload int, p Problem) ([]*trial, error) {
	for _, plays := range []int{1, maxPlays} {
		t, err := r.several(plays, workload, p)
		if err != nil || t == nil {
			return nil, err
		}
		if certain, err := r.isCertain(t, workload, p); err != nil || certain {
			r.together = append(r.together, t)
			return []*trial{t}, err
		}
	}
	return nil, nil
}

// narrowed returns the trial with fewer members that still helps: one that was found for
// another problem, or else what is left once those are dropped without which it helps.
func (r *remedies) narrowed(t *trial, workload int, p Problem, certainly bool) (*trial, error) {
	for _, fewer := range t.narrower {
		if helps, err := r.helps(fewer, workload, p, certainly); err != nil || helps {
			return fewer, err
		}
	}
	narrowed := t
	for i := range t.remedies {
		var err error
		if narrowed, err = r.narrow(narrowed, i, workload, p, certainly); err != nil {
			return nil, err
		}
	}
	if narrowed != t {
		t.narrower = append(t.narrower, narrowed)
	}
	return narrowed, nil
}

// narrow drops members of one of the remedies, first half of them at once, then fewer.
func (r *remedies) narrow(t *trial, i, workload int, p Problem, certainly bool) (*trial, error) {
	trials := 0
	for size := len(t.remedies[i].members) / 2; size > 0; size /= 2 {
		for end := len(t.remedies[i].members); end > 0; end -= size {
			start := max(0, end-size)
			if trials++; trials > maxNarrowing || end-start == len(t.remedies[i].members) {
				break
			}
			fewer := t.without(i, start, end)
			helps, err := r.helps(fewer, workload, p, certainly)
			if err != nil {
				return nil, err
			}
			if helps {
				t = fewer
			}
		}
	}
	return t, nil
}

// without returns the trial in which one of the remedies lacks some of its members.
func (t *trial) without(i, start, end int) *trial {
	chosen := slices.Clone(t.remedies)
	chosen[i] = divisible(slices.Delete(slices.Clone(chosen[i].members), start, end), chosen[i].of)
	return &trial{remedies: chosen}
}

// helps reports whether a trial helps, with all choices if it has to be certain.
func (r *remedies) helps(t *trial, workload int, p Problem, certainly bool) (bool, error) {
	helps, err := r.isLikely(t, workload, p)
	if err != nil || !helps || !certainly {
		return helps, err
	}
	return r.isCertain(t, workload, p)
}

// isLikely reports whether a trial helps in one play.
func (r *remedies) isLikely(t *trial, workload int, p Problem) (bool, error) {
	if t.fits == nil {
		var err error
		if t.fits, err = r.try(1, t.remedies...); err != nil {
			return false, err
		}
	}
	return helps(t.fits, workload, p), nil
}

// isCertain reports whether a trial helps with all choices.
func (r *remedies) isCertain(t *trial, workload int, p Problem) (bool, error) {
	if t.all == nil {
		var err error
		if t.all, err = r.try(maxPlays, t.remedies...); err != nil {
			return false, err
		}
	}
	return helps(t.all, workload, p), nil
}

// helps reports whether all pods of a problem fit.
func helps(fits map[stuckPod]bool, workload int, p Problem) bool {
	return !slices.ContainsFunc(p.Pods, func(pod string) bool { return !fits[stuckPod{workload, pod}] })
}

// several returns remedies that help together and none of which can be left out, nil if
// nothing helps. Each is tried in so many plays.
func (r *remedies) several(plays, workload int, p Problem) (*trial, error) {
	var chosen []remedy
	var fits map[stuckPod]bool
	for i := 0; i < len(r.all) && !helps(fits, workload, p); i++ {
		chosen = append(chosen, r.all[i].remedies...)
		var err error
		if fits, err = r.try(plays, chosen...); err != nil {
			return nil, err
		}
	}
	if !helps(fits, workload, p) {
		return nil, nil
	}
	// What changes most is left out first.
	for i := len(chosen) - 1; i >= 0 && len(chosen) > 1; i-- {
		fewer := slices.Delete(slices.Clone(chosen), i, i+1)
		without, err := r.try(plays, fewer...)
		if err != nil {
			return nil, err
		}
		if helps(without, workload, p) {
			chosen, fits = fewer, without
		}
	}
	return &trial{remedies: chosen, fits: fits}, nil
}

// withRemedies gives the problems of predictions their remedies. What was found for one
// problem holds for others of the same cause.
func withRemedies(ctx context.Context, snapshot Snapshot, workloads []Workload, predictions []Prediction) error {
	unfit := func(p Problem) bool { return p.Reason != inertReason && p.Remedy == "" }
	if !slices.ContainsFunc(predictions, func(v Prediction) bool { return slices.ContainsFunc(v.Problems, unfit) }) {
		return nil
	}
	all := newRemedies(ctx, snapshot, workloads, predictions)
	for i := range predictions {
		for j := range predictions[i].Problems {
			p := &predictions[i].Problems[j]
			if !unfit(*p) {
				continue
			}
			helpful, err := all.of(i, *p)
			if err != nil {
				return err
			}
			p.Remedy = describe(helpful, *p)
		}
	}
	return nil
}

// describe writes remedies, any of which helps.
func describe(helpful [][]remedy, p Problem) string {
	if len(helpful) == 0 {
		return "no single change of the cluster or of the Topology that was tried helps: compare what the pods need with what the nodes have (kubectl describe pod, kubectl describe node)"
	}
	var texts []string
	for _, together := range helpful {
		texts = append(texts, strings.Join(collectNames(together, func(r remedy) string { return r.text(p) }), "; and "))
	}
	return strings.Join(texts, "; or ")
}

// always is the text of a remedy that is the same of each problem.
func always(format string, args ...any) func(Problem) string {
	text := fmt.Sprintf(format, args...)
	return func(Problem) string { return text }
}

// changeNodes replaces the nodes that match.
func (s *situation) changeNodes(match func(*corev1.Node) bool, change func(*corev1.Node)) {
	s.Nodes = replaced(s.Nodes, match, (*corev1.Node).DeepCopy, change)
}

// replaced returns the objects with changed copies of those that match.
func replaced[T any](all []T, match func(T) bool, clone func(T) T, change func(T)) []T {
	result := slices.Clone(all)
	for i := range result {
		if match(result[i]) {
			result[i] = clone(result[i])
			change(result[i])
		}
	}
	return result
}

// changeTemplates replaces the pod templates.
func (s *situation) changeTemplates(change func(*corev1.PodTemplateSpec)) {
	s.workloads = slices.Clone(s.workloads)
	for i := range s.workloads {
		s.workloads[i].Template = *s.workloads[i].Template.DeepCopy()
		change(&s.workloads[i].Template)
	}
}

// changeConstraints replaces the constraints with DoNotSchedule that match.
func (s *situation) changeConstraints(match func(*corev1.TopologySpreadConstraint) bool, change func(*corev1.TopologySpreadConstraint)) {
	s.changeTemplates(func(t *corev1.PodTemplateSpec) {
		for i := range t.Spec.TopologySpreadConstraints {
			if c := &t.Spec.TopologySpreadConstraints[i]; c.WhenUnsatisfiable == corev1.DoNotSchedule && match(c) {
				change(c)
			}
		}
	})
}

// hardKeys returns the topology keys of the constraints with DoNotSchedule that match.
func (s *situation) hardKeys(match func(*corev1.TopologySpreadConstraint) bool) []string {
	keys := map[string]bool{}
	for i := range s.workloads {
		for j := range s.workloads[i].Template.Spec.TopologySpreadConstraints {
			if c := &s.workloads[i].Template.Spec.TopologySpreadConstraints[j]; c.WhenUnsatisfiable == corev1.DoNotSchedule && match(c) {
				keys[c.TopologyKey] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// stuckWorkloads are those with pods that are stuck.
func (s *situation) stuckWorkloads() []*Workload {
	var result []*Workload
	for i := range s.workloads {
		if slices.ContainsFunc(s.stuck, func(p stuckPod) bool { return p.workload == i }) {
			result = append(result, &s.workloads[i])
		}
	}
	return result
}

// stuckClaims are the claims that pods have which are stuck, as far as they exist.
func (s *situation) stuckClaims() []*corev1.PersistentVolumeClaim {
	wanted := map[string]bool{}
	for _, stuck := range s.stuck {
		w := &s.workloads[stuck.workload]
		ordinal, _ := w.ordinal(&corev1.Pod{ObjectMeta: metaOf(w.Namespace, stuck.name)})
		for _, v := range w.pod(ordinal).Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				wanted[w.Namespace+"/"+v.PersistentVolumeClaim.ClaimName] = true
			}
		}
	}
	return filter(s.PersistentVolumeClaims, func(c *corev1.PersistentVolumeClaim) bool { return wanted[c.Namespace+"/"+c.Name] })
}

// volumesOf returns the volumes that claims are bound to.
func (s *situation) volumesOf(claims []*corev1.PersistentVolumeClaim) []*corev1.PersistentVolume {
	bound := map[string]bool{}
	for _, claim := range claims {
		bound[claim.Spec.VolumeName] = true
	}
	return filter(s.PersistentVolumes, func(pv *corev1.PersistentVolume) bool { return bound[pv.Name] })
}
