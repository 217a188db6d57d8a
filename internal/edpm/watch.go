package edpm

import (
	"context"

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

// SetupWithManager adds the engine's controller and indexes.
func (e *Engine) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	run := &ansibleeev1.OpenStackAnsibleEE{}
	for name, index := range indexes {
		if err := mgr.GetFieldIndexer().IndexField(ctx, run, name, index); err != nil {
			return err
		}
	}
	if err := mgr.Add(sweeper{runs: e.runs, owners: e.owners, clock: e.Clock}); err != nil {
		return err
	}
	metrics.Replace(e.states)
	// The queue itself is the source: pending targets are made by other controllers.
	takeQueue := source.TypedFunc[Group](func(_ context.Context, q workqueue.TypedRateLimitingInterface[Group]) error {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.queue = q
		for g := range e.planner.groups {
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
		CreateFunc: func(_ context.Context, ev event.CreateEvent, q groupQueue) { e.observe(ev.Object, true, false, q) },
		UpdateFunc: func(ctx context.Context, ev event.UpdateEvent, q groupQueue) {
			ended := !isFinished(ev.ObjectOld) && isFinished(ev.ObjectNew)
			if ended {
				countEnd(ctx, ev.ObjectNew)
			}
			e.observe(ev.ObjectNew, true, ended, q)
		},
		DeleteFunc: func(_ context.Context, ev event.DeleteEvent, q groupQueue) { e.observe(ev.Object, false, true, q) },
	}
}

type groupQueue = workqueue.TypedRateLimitingInterface[Group]

// countEnd counts a run of the engine that has ended, and notes it in the log.
func countEnd(ctx context.Context, obj client.Object) {
	run := obj.(*ansibleeev1.OpenStackAnsibleEE)
	if run.Spec.Step != "" && run.DeletionTimestamp.IsZero() {
		ctrl.LoggerFrom(ctx).Info("Run ended", "run", klog.KObj(run), "step", run.Spec.Step, "result", run.Status.JobStatus, "converged", run.Status.HostsSummary)
		finished := runsFinished
		if run.Spec.Check {
			finished = checksFinished
		}
		for _, step := range run.StepNames() {
			finished.WithLabelValues(metrics.Steps.Value(step), string(run.Status.JobStatus)).Inc()
		}
	}
}

// wakeDisplacing plans the groups again whose hosts wait for a check that has not started: it gives way.
// The caller holds the lock.
func (e *Engine) wakeDisplacing(run *ansibleeev1.OpenStackAnsibleEE, q groupQueue) {
	if isUnstartedCheck(run) {
		for g := range e.planner.waitingFor(run.Namespace, run.Spec.Targets) {
			q.AddAfter(g, e.Debounce)
		}
	}
}

func isFinished(obj client.Object) bool { return obj.(*ansibleeev1.OpenStackAnsibleEE).Finished() }

// observe notes that the cache shows a run, if it does, and plans its group again. When the
// run has freed its hosts, groups that wait for one of them are planned at once,
// and so is its own, in which hosts may wait for the run to end.
func (e *Engine) observe(obj client.Object, shown, freed bool, q groupQueue) {
	run := obj.(*ansibleeev1.OpenStackAnsibleEE)
	if len(run.Spec.Targets) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if shown && run.DeletionTimestamp.IsZero() { // else it may be an earlier one of the same name
		for _, key := range e.started.shownBy(run) {
			e.confirm(key)
		}
	}
	own := groupOf(run)
	q.AddAfter(own, e.Debounce)
	if run.Finished() {
		q.AddAfter(everyGroup, pruneDelay)
	}
	if !freed {
		e.wakeDisplacing(run, q)
		return
	}
	for _, t := range run.Spec.Targets {
		for _, key := range keysOf(run, t.Host) {
			e.refuse(key, run, false)
		}
	}
	e.planner.slots.wakeQueued()
	if e.planner.groups[own] != nil {
		q.Add(own)
	}
	for g := range e.planner.waitingFor(run.Namespace, run.Spec.Targets) {
		q.Add(g)
	}
}
