package edpm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/metrics"
)

// staleAfter is how long a created run may be missing from the cache before the API
// server is asked whether it still exists.
const staleAfter = 30 * time.Second

// reconcile plans a group: it starts runs, and prunes old ones.
func (e *Engine) reconcile(ctx context.Context, g Group) (ctrl.Result, error) {
	if g == everyGroup {
		return ctrl.Result{}, e.pruneOldest(ctx)
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
		err = errors.Join(err, e.startRun(ctx, batch))
	}
	unseen, rerr := e.checkExpectations(ctx, g)
	if unseen && (p.wake == 0 || p.wake > staleAfter) {
		p.wake = staleAfter
	}
	return ctrl.Result{RequeueAfter: p.wake}, errors.Join(err, rerr, e.prune(ctx, g))
}

// takeSnapshot takes a snapshot of a group.
func (e *Engine) takeSnapshot(ctx context.Context, g Group) ([]*pendingTarget, snapshot, error) {
	m := snapshot{now: e.Clock.Now(), debounce: e.Debounce, patience: e.Patience, inFlight: map[string]bool{}, retrying: map[string]bool{}, failed: map[string]bool{}, busy: map[string]bool{}}
	runs, err := e.list(ctx, g.Namespace, groupIndex, g.index())
	if err != nil {
		return nil, m, fmt.Errorf("listing the runs of %s: %w", g, err)
	}
	for i := range runs {
		for _, host := range indexBusy(&runs[i]) {
			t, _ := runs[i].Target(host)
			m.start(t)
			for _, step := range t.Steps {
				m.start(ansibleeev1.Target{Host: host, Attempt: step.Attempt})
			}
		}
	}
	pending := e.copyPending(g, &m)
	if e.Members != nil {
		m.members = e.Members(g.Namespace, g.Role)
	}
	if err := e.unreportedFailures(ctx, runs, pending, &m); err != nil {
		return nil, m, err
	}
	if err := e.busy(ctx, g.Namespace, pending, &m); err != nil {
		return nil, m, err
	}
	return pending, m, nil
}

// busy finds the hosts that are in a run of any step, directly or as the
// machine of another name.
func (e *Engine) busy(ctx context.Context, namespace string, pending []*pendingTarget, m *snapshot) error {
	runs, err := e.list(ctx, metav1.NamespaceAll, activeIndex, active)
	if err != nil {
		return fmt.Errorf("listing the runs that are under way: %w", err)
	}
	hosts, machines := map[string]bool{}, map[string]bool{}
	for i := range runs {
		for _, machine := range runs[i].Machines() {
			machines[machine] = true
		}
		if runs[i].Namespace != namespace {
			continue
		}
		for _, t := range runs[i].Spec.Targets {
			hosts[t.Host] = true
		}
	}
	for _, o := range pending {
		if hosts[o.Host] || o.machine != "" && machines[o.machine] {
			m.busy[o.Host] = true
		}
	}
	return nil
}

// unreportedFailures finds the hosts that have failed and whose owners have not heard of it
// yet, because the run has just ended or the manager has just been started.
// Without them another host would be started that the limits forbid.
func (e *Engine) unreportedFailures(ctx context.Context, runs []ansibleeev1.OpenStackAnsibleEE, pending []*pendingTarget, m *snapshot) error {
	if !slices.ContainsFunc(pending, func(o *pendingTarget) bool {
		return o.Strategy.MaxFailures != nil || o.Strategy.MaxUnavailable > 0 || o.Strategy.MaxUnavailablePercent > 0
	}) {
		return nil
	}
	for key, r := range lastOf(runs) {
		e.mu.Lock()
		judged := e.judged[key] == r.name
		e.mu.Unlock()
		if judged || r.converged() || !r.finished || m.inFlight[key.Host] || slices.ContainsFunc(pending, func(o *pendingTarget) bool { return o.Host == key.Host }) {
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
	owner, err := e.ownerOf(ctx, r.object, r.target)
	if err != nil || owner == nil || !owner.GetDeletionTimestamp().IsZero() {
		return false, err
	}
	runs, err := e.history(ctx, key, r.target.OwnerUID)
	last := newest(had(runs))
	return last != nil && last.name == r.name, err
}

// lastOf returns the run of each step of each host that was created last.
func lastOf(runs []ansibleeev1.OpenStackAnsibleEE) map[Key]*run {
	last := map[Key]*run{}
	for i := range runs {
		for _, t := range runs[i].Spec.Targets {
			for _, key := range keysOf(&runs[i], t.Host) {
				if r := newRun(&runs[i], key.Step, key.Host); !r.void && r.after(last[key]) {
					last[key] = r
				}
			}
		}
	}
	return last
}

// after reports whether a run of a step on a host was created after another one, if there is one.
func (r *run) after(old *run) bool {
	return old == nil || !r.object.CreationTimestamp.Before(&old.object.CreationTimestamp) &&
		(old.target.OwnerUID != r.target.OwnerUID || old.target.Serial < r.target.Serial)
}

// copyPending copies what waits in the group and adds runs that the cache does not
// show yet.
func (e *Engine) copyPending(g Group, m *snapshot) []*pendingTarget {
	e.mu.Lock()
	defer e.mu.Unlock()
	machines := map[string]bool{}
	for key, l := range e.created {
		machines[l.target.Machine] = true
		if key.Namespace != g.Namespace {
			continue
		}
		m.busy[key.Host] = true
		if l.group == g {
			m.start(l.target)
		}
	}
	grp := e.groups[g]
	if grp == nil {
		return nil
	}
	m.awaited = e.awaited(g)
	m.first, m.last, m.named = grp.first, grp.last, grp.named
	pending := make([]*pendingTarget, 0, len(grp.pending))
	for _, o := range grp.pending {
		pending = append(pending, o)
		if o.machine != "" && machines[o.machine] {
			m.busy[o.Host] = true
		}
	}
	return pending
}

// start notes that a host of the group is in a run.
func (m *snapshot) start(t ansibleeev1.Target) {
	m.inFlight[t.Host] = true
	if t.Attempt > 1 {
		m.retrying[t.Host] = true
	}
}

// recordHolds notes what the plan says of hosts that are not started: which are
// held, and whether any wait for others. It requeues the owners of those that are
// newly held, or no longer.
func (e *Engine) recordHolds(g Group, pending []*pendingTarget, m snapshot, p *plan) {
	e.mu.Lock()
	var changed []*pendingTarget
	if grp := e.groups[g]; grp != nil {
		for _, o := range pending {
			if grp.held[o.Host] != p.held[o.Host] {
				changed = append(changed, o)
			}
		}
		grp.held, grp.named = p.held, p.named
		if !p.gathering && grp.first.Equal(m.first) && grp.last.Equal(m.last) {
			grp.first = time.Time{}
		}
	}
	e.mu.Unlock()
	for _, o := range changed {
		e.wakeOwner(o.owner())
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
	if doubtful, err := e.create(ctx, newInputs(name, batch[0], data), newAnsibleEE(name, batch)); err != nil {
		if !doubtful {
			e.unclaim(batch)
		} // otherwise checkExpectations finds out
		if denied(err) {
			e.tellDenied(batch, err)
		}
		return err
	}
	e.dropClaimed(batch)
	steps, _ := batch[0].steps()
	for _, step := range steps {
		runsStarted.WithLabelValues(metrics.Steps.Value(step.Name)).Inc()
	}
	ctrl.LoggerFrom(ctx).Info("Started run", "run", klog.KRef(batch[0].Namespace, name), "step", batch[0].stepNames(","), "hosts", len(batch))
	return nil
}

// refused reports whether the API server has certainly not done what it was asked.
func refused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500
}

// create creates a run and, before it, its inputs. After an error it reports
// whether the run may exist all the same.
func (e *Engine) create(ctx context.Context, secret *corev1.Secret, aee *ansibleeev1.OpenStackAnsibleEE) (doubtful bool, err error) {
	err = e.client.Create(ctx, secret)
	made := err == nil
	if apierrors.IsAlreadyExists(err) {
		err = e.reuse(ctx, secret)
	}
	if err != nil {
		return false, fmt.Errorf("creating Secret %s: %w", secret.Name, err)
	}
	if err := e.createRun(ctx, aee); err != nil {
		if denied(err) && made {
			err = errors.Join(err, client.IgnoreNotFound(e.client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID})))
		}
		return !refused(err) && !apply.IsConflict(err), fmt.Errorf("creating OpenStackAnsibleEE %s: %w", aee.Name, err)
	}
	return false, nil
}

// createRun creates a run, unless it exists already.
func (e *Engine) createRun(ctx context.Context, aee *ansibleeev1.OpenStackAnsibleEE) error {
	err := e.client.Create(ctx, aee)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	present := &ansibleeev1.OpenStackAnsibleEE{}
	if err := e.live.Get(ctx, client.ObjectKeyFromObject(aee), present); err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(present.Spec.Targets, aee.Spec.Targets) {
		return &apply.ConflictError{Kind: "OpenStackAnsibleEE", Name: aee.Name, For: "step " + aee.Spec.Step}
	}
	return nil
}

// reuse decides about inputs of the same name. They are used when their run exists,
// or was never created and they are what the run is to have. Those of a run that is
// gone are about to be collected, and others may have been put there by somebody
// else or with other known hosts: they are removed, to be created again. A Secret
// that is not marked as the inputs of a run is none, and is left alone.
func (e *Engine) reuse(ctx context.Context, secret *corev1.Secret) error {
	key := client.ObjectKeyFromObject(secret)
	err := e.live.Get(ctx, key, &ansibleeev1.OpenStackAnsibleEE{})
	if err == nil || !apierrors.IsNotFound(err) {
		return err
	}
	present := &corev1.Secret{}
	if err := e.live.Get(ctx, key, present); err != nil {
		return err
	}
	if present.Labels[edpmv1.RunInputsLabel] != "true" {
		return &apply.ConflictError{Kind: "Secret", Name: secret.Name, For: "the inputs of a run"}
	}
	if len(present.OwnerReferences) == 0 && maps.EqualFunc(present.Data, secret.Data, bytes.Equal) {
		return nil
	}
	if err := e.client.Delete(ctx, present, client.Preconditions{UID: &present.UID}); err != nil {
		return err
	}
	return errors.New("inputs of another run with this name exist and are being removed")
}

// claim marks the hosts of the batch as being in a run, before it is created:
// its event can come back before the call that creates it.
func (e *Engine) claim(name string, batch []*pendingTarget) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, o := range batch {
		if grp := e.groups[o.Group()]; grp == nil || grp.pending[o.Host] != o {
			return false
		}
	}
	for _, o := range batch {
		steps, targets := o.steps()
		for i, step := range steps {
			r := run{name: name, target: o.target(), limited: o.Strategy.limited()}
			r.target.Hash, r.target.Serial, r.target.Attempt, r.target.Steps = targets[i].Hash, targets[i].Serial, targets[i].Attempt, nil
			e.created[o.key(step)] = createdRun{run: r, group: o.Group(), owner: o.owner(), at: e.Clock.Now()}
		}
	}
	return true
}

func (e *Engine) unclaim(batch []*pendingTarget) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, o := range batch {
		steps, _ := o.steps()
		for _, step := range steps {
			delete(e.created, o.key(step))
		}
	}
}

// denied reports whether the API server does not take an object as it is, or not
// from us, or one that is not ours has its name. Another try with the same object
// will not be taken either.
func denied(err error) bool {
	return apply.IsConflict(err) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// tellDenied lets the owners of a batch say why it is not run.
func (e *Engine) tellDenied(batch []*pendingTarget, why error) {
	message := fmt.Sprintf("the API server rejects its run: %v", why)
	if apply.IsConflict(why) {
		message = why.Error()
	}
	for _, o := range batch {
		if e.deny(o, message) {
			e.wakeOwner(o.owner())
		}
	}
}

// deny notes why a target that waits has no run, and reports whether that is news.
func (e *Engine) deny(o *pendingTarget, why string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	grp := e.groups[o.Group()]
	if grp == nil || grp.pending[o.Host] == nil || grp.pending[o.Host].denied == why {
		return false
	}
	grp.pending[o.Host].denied = why
	return true
}

// dropClaimed takes the pending targets back that have become a run.
func (e *Engine) dropClaimed(batch []*pendingTarget) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, o := range batch {
		if grp := e.groups[o.Group()]; grp != nil && grp.pending[o.Host] == o {
			e.drop(o.owner())
		}
	}
}

// checkExpectations asks the API server for runs that were created long ago and
// that the cache does not show. It reports whether any run is still unseen.
func (e *Engine) checkExpectations(ctx context.Context, g Group) (bool, error) {
	unseen, doubtful := e.unseen(g)
	for key, l := range doubtful {
		id, run := types.NamespacedName{Namespace: g.Namespace, Name: l.name}, &ansibleeev1.OpenStackAnsibleEE{}
		err := e.live.Get(ctx, id, run)
		if err == nil && e.client.Get(ctx, id, run) != nil {
			continue // it exists, and the cache is late
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return unseen, fmt.Errorf("looking for OpenStackAnsibleEE %s: %w", l.name, err)
		}
		e.mu.Lock()
		if err == nil {
			e.shown(key, l)
		} else {
			delete(e.created, key)
		}
		for waiting := range e.waitingFor(g.Namespace, []ansibleeev1.Target{l.target}) {
			e.enqueue(waiting, e.Debounce)
		}
		e.enqueue(g, e.Debounce)
		e.mu.Unlock()
		e.wakeOwner(l.owner)
	}
	return unseen, nil
}

// shown notes that the cache shows a run that the engine created. When the answer
// to the creation was lost, the pending target that became the run still waits: it must not
// become another run. The caller holds the lock.
func (e *Engine) shown(key Key, l createdRun) {
	delete(e.created, key)
	o := e.waiting(l.owner)
	if !o.has(key.Step) || o.OwnerUID != l.target.OwnerUID {
		return
	}
	steps, targets := o.steps()
	for i, step := range steps {
		if step.Name == key.Step && targets[i].Serial == l.target.Serial {
			e.drop(l.owner)
		}
	}
}

func (e *Engine) unseen(g Group) (unseen bool, doubtful map[Key]createdRun) {
	e.mu.Lock()
	defer e.mu.Unlock()
	doubtful = map[Key]createdRun{}
	for key, l := range e.created {
		if l.group != g {
			continue
		}
		unseen = true
		if e.Clock.Since(l.at) > staleAfter {
			doubtful[key] = l
		}
	}
	return unseen, doubtful
}
