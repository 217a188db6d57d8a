package edpm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// pending returns one pending target per host; change can alter them.
func pending(change func(*pendingTarget), hosts ...string) []*pendingTarget {
	var out []*pendingTarget
	for _, h := range hosts {
		o := &pendingTarget{Target: Target{Host: h}, attempt: 1}
		if change != nil {
			change(o)
		}
		out = append(out, o)
	}
	return out
}

func numbered(n int) []string {
	var hosts []string
	for i := range n {
		hosts = append(hosts, fmt.Sprintf("h%03d", i))
	}
	return hosts
}

func size10(o *pendingTarget)     { o.Strategy.BatchSize = 10 }
func oneAtATime(o *pendingTarget) { o.Strategy.MaxUnavailable = 1 }
func canary(o *pendingTarget) {
	o.Strategy.MaxUnavailable, o.Strategy.MaxFailures = 1, ptr.To[int32](0)
}
func failedBefore(o *pendingTarget) {
	o.attempt = 2
}

// later is a snapshot at which no one has joined for long.
func later() snapshot {
	return snapshot{
		now: noon, first: noon.Add(-time.Hour), last: noon.Add(-time.Hour), debounce: time.Second, patience: 10 * time.Second,
		inFlight: map[string]bool{}, retrying: map[string]bool{}, failed: map[string]bool{}, busy: map[string]bool{},
	}
}

// justNow is a snapshot at which the last host joined d ago and the first long before d.
func joined(first, last time.Duration) snapshot {
	m := later()
	m.first, m.last = noon.Add(-first), noon.Add(-last)
	return m
}

// awaiting is a snapshot at which owners are expected for d more.
func awaiting(m snapshot, d time.Duration) snapshot {
	m.awaited = noon.Add(d)
	return m
}

func inRun(m snapshot, hosts ...string) snapshot {
	for _, h := range hosts {
		m.inFlight[h], m.busy[h] = true, true
	}
	return m
}

func retrying(m snapshot, hosts ...string) snapshot {
	m = inRun(m, hosts...)
	for _, h := range hosts {
		m.retrying[h] = true
	}
	return m
}

func withMembers(m snapshot, n int) snapshot {
	m.members = n
	return m
}

func unreportedFailures(m snapshot, hosts ...string) snapshot {
	for _, h := range hosts {
		m.failed[h] = true
	}
	return m
}

// shape shows a plan: the hosts of each batch, who is held, and when to wake.
type shape struct {
	Batches []string
	Held    []string
	Wake    time.Duration
}

func shapeOf(p plan) shape {
	s := shape{Wake: p.wake}
	for _, b := range p.batches {
		var hosts []string
		for _, o := range b {
			hosts = append(hosts, o.Host)
		}
		s.Batches = append(s.Batches, strings.Join(hosts, ","))
	}
	for h := range p.held {
		s.Held = append(s.Held, h)
	}
	slices.Sort(s.Held)
	return s
}

func TestMakePlan(t *testing.T) {
	in := func(d time.Duration) func(*pendingTarget) {
		return func(o *pendingTarget) { o.attempt, o.notBefore = 2, noon.Add(d) }
	}
	for name, c := range map[string]struct {
		pending []*pendingTarget
		at      snapshot
		want    shape
	}{
		"nothing is pending, nothing is done": {nil, later(), shape{}},
		"hosts that can share a Pod make one run, in order of their names": {
			pending(nil, "b", "a", "c"), later(), shape{Batches: []string{"a,b,c"}},
		},
		"hosts that cannot share a Pod make a run each": {
			append(pending(nil, "a", "c"), pending(func(o *pendingTarget) { o.podKey = "other" }, "b", "d")...), later(),
			shape{Batches: []string{"a,c", "b,d"}},
		},
		"a run has at most batchSize hosts": {
			pending(func(o *pendingTarget) { o.Strategy.BatchSize = 2 }, "a", "b", "c", "d", "e"), later(),
			shape{Batches: []string{"a,b", "c,d", "e"}},
		},
		"the smallest batchSize of those that share a Pod counts": {
			append(pending(func(o *pendingTarget) { o.Strategy.BatchSize = 1 }, "a"), pending(nil, "b", "c")...), later(),
			shape{Batches: []string{"a", "b", "c"}},
		},
		"a batchSize above what a run can hold is cut": {
			pending(func(o *pendingTarget) { o.Strategy.BatchSize = 1000 }, numbered(51)...), later(),
			shape{Batches: []string{strings.Join(numbered(50), ","), "h050"}},
		},
		"a run that is not full waits until no one joined for the debounce": {
			pending(nil, "a", "b"), joined(600*time.Millisecond, 300*time.Millisecond),
			shape{Wake: 700 * time.Millisecond},
		},
		"a run that is not full starts when no one joined for the debounce": {
			pending(nil, "a", "b"), joined(3*time.Second, time.Second), shape{Batches: []string{"a,b"}},
		},
		"hosts that keep joining are waited for no longer than the patience": {
			pending(nil, "a", "b"), joined(9900*time.Millisecond, 0), shape{Wake: 100 * time.Millisecond},
		},
		"after the patience the run starts though hosts keep joining": {
			pending(nil, "a", "b"), joined(10*time.Second, 0), shape{Batches: []string{"a,b"}},
		},
		"while owners are expected others gather for longer than the debounce": {
			pending(nil, "b", "c"), awaiting(joined(5*time.Second, 3*time.Second), 4*time.Second), shape{Wake: 4 * time.Second},
		},
		"while owners are expected a full run starts at once": {
			pending(size10, numbered(10)...), awaiting(joined(0, 0), time.Second), shape{Batches: []string{strings.Join(numbered(10), ",")}},
		},
		"while owners are expected and come in, others wait beyond the patience": {
			pending(nil, "b", "c"), awaiting(joined(time.Minute, 3*time.Second), 9*time.Second), shape{Wake: 9 * time.Second},
		},
		"once no one is expected those that have waited beyond the patience start": {
			pending(nil, "b", "c"), joined(time.Minute, 300*time.Millisecond), shape{Batches: []string{"b,c"}},
		},
		"full runs start at once and the rest waits": {
			pending(size10, numbered(25)...), joined(0, 0),
			shape{Batches: []string{strings.Join(numbered(25)[:10], ","), strings.Join(numbered(25)[10:20], ",")}, Wake: time.Second},
		},
		"maxFailures counts failures that the owners have not heard of": {
			pending(func(o *pendingTarget) { o.Strategy.MaxFailures = ptr.To[int32](0) }, "b", "c"), unreportedFailures(later(), "a"),
			shape{Held: []string{"b", "c"}},
		},
		"maxUnavailable counts failures that the owners have not heard of": {
			pending(func(o *pendingTarget) { o.Strategy.MaxUnavailable = 2 }, "b", "c"), unreportedFailures(later(), "a"),
			shape{Batches: []string{"b"}, Held: []string{"c"}},
		},
		"a host that is in a run waits for it": {
			pending(nil, "a", "b"), inRun(later(), "a"), shape{Batches: []string{"b"}},
		},
		"a host that is in a run of another step waits for it": {
			pending(nil, "a", "b"), func() snapshot { m := later(); m.busy["a"] = true; return m }(), shape{Batches: []string{"b"}},
		},
		"a failed host waits for its time": {
			append(pending(in(time.Minute), "a"), pending(nil, "b")...), later(),
			shape{Batches: []string{"b"}, Wake: time.Minute},
		},
		"the next of several times counts": {
			append(pending(in(time.Minute), "a"), pending(in(time.Second), "b")...), later(), shape{Wake: time.Second},
		},
		"a failed host whose time has come is tried": {
			pending(in(0), "a"), later(), shape{Batches: []string{"a"}},
		},
		"maxUnavailable starts no more than that": {
			pending(func(o *pendingTarget) { o.Strategy.MaxUnavailable = 2 }, "a", "b", "c"), later(),
			shape{Batches: []string{"a,b"}, Held: []string{"c"}},
		},
		"a percentage is of the members that the role has now, rounded up": {
			pending(func(o *pendingTarget) { o.Strategy.MaxUnavailablePercent = 25 }, "a", "b", "c"), withMembers(later(), 5),
			shape{Batches: []string{"a,b"}, Held: []string{"c"}},
		},
		"a percentage of a role that no one has counted yet is one host": {
			pending(func(o *pendingTarget) { o.Strategy.MaxUnavailablePercent = 25 }, "a", "b"), later(),
			shape{Batches: []string{"a"}, Held: []string{"b"}},
		},
		"maxUnavailable counts hosts in a run": {
			pending(oneAtATime, "b", "c"), inRun(later(), "a"), shape{Held: []string{"b", "c"}},
		},
		"maxUnavailable counts failed hosts": {
			append(pending(in(time.Minute), "a"), pending(oneAtATime, "b")...), later(),
			shape{Held: []string{"b"}, Wake: time.Minute},
		},
		"maxUnavailable does not keep failed hosts from being tried again": {
			append(pending(func(o *pendingTarget) { oneAtATime(o); failedBefore(o) }, "a", "b"), pending(oneAtATime, "c")...), later(),
			shape{Batches: []string{"a,b"}, Held: []string{"c"}},
		},
		"a failed host that is in its next attempt counts once": {
			append(pending(func(o *pendingTarget) { o.Strategy.MaxUnavailable = 2; failedBefore(o) }, "a"),
				pending(func(o *pendingTarget) { o.Strategy.MaxUnavailable = 2 }, "b", "c")...), retrying(later(), "a"),
			shape{Batches: []string{"b"}, Held: []string{"c"}},
		},
		"maxFailures zero stops everything after the first failure": {
			append(pending(in(time.Minute), "a"), pending(canary, "b", "c")...), later(),
			shape{Held: []string{"b", "c"}, Wake: time.Minute},
		},
		"maxFailures still stops everything while the failed host is tried again": {
			pending(func(o *pendingTarget) { o.Strategy.MaxFailures = ptr.To[int32](0) }, "b", "c"), retrying(later(), "a"),
			shape{Held: []string{"b", "c"}},
		},
		"maxFailures lets as many fail": {
			append(pending(in(time.Minute), "a"), pending(func(o *pendingTarget) { o.Strategy.MaxFailures = ptr.To[int32](1) }, "b")...), later(),
			shape{Batches: []string{"b"}, Wake: time.Minute},
		},
		"maxFailures does not keep failed hosts from being tried again": {
			pending(func(o *pendingTarget) { canary(o); failedBefore(o) }, "a", "b"), later(), shape{Batches: []string{"a,b"}},
		},
		"a canary goes first and alone": {
			pending(canary, "a", "b", "c"), later(), shape{Batches: []string{"a"}, Held: []string{"b", "c"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, shapeOf(makePlan(c.pending, c.at))); diff != "" {
				t.Errorf("the plan differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHeldHostsAreToldWhy(t *testing.T) {
	held := makePlan(pending(oneAtATime, "a", "b"), later()).held
	if diff := cmp.Diff(map[string]string{"b": "maxUnavailable is 1, and as many hosts of the role are in a run or have failed"}, held); diff != "" {
		t.Errorf("what is held differs (-want +got):\n%s", diff)
	}
	all := append(pending(failedBefore, "a"), pending(canary, "b")...)
	all[0].notBefore = noon.Add(time.Hour)
	held = makePlan(all, later()).held
	if diff := cmp.Diff(map[string]string{"b": "maxFailures is 0, and more hosts have failed: a"}, held); diff != "" {
		t.Errorf("what is held differs (-want +got):\n%s", diff)
	}
}

// TestEveryDueHostHasItsPlace holds makePlan to its promises on random groups.
func TestEveryDueHostHasItsPlace(t *testing.T) {
	for seed := range uint64(5000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		all, m := randomGroup(rng)
		p := makePlan(slices.Clone(all), m)
		if problem := violated(all, m, p); problem != "" {
			t.Fatalf("seed %d: %s\nplan: %+v\nmoment: %+v", seed, problem, shapeOf(p), m)
		}
		again := makePlan(shuffled(rng, all), m)
		if diff := cmp.Diff(shapeOf(p), shapeOf(again)); diff != "" {
			t.Fatalf("seed %d: the order of the pending targets changes the plan:\n%s", seed, diff)
		}
	}
}

func shuffled(rng *rand.Rand, all []*pendingTarget) []*pendingTarget {
	out := slices.Clone(all)
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func randomGroup(rng *rand.Rand) ([]*pendingTarget, snapshot) {
	m := joined(time.Duration(rng.IntN(12))*time.Second, time.Duration(rng.IntN(3))*time.Second)
	strategy := Strategy{BatchSize: rng.IntN(6), MaxUnavailable: rng.IntN(4)}
	if rng.IntN(2) == 0 {
		strategy.MaxFailures = ptr.To(rng.Int32N(3))
	}
	var all []*pendingTarget
	for _, h := range numbered(rng.IntN(20)) {
		o := &pendingTarget{Target: Target{Host: h, Strategy: strategy}, attempt: 1, podKey: fmt.Sprint(rng.IntN(3))}
		if rng.IntN(4) == 0 {
			o.attempt, o.notBefore = 2, noon.Add(time.Duration(rng.IntN(3)-1)*time.Minute)
		}
		switch rng.IntN(8) {
		case 0:
			m.busy[h] = true
		case 1: // it was claimed since it has been pending
			m.inFlight[h], m.busy[h], m.retrying[h] = true, true, o.retry()
			if !o.retry() {
				delete(m.retrying, h)
			}
		}
		all = append(all, o)
	}
	return all, inRun(unreportedFailures(m, numbered(40)[30:30+rng.IntN(2)]...), numbered(30)[20:20+rng.IntN(3)]...)
}

// violated returns the promise that the plan breaks.
func violated(all []*pendingTarget, m snapshot, p plan) string {
	places := map[string]int{}
	fresh := 0
	for _, batch := range p.batches {
		if n := batchSize(batch); len(batch) > n {
			return fmt.Sprintf("a batch has %d hosts and may have %d", len(batch), n)
		}
		for _, o := range batch {
			places[o.Host]++
			if o.podKey != batch[0].podKey {
				return o.Host + " is in a run of others that it cannot share a Pod with"
			}
			if m.busy[o.Host] || o.notBefore.After(m.now) {
				return o.Host + " is started though it is not due"
			}
			if !o.retry() {
				fresh++
			}
		}
	}
	for h := range p.held {
		places[h]++
	}
	failed, unavailable := len(m.retrying)+len(m.failed), len(m.inFlight)+len(m.failed)
	for _, o := range all {
		due := !m.busy[o.Host] && !o.notBefore.After(m.now)
		switch n := places[o.Host]; {
		case due && n == 0 && (!p.gathering || p.wake == 0):
			return o.Host + " is due, and neither started nor held nor waiting for others"
		case due && n > 1:
			return o.Host + " has more than one place"
		case !due && n > 0:
			return o.Host + " is not due and has a place"
		case !due && !m.busy[o.Host] && p.wake == 0:
			return o.Host + " has a time and no one wakes for it"
		case o.retry() && p.held[o.Host] != "":
			return o.Host + " failed before and is held"
		}
		if o.retry() && !m.inFlight[o.Host] {
			failed, unavailable = failed+1, unavailable+1
		}
	}
	if len(all) == 0 {
		return ""
	}
	s := all[0].Strategy
	if s.MaxUnavailable > 0 && fresh > 0 && unavailable+fresh > s.MaxUnavailable {
		return fmt.Sprintf("%d hosts are started next to %d unavailable ones, and maxUnavailable is %d", fresh, unavailable, s.MaxUnavailable)
	}
	if s.MaxFailures != nil && fresh > 0 && failed > int(*s.MaxFailures) {
		return fmt.Sprintf("%d hosts are started though %d failed and maxFailures is %d", fresh, failed, *s.MaxFailures)
	}
	if slices.ContainsFunc(p.batches, func(b []*pendingTarget) bool { return len(b) > ansibleeev1.MaxTargets }) {
		return "a run is too large"
	}
	return ""
}

// A status write for every held host at every change of a number would be the
// square of the hosts.
func TestWhyHostsAreHeldDoesNotFollowNumbers(t *testing.T) {
	why := func(m snapshot) string {
		return makePlan(pending(func(o *pendingTarget) { o.Strategy.MaxUnavailablePercent = 10 }, "x"), m).held["x"]
	}
	first, then := why(inRun(withMembers(later(), 10), "a")), why(inRun(withMembers(later(), 20), "a", "b", "c"))
	if first == "" || first != then || !strings.Contains(first, "10%") {
		t.Errorf("the reasons are %q and then %q; want one that stays, with the percentage", first, then)
	}
}
