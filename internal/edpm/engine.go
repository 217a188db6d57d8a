package edpm

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm"
)

// +kubebuilder:rbac:groups=ansibleee.openstack.org,resources=openstackansibleees,verbs=get;list;watch;create;delete;patch
// The webhook of runs asks who may set their targets. The Secrets have their inputs.
// +kubebuilder:rbac:groups=ansibleee.openstack.org,resources=openstackansibleees/targets,verbs=update
// +kubebuilder:rbac:groups="",roleName=manager-secrets-role,resources=secrets,verbs=get;list;create;delete

// Owner is a kind whose objects own targets.
type Owner struct {
	// Kind of the objects.
	Kind string
	// New returns an empty object, List an empty list of them.
	New  func() client.Object
	List func() client.ObjectList
	// Ledger of an object.
	Ledger func(client.Object) *edpmv1.Ledger
}

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
type Engine struct {
	Options
	client client.Client
	live   client.Reader
	owners map[string]Owner
	wake   map[string]chan event.GenericEvent
	states *states

	mu     sync.Mutex
	groups map[Group]*group
	// offered says in which group an owner waits for a run.
	offered map[ownerID]Group
	// crews are the roles with owners that are expected, by expected.
	crews    map[crew]*expectation
	expected map[ownerID]announcement
	// judged is the newest run that each owner has heard of.
	judged map[Key]string
	// launched are runs that were created and that the cache has not shown yet.
	launched map[Key]launch
	// refused are runs that have not started and that the owner does not want.
	refused map[Key]string
	// reserved is how many runs are about to be started for the groups that are
	// being planned, queued those that wait for other runs to end.
	reserved map[Group]int
	queued   map[Group]bool
	queue    workqueue.TypedRateLimitingInterface[Group]
}

type group struct {
	offers map[string]*offer
	// first and last time that a target joined since none waited for others.
	first, last time.Time
	held        map[string]string
	// named are the hosts that held has the names of.
	named map[string]naming
}

type launch struct {
	run
	group Group
	owner ownerID
	at    time.Time
}

// New returns an engine that writes with c and checks doubts with live, a
// reader that does not cache.
func New(c client.Client, live client.Reader, opts Options) *Engine {
	return &Engine{
		Options: opts, client: c, live: live,
		owners: map[string]Owner{}, wake: map[string]chan event.GenericEvent{}, states: newStates(),
		groups: map[Group]*group{}, offered: map[ownerID]Group{}, judged: map[Key]string{}, launched: map[Key]launch{}, refused: map[Key]string{}, reserved: map[Group]int{}, queued: map[Group]bool{},
		crews: map[crew]*expectation{}, expected: map[ownerID]announcement{},
	}
}

// Register makes a kind known whose objects own targets.
func (e *Engine) Register(o Owner) {
	e.owners[o.Kind] = o
	e.wake[o.Kind] = make(chan event.GenericEvent, 1024)
}

// Converge brings a host through the given steps in order. It writes into the
// ledger what has run successfully and when a failed step is tried again, makes the
// engine run what is due, in one run as far as that is possible, and returns the
// state of the first step that is to be run or is running. When there is none it is
// that of the first step that was restricted by tags, else of the last one. All
// targets are of one host.
func (e *Engine) Converge(ctx context.Context, ledger *edpmv1.Ledger, targets ...Target) (State, error) {
	state, err := e.firstDue(ctx, ledger, targets)
	if len(targets) > 0 {
		e.conclude(targets[0].owner(), state.offered)
	}
	ledger.NextRetry = state.nextRetry()
	return state, err
}

func (e *Engine) firstDue(ctx context.Context, ledger *edpmv1.Ledger, targets []Target) (State, error) {
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
	for _, a := range all {
		e.states.set(a.Key(), a.Cell, a.state.Phase, e.Clock.Now())
		e.hasHeard(a.Key(), a.last)
	}
	switch {
	case len(due) > 0:
		result = together(due)
	case len(all) > 0:
		e.nudge(all[0].Group())
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
}

// assess notes what runs of a step did, whether or not it is the one that comes next:
// as long as that is missing, such runs stay when somebody deletes them, and the
// failed ones hold other hosts back.
func (e *Engine) assess(ctx context.Context, ledger *edpmv1.Ledger, t *Target) (*assessment, error) {
	t.Rerun, t.Tokens = ShortToken(t.Rerun), shortTokens(t.Tokens)
	all, err := e.history(ctx, t.Key(), t.OwnerUID)
	if err != nil {
		return nil, err
	}
	runs := had(all)
	if t.HostKey != "" {
		ledger.HostKey = t.HostKey
	}
	note(ledger, t.Step.Name, runs)
	w := want{hash: t.Hash(), access: t.Access(), rerun: t.Rerun, limited: t.Strategy.limited(), tokens: t.Tokens}
	state := judge(ledger, t.Step.Name, runs, w, e.Backoff)
	state.Step = t.Step.Name
	if state.Phase == Running {
		e.review(ledger, t, w, runs)
	}
	state.remember(ledger, t.Step.Name, t.Tokens)
	return &assessment{
		Target: t, want: w, state: state, last: newest(runs),
		serial: nextSerial(ledger, t.Step.Name, all), suspicion: t.suspect(ledger, newest(runs)),
	}, nil
}

// hasHeard notes that an owner knows how its last run has ended, and has offered
// its host again if it is to be tried again now. If it is not, a run that failed no
// longer holds others back: they are planned again.
func (e *Engine) hasHeard(key Key, last *run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if last == nil || !last.finished {
		delete(e.judged, key)
		return
	}
	if e.judged[key] != last.name && !last.converged() {
		e.enqueue(groupOf(last.object), e.Debounce)
	}
	e.judged[key] = last.name
}

// act offers a host for a run of the steps that are due, or takes it back.
func (e *Engine) act(ledger *edpmv1.Ledger, due []*assessment) error {
	if len(due) == 0 {
		return nil
	}
	first, state := due[0], &due[0].state
	if state.Phase != Pending && state.Phase != Failed {
		e.nudge(first.Group())
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
	state.offered = true
	switch reason := e.offer(newOffer(ledger.HostKey, due, e.Clock.Now())); {
	case reason == "":
	case state.Phase == Failed:
		state.Message += "; the next attempt is held: " + reason
	default:
		state.Phase, state.Message = Held, reason
	}
	return nil
}

// restriction is the phase of a target that may not be run.
func restriction(t *Target, state *State) (Phase, error) {
	if !t.Strategy.Deploy {
		return Paused, nil
	}
	if t.MaxAttempts > 0 && state.Attempt >= t.MaxAttempts && !state.fixed {
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
	if old, ok := e.offered[o.owner()]; ok && old != g {
		e.drop(o.owner())
	}
	if e.groups[g] == nil {
		e.groups[g] = &group{offers: map[string]*offer{}, held: map[string]string{}}
	}
	grp, now := e.groups[g], e.Clock.Now()
	if old := grp.offers[o.Host]; old == nil || o.joinsAnew(old) {
		if grp.first.IsZero() {
			grp.first = now
		}
		if !e.expected[o.owner()].ran {
			grp.last = now
		}
		e.enqueue(g, e.Debounce)
	} else if !old.notBefore.Equal(o.notBefore) || !reflect.DeepEqual(old.Strategy, o.Strategy) {
		e.enqueue(g, 0)
	}
	if old := grp.offers[o.Host]; old != nil && o.runsAs(old) {
		o.denied = old.denied
	}
	grp.offers[o.Host], e.offered[o.owner()] = o, g
	return cmp.Or(grp.held[o.Host], o.denied)
}

// Withdraw takes back whatever the owner waits for. Owners call it when they
// cannot say any more what they want, for example because an input is missing.
func (e *Engine) Withdraw(kind, namespace, host string) {
	e.conclude(ownerID{kind, namespace, host}, false)
}

// Await takes back whatever the owner waits for, and continues to expect it: it
// does not exist, and is about to be created.
func (e *Engine) Await(kind, namespace, host string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drop(ownerID{kind, namespace, host})
}

// conclude notes that an owner has been looked at, and takes back what it waited
// for unless it has just offered that.
func (e *Engine) conclude(id ownerID, offered bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !offered {
		e.drop(id)
	}
	e.reported(id)
}

// waiting returns what an owner waits for, nil if it does not. The caller holds the lock.
func (e *Engine) waiting(id ownerID) *offer {
	if g, ok := e.offered[id]; ok {
		return e.groups[g].offers[id.name]
	}
	return nil
}

// drop forgets an offer. The caller holds the lock.
func (e *Engine) drop(id ownerID) {
	g, ok := e.offered[id]
	if !ok {
		return
	}
	delete(e.offered, id)
	delete(e.groups[g].offers, id.name)
	delete(e.groups[g].held, id.name)
	switch {
	case len(e.groups[g].offers) == 0:
		delete(e.groups, g)
		if e.queued[g] { // and others because of it
			e.enqueue(g, 0)
		}
	case len(e.groups[g].held) > 0: // perhaps because of this host
		e.enqueue(g, e.Debounce)
	}
}

// Forget takes back everything that was wanted for the given steps of a host.
// Owners call it when they are about to be removed.
func (e *Engine) Forget(ctx context.Context, kind, namespace, host string, steps ...string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, step := range steps {
		key := Key{namespace, kind, step, host}
		runs, err := e.runsOf(ctx, key)
		if err != nil {
			return fmt.Errorf("listing the runs of %s on %s: %w", step, host, err)
		}
		for i := range runs {
			e.refuse(key, &runs[i], true)
		}
		if id := (ownerID{kind, namespace, host}); e.waiting(id).has(step) {
			e.drop(id)
		}
		e.states.remove(key)
		delete(e.judged, key)
		for g := range e.groups {
			if key.in(g) { // others may be held because the host had failed
				e.enqueue(g, e.Debounce)
			}
		}
	}
	return nil
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

// Touched reports whether anything was ever run for the steps on the host, as far
// as the ledger and the existing runs tell.
//
// It notes in the ledger what the runs did: as long as that is missing, runs that
// somebody deletes stay.
func (e *Engine) Touched(ctx context.Context, kind string, ledger *edpmv1.Ledger, owner client.Object, steps ...string) (bool, error) {
	touched := ledger.Unknown()
	for _, step := range steps {
		runs, err := e.history(ctx, Key{owner.GetNamespace(), kind, step, owner.GetName()}, owner.GetUID())
		if err != nil {
			return true, err
		}
		note(ledger, step, runs)
		touched = touched || len(had(runs)) > 0 || lastSerial(ledger, step) > 0
	}
	return touched, nil
}

// Others returns the objects of other kinds that own targets on the host, and for
// which something was run or is being run there, as kind/name.
func (e *Engine) Others(ctx context.Context, kind, namespace, host string) ([]string, error) {
	var found []string
	for _, other := range slices.Sorted(maps.Keys(e.owners)) {
		obj := e.owners[other].New()
		if other == kind {
			continue
		}
		err := e.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: host}, obj)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s %s: %w", other, host, err)
		}
		running, err := e.list(ctx, namespace, busyIndex, host)
		if err != nil {
			return nil, fmt.Errorf("listing the runs on %s: %w", host, err)
		}
		busy := slices.ContainsFunc(running, func(r ansibleeev1.OpenStackAnsibleEE) bool { return r.Spec.OwnerKind == other })
		if busy || len(e.owners[other].Ledger(obj).Runs) > 0 {
			found = append(found, other+"/"+host)
		}
	}
	return found, nil
}

// history returns the runs of a step of a host for its present owner, the oldest
// first. A run that was just created counts before the cache shows it.
func (e *Engine) history(ctx context.Context, key Key, owner types.UID) ([]*run, error) {
	objects, err := e.runsOf(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("listing the runs of %s on %s: %w", key.Step, key.Host, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	l, unseen := e.launched[key]
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
