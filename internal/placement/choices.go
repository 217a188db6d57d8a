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

// choices are what kube-scheduler leaves to chance in one play of a roll-out: which of
// the nodes with the highest score it takes for each pod but the last.
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

// plays are what a roll-out can become.
type plays struct {
	// first is the play that takes the first node by name.
	first *simulation
	// results of each play, by ordinal.
	results [][]result
	// complete reports whether there are no more.
	complete bool
}

// result is what becomes of a pod in one play.
type result struct {
	PodVerdict
	problems []Problem
}

// playAll plays a roll-out with all choices if they are few enough, else with some that
// are random, but the same each time.
func playAll(ctx context.Context, world World, workload Workload) (plays, error) {
	world.infos = world.infos.with(world.Nodes, world.Pods)
	limit := max(minPlays, min(maxPlays, maxNodesPlayed/max(1, len(world.Nodes))))
	var all plays
	next := &choices{}
	for next != nil && len(all.results) < limit {
		s, err := play(ctx, world, workload, next)
		if err != nil {
			return plays{}, err
		}
		if all.first == nil {
			all.first = s
		}
		all.results = append(all.results, s.results)
		if all.first.choices.count() <= limit {
			next = next.next()
		} else {
			next = &choices{random: rand.New(rand.NewPCG(0, uint64(len(all.results))))}
		}
	}
	all.complete = next == nil
	return all, nil
}

func play(ctx context.Context, world World, workload Workload, choices *choices) (*simulation, error) {
	s, err := newSimulation(ctx, world, workload)
	if err != nil {
		return nil, err
	}
	defer s.scheduler.stop()
	s.choices = choices
	return s, s.rollOut(ctx)
}

// verdicts returns what becomes of each pod over all plays, and why. Of a pod that does
// not fit in some of them, it says what the first of these does.
func (p plays) verdicts() ([]PodVerdict, []Problem) {
	var pods []PodVerdict
	var problems []Problem
	for i, pod := range p.results[0] {
		fits := func(play []result) bool { return play[i].Fits }
		if stuck := slices.IndexFunc(p.results, func(play []result) bool { return !fits(play) }); stuck >= 0 {
			pod = p.results[stuck][i]
		}
		pod.ByChance = !pod.Fits && slices.ContainsFunc(p.results, fits)
		pods = append(pods, pod.PodVerdict)
		for _, problem := range pod.problems {
			problems = append(problems, problem.byChance(pod.ByChance))
		}
	}
	return pods, problems
}

// byChance says that a problem depends on what kube-scheduler chooses.
func (p Problem) byChance(is bool) Problem {
	if p.ByChance = is; is {
		p.Message += ". This depends on chance: kube-scheduler takes any of the nodes that score equally for the pods before, and with others of these nodes the pod fits"
	}
	return p
}
