package edpm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/metrics"
)

// reconcile plans a group: it starts runs, and prunes old ones.
func (e *Engine) reconcile(ctx context.Context, g Group) (ctrl.Result, error) {
	if g == everyGroup {
		return ctrl.Result{}, e.pruner().pruneOldest(ctx, e.HistoryTotal)
	}
	pending, m, err := e.takeSnapshot(ctx, g)
	if err != nil {
		return ctrl.Result{}, err
	}
	p := makePlan(pending, m)
	granted, again, err := e.reserve(ctx, g, len(p.batches))
	if err != nil {
		return ctrl.Result{}, err
	}
	defer e.unreserve(g)
	if p.postpone(granted, e.MaxRuns); !again.IsZero() {
		p.wakeAt(again, m.now)
	}
	e.recordHolds(g, pending, m, &p)
	for _, batch := range p.batches {
		if batch = e.withoutBusy(ctx, batch); len(batch) > 0 {
			err = errors.Join(err, e.startRun(ctx, batch))
		}
	}
	unseen, rerr := e.checkStarted(ctx, g)
	if unseen && (p.wake == 0 || p.wake > staleAfter) {
		p.wake = staleAfter
	}
	return ctrl.Result{RequeueAfter: p.wake}, errors.Join(err, rerr, e.prune(ctx, g))
}

// takeSnapshot takes a snapshot of a group. What the engine knows comes before what the
// cache shows: a run is in one of them at any time.
func (e *Engine) takeSnapshot(ctx context.Context, g Group) ([]*pendingTarget, snapshot, error) {
	pending, m := e.copyState(g)
	runs, err := e.runs.ofGroup(ctx, g)
	if err != nil {
		return nil, m, err
	}
	active, err := e.runs.active(ctx)
	if err != nil {
		return nil, m, err
	}
	m.addGroup(runs)
	m.addActive(active, g)
	if e.Members != nil {
		m.members = e.Members(g.Namespace, g.Role)
	}
	return pending, m, e.unreportedFailures(ctx, runs, pending, &m)
}

// copyState returns what waits in the group, and a snapshot with what only the engine
// knows of it.
func (e *Engine) copyState(g Group) ([]*pendingTarget, snapshot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := snapshot{
		now: e.Clock.Now(), debounce: e.Debounce, patience: e.Patience, awaited: e.barriers.awaited(g), acknowledged: maps.Clone(e.verdicts.failed),
		inFlight: map[string]bool{}, retrying: map[string]bool{}, failed: map[string]bool{}, busy: map[string]bool{}, machines: map[string]bool{},
	}
	e.started.addTo(&m, g)
	e.planner.addDisplacing(&m, g)
	return e.planner.addTo(&m, g), m
}

// unreportedFailures finds the hosts that have failed and whose owners have not heard of it
// yet, because the run has just ended or the manager has just been started.
// Without them another host would be started that the limits forbid.
func (e *Engine) unreportedFailures(ctx context.Context, runs []ansibleeev1.OpenStackAnsibleEE, pending []*pendingTarget, m *snapshot) error {
	if !slices.ContainsFunc(pending, func(o *pendingTarget) bool { return o.Strategy.hasLimits() }) {
		return nil
	}
	for key, r := range lastOf(runs) {
		if !m.isUnreported(key, r, pending) {
			continue
		}
		counts, err := e.stillFailed(ctx, key, r)
		if err != nil {
			return err
		}
		if counts {
			m.failed[key.Host] = true
		}
	}
	return nil
}

// stillFailed reports whether the owner of a host that failed in the run is there
// to stay, and the run is its last one: it may have been run in another role since.
func (e *Engine) stillFailed(ctx context.Context, key Key, r *run) (bool, error) {
	owner, err := e.owners.of(ctx, r.object, r.target)
	if err != nil || owner == nil || !owner.GetDeletionTimestamp().IsZero() {
		return false, err
	}
	runs, err := e.history(ctx, key, r.target.OwnerUID)
	last := newest(effective(runs))
	return last != nil && last.name == r.name, err
}

// reserve returns how many of the runs that a group could start it may start now,
// and when to ask again at the latest. The reservation counts until it is ended.
func (e *Engine) reserve(ctx context.Context, g Group, wanted int) (int, time.Time, error) {
	if e.MaxRuns <= 0 && !g.Check {
		return wanted, time.Time{}, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	active, err := e.runs.active(ctx)
	if err != nil {
		return 0, time.Time{}, err
	}
	use := countUsage(active, e.started, e.Clock.Now())
	granted := e.planner.slots.reserve(g, wanted, use)
	if granted < wanted {
		return granted, use.again, nil
	}
	return granted, time.Time{}, nil
}

// unreserve ends a reservation: what has become of it is known.
func (e *Engine) unreserve(g Group) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.planner.slots.release(g)
}

// recordHolds notes what the plan says of hosts that are not started. It wakes
// the owners of those that are newly held, or no longer.
func (e *Engine) recordHolds(g Group, pending []*pendingTarget, m snapshot, p *plan) {
	e.mu.Lock()
	changed := e.planner.recordHolds(g, pending, m, p)
	e.mu.Unlock()
	for _, o := range changed {
		e.owners.wake(o.owner())
	}
}

// startRun creates the run of a batch. The Secret with its inputs comes first, so
// that a run never lacks them. Names are made of the content, so that doing it
// again after a crash ends with the same objects.
func (e *Engine) startRun(ctx context.Context, batch []*pendingTarget) error {
	name := runName(batch)
	data, err := runInputs(name, batch)
	if err != nil {
		return err
	}
	if size(data) > maxInputs && len(batch) > 1 {
		half := len(batch) / 2
		return errors.Join(e.startRun(ctx, batch[:half]), e.startRun(ctx, batch[half:]))
	}
	if !e.claim(name, batch) {
		e.requeue(batch[0].Group()) // an owner changed its mind meanwhile
		return nil
	}
	if doubtful, err := e.runs.create(ctx, newInputs(name, batch[0], data), newAnsibleEE(name, batch)); err != nil {
		if !doubtful {
			e.unclaim(batch)
		} // otherwise checkStarted finds out
		if isDenied(err) {
			e.reportDenied(batch, err)
		}
		return err
	}
	e.dropClaimed(batch)
	steps, _ := batch[0].steps()
	for _, step := range steps {
		if !batch[0].check {
			runsStarted.WithLabelValues(metrics.Steps.Value(step.Name)).Inc()
		}
	}
	ctrl.LoggerFrom(ctx).Info("Started run", "run", klog.KRef(batch[0].Namespace, name), "step", batch[0].stepNames(","), "hosts", len(batch))
	return nil
}

// claim marks the hosts of the batch as being in a run, before it is created:
// its event can come back before the call that creates it.
func (e *Engine) claim(name string, batch []*pendingTarget) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, o := range batch {
		if !e.planner.isWaiting(o) {
			return false
		}
	}
	e.started.add(name, batch, e.Clock.Now())
	return true
}

func (e *Engine) unclaim(batch []*pendingTarget) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.started.remove(batch)
}

// dropClaimed takes the pending targets back that have become a run.
func (e *Engine) dropClaimed(batch []*pendingTarget) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, o := range batch {
		if e.planner.isWaiting(o) {
			e.planner.drop(o.owner())
		}
	}
}

// reportDenied lets the owners of a batch say why it is not run.
func (e *Engine) reportDenied(batch []*pendingTarget, why error) {
	message := fmt.Sprintf("the API server rejects its run: %v", why)
	if apply.IsConflict(why) {
		message = why.Error()
	}
	for _, o := range batch {
		e.mu.Lock()
		news := e.planner.deny(o, message)
		e.mu.Unlock()
		if news {
			e.owners.wake(o.owner())
		}
	}
}

// checkStarted asks the API server for runs that were created long ago and
// that the cache does not show. It reports whether any run is still unseen.
func (e *Engine) checkStarted(ctx context.Context, g Group) (bool, error) {
	e.mu.Lock()
	unseen, overdue := e.started.ofGroup(g, e.Clock.Now())
	e.mu.Unlock()
	for key, l := range overdue {
		id, run := types.NamespacedName{Namespace: g.Namespace, Name: l.name}, &ansibleeev1.OpenStackAnsibleEE{}
		err := e.runs.live.Get(ctx, id, run)
		if err == nil && e.runs.client.Get(ctx, id, run) != nil {
			continue // it exists, and the cache is late
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return unseen, fmt.Errorf("looking for OpenStackAnsibleEE %s: %w", l.name, err)
		}
		e.resolveStarted(key, l, err == nil)
		e.owners.wake(l.owner)
	}
	return unseen, nil
}

// resolveStarted notes whether a run exists that was expected for long, and plans the groups
// again that wait for its host.
func (e *Engine) resolveStarted(key Key, l startedRun, exists bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if exists {
		e.confirm(key)
	} else {
		delete(e.started, key)
	}
	for waiting := range e.planner.waitingFor(key.Namespace, []ansibleeev1.Target{l.target}) {
		e.enqueue(waiting, e.Debounce)
	}
	e.enqueue(l.group, e.Debounce)
}

// confirm notes that the cache shows a run that the engine created. When the answer
// to the creation was lost, the pending target that became the run still waits: it must not
// become another run. The caller holds the lock.
func (e *Engine) confirm(key Key) {
	l := e.started[key]
	delete(e.started, key)
	if l.isOf(key, e.planner.waiting(l.owner)) {
		e.planner.drop(l.owner)
	}
}
