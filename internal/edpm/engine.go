package edpm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
)

// +kubebuilder:rbac:groups=ansibleee.openstack.org,resources=openstackansibleees,verbs=get;list;watch;create;delete;patch
// The webhook of runs asks who may set their targets. The Secrets have their inputs.
// +kubebuilder:rbac:groups=ansibleee.openstack.org,resources=openstackansibleees/targets,verbs=update
// +kubebuilder:rbac:groups="",roleName=manager-secrets-role,resources=secrets,verbs=get;list;create;delete

// Options of the engine. The zero value is not useful; see DefaultOptions.
type Options struct {
	// Debounce is how long no host may join a group before a run is started
	// that is not full.
	Debounce time.Duration
	// Patience is how long hosts may keep joining, and how long a run waits for
	// the next host of its role that is expected.
	Patience time.Duration
	// Backoff of failed hosts.
	Backoff Backoff
	// History is how many finished runs of a step are kept per role.
	History int
	// HistoryTotal is how many finished runs are kept of all roles and steps.
	HistoryTotal int
	// MaxRuns is the most runs that are under way in all namespaces; 0 means any number.
	MaxRuns int
	// Members returns how many hosts a role has. It is asked for every plan, so
	// that it has to count nothing.
	Members func(namespace, role string) int
	Clock   clock.PassiveClock
}

// DefaultOptions for production.
func DefaultOptions() Options {
	return Options{
		Debounce: time.Second, Patience: 30 * time.Second,
		Backoff: Backoff{Base: 15 * time.Second, Max: 10 * time.Minute},
		History: 10, HistoryTotal: 2000, MaxRuns: 20, Clock: clock.RealClock{},
	}
}

// Engine gathers targets into runs. Register owners before the manager starts.
//
// It coordinates parts that have no lock and, but for the two that have no state, no
// client: each can be read alone.
type Engine struct {
	Options
	runs   runStore
	owners owners
	states *states

	// mu guards what follows.
	mu sync.Mutex
	// planner has the targets that wait for a run, barriers the owners that may be
	// about to have some.
	planner  planner
	barriers barriers
	// started are the runs that the cache is expected to show.
	started startedRuns
	// verdicts are what owners have said of runs.
	verdicts verdicts
	queue    workqueue.TypedRateLimitingInterface[Group]
}

// New returns an engine that writes with c and checks expectations with live, a
// reader that does not cache.
func New(c client.Client, live client.Reader, opts Options) *Engine {
	e := &Engine{
		Options: opts, runs: runStore{client: c, live: live}, owners: newOwners(c), states: newStates(),
		started: startedRuns{}, verdicts: newVerdicts(),
	}
	e.planner = newPlanner(&e.Options, e.enqueue)
	e.barriers = newBarriers(&e.Options, e.planner.wakeRole)
	return e
}

// Register makes a kind known whose objects own targets.
func (e *Engine) Register(o Owner) { e.owners.register(o) }

// Converge brings a host through the given steps in order. It writes into the
// ledger what has run successfully and when a failed step is tried again, makes the
// engine run what is due, in one run as far as that is possible, and returns the
// state of the first step that is to be run or is running. When there is none it is
// that of the first step that was restricted by tags, else of the last one. All
// targets are of one host.
func (e *Engine) Converge(ctx context.Context, ledger *common.Ledger, targets ...Target) (State, error) {
	state, err := e.firstDue(ctx, ledger, targets)
	if err != nil {
		return State{}, err // what was wanted before still is: others may be held because of it
	}
	if len(targets) > 0 {
		e.conclude(targets[0].owner(), state)
	}
	ledger.NextRetry = state.nextRetry()
	return state, nil
}

func (e *Engine) firstDue(ctx context.Context, ledger *common.Ledger, targets []Target) (State, error) {
	result := State{Phase: Converged}
	var all, due []*assessment
	for i := range targets {
		a, err := e.assess(ctx, ledger, &targets[i])
		if err != nil {
			return State{}, err
		}
		all = append(all, a)
		switch {
		case a.state.Phase != Converged && a.state.Phase != Limited:
			due = append(due, a)
		case len(due) > 0: // it has run already
		case result.Phase != Limited:
			result = a.state
		case a.state.Phase == Limited:
			result.More = append(result.More, a.state.Step)
		}
	}
	if err := e.act(ledger, due); err != nil {
		return State{}, err
	}
	keepDrift(ledger, targets)
	for _, a := range all {
		e.states.set(a.Key(), a.Cell, a.state.Phase, ledger.DriftOf(a.Step.Name).Differs(), e.Clock.Now())
		e.acknowledge(a.Key(), a.last)
	}
	e.yield(all, len(due) > 0)
	switch {
	case len(due) > 0:
		result = together(due)
		for _, a := range due {
			result.Due = append(result.Due, a.Step.Name)
		}
	case len(all) > 0:
		e.requeue(all[0].Group())
		result.pending = e.check(ctx, ledger, all)
	}
	return result, nil
}

// together is the state of the first step, with those that are running in the same run.
func together(due []*assessment) State {
	first := due[0].state
	for _, a := range due[1:] {
		if first.Phase == Running && a.state.Run == first.Run {
			first.More = append(first.More, a.state.Step)
		}
	}
	return first
}

// assessment is where a step of a host stands.
type assessment struct {
	*Target
	want
	suspicion
	state State
	// last run that may have touched the host, nil if there is none.
	last *run
	// serial number of the next run.
	serial int64
	// ran reports whether the host has done the step before.
	ran    bool
	checks checked
}

// assess notes what runs of a step did, whether or not it is the one that comes next:
// as long as that is missing, such runs stay when a user deletes them, and the
// failed ones hold other hosts back.
func (e *Engine) assess(ctx context.Context, ledger *common.Ledger, t *Target) (*assessment, error) {
	t.Rerun, t.Tokens = ShortToken(t.Rerun), shortTokens(t.Tokens)
	all, err := e.history(ctx, t.Key(), t.OwnerUID)
	if err != nil {
		return nil, err
	}
	runs := effective(all)
	if t.HostKey != "" {
		ledger.HostKey = t.HostKey
	}
	recordRuns(ledger, t.Step.Name, runs)
	checks, err := e.readChecks(ctx, t)
	if err != nil {
		return nil, err
	}
	recordCheck(ledger, t.Step.Name, checks)
	t.askRepair(ledger)
	w := t.want()
	state := judge(ledger, t.Step.Name, runs, w, e.Backoff)
	state.Step = t.Step.Name
	if t.isRefused(state, newest(runs)) {
		state.Phase = Refused
	}
	if state.Phase == Running {
		e.review(ledger, t, w, runs)
	}
	state.remember(ledger, t.Step.Name, t.Tokens)
	return &assessment{
		Target: t, want: w, state: state, last: newest(runs),
		serial: nextSerial(ledger, t.Step.Name, all), suspicion: t.suspect(ledger, newest(runs)),
		ran: ledger.Hash[t.Step.Name] != "", checks: checks,
	}, nil
}

// acknowledge notes that an owner knows how its last run has ended. Its host
// waits again if it is to be tried again now. If it is not, a run that failed no
// longer holds others back: they are planned again.
func (e *Engine) acknowledge(key Key, last *run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.verdicts.acknowledge(key, last) {
		e.enqueue(groupOf(last.object), e.Debounce)
	}
}

// act adds a host to those that wait for a run of the steps that are due, or takes it back.
func (e *Engine) act(ledger *common.Ledger, due []*assessment) error {
	if len(due) == 0 {
		return nil
	}
	first, state := due[0], &due[0].state
	if state.Phase == Refused {
		return e.rest(first.Target, state)
	}
	if state.Phase != Pending && !state.hasFailed() {
		e.requeue(first.Group())
		return nil
	}
	if large := first.tooLarge(); large != "" {
		state.Phase, state.Message = TooLarge, large
		return nil
	}
	if restricted, err := restriction(first.Target, state); err != nil || restricted != "" {
		state.Phase = restricted
		return err
	}
	state.pending = true
	switch reason, busy := e.addPending(newPendingTarget(ledger.HostKey, due, e.Clock.Now())); {
	case reason == "" && busy == "":
	case reason == "" && state.hasFailed():
		state.Message += "; the next attempt waits for what it would interrupt: " + busy
	case reason == "":
		state.Phase, state.Message = HostBusy, busy
	case state.hasFailed():
		state.Message += "; the next attempt is held: " + reason
	default:
		state.Phase, state.Message = RolloutHeld, reason
	}
	return nil
}

// rest notes that a host is not tried again before its owner wants something else. It
// counts as failed until then, unless it may not be run.
func (e *Engine) rest(t *Target, state *State) error {
	if restricted, err := restriction(t, state); err != nil || restricted != "" {
		state.Phase = restricted
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.planner.rest(t.owner(), place{t.Group(), t.Host})
	return nil
}

// restriction is the phase of a target that may not be run.
func restriction(t *Target, state *State) (Phase, error) {
	if !t.Strategy.Deploy {
		return Paused, nil
	}
	if t.MaxAttempts > 0 && state.Attempt >= t.MaxAttempts && !state.fixed {
		return RetriesExhausted, nil
	}
	if t.Strategy.Limit == "" {
		return "", nil
	}
	matched, err := MatchesLimit(t.Strategy.Limit, t.Host)
	if err != nil || matched {
		return "", err
	}
	return Excluded, nil
}

// addPending makes a target wait for a run and returns why it is held, if it is, and what its
// run would interrupt, if anything.
func (e *Engine) addPending(o *pendingTarget) (held, busy string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.planner.add(o, e.barriers.expected[o.owner()]), o.busy
}

// Withdraw takes back whatever the owner waits for. Owners call it when they
// cannot say any more what they want, for example because an input is missing.
func (e *Engine) Withdraw(kind, namespace, owner string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := ownerID{kind, namespace, owner}
	e.planner.drop(id)
	e.planner.resume(id)
	e.barriers.reported(id)
}

// Await takes back whatever the owner waits for, and continues to expect it: it
// does not exist, and is about to be created.
func (e *Engine) Await(kind, namespace, owner string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.planner.drop(ownerID{kind, namespace, owner})
	e.planner.resume(ownerID{kind, namespace, owner})
}

// conclude notes that an owner has been looked at, and takes back what it waited
// for unless it has just asked for it.
func (e *Engine) conclude(id ownerID, state State) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !state.pending {
		e.planner.drop(id)
	}
	if state.Phase != Refused {
		e.planner.resume(id)
	}
	e.barriers.reported(id)
}

// Forget takes back everything that was wanted for the given steps of a host.
// Owners call it when they are about to be removed.
func (e *Engine) Forget(ctx context.Context, kind, namespace, host string, steps ...string) error {
	for _, step := range steps {
		for _, check := range []bool{false, true} {
			key := Key{namespace, kind, step, host, check}
			runs, err := e.runs.ofStep(ctx, key)
			if err != nil {
				return err
			}
			e.forget(key, runs)
		}
	}
	return nil
}

func (e *Engine) forget(key Key, runs []ansibleeev1.OpenStackAnsibleEE) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range runs {
		e.refuse(key, &runs[i], true)
	}
	e.states.remove(key)
	e.verdicts.forget(key)
	e.planner.forget(key)
}

// refuse notes whether the owner of a target does not want a run, which is then taken
// back if it can be. The caller holds the lock.
func (e *Engine) refuse(key Key, run *ansibleeev1.OpenStackAnsibleEE, refused bool) {
	if e.verdicts.refuse(key, run, refused) {
		e.enqueue(groupOf(run), e.Debounce)
	}
}

// MayInterrupt returns how many hosts of a role may be unavailable at a time for a step that
// interrupts a service: at least one.
func (e *Engine) MayInterrupt(s Strategy, namespace, role string) int {
	members := 0
	if e.Members != nil {
		members = e.Members(namespace, role)
	}
	return s.interrupting().unavailableLimit(members)
}

// requeue lets the group be planned again, for example because a run can be pruned.
func (e *Engine) requeue(g Group) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.enqueue(g, 2*e.Debounce)
}

// enqueue the group once the controller is running. The caller holds the lock.
func (e *Engine) enqueue(g Group, after time.Duration) {
	if e.queue != nil {
		e.queue.AddAfter(g, after)
	}
}

// Touched reports whether anything was ever run for the steps on the host, as far
// as the ledger and the existing runs tell.
//
// It notes in the ledger what the runs did: as long as that is missing, runs that
// a user deletes stay.
func (e *Engine) Touched(ctx context.Context, kind string, ledger *common.Ledger, owner client.Object, steps ...string) (bool, error) {
	touched := ledger.Unknown()
	for _, step := range steps {
		runs, err := e.history(ctx, e.owners.keyOf(kind, owner, step), owner.GetUID())
		if err != nil {
			return true, err
		}
		recordRuns(ledger, step, runs)
		touched = touched || len(effective(runs)) > 0 || lastSerial(ledger, step) > 0
	}
	return touched, nil
}

// Unfinished returns the name of a run of one of the steps for the owner that has
// not ended; empty if there is none.
func (e *Engine) Unfinished(ctx context.Context, kind string, owner client.Object, steps ...string) (string, error) {
	for _, step := range steps {
		runs, err := e.history(ctx, e.owners.keyOf(kind, owner, step), owner.GetUID())
		if err != nil {
			return "", err
		}
		for _, r := range runs {
			if !r.finished {
				return r.name, nil
			}
		}
	}
	return "", nil
}

// Others returns the objects of other kinds that own targets on the host, and for
// which something was run or is being run there, as kind/name.
func (e *Engine) Others(ctx context.Context, kind, namespace, host string) ([]string, error) {
	running, err := e.runs.list(ctx, namespace, busyIndex, host)
	if err != nil {
		return nil, fmt.Errorf("listing the runs on %s: %w", host, err)
	}
	var found []string
	for _, other := range slices.Sorted(maps.Keys(e.owners.kinds)) {
		if other == kind {
			continue
		}
		objects, err := e.owners.onHost(ctx, other, namespace, host)
		if err != nil {
			return nil, fmt.Errorf("reading %s of %s: %w", other, host, err)
		}
		for _, obj := range objects {
			busy := slices.ContainsFunc(running, func(r ansibleeev1.OpenStackAnsibleEE) bool {
				t, _ := r.Target(host)
				return r.Spec.OwnerKind == other && t.OwnerName() == obj.GetName()
			})
			if busy || len(e.owners.kinds[other].Ledger(obj).Runs) > 0 {
				found = append(found, other+"/"+obj.GetName())
			}
		}
	}
	return found, nil
}

// history returns the runs of a step of a host for its present owner, the oldest
// first. A run that was just created counts before the cache shows it.
func (e *Engine) history(ctx context.Context, key Key, owner types.UID) ([]*run, error) {
	e.mu.Lock()
	l, unseen := e.started[key] // before the cache is read, which may show it at any time
	e.mu.Unlock()
	objects, err := e.runs.ofStep(ctx, key)
	if err != nil {
		return nil, err
	}
	var runs []*run
	for i := range objects {
		if r := newRun(&objects[i], key.Step, key.Host); r.target.OwnerUID == owner {
			runs, unseen = append(runs, r), unseen && r.name != l.name
		}
	}
	if unseen && l.target.OwnerUID == owner {
		runs = append(runs, &l.run)
	}
	inOrder(runs)
	return runs, nil
}
