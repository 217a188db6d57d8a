package edpm

import (
	"context"
	"fmt"
	"sync"
	"time"

	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// Owner is a kind whose objects own targets.
type Owner struct {
	// Kind of the objects.
	Kind string
	// New returns an empty object.
	New func() client.Object
	// Ledger of an object.
	Ledger func(client.Object) *edpmv1.Ledger
}

// Options of the engine. The zero value is not useful; see DefaultOptions.
type Options struct {
	// Debounce is how long no host may join a group before a run is started
	// that is not full.
	Debounce time.Duration
	// Patience is how long hosts may keep joining.
	Patience time.Duration
	// Backoff of failed hosts.
	Backoff Backoff
	// History is how many finished runs of a step are kept per role.
	History int
	Clock   clock.PassiveClock
}

// DefaultOptions for production.
func DefaultOptions() Options {
	return Options{
		Debounce: time.Second, Patience: 10 * time.Second,
		Backoff: Backoff{Base: 15 * time.Second, Max: 10 * time.Minute},
		History: 10, Clock: clock.RealClock{},
	}
}

// Engine gathers targets into runs. Register owners before the manager starts.
type Engine struct {
	Options
	client client.Client
	live   client.Reader
	owners map[string]Owner
	wake   map[string]chan event.GenericEvent
	states *states

	mu     sync.Mutex
	groups map[Group]*group
	// offered says in which group a target waits.
	offered map[Key]Group
	// launched are runs that were created and that the cache has not shown yet.
	launched map[Key]launch
	queue    workqueue.TypedRateLimitingInterface[Group]
}

type group struct {
	offers      map[string]*offer
	first, last time.Time
	held        map[string]string
}

type launch struct {
	run
	at time.Time
}

// New returns an engine that writes with c and checks doubts with live, a
// reader that does not cache.
func New(c client.Client, live client.Reader, opts Options) *Engine {
	return &Engine{
		Options: opts, client: c, live: live,
		owners: map[string]Owner{}, wake: map[string]chan event.GenericEvent{}, states: newStates(),
		groups: map[Group]*group{}, offered: map[Key]Group{}, launched: map[Key]launch{},
	}
}

// Register makes a kind known whose objects own targets.
func (e *Engine) Register(o Owner) {
	e.owners[o.Kind] = o
	e.wake[o.Kind] = make(chan event.GenericEvent, 1024)
}

// Converge brings a host through the given steps in order. It writes into the
// ledger what has run successfully, makes the engine run what comes next, and
// returns the state of the first step that has not converged, or of the last
// one. All targets are of one host.
func (e *Engine) Converge(ctx context.Context, ledger *edpmv1.Ledger, targets ...Target) (State, error) {
	state := State{Phase: Converged}
	for i := range targets {
		var err error
		if state, err = e.converge(ctx, ledger, &targets[i]); err != nil || state.Phase != Converged {
			e.withdraw(targets[i+1:])
			return state, err
		}
	}
	return state, nil
}

func (e *Engine) converge(ctx context.Context, ledger *edpmv1.Ledger, t *Target) (State, error) {
	newest, err := e.newest(ctx, t.Key(), t.OwnerUID)
	if err != nil {
		return State{}, err
	}
	note(ledger, t.Step.Name, newest)
	w := want{hash: t.Hash(), access: t.Access(), rerun: t.Rerun, limited: t.Strategy.limited()}
	state := judge(ledger, t.Step.Name, newest, w, e.Backoff)
	state.Step = t.Step.Name
	if err := e.act(t, w, &state, nextSerial(ledger, t.Step.Name, newest)); err != nil {
		return State{}, err
	}
	e.states.set(t.Key(), t.Cell, state.Phase, e.Clock.Now())
	return state, nil
}

// act offers the target for a run, or takes it back.
func (e *Engine) act(t *Target, w want, state *State, serial int64) error {
	if state.Phase != Pending && state.Phase != Failed {
		e.withdraw([]Target{*t})
		e.nudge(t.Group())
		return nil
	}
	if restricted, err := restriction(t, state); err != nil || restricted != "" {
		e.withdraw([]Target{*t})
		state.Phase = restricted
		return err
	}
	o := &offer{Target: *t, hash: w.hash, access: w.access, podKey: t.podKey(), serial: serial, attempt: 1}
	if state.Phase == Failed {
		o.attempt, o.notBefore = state.Attempt+1, state.Retry
	}
	if reason := e.offer(o); reason != "" {
		state.Phase, state.Message = Held, reason
	}
	return nil
}

// restriction is the phase of a target that may not be run.
func restriction(t *Target, state *State) (Phase, error) {
	if !t.Strategy.Deploy {
		return Paused, nil
	}
	if t.MaxAttempts > 0 && state.Attempt >= t.MaxAttempts {
		return GaveUp, nil
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

// offer makes a target wait for a run and returns why it is held, if it is.
func (e *Engine) offer(o *offer) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := o.Group()
	if old, ok := e.offered[o.Key()]; ok && old != g {
		delete(e.groups[old].offers, o.Host)
	}
	if e.groups[g] == nil {
		e.groups[g] = &group{offers: map[string]*offer{}, held: map[string]string{}}
	}
	grp, now := e.groups[g], e.Clock.Now()
	if old := grp.offers[o.Host]; old == nil || old.hash != o.hash || old.attempt != o.attempt || old.Rerun != o.Rerun {
		if len(grp.offers) == 0 {
			grp.first = now
		}
		grp.last = now
		e.enqueue(g, e.Debounce)
	} else if !old.notBefore.Equal(o.notBefore) {
		e.enqueue(g, 0)
	}
	grp.offers[o.Host], e.offered[o.Key()] = o, g
	return grp.held[o.Host]
}

// withdraw takes targets back that no longer wait for a run.
func (e *Engine) withdraw(targets []Target) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range targets {
		e.drop(targets[i].Key())
	}
}

// drop forgets an offer. The caller holds the lock.
func (e *Engine) drop(key Key) {
	g, ok := e.offered[key]
	if !ok {
		return
	}
	delete(e.offered, key)
	delete(e.groups[g].offers, key.Host)
	delete(e.groups[g].held, key.Host)
	if len(e.groups[g].offers) == 0 {
		delete(e.groups, g)
	}
}

// Forget takes back everything that was wanted for the given steps of a host.
// Owners call it when they are gone or about to go.
func (e *Engine) Forget(namespace, host string, steps ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, step := range steps {
		e.drop(Key{namespace, step, host})
		e.states.remove(Key{namespace, step, host})
	}
}

// nudge lets the group be planned again, for example because a run can be pruned.
func (e *Engine) nudge(g Group) {
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

// Touched tells whether anything was ever run for the steps on the host, as far
// as the ledger and the existing runs tell.
func (e *Engine) Touched(ctx context.Context, ledger *edpmv1.Ledger, owner client.Object, steps ...string) (bool, error) {
	for _, step := range steps {
		newest, err := e.newest(ctx, Key{owner.GetNamespace(), step, owner.GetName()}, owner.GetUID())
		if err != nil || newest != nil || ledger.Hash[step] != "" {
			return true, err
		}
	}
	return false, nil
}

// newest returns the run with the highest serial number for a step of a host
// and its present owner, or nil. A run that was just created counts before the
// cache shows it.
func (e *Engine) newest(ctx context.Context, key Key, owner types.UID) (*run, error) {
	runs, err := e.runsOf(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("listing the runs of %s on %s: %w", key.Step, key.Host, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var newest *run
	if l, ok := e.launched[key]; ok && l.target.OwnerUID == owner {
		newest = &l.run
	}
	for i := range runs {
		r := newRun(&runs[i], key.Host)
		if r.target.OwnerUID == owner && (newest == nil || r.target.Serial >= newest.target.Serial) {
			newest = r
		}
	}
	return newest, nil
}
