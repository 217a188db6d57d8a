package edpm

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// roleKey names a role.
type roleKey struct{ namespace, role string }

// barrier of a role is what the engine knows of its owners that have been woken and have
// not said yet what they want. Hosts of a role that started together, or that
// were together in a run, come back one by one: as fast as their owners are
// reconciled. A run is not started without those that are about to come.
type barrier struct {
	owners map[ownerID]bool
	// progress is when an owner was woken or heard of last.
	progress time.Time
}

// expectedOwner is an owner that was woken.
type expectedOwner struct {
	roleKey
	// ran reports whether its host was in a run that has ended. The hosts of that run
	// are all expected: nobody else has to be waited for.
	ran bool
	// follows reports whether it continues where another owner of its host has ended.
	// The others that do are about to be expected.
	follows bool
}

// joins returns when a host joined a group last, as the debounce counts it, now that
// this one joins. Of the debounce a host that follows waits a fifth: as long as the
// results of others that were in one run with it may take to be heard of.
func (a expectedOwner) joins(last, now time.Time, debounce time.Duration) time.Time {
	if a.follows {
		now = now.Add(-debounce * 4 / 5)
	}
	if a.ran || now.Before(last) {
		return last
	}
	return now
}

// expect notes that an owner was woken.
func (e *Engine) expect(a expectedOwner, id ownerID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := a.roleKey
	if old, ok := e.expected[id]; ok && old.roleKey != c {
		e.reported(id)
	} else {
		a.follows = a.follows || old.follows
	}
	if e.barriers[c] == nil {
		e.barriers[c] = &barrier{owners: map[ownerID]bool{}}
	}
	e.barriers[c].owners[id], e.barriers[c].progress, e.expected[id] = true, e.Clock.Now(), a
}

// expectTargets notes that the owners of all hosts of a run are being woken.
func (e *Engine) expectTargets(run *ansibleeev1.OpenStackAnsibleEE) {
	for _, t := range run.Spec.Targets {
		e.expect(expectedOwner{roleKey: roleKey{run.Namespace, run.Spec.Role}, ran: true}, ownerID{run.Spec.OwnerKind, run.Namespace, t.OwnerName()})
	}
}

// reported notes that an owner has said what it wants, or that it wants nothing.
// The caller holds the lock.
func (e *Engine) reported(id ownerID) {
	a, ok := e.expected[id]
	if !ok {
		return
	}
	c := a.roleKey
	delete(e.expected, id)
	delete(e.barriers[c].owners, id)
	e.barriers[c].progress = e.Clock.Now()
	if len(e.barriers[c].owners) == 0 {
		e.lower(c)
	}
}

// lower removes the barrier of a role: its groups wait for nobody more.
// The caller holds the lock.
func (e *Engine) lower(c roleKey) {
	for id := range e.barriers[c].owners {
		delete(e.expected, id)
	}
	delete(e.barriers, c)
	for g := range e.groups {
		if g.Namespace == c.namespace && g.Role == c.role {
			e.enqueue(g, 0)
		}
	}
}

// awaited is until when a group waits for owners of its role, at most: while
// they are heard of one after the other it continues waiting. Zero means that
// none is expected. The caller holds the lock.
func (e *Engine) awaited(g Group) time.Time {
	c := roleKey{g.Namespace, g.Role}
	x := e.barriers[c]
	if x == nil {
		return time.Time{}
	}
	until := x.progress.Add(e.Patience)
	if !until.After(e.Clock.Now()) {
		e.lower(c)
		return time.Time{}
	}
	return until
}

// Expecting returns a handler that reconciles the owners that an object concerns,
// and lets the hosts of its role wait for what they will want.
func (e *Engine) Expecting(kind string, role func(client.Object) string, owners handler.MapFunc) handler.EventHandler {
	return e.Following(kind, role, owners, func(client.Object, client.Object) bool { return false })
}

// Following is Expecting for owners that continue where others have ended, which is
// what an update with a result says. Hosts that come with one have been gathered.
func (e *Engine) Following(kind string, role func(client.Object) string, owners handler.MapFunc, result func(before, after client.Object) bool) handler.EventHandler {
	w := waker{engine: e, kind: kind, role: role, owners: owners}
	return handler.Funcs{
		CreateFunc:  func(ctx context.Context, ev event.CreateEvent, q requests) { w.wake(ctx, q, false, ev.Object) },
		DeleteFunc:  func(ctx context.Context, ev event.DeleteEvent, q requests) { w.wake(ctx, q, false, ev.Object) },
		GenericFunc: func(ctx context.Context, ev event.GenericEvent, q requests) { w.wake(ctx, q, false, ev.Object) },
		UpdateFunc: func(ctx context.Context, ev event.UpdateEvent, q requests) {
			w.wake(ctx, q, result(ev.ObjectOld, ev.ObjectNew), ev.ObjectOld, ev.ObjectNew)
		},
	}
}

// requests is the queue of a controller.
type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// waker wakes the owners of one kind that objects concern.
type waker struct {
	engine *Engine
	kind   string
	role   func(client.Object) string
	owners handler.MapFunc
}

// wake expects the owners that both states of an object concern, and enqueues them. All are
// expected before the first is enqueued: one that is expected again after it was
// reconciled is enqueued once only, and its role would wait for it in vain.
func (w waker) wake(ctx context.Context, q requests, follows bool, states ...client.Object) {
	woken := sets.New[reconcile.Request]()
	for _, obj := range states {
		c := roleKey{obj.GetNamespace(), w.role(obj)}
		for _, r := range w.owners(ctx, obj) {
			w.engine.expect(expectedOwner{roleKey: c, follows: follows}, ownerID{w.kind, r.Namespace, r.Name})
			woken.Insert(r)
		}
	}
	for r := range woken {
		q.Add(r)
	}
}
