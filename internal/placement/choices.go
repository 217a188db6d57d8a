package placement

import (
	"context"
	"math/rand/v2"
	"slices"
)

const (
	// maxPlays is how often a roll-out is played at most, with other choices each time.
	maxPlays = 64
	// minPlays is how often it is played in the largest clusters, if there are choices.
	minPlays = 4
	// maxNodesPlayed bounds the nodes of all plays together.
	maxNodesPlayed = 1000
)

// choices are what is left to chance in one play of a roll-out: which of the pods that
// wait is tried next, and which of the nodes with the highest score it gets.
type choices struct {
	taken, of []int
	random    *rand.Rand
}

// take returns which of n nodes is taken next: the one that was decided before the
// play, else any, or the first if nothing is random.
func (c *choices) take(n int) int {
	step := len(c.of)
	c.of = append(c.of, n)
	if step == len(c.taken) {
		c.taken = append(c.taken, 0)
		if c.random != nil {
			c.taken[step] = c.random.IntN(n)
		}
	}
	return c.taken[step]
}

// next returns the choices of the next play, nil after the last: the latest choice that
// can change does, and those after it are open.
func (c *choices) next() *choices {
	for i := len(c.taken) - 1; i >= 0; i-- {
		if c.taken[i]+1 < c.of[i] {
			return &choices{taken: append(slices.Clone(c.taken[:i]), c.taken[i]+1)}
		}
	}
	return nil
}

// count is how many plays there are if later choices are as many whatever was taken before.
func (c *choices) count() int {
	count := 1
	for _, n := range c.of {
		count = min(count*n, maxPlays+1)
	}
	return count
}

// plays are what roll-outs can become.
type plays struct {
	// outcomes of each play, the first of which takes the first node by name, and of
	// each workload in it.
	outcomes [][]rolledOut
	// complete reports whether there are no more.
	complete bool
}

// rolledOut is what becomes of a workload in one play.
type rolledOut struct {
	// results by ordinal.
	results []result
	spread  []Spread
	notes   []string
}

// result is what becomes of a pod in one play.
type result struct {
	PodPrediction
	problems []Problem
}

// playAll plays roll-outs with all choices if they are few enough, else with some that
// are random, but the same each time.
func playAll(ctx context.Context, snapshot Snapshot, workloads []Workload) (plays, error) {
	return playUpTo(ctx, snapshot, workloads, maxPlays)
}

// playUpTo is playAll with a limit to the number of plays.
func playUpTo(ctx context.Context, snapshot Snapshot, workloads []Workload, limit int) (plays, error) {
	snapshot.infos = snapshot.infos.with(snapshot.Nodes, snapshot.Pods)
	limit = min(limit, max(minPlays, min(maxPlays, maxNodesPlayed/max(1, len(snapshot.Nodes)))))
	var all plays
	count := 0
	next := &choices{}
	for next != nil && len(all.outcomes) < limit {
		outcome, err := play(ctx, &snapshot, workloads, next)
		if err != nil {
			return plays{}, err
		}
		all.outcomes = append(all.outcomes, outcome)
		if len(all.outcomes) == 1 {
			count = next.count()
		}
		if count <= limit {
			next = next.next()
		} else {
			next = &choices{random: rand.New(rand.NewPCG(0, uint64(len(all.outcomes))))}
		}
	}
	all.complete = next == nil
	return all, nil
}

// play rolls the workloads out, one after the other.
func play(ctx context.Context, snapshot *Snapshot, workloads []Workload, choices *choices) ([]rolledOut, error) {
	s, err := newSimulation(ctx, snapshot)
	if err != nil {
		return nil, err
	}
	defer s.scheduler.stop()
	s.choices = choices
	outcomes := make([]rolledOut, len(workloads))
	for i, workload := range workloads {
		if err := s.begin(workload); err != nil {
			return nil, err
		}
		if err := s.rollOut(ctx, i == len(workloads)-1); err != nil {
			return nil, err
		}
		spread, err := s.spread()
		if err != nil {
			return nil, err
		}
		outcomes[i] = rolledOut{s.results, spread, s.notes()}
	}
	return outcomes, s.giveUp(func(*waitingPod) bool { return true })
}

// prediction on the workload of a number.
func (p plays) prediction(number int, snapshot *Snapshot, workload *Workload) (Prediction, error) {
	inert, err := workload.InertRules(snapshot.Nodes, snapshot.Pods, snapshot.Namespaces)
	if err != nil {
		return Prediction{}, err
	}
	first := p.outcomes[0][number]
	pods, problems := p.pods(number)
	inert, preferences := Preferences(inert)
	return Prediction{Pods: pods, Problems: merge(append(noted(problems, first.notes), inert...)), Preferences: preferences, Spread: first.spread, Notes: first.notes}, nil
}

// pods returns what becomes of each pod of a workload over all plays, and why. Of a pod
// that does not fit in some of them, it says what the first of these does.
func (p plays) pods(number int) ([]PodPrediction, []Problem) {
	var pods []PodPrediction
	var problems []Problem
	for i, pod := range p.outcomes[0][number].results {
		fits := func(play []rolledOut) bool { return play[number].results[i].Fits }
		if stuck := slices.IndexFunc(p.outcomes, func(play []rolledOut) bool { return !fits(play) }); stuck >= 0 {
			pod = p.outcomes[stuck][number].results[i]
		}
		pod.ByChance = !pod.Fits && slices.ContainsFunc(p.outcomes, fits)
		pods = append(pods, pod.PodPrediction)
		for _, problem := range pod.problems {
			problems = append(problems, problem.byChance(pod.ByChance))
		}
	}
	return pods, problems
}

// byChance says that a problem depends on what kube-scheduler chooses.
func (p Problem) byChance(is bool) Problem {
	if p.ByChance = is; is {
		p.Message += ". This depends on chance: kube-scheduler takes any of the nodes that score equally, and tries pods that wait in any order, and with other choices the pod fits"
	}
	return p
}
