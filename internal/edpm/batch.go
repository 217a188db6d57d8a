package edpm

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// doubt is how long a created run may be missing from the cache before the API
// server is asked whether it still exists.
const doubt = 30 * time.Second

// reconcile plans a group: it starts runs, and prunes old ones.
func (e *Engine) reconcile(ctx context.Context, g Group) (ctrl.Result, error) {
	offers, m, err := e.moment(ctx, g)
	if err != nil {
		return ctrl.Result{}, err
	}
	p := makePlan(offers, m)
	e.setHeld(g, offers, p.held)
	for _, batch := range p.batches {
		err = errors.Join(err, e.launch(ctx, batch))
	}
	pending, rerr := e.resolveDoubts(ctx, g)
	if pending && (p.wake == 0 || p.wake > doubt) {
		p.wake = doubt
	}
	return ctrl.Result{RequeueAfter: p.wake}, errors.Join(err, rerr, e.prune(ctx, g))
}

// moment takes a snapshot of a group.
func (e *Engine) moment(ctx context.Context, g Group) ([]*offer, moment, error) {
	m := moment{now: e.Clock.Now(), debounce: e.Debounce, patience: e.Patience, inFlight: map[string]bool{}, busy: map[string]bool{}}
	runs, err := e.list(ctx, g.Namespace, groupIndex, g.Role+"/"+g.Step)
	if err != nil {
		return nil, m, fmt.Errorf("listing the runs of %s for role %s: %w", g.Step, g.Role, err)
	}
	for i := range runs {
		for _, host := range indexBusy(&runs[i]) {
			m.inFlight[host] = true
		}
	}
	offers := e.snapshot(g, &m)
	for _, o := range offers {
		busy, err := e.list(ctx, g.Namespace, busyIndex, o.Host)
		if err != nil {
			return nil, m, fmt.Errorf("listing the runs on %s: %w", o.Host, err)
		}
		if len(busy) > 0 {
			m.busy[o.Host] = true
		}
	}
	return offers, m, nil
}

// snapshot copies what waits in the group and adds runs that the cache does not
// show yet.
func (e *Engine) snapshot(g Group, m *moment) []*offer {
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, l := range e.launched {
		if key.Namespace != g.Namespace {
			continue
		}
		m.busy[key.Host] = true
		if key.Step == g.Step && l.role == g.Role {
			m.inFlight[key.Host] = true
		}
	}
	grp := e.groups[g]
	if grp == nil {
		return nil
	}
	m.first, m.last = grp.first, grp.last
	offers := make([]*offer, 0, len(grp.offers))
	for _, o := range grp.offers {
		offers = append(offers, o)
	}
	return offers
}

// setHeld notes which hosts are held, and wakes the owners of those for which
// that has changed.
func (e *Engine) setHeld(g Group, offers []*offer, held map[string]string) {
	e.mu.Lock()
	var changed []*offer
	if grp := e.groups[g]; grp != nil {
		for _, o := range offers {
			if grp.held[o.Host] != held[o.Host] {
				changed = append(changed, o)
			}
		}
		grp.held = held
	}
	e.mu.Unlock()
	for _, o := range changed {
		e.wakeOwner(o)
	}
}

// launch creates the run of a batch. The Secret with its inputs comes first, so
// that a run never lacks them. Names are made of the content, so that doing it
// again after a crash ends with the same objects.
func (e *Engine) launch(ctx context.Context, batch []*offer) error {
	name := runName(batch)
	data, err := runInputs(name, batch)
	if err != nil {
		return err
	}
	if size(data) > maxInputs && len(batch) > 1 {
		half := len(batch) / 2
		return errors.Join(e.launch(ctx, batch[:half]), e.launch(ctx, batch[half:]))
	}
	if !e.claim(name, batch) {
		return nil // an owner changed its mind meanwhile; it has offered anew
	}
	secret := newInputs(name, batch[0], data)
	if err := e.client.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
		e.unclaim(batch)
		return fmt.Errorf("creating Secret %s: %w", name, err)
	}
	if err := e.client.Create(ctx, newAnsibleEE(name, batch)); err != nil && !apierrors.IsAlreadyExists(err) {
		e.unclaim(batch)
		return fmt.Errorf("creating OpenStackAnsibleEE %s: %w", name, err)
	}
	e.settleClaim(batch)
	runsStarted.WithLabelValues(batch[0].Step.Name).Inc()
	return nil
}

// claim marks the hosts of the batch as being in a run, before it is created:
// its event can come back before the call that creates it.
func (e *Engine) claim(name string, batch []*offer) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, o := range batch {
		if grp := e.groups[o.Group()]; grp == nil || grp.offers[o.Host] != o {
			return false
		}
	}
	for _, o := range batch {
		r := run{name: name, role: o.Role, target: o.target(), limited: o.Strategy.limited()}
		e.launched[o.Key()] = launch{run: r, at: e.Clock.Now()}
	}
	return true
}

func (e *Engine) unclaim(batch []*offer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, o := range batch {
		delete(e.launched, o.Key())
	}
}

// settleClaim takes the offers back that have become a run.
func (e *Engine) settleClaim(batch []*offer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, o := range batch {
		if grp := e.groups[o.Group()]; grp != nil && grp.offers[o.Host] == o {
			e.drop(o.Key())
		}
	}
}

// resolveDoubts asks the API server for runs that were created long ago and
// that the cache does not show. It tells whether any run is still unseen.
func (e *Engine) resolveDoubts(ctx context.Context, g Group) (bool, error) {
	unseen, doubtful := e.unseen(g)
	for key, name := range doubtful {
		err := e.live.Get(ctx, types.NamespacedName{Namespace: g.Namespace, Name: name}, &ansibleeev1.OpenStackAnsibleEE{})
		if err != nil && !apierrors.IsNotFound(err) {
			return unseen, fmt.Errorf("looking for OpenStackAnsibleEE %s: %w", name, err)
		}
		if err != nil {
			e.mu.Lock()
			delete(e.launched, key)
			e.mu.Unlock()
		}
	}
	return unseen, nil
}

func (e *Engine) unseen(g Group) (unseen bool, doubtful map[Key]string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	doubtful = map[Key]string{}
	for key, l := range e.launched {
		if key.Namespace != g.Namespace || key.Step != g.Step || l.role != g.Role {
			continue
		}
		unseen = true
		if e.Clock.Since(l.at) > doubt {
			doubtful[key] = l.name
		}
	}
	return unseen, doubtful
}
