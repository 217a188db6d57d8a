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

// playAll plays a roll-out with all choices if they are few enough, else with some that
// are random, but the same each time. It returns the simulation and the outcomes of each play, the
// first of which takes the first node by name, and whether these are all that there are.
func playAll(ctx context.Context, world World, workload Workload) (plays []*simulation, complete bool, err error) {
	world.infos = world.infos.with(world.Nodes, world.Pods)
	limit := max(minPlays, min(maxPlays, maxNodesPlayed/max(1, len(world.Nodes))))
	first := &choices{}
	next := first
	for next != nil && len(plays) < limit {
		s, err := play(ctx, world, workload, next)
		if err != nil {
			return nil, false, err
		}
		plays = append(plays, s)
		if first.count() <= limit {
			next = next.next()
		} else {
			next = &choices{random: rand.New(rand.NewPCG(0, uint64(len(plays))))}
		}
	}
	return plays, next == nil, nil
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

// combine returns what becomes of each pod over all plays. Of a pod that fits nowhere in
// some of them, it says what the first of these does.
func combine(plays []*simulation) ([]PodVerdict, []Problem) {
	var pods []PodVerdict
	var problems []Problem
	for i, o := range plays[0].outcomes {
		fits := func(s *simulation) bool { return s.outcomes[i].node != "" }
		if stuck := slices.IndexFunc(plays, func(s *simulation) bool { return !fits(s) }); stuck >= 0 {
			o = plays[stuck].outcomes[i]
		}
		byChance := o.node == "" && slices.ContainsFunc(plays, fits)
		pods = append(pods, PodVerdict{Name: o.pod.Name, Node: o.node, Fits: o.node != "", ByChance: byChance, Message: o.message()})
		for _, p := range o.problems {
			problems = append(problems, p.byChance(byChance))
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
