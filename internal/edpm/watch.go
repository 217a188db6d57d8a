package edpm

import (
	"context"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/metrics"
)

// Field indexes on OpenStackAnsibleEE.
const (
	// targetIndex has the hosts of a run, with the kind of their owners. Not their steps: what is indexed
	// is in memory for each of them.
	targetIndex = "edpm.target"
	// groupIndex has the group.
	groupIndex = "edpm.group"
	// busyIndex has the hosts of runs that have not finished.
	busyIndex = "edpm.busy"
	// activeIndex has the value active for runs that have not finished.
	activeIndex = "edpm.active"
	active      = "true"
)

// indexes are the functions that compute them.
var indexes = map[string]client.IndexerFunc{targetIndex: indexTargets, groupIndex: indexGroup, busyIndex: indexBusy, activeIndex: indexActive}

func indexTargets(obj client.Object) []string {
	run := obj.(*ansibleeev1.OpenStackAnsibleEE)
	if len(run.StepNames()) == 0 {
		return nil // a person made it
	}
	hosts := make([]string, 0, len(run.Spec.Targets))
	for _, t := range run.Spec.Targets {
		hosts = append(hosts, Key{Kind: run.Spec.OwnerKind, Host: t.Host}.index())
	}
	return hosts
}

func indexGroup(obj client.Object) []string {
	run := obj.(*ansibleeev1.OpenStackAnsibleEE)
	if len(run.Spec.Targets) == 0 {
		return nil
	}
	return []string{groupOf(run).index()}
}

func indexBusy(obj client.Object) []string {
	run := obj.(*ansibleeev1.OpenStackAnsibleEE)
	if run.Finished() {
		return nil
	}
	var hosts []string
	for _, t := range run.Spec.Targets {
		hosts = append(hosts, t.Host)
	}
	return hosts
}

func indexActive(obj client.Object) []string {
	if run := obj.(*ansibleeev1.OpenStackAnsibleEE); len(run.Spec.Targets) == 0 || run.Finished() {
		return nil
	}
	return []string{active}
}

// SetupWithManager adds the engine's controller and indexes.
func (e *Engine) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	run := &ansibleeev1.OpenStackAnsibleEE{}
	for name, index := range indexes {
		if err := mgr.GetFieldIndexer().IndexField(ctx, run, name, index); err != nil {
			return err
		}
	}
	if err := mgr.Add(sweeper{e}); err != nil {
		return err
	}
	metrics.Replace(e.states)
	// The queue itself is the source: pending targets are made by other controllers.
	takeQueue := source.TypedFunc[Group](func(_ context.Context, q workqueue.TypedRateLimitingInterface[Group]) error {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.queue = q
		for g := range e.groups {
			e.enqueue(g, e.Debounce)
		}
		return nil
	})
	return builder.TypedControllerManagedBy[Group](mgr).
		Named("edpm-engine").
		WithOptions(controller.TypedOptions[Group]{MaxConcurrentReconciles: 4}).
		Watches(run, e.runHandler()).
		WatchesRawSource(takeQueue).
		Complete(reconcile.TypedFunc[Group](e.reconcile))
}

// runHandler notes what becomes of runs and plans the groups that it concerns.
func (e *Engine) runHandler() handler.TypedEventHandler[client.Object, Group] {
	return handler.TypedFuncs[client.Object, Group]{
		CreateFunc: func(_ context.Context, ev event.CreateEvent, q groupQueue) { e.observe(ev.Object, false, q) },
		UpdateFunc: func(ctx context.Context, ev event.UpdateEvent, q groupQueue) {
			ended := !finished(ev.ObjectOld) && finished(ev.ObjectNew)
			if ended {
				tellEnd(ctx, ev.ObjectNew)
			}
			e.observe(ev.ObjectNew, ended, q)
		},
		DeleteFunc: func(_ context.Context, ev event.DeleteEvent, q groupQueue) { e.observe(ev.Object, true, q) },
	}
}

// waitingFor returns the groups in which a host of the targets waits, also as
// the machine of another host. The caller holds the lock.
func (e *Engine) waitingFor(namespace string, targets []ansibleeev1.Target) iter.Seq[Group] {
	return func(yield func(Group) bool) {
		for g, grp := range e.groups {
			if (g.Namespace == namespace && grp.hasHost(targets) || grp.hasMachine(targets)) && !yield(g) {
				return
			}
		}
	}
}

func (g *group) hasHost(targets []ansibleeev1.Target) bool {
	return slices.ContainsFunc(targets, func(t ansibleeev1.Target) bool { return g.pending[t.Host] != nil })
}

func (g *group) hasMachine(targets []ansibleeev1.Target) bool {
	machines := map[string]bool{}
	for _, t := range targets {
		machines[t.Machine] = t.Machine != ""
	}
	for _, o := range g.pending {
		if machines[o.machine] {
			return true
		}
	}
	return false
}

type groupQueue = workqueue.TypedRateLimitingInterface[Group]

// tellEnd counts a run of the engine that has ended, and notes it in the log.
func tellEnd(ctx context.Context, obj client.Object) {
	run := obj.(*ansibleeev1.OpenStackAnsibleEE)
	if run.Spec.Step != "" && run.DeletionTimestamp.IsZero() {
		ctrl.LoggerFrom(ctx).Info("Run ended", "run", klog.KObj(run), "step", run.Spec.Step, "result", run.Status.JobStatus, "converged", run.Status.HostsSummary)
		for _, step := range run.StepNames() {
			runsFinished.WithLabelValues(metrics.Steps.Value(step), string(run.Status.JobStatus)).Inc()
		}
	}
}

func complaint(obj client.Object) string { return problem(obj.(*ansibleeev1.OpenStackAnsibleEE)) }

func finished(obj client.Object) bool { return obj.(*ansibleeev1.OpenStackAnsibleEE).Finished() }

// observe notes that the cache shows a run, and plans its group again. When the
// run has freed its hosts, groups that wait for one of them are planned at once,
// and so is its own, in which hosts may wait for the run to end.
func (e *Engine) observe(obj client.Object, freed bool, q groupQueue) {
	run := obj.(*ansibleeev1.OpenStackAnsibleEE)
	if len(run.Spec.Targets) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range run.Spec.Targets {
		for _, key := range keysOf(run, t.Host) {
			if l, ok := e.created[key]; ok && l.name == run.Name {
				e.shown(key, l)
			}
		}
	}
	own := groupOf(run)
	q.AddAfter(own, e.Debounce)
	if run.Finished() {
		q.AddAfter(everyGroup, pruneDelay)
	}
	if !freed {
		return
	}
	for _, t := range run.Spec.Targets {
		for _, key := range keysOf(run, t.Host) {
			e.refuse(key, run, false)
		}
	}
	e.wakeQueued()
	if e.groups[own] != nil {
		q.Add(own)
	}
	for g := range e.waitingFor(run.Namespace, run.Spec.Targets) {
		q.Add(g)
	}
}

// OwnerHandler wakes the owners of a kind when a run with their targets
// appears, has a problem, finishes or goes.
func (e *Engine) OwnerHandler(kind string) handler.EventHandler {
	enqueue := func(obj client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
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
		CreateFunc: func(_ context.Context, ev event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(ev.Object, q)
		},
		UpdateFunc: func(_ context.Context, ev event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if finished(ev.ObjectOld) != finished(ev.ObjectNew) || complaint(ev.ObjectOld) != complaint(ev.ObjectNew) {
				enqueue(ev.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, ev event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(ev.Object, q)
		},
	}
}

// Wakeups is a source of events for owners of a kind whose targets are held or
// no longer held.
func (e *Engine) Wakeups(kind string) source.Source {
	return source.Channel(e.wake[kind], &handler.EnqueueRequestForObject{})
}

// wakeOwner makes an owner of targets look at their state again.
func (e *Engine) wakeOwner(id ownerID) {
	owner, ok := e.owners[id.kind]
	if !ok {
		return
	}
	obj := owner.New()
	obj.SetNamespace(id.namespace)
	obj.SetName(id.name)
	e.wake[id.kind] <- event.GenericEvent{Object: obj}
}

// runsOf returns the runs of a step of a host. They are the cache's own: not to be changed.
func (e *Engine) runsOf(ctx context.Context, key Key) ([]ansibleeev1.OpenStackAnsibleEE, error) {
	runs, err := e.list(ctx, key.Namespace, targetIndex, key.index())
	return slices.DeleteFunc(runs, func(r ansibleeev1.OpenStackAnsibleEE) bool { return !slices.Contains(r.StepNames(), key.Step) }), err
}

// list returns runs by an index. They are the cache's own: not to be changed.
func (e *Engine) list(ctx context.Context, namespace, index, value string) ([]ansibleeev1.OpenStackAnsibleEE, error) {
	runs := &ansibleeev1.OpenStackAnsibleEEList{}
	err := e.client.List(ctx, runs, client.InNamespace(namespace), client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy)
	return runs.Items, err
}
