package edpm

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	ctrl "sigs.k8s.io/controller-runtime"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
)

// modelSteps is how many steps the model takes in all; make test-model has it take more.
var modelSteps = flag.Int("model.steps", 100_000, "steps that the model of the engine takes (a twentieth of it with -short or -race)")

// modelSeed is where the model starts unless it is told otherwise: a test of a change
// is to fail because of the change. modelRandom is for those who look for more.
const modelSeed = 1

var modelRandom = flag.Bool("model.random", false, "start the model of the engine with a random -rapid.seed")

// modelShare is the part of the steps that is taken.
var modelShare = 1

// TestTheEngineKeepsItsPromisesWhateverHappens lets everything happen to engines that
// can happen to them, in random order, and checks after each step that
//
//  1. no machine is in two runs at once,
//  2. what has succeeded is not run again unless a user asks for it,
//  3. what is Converged was run with what is wanted, and nothing else came since,
//  4. no one waits for ever: with nothing left to happen everybody is where the
//     specs say, or waits for a time that a queue knows,
//  5. no start of an engine exceeds maxUnavailable or maxFailures,
//  6. what is refused is not run again with the same inputs,
//  7. a check makes nothing Converged that no run has made so, is never next to another run of
//     its host, and has a step run again at most once, where that is asked for.
//
// The steps are the same each time, unless -model.random is given. A sequence that
// breaks one of the promises is made as short as possible and shown. Replay it with
// the -rapid.seed that is printed, and -rapid.v for all that happens.
func TestTheEngineKeepsItsPromisesWhateverHappens(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	start := uint64(modelSeed)
	if *modelRandom {
		start = uint64(rand.Uint32()) + 1
	}
	seed, replay := flagOr(t, "rapid.seed", 0, start)
	t.Logf("-model.random=%v", *modelRandom)
	flagOr(t, "rapid.steps", 30, 60)
	set(t, "rapid.nofailfile", true)
	if testing.Short() {
		modelShare = 20
	}
	total := 0
	for total < *modelSteps/modelShare && !t.Failed() {
		t.Logf("-rapid.seed=%d", seed)
		rapid.Check(t, func(rt *rapid.T) {
			w := newWorld(rt)
			rt.Repeat(w.actions())
			w.runToEnd()
			total += w.steps
		})
		if replay {
			break
		}
		seed++
		set(t, "rapid.seed", seed)
	}
	t.Logf("%d steps", total)
}

// flagOr returns what a flag of rapid was given and true, or sets it to another
// number than it has without being given.
func flagOr(t *testing.T, name string, unset, value uint64) (uint64, bool) {
	t.Helper()
	if given, _ := strconv.ParseUint(flag.Lookup(name).Value.String(), 10, 64); given != unset {
		return given, true
	}
	set(t, name, value)
	return value, false
}

func set(t *testing.T, name string, value any) {
	t.Helper()
	if err := flag.Set(name, fmt.Sprint(value)); err != nil {
		t.Fatal(err)
	}
}

func (w *world) logf(format string, args ...any) {
	w.t.Logf("%s "+format, append([]any{w.clock.Now().Format("15:04:05.000")}, args...)...)
}

var modelHosts = []string{"a", "b", "c", "d"}

// actions that can be taken at any time. Most of the time everybody works.
func (w *world) actions() map[string]func(*rapid.T) {
	work := func(t *rapid.T) {
		for range rapid.IntRange(1, 8).Draw(t, "how much") {
			w.work(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "who") })
		}
	}
	return map[string]func(*rapid.T){
		"work": work, "work more": work, "work on": work,
		"wait": func(t *rapid.T) {
			w.wait(pick(t, "how long", []time.Duration{0, time.Second, 5 * time.Second, time.Minute}))
		},
		"a person acts":     func(*rapid.T) { w.act() },
		"something happens": func(*rapid.T) { w.disturb() },
	}
}

// wait moves the clock, without a duration to when a user has something to do.
func (w *world) wait(d time.Duration) {
	if d == 0 {
		if next, found := w.next(); found && next.After(w.clock.Now()) {
			d = next.Sub(w.clock.Now())
		}
	}
	w.clock.SetTime(w.clock.Now().Add(d))
}

// next is when a user has something to do.
func (w *world) next() (first time.Time, found bool) {
	for _, run := range w.runner.running() {
		if at := w.runner.began[run.UID].Add(shortestRun); !found || at.Before(first) {
			first, found = at, true
		}
	}
	for _, m := range w.managers() {
		for _, next := range []func() (time.Time, bool){m.groups.next, m.owners.next} {
			if at, ok := next(); ok && (!found || at.Before(first)) {
				first, found = at, true
			}
		}
	}
	return first, found
}

func (w *world) managers() []*manager { return append(slices.Clone(w.before), w.leaders...) }

// work lets a user do what is due.
func (w *world) work(choose func(n int) int) bool {
	var todo []func()
	for _, m := range w.managers() {
		todo = append(todo, m.todo()...)
	}
	todo = append(todo, w.runner.todo()...)
	if len(todo) == 0 {
		return false
	}
	w.steps++
	w.clock.SetTime(w.clock.Now().Add(7 * time.Millisecond))
	todo[choose(len(todo))]()
	return true
}

func (m *manager) todo() []func() {
	var todo []func()
	for _, kind := range append([]string{runKind}, m.world.operators[m.operator]...) {
		if m.cache.behind(kind) {
			todo = append(todo, func() { m.cache.advance(kind) })
		}
		for _, name := range m.handlers(kind) {
			h := modelHandler{kind, name}
			if m.handled[h] < m.cache.shown[kind] {
				todo = append(todo, func() {
					m.handled[h]++
					m.handle(h, m.world.api.tables[kind].log[m.handled[h]-1])
					m.drainWakeups()
				})
			}
		}
	}
	for _, id := range m.owners.due() {
		todo = append(todo, func() { m.look(id) })
	}
	for _, g := range m.groups.due() {
		todo = append(todo, func() { m.plan(g) })
	}
	return todo
}

func (r *modelRunner) todo() []func() {
	var todo []func()
	if r.cache.behind(runKind) {
		todo = append(todo, func() { r.cache.advance(runKind) })
	}
	for _, run := range r.open() {
		todo = append(todo, func() { r.step(run) })
	}
	for _, run := range r.running() {
		if !r.began[run.UID].Add(shortestRun).After(r.world.clock.Now()) {
			todo = append(todo, func() { r.end(run, r.world.ending) })
		}
	}
	return todo
}

// interleave lets others work while a manager waits for the API server.
func (w *world) interleave() {
	if w.nested || w.calm || !chance(w.t, "meanwhile", 16) {
		return
	}
	w.nested = true
	w.logf("meanwhile")
	for range rapid.IntRange(1, 4).Draw(w.t, "how much") {
		w.work(func(n int) int { return rapid.IntRange(0, n-1).Draw(w.t, "who") })
	}
	w.logf("meanwhile ends")
	w.nested = false
}

// ending of a run of so many steps on a host.
func (w *world) ending(host string, steps int) ending {
	if w.calm {
		if w.stubborn[host] {
			return ending{w.obstinacy[host], 0}
		}
		return ending{succeeds, steps}
	}
	e := ending{outcome: pick(w.t, "outcome on "+host, []outcome{succeeds, succeeds, succeeds, fails, refuses, unreachable, unknown}), done: steps}
	if e.outcome != succeeds {
		e.done = rapid.IntRange(0, steps-1).Draw(w.t, "steps done on "+host)
	}
	w.logf("%s %s after %d of %d steps", host, [...]string{"succeeds", "fails", "refuses", "is unreachable", "has no result"}[e.outcome], e.done, steps)
	return e
}

// act is what a person does.
func (w *world) act() {
	w.steps++
	id := struct{ kind, name string }{pick(w.t, "kind", []string{nodeKind, computeKind}), pick(w.t, "host", modelHosts)}
	owner := w.api.owner(id.kind, id.name)
	if owner == nil {
		w.logf("create %s %s", id.kind, id.name)
		w.create(id.kind, id.name)
		return
	}
	if runs := w.api.names(runKind); len(runs) > 0 && chance(w.t, "delete a run", 10) {
		name := pick(w.t, "run", runs)
		w.logf("delete %s", name)
		_ = w.api.delete(runKind, name, nil)
		return
	}
	if chance(w.t, "delete", 10) {
		w.logf("delete %s %s", id.kind, id.name)
		_ = w.api.delete(id.kind, id.name, nil)
		return
	}
	w.change(owner, pick(w.t, "what", changes))
}

func (w *world) create(kind, name string) {
	o := &modelOwner{kind: kind, ObjectMeta: *modelOwnerMeta.DeepCopy(), spec: modelSpec{role: "r1", access: "key", strategy: Strategy{Deploy: true}}}
	o.Name = name
	_ = w.api.create(o)
}

// change makes a new generation of an owner.
func (w *world) change(owner *modelOwner, how func(*world, *modelSpec)) {
	o := owner.DeepCopyObject().(*modelOwner)
	how(w, &o.spec)
	o.Generation++
	w.api.put(o)
	w.logf("%s %s has %s", o.kind, o.Name, describe(o))
}

// changes that a person makes to the specs of owners.
var changes = []func(*world, *modelSpec){
	func(w *world, s *modelSpec) {
		s.versions[pick(w.t, "step", []int{0, 1})] = pick(w.t, "version", []int{0, 1, 2})
	},
	func(w *world, s *modelSpec) { s.versions[1] = pick(w.t, "version", []int{0, 1, 2}) },
	func(w *world, s *modelSpec) { s.inline = chance(w.t, "playbooks that cannot be imported", 2) },
	func(w *world, s *modelSpec) { s.address = pick(w.t, "address", []string{"", "a", "b"}) },
	func(w *world, s *modelSpec) { s.access = pick(w.t, "access", []string{"key", "other key"}) },
	func(w *world, s *modelSpec) { s.token = w.token() },
	func(w *world, s *modelSpec) { s.roleToken = w.token() },
	func(w *world, s *modelSpec) { s.role = pick(w.t, "role", []string{"r1", "r2"}) },
	func(w *world, s *modelSpec) { s.strategy.Deploy = chance(w.t, "deploy", 2) },
	func(w *world, s *modelSpec) { s.strategy.MaxUnavailable = pick(w.t, "maxUnavailable", []int{0, 1, 2}) },
	func(w *world, s *modelSpec) {
		s.strategy.MaxFailures = pick(w.t, "maxFailures", []*int32{nil, ptr.To[int32](0), ptr.To[int32](1)})
	},
	func(w *world, s *modelSpec) { s.strategy.BatchSize = pick(w.t, "batchSize", []int{0, 1, 2}) },
	func(w *world, s *modelSpec) { s.strategy.Tags = pick(w.t, "tags", []string{"", "tag"}) },
	func(w *world, s *modelSpec) { s.strategy.Checks = pick(w.t, "checks", modelChecks) },
	func(w *world, s *modelSpec) { s.strategy.Limit = pick(w.t, "limit", []string{"", "a", "b,c", "!d"}) },
}

// modelChecks are none, some, and those after which what differs is run again. Half of the
// time is near a turn.
var modelChecks = []Checks{{}, {Interval: 2 * time.Minute, Steps: []string{"nova"}, Repair: common.RepairAsk}, {Interval: 2 * time.Minute, Repair: common.RepairAlways}}

// token is a new one, or none.
func (w *world) token() string {
	if chance(w.t, "no token", 2) {
		return ""
	}
	w.tokens++
	return fmt.Sprint("token-", w.tokens)
}

// disturb is what happens to managers.
func (w *world) disturb() {
	w.steps++
	switch rapid.IntRange(0, 5).Draw(w.t, "what happens") {
	case 0:
		m := pick(w.t, "operator", w.leaders)
		if chance(w.t, "the old leader is late", 2) {
			m.shaky = true
			w.before = append(w.before, m)
		}
		w.logf("another leader of operator %d", m.operator)
		w.leaders[m.operator] = newManager(w, m.operator)
	case 1:
		w.before = nil
	case 2:
		w.logf("the runner is replaced")
		old := w.runner
		w.runner = newModelRunner(w)
		w.runner.jobs, w.runner.began, w.runner.done = old.jobs, old.began, old.done
	case 3:
		w.land()
	case 4, 5:
		w.resync()
	}
}

// land lets a late write arrive.
func (w *world) land() {
	if len(w.late) == 0 {
		return
	}
	l := w.late[0]
	w.late = w.late[1:]
	w.logf("late: %s: %v", l.what, l.do())
	w.strayed = len(w.api.tables[runKind].log)
}

// resync looks at every owner, as at the end of the period of resync.
func (w *world) resync() {
	for _, m := range w.leaders {
		for _, kind := range w.operators[m.operator] {
			for _, name := range w.api.names(kind) {
				m.owners.Add(ownerID{kind, modelNamespace, name})
			}
		}
	}
}

// stepID names a step for one owner.
type stepID struct {
	owner types.UID
	step  string
}

// hostState is what is true of a host for a step of an owner.
type hostState struct {
	// hash that is on the host, and restricted the run with tags that succeeded; empty
	// once something else touched the host.
	hash, restricted string
	// certain reports whether nothing but runs that ended well or did nothing has come since.
	certain bool
	// honoured are the tokens that runs have honoured, settled those that ask for
	// nothing because they were overridden by another one.
	honoured, settled map[string]bool
	before            *hostState
}

func (w *world) state(owner types.UID, step string) *hostState {
	id := stepID{owner, step}
	if w.hosts[id] == nil {
		w.hosts[id] = &hostState{honoured: map[string]bool{}, settled: map[string]bool{}}
	}
	return w.hosts[id]
}

// restriction of a run to some tags.
func restrictionOf(run *ansibleeev1.OpenStackAnsibleEE) string {
	return Strategy{Tags: run.Spec.AnsibleTags, SkipTags: run.Spec.AnsibleSkipTags}.limited()
}

func (s *hostState) start() {
	before := *s
	s.hash, s.restricted, s.certain, s.before = "", "", false, &before
}

// end notes how a run ended on the host.
func (s *hostState) end(run *ansibleeev1.OpenStackAnsibleEE, t ansibleeev1.Target, o outcome, started bool) {
	if !started {
		s.certain = false // the run says no more than that it ended
		return
	}
	switch o {
	case unreachable:
		s.hash, s.restricted, s.certain = s.before.hash, s.before.restricted, s.before.certain
	case succeeds:
		s.certain = true
		s.honoured[restrictionOf(run)+t.Rerun] = true
		for _, token := range t.Tokens {
			s.honoured[restrictionOf(run)+token] = true
		}
		if s.restricted = restrictionOf(run); s.restricted == "" || s.before.hash == t.Hash {
			s.hash = t.Hash
		}
		if s.restricted != "" {
			s.restricted += t.Hash
		}
	}
}

// has reports whether the host has what a run would do, and knows it.
func (s *hostState) has(run *ansibleeev1.OpenStackAnsibleEE, t ansibleeev1.Target) bool {
	r := restrictionOf(run)
	return s.certain && (t.Rerun == "" || s.honoured[r+t.Rerun]) && (s.hash == t.Hash || r != "" && s.restricted == r+t.Hash)
}

// checkStart looks at a run that is about to start.
func (w *world) checkStart(run *ansibleeev1.OpenStackAnsibleEE) {
	for _, other := range w.runner.running() {
		if other.UID != run.UID && sharesHost(run, other) {
			w.t.Fatalf("%s starts while %s is at work on a host of it", run.Name, other.Name)
		}
	}
	if run.Spec.Check {
		return
	}
	for _, host := range run.Spec.Targets {
		for _, step := range run.StepNames() {
			t, _ := run.StepTarget(step, host.Host)
			if last := w.refusals[stepID{t.OwnerUID, step}]; w.isRefusedAgain(run, step, t) {
				w.t.Fatalf("%s runs %s on %s though %s was refused with hash %.6s", run.Name, step, t.Host, last.run, t.Hash)
			}
			s := w.state(t.OwnerUID, step)
			if id := (stepID{t.OwnerUID, step}); t.Rerun != "" && t.Rerun == t.Tokens[repairSource] && !w.found[id][t.Rerun] {
				w.t.Fatalf("%s repairs %s on %s for %s, which found nothing there", run.Name, step, t.Host, t.Rerun)
			}
			if s.has(run, t) && !w.strays[stepID{t.OwnerUID, step}] {
				w.t.Fatalf("%s runs %s on %s though it has hash %.6s already and token %q is honoured", run.Name, step, t.Host, t.Hash, t.Rerun)
			}
			s.start()
		}
	}
}

// refusal is a run that a host refused: it does so again with the same inputs.
type refusal struct {
	run, limited string
	uid          types.UID
	target       ansibleeev1.Target
}

// noteRefusal notes how a run of a step ended last on a host.
func (w *world) noteRefusal(run *ansibleeev1.OpenStackAnsibleEE, step string, t ansibleeev1.Target, o outcome) {
	id := stepID{t.OwnerUID, step}
	delete(w.refusals, id)
	if o == refuses && !run.Spec.Removal {
		w.refusals[id] = refusal{run.Name, restrictionOf(run), run.UID, t}
	}
}

// isRefusedAgain reports whether the last run of a step on a host was refused, is there to be
// seen, and had the same inputs.
func (w *world) isRefusedAgain(run *ansibleeev1.OpenStackAnsibleEE, step string, t ansibleeev1.Target) bool {
	last, refused := w.refusals[stepID{t.OwnerUID, step}]
	if !refused || w.strays[stepID{t.OwnerUID, step}] {
		return false
	}
	stored := w.api.run(last.run)
	return stored != nil && stored.UID == last.uid && last.target.Access == t.Access && last.limited == restrictionOf(run) &&
		last.target.Hash == t.Hash && honoured(last.target.Rerun, last.target.Tokens, t.Rerun)
}

// checkState looks at what the engine answers an owner.
func (w *world) checkState(m *manager, o *modelOwner, targets []Target, state State) {
	if state.Phase != Converged {
		return
	}
	for i := range targets {
		t := &targets[i]
		s := w.state(t.OwnerUID, t.Step.Name)
		if s.hash != t.Hash() || t.Rerun != "" && !s.honoured[t.Rerun] && !s.settled[t.Rerun] {
			w.t.Fatalf("%s: %s %s is Converged, but for step %s the host has hash %.6s and is to have %.6s, with token %q", m.name(), o.kind, o.Name, t.Step.Name, s.hash, t.Hash(), t.Rerun)
		}
		for _, token := range t.Tokens {
			s.settled[token] = true
		}
	}
}

// checkNew looks at a run that an engine is about to create.
func (w *world) checkNew(m *manager, run *ansibleeev1.OpenStackAnsibleEE) {
	said := m.claimed[run.Name]
	if run.Spec.Check {
		said.checkCheck(m, run)
		return
	}
	for _, t := range run.Spec.Targets {
		for _, step := range run.StepNames() {
			// An old leader, which knows nothing of the new one, may make a run for the host as
			// well: then both of them are carried out.
			if m.shaky {
				w.strays[stepID{t.OwnerUID, step}] = true
			}
		}
		target := said.target(run, t)
		if target == nil {
			w.t.Fatalf("%s starts %s with %s, which its owner does not wait for", m.name(), run.Name, t.Host)
		}
		if !retries(t) && !w.overlap(m) {
			w.checkLimits(m, said, run, t, target.Strategy)
		}
	}
}

// checkCheck looks at a check that an engine is about to create: of hosts that have converged,
// whose owners want it.
func (all sayings) checkCheck(m *manager, run *ansibleeev1.OpenStackAnsibleEE) {
	for _, host := range run.Spec.Targets {
		said := all[ownerID{run.Spec.OwnerKind, run.Namespace, host.Host}]
		for _, step := range run.StepNames() {
			t, _ := run.StepTarget(step, host.Host)
			if said == nil || said.state.Phase != Converged || t.Hash != "" || t.Rerun != "" || !slices.ContainsFunc(said.targets, func(w Target) bool {
				return w.Step.Name == step && w.OwnerUID == t.OwnerUID && w.Strategy.Deploy && w.Strategy.Checks.covers(w.Step)
			}) {
				m.world.t.Fatalf("%s starts %s with %s, of which its owner wants no check of %s", m.name(), run.Name, t.Host, step)
			}
		}
	}
}

// overlap reports whether leaders of before may do something still, or did something
// that the cache of the manager did not show when it made its plan.
func (w *world) overlap(m *manager) bool { return len(w.before)+len(w.late) > 0 || m.saw < w.strayed }

// retries reports whether a run tries a host again that has failed.
func retries(t ansibleeev1.Target) bool {
	return t.Attempt > 1 || slices.ContainsFunc(t.Steps, func(s ansibleeev1.TargetStep) bool { return s.Attempt > 1 })
}

// target is what an owner has asked for with the run, for its first step. It has asked
// for all of them, in this order.
func (all sayings) target(run *ansibleeev1.OpenStackAnsibleEE, host ansibleeev1.Target) *Target {
	said := all[ownerID{run.Spec.OwnerKind, run.Namespace, host.Host}]
	if said == nil || !slices.Contains([]Phase{Pending, Failed, RolloutHeld}, said.state.Phase) || said.state.Step != run.StepNames()[0] {
		return nil
	}
	var first *Target
	rest := said.targets
	for _, step := range run.StepNames() {
		t, _ := run.StepTarget(step, host.Host)
		i := slices.IndexFunc(rest, func(w Target) bool {
			matched, _ := MatchesLimit(w.Strategy.Limit, t.Host)
			return w.Step.Name == step && w.Role == run.Spec.Role && w.Hash() == t.Hash && w.OwnerUID == t.OwnerUID && w.Strategy.Deploy && (w.Strategy.Limit == "" || matched)
		})
		if i < 0 {
			return nil
		}
		if first == nil {
			first = &rest[i]
		}
		rest = rest[i+1:]
	}
	return first
}

// checkLimits counts the hosts of the role that are in a run or have failed, with those of the run that have no higher limit.
func (w *world) checkLimits(m *manager, said sayings, run *ansibleeev1.OpenStackAnsibleEE, t ansibleeev1.Target, s Strategy) {
	unavailable, failed := map[string]bool{}, w.failed(m, groupOf(run))
	// One with a higher limit may have been added after this one in the same plan.
	first := func(run *ansibleeev1.OpenStackAnsibleEE, t ansibleeev1.Target) bool {
		target := said.target(run, t)
		return target != nil && target.Strategy.MaxUnavailable > 0 && target.Strategy.MaxUnavailable <= s.MaxUnavailable
	}
	for _, t := range run.Spec.Targets {
		if first(run, t) {
			unavailable[t.Host] = true
		}
	}
	for _, other := range w.runsOf(groupOf(run)) {
		for _, t := range other.Spec.Targets {
			if !m.made[other.Name] || first(other, t) {
				unavailable[t.Host] = true
			}
			if retries(t) {
				failed[t.Host] = true
			}
		}
	}
	maps.Copy(unavailable, failed)
	if s.MaxUnavailable > 0 && len(unavailable) > s.MaxUnavailable {
		w.t.Fatalf("%s starts %s with %s: %v of role %s are unavailable then and maxUnavailable is %d", m.name(), run.Name, t.Host, keys(unavailable), run.Spec.Role, s.MaxUnavailable)
	}
	if s.MaxFailures != nil && len(failed) > int(*s.MaxFailures) {
		w.t.Fatalf("%s starts %s with %s: %v of role %s have failed and maxFailures is %d", m.name(), run.Name, t.Host, keys(failed), run.Spec.Role, *s.MaxFailures)
	}
}

func keys(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }

// runsOf are the runs of a group that have not ended.
func (w *world) runsOf(g Group) []*ansibleeev1.OpenStackAnsibleEE {
	var runs []*ansibleeev1.OpenStackAnsibleEE
	for _, name := range w.api.names(runKind) {
		if run := w.api.run(name); !run.Finished() && groupOf(run) == g {
			runs = append(runs, run)
		}
	}
	return runs
}

// failed hosts of a role are those whose last run failed, as far as the manager can
// see, and whose owners still want what it was for.
func (w *world) failed(m *manager, g Group) map[string]bool {
	failed := map[string]bool{}
	for _, name := range w.api.names(g.Kind) {
		o := w.api.owner(g.Kind, name)
		if o.spec.role != g.Role || o.DeletionTimestamp != nil || !o.spec.strategy.Deploy {
			continue
		}
		said := m.said[o.id()]
		if said == nil || w.strays[stepID{o.UID, said.state.Step}] {
			continue // a run of an old leader that is at work can hide that a later one failed
		}
		if slices.Contains([]Phase{Failed, Refused, Running}, said.state.Phase) && m.lastFailed(o, said.state.Step) {
			failed[name] = true
		}
	}
	return failed
}

// lastFailed reports whether the last run of the step for the owner ended badly, for
// what the owner wants.
func (m *manager) lastFailed(o *modelOwner, step string) bool {
	var last *run
	for _, aee := range m.cache.runs {
		if r := newRun(aee, step, o.Name); !aee.Spec.Check && r.target.OwnerUID == o.UID && !r.void && (last == nil || r.target.Serial > last.target.Serial) {
			last = r
		}
	}
	if last == nil || !last.finished || last.converged() {
		return false
	}
	return slices.ContainsFunc(targetsOf(o), func(t Target) bool {
		return t.Step.Name == step && isAskedFor(last, want{hash: t.Hash(), rerun: t.Rerun, tokens: t.Tokens, limited: t.Strategy.limited()})
	})
}

// runToEnd lets nothing happen any more but what follows from what has happened, and
// checks that everybody gets where the specs say.
func (w *world) runToEnd() {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(w.t, "order"), 0))
	for _, host := range modelHosts {
		w.stubborn[host] = chance(w.t, host+" is stubborn", 8)
		w.obstinacy[host] = pick(w.t, host+" when stubborn", []outcome{fails, refuses})
	}
	w.before, w.calm = nil, true
	w.logf("nothing happens any more; stubborn: %v", w.stubborn)
	if chance(w.t, "late writes arrive at rest", 2) {
		w.drain(rng)
	}
	for len(w.late) > 0 {
		w.land()
	}
	w.drain(rng)
	for _, kind := range []string{nodeKind, computeKind} {
		for _, name := range w.api.names(kind) {
			w.change(w.api.owner(kind, name), func(_ *world, s *modelSpec) { s.strategy.Checks = Checks{} })
		}
	}
	w.drain(rng)
	w.checkRest()
}

// drain works until there is nothing to do, or only to try hosts again that fail for
// hours.
func (w *world) drain(rng *rand.Rand) {
	end := w.clock.Now().Add(3 * time.Hour)
	for n := 0; ; n++ {
		if n > 100_000 {
			w.t.Fatalf("there is always something to do")
		}
		if w.work(rng.IntN) {
			continue
		}
		next, found := w.next()
		if !found || next.After(end) && next.Sub(w.clock.Now()) > time.Minute {
			return
		}
		w.wait(0)
	}
}

// checkRest looks at everything once there is nothing to do.
func (w *world) checkRest() {
	for _, name := range w.api.names(runKind) {
		if run := w.api.run(name); run.DeletionTimestamp != nil || !run.Finished() {
			w.t.Fatalf("%s is left: deleted %v, finished %v", name, run.DeletionTimestamp != nil, run.Finished())
		}
	}
	for _, m := range w.leaders {
		for _, kind := range w.operators[m.operator] {
			for _, name := range w.api.names(kind) {
				if why := w.unjustified(m, w.api.owner(kind, name)); why != "" {
					w.t.Fatalf("%s %s rests at %s: %s", kind, name, w.api.owner(kind, name).phase, why)
				}
			}
		}
		if len(m.started) > 0 {
			w.t.Fatalf("%s still waits for the cache to show %v", m.name(), m.started)
		}
	}
	before := w.api.version
	w.resync()
	for w.work(func(int) int { return 0 }) {
	}
	if n := w.api.version - before; n > 0 {
		w.t.Fatalf("a resync at rest makes %d writes", n)
	}
}

// unjustified says why an owner must not rest as it does; empty if it may.
func (w *world) unjustified(m *manager, o *modelOwner) string {
	if o.DeletionTimestamp != nil {
		if w.stubborn[o.Name] && (o.phase == RetriesExhausted || o.phase == Failed) || m.said[o.id()] != nil && o.phase == RetriesExhausted {
			return ""
		}
		return "it is being deleted"
	}
	matched, err := MatchesLimit(o.spec.strategy.Limit, o.Name)
	may := map[Phase]bool{
		Converged:   true,
		Paused:      !o.spec.strategy.Deploy,
		Excluded:    o.spec.strategy.Limit != "" && !matched && err == nil,
		Limited:     o.spec.strategy.Tags != "",
		Failed:      w.stubborn[o.Name] && w.planned(m, o),
		Refused:     w.isRefusedNow(o),
		RolloutHeld: w.blocked(o),
	}
	if !may[o.phase] {
		return "nothing of " + describe(o) + " says so"
	}
	if o.phase == Converged {
		w.checkState(m, o, targetsOf(o), State{Phase: Converged})
	}
	return ""
}

// isRefusedNow reports whether the host of an owner refused what the owner wants of a step.
func (w *world) isRefusedNow(o *modelOwner) bool {
	return slices.ContainsFunc(targetsOf(o), func(t Target) bool {
		last, refused := w.refusals[stepID{o.UID, t.Step.Name}]
		return refused && last.target.Hash == t.Hash()
	})
}

// planned reports whether the group of an owner that failed is going to be planned.
func (w *world) planned(m *manager, o *modelOwner) bool {
	for g := range m.groups.at {
		if g.Kind == o.kind && g.Role == o.spec.role && !g.Removal && !g.Check {
			return true
		}
	}
	return false
}

// blocked reports whether another host of the role keeps failing, so that the limits
// hold this one.
func (w *world) blocked(o *modelOwner) bool {
	s := o.spec.strategy
	return (s.MaxFailures != nil || s.MaxUnavailable > 0) && slices.ContainsFunc(w.api.names(o.kind), func(name string) bool {
		other := w.api.owner(o.kind, name)
		stuck := other.phase == Refused || w.stubborn[name] && strings.HasPrefix(string(other.phase), string(Failed))
		return name != o.Name && stuck && other.spec.role == o.spec.role
	})
}
