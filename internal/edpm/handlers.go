package edpm

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// requests is the queue of a controller.
type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// OwnerHandler wakes the owners of a kind when a run with their targets
// appears, has a problem, finishes or goes.
func (e *Engine) OwnerHandler(kind string) handler.EventHandler {
	enqueue := func(obj client.Object, q requests) {
		run := obj.(*ansibleeev1.OpenStackAnsibleEE)
		if run.Spec.OwnerKind != kind {
			return
		}
		if run.Finished() {
			e.expectTargets(run)
		}
		for _, t := range run.Spec.Targets {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: run.Namespace, Name: t.OwnerName()}})
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, ev event.CreateEvent, q requests) { enqueue(ev.Object, q) },
		DeleteFunc: func(_ context.Context, ev event.DeleteEvent, q requests) { enqueue(ev.Object, q) },
		UpdateFunc: func(_ context.Context, ev event.UpdateEvent, q requests) {
			old, run := ev.ObjectOld.(*ansibleeev1.OpenStackAnsibleEE), ev.ObjectNew.(*ansibleeev1.OpenStackAnsibleEE)
			if old.Finished() != run.Finished() || problem(old) != problem(run) {
				enqueue(ev.ObjectNew, q)
			}
		},
	}
}

// Wakeups is a source of events for owners of a kind whose targets are held or
// no longer held.
func (e *Engine) Wakeups(kind string) source.Source {
	return source.Channel(e.owners.wakeups[kind], &handler.EnqueueRequestForObject{})
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

// expect notes that an owner was woken.
func (e *Engine) expect(a expectedOwner, id ownerID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.barriers.expect(a, id)
}

// expectTargets notes that the owners of all hosts of a run are being woken.
func (e *Engine) expectTargets(run *ansibleeev1.OpenStackAnsibleEE) {
	for _, t := range run.Spec.Targets {
		e.expect(expectedOwner{roleKey: roleKey{run.Namespace, run.Spec.Role}, ran: true}, ownerID{run.Spec.OwnerKind, run.Namespace, t.OwnerName()})
	}
}

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
