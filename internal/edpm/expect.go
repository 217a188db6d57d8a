package edpm

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// crew is the hosts of a role that the engine follows.
type crew struct{ namespace, role string }

// expectation is what the engine knows of owners that have been woken and have
// not said yet what they want. Hosts of a role that started together, or that
// were together in a run, come back one by one: as fast as their owners are
// reconciled. A run is not started without those that are about to come.
type expectation struct {
	owners map[ownerID]bool
	// progress is when an owner was woken or heard of last.
	progress time.Time
}

// announcement is of an owner that was woken.
type announcement struct {
	crew
	// ran reports whether its host was in a run that has ended. The hosts of that run
	// are all announced: nobody else has to be waited for.
	ran bool
}

// expect notes that an owner was woken.
func (e *Engine) expect(c crew, id ownerID) { e.announce(announcement{crew: c}, id) }

func (e *Engine) announce(a announcement, id ownerID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := a.crew
	if old, ok := e.expected[id]; ok && old.crew != c {
		e.reported(id)
	}
	if e.crews[c] == nil {
		e.crews[c] = &expectation{owners: map[ownerID]bool{}}
	}
	e.crews[c].owners[id], e.crews[c].progress, e.expected[id] = true, e.Clock.Now(), a
}

// expectTargets notes that the owners of all hosts of a run are being woken.
func (e *Engine) expectTargets(run *ansibleeev1.OpenStackAnsibleEE) {
	for _, t := range run.Spec.Targets {
		e.announce(announcement{crew{run.Namespace, run.Spec.Role}, true}, ownerID{run.Spec.OwnerKind, run.Namespace, t.Host})
	}
}

// reported notes that an owner has said what it wants, or that it wants nothing.
// The caller holds the lock.
func (e *Engine) reported(id ownerID) {
	a, ok := e.expected[id]
	if !ok {
		return
	}
	c := a.crew
	delete(e.expected, id)
	delete(e.crews[c].owners, id)
	e.crews[c].progress = e.Clock.Now()
	if len(e.crews[c].owners) == 0 {
		e.assemble(c)
	}
}

// assemble ends the expectations of a role: its groups wait for nobody more.
// The caller holds the lock.
func (e *Engine) assemble(c crew) {
	for id := range e.crews[c].owners {
		delete(e.expected, id)
	}
	delete(e.crews, c)
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
	c := crew{g.Namespace, g.Role}
	x := e.crews[c]
	if x == nil {
		return time.Time{}
	}
	until := x.progress.Add(e.Patience)
	if !until.After(e.Clock.Now()) {
		e.assemble(c)
		return time.Time{}
	}
	return until
}

// Expecting returns a handler that reconciles the owners that an object concerns,
// and lets the hosts of its role wait for what they will want.
func (e *Engine) Expecting(kind string, role func(client.Object) string, owners handler.MapFunc) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		woken := owners(ctx, obj)
		for _, r := range woken {
			e.expect(crew{obj.GetNamespace(), role(obj)}, ownerID{kind, r.Namespace, r.Name})
		}
		return woken
	})
}
