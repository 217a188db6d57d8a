package phase

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/edpm-operators/edpm-operators/apis/common"
)

// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Object is what controllers of edpm-operators reconcile.
type Object interface {
	client.Object
	GetConditions() *condition.Conditions
	SetObservedGeneration(int64)
}

// ReadyMessage is what the condition Ready of an object says, for those who
// wait for it.
func ReadyMessage(obj Object) string {
	if ready := obj.GetConditions().Get(condition.ReadyCondition); ready != nil && ready.Message != "" {
		return ready.Message
	}
	return "not reconciled yet"
}

// Runner reports the outcome of reconciliations.
type Runner struct {
	Client client.Client
	Events events.EventRecorder

	written written
	warned  warned
}

// Run runs the phases in order until one ends with an error. It then computes
// the conditions (that of each phase, and Ready as the worst of them), writes the
// status once if it changed, and emits an event for each problem that appears, and
// when an object with a problem is Ready again. The error of a fault is returned, that of a Halt is not.
func (r *Runner) Run(ctx context.Context, obj Object, phases ...Phase) (ctrl.Result, error) {
	if r.written.newerThan(obj) {
		return ctrl.Result{RequeueAfter: staleDelay}, nil
	}
	before := obj.DeepCopyObject().(Object)
	begin(obj, Conditions(phases))
	ctx, again := withSchedule(ctx)
	at, err := runAll(ctx, obj, phases)
	if apierrors.IsConflict(err) {
		// Another user wrote first: no fault, the newer object is on its way.
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	}
	told := repeated(err)
	result, err := report(obj, at, err)
	result.RequeueAfter = again.or(result.RequeueAfter)
	finish(obj, *before.GetConditions(), phases)
	werr := r.write(ctx, obj, before, told)
	switch {
	case apierrors.IsConflict(werr) && err == nil:
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	case werr != nil:
		return ctrl.Result{}, errors.Join(err, werr)
	}
	return result, err
}

// runAll returns the condition of the phase that failed, with its error.
func runAll(ctx context.Context, obj Object, phases []Phase) (condition.Type, error) {
	for _, p := range phases {
		err := p.run(ctx, obj)
		var halt *Halt
		switch {
		case err == nil:
		case p.informational && errors.As(err, &halt):
			obj.GetConditions().MarkFalse(halt.Type, halt.Reason, halt.Severity, "%s", halt.Message)
		default:
			return p.condition, err
		}
	}
	return "", nil
}

// conflictDelay is how long the cache is given to show a newer object.
const conflictDelay = 100 * time.Millisecond

// staleDelay is how long the cache is given to show what was written here: a host
// that is looked at late misses the run of the others.
const staleDelay = 5 * time.Millisecond

// begin drops the old conditions and the time of the next retry, so that none can
// outlive its cause.
func begin(obj Object, types []condition.Type) {
	fresh := condition.Conditions{}
	for _, t := range types {
		fresh = append(fresh, *condition.UnknownCondition(t, condition.InitReason, "Waiting for an earlier condition: see the conditions that are not True"))
	}
	*obj.GetConditions() = fresh
	if r, ok := obj.(recorder); ok {
		r.GetLedger().NextRetry = nil
	}
	obj.SetObservedGeneration(obj.GetGeneration())
}

// report turns the error of a phase into a condition: that of the phase, unless the error
// names another.
func report(obj Object, at condition.Type, err error) (ctrl.Result, error) {
	var halt *Halt
	switch {
	case err == nil:
		return ctrl.Result{}, nil
	case errors.As(err, &halt):
		obj.GetConditions().MarkFalse(halt.Type, halt.Reason, halt.Severity, "%s", halt.Message)
		return ctrl.Result{RequeueAfter: halt.After}, nil
	}
	obj.GetConditions().MarkFalse(at, condition.ErrorReason, condition.SeverityWarning, "Retrying after an error: %v", err)
	return ctrl.Result{}, err
}

// finish adds Ready, keeps the times of conditions that stayed as they were,
// and sorts.
func finish(obj Object, before condition.Conditions, phases []Phase) {
	conditions := obj.GetConditions()
	// Ready mirrors the latest of the worst: of those of this reconciliation always the same.
	stamp(*conditions, metav1.NewTime(time.Now().UTC().Truncate(time.Second)))
	ready := condition.TrueCondition(condition.ReadyCondition, condition.ReadyMessage)
	if deciding := deciding(*conditions, phases); !deciding.AllSubConditionIsTrue() {
		ready = deciding.Mirror(condition.ReadyCondition)
	}
	conditions.Set(ready)
	condition.RestoreLastTransitionTimes(conditions, before)
	conditions.Sort()
}

// deciding are the conditions that decide whether the object is Ready.
func deciding(conditions condition.Conditions, phases []Phase) condition.Conditions {
	return slices.DeleteFunc(slices.Clone(conditions), func(c condition.Condition) bool {
		return slices.ContainsFunc(phases, func(p Phase) bool { return p.informational && p.condition == c.Type })
	})
}

// stamp gives all conditions the same time.
func stamp(conditions condition.Conditions, now metav1.Time) {
	for i := range conditions {
		conditions[i].LastTransitionTime = now
	}
}

// repeated is the type of the condition that an event has reported before, empty
// if there is none.
func repeated(err error) condition.Type {
	var halt *Halt
	if errors.As(err, &halt) && halt.Repeats {
		return halt.Type
	}
	return ""
}

// write patches the status if it changed and then tells what changed, but for
// the condition that was reported before.
func (r *Runner) write(ctx context.Context, obj, before Object, told condition.Type) error {
	if released(obj, before) || equality.Semantic.DeepEqual(obj, before) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, obj, statusPatch(obj, before)); err != nil {
		if apierrors.IsNotFound(err) {
			return nil // it was deleted meanwhile
		}
		return fmt.Errorf("writing the status: %w", err)
	}
	r.written.note(obj)
	r.emit(ctx, obj, *before.GetConditions(), told)
	return nil
}

// released reports whether the finalizer of a deleted object has been removed.
// The object no longer exists then, and another one may have its name: what is
// true of the old one must not be written into the status of the new one.
func released(obj, before Object) bool {
	return !before.GetDeletionTimestamp().IsZero() && len(obj.GetFinalizers()) < len(before.GetFinalizers())
}

// recorder is an object whose status tells what was run for it.
type recorder interface{ GetLedger() *common.Ledger }

// statusPatch patches the status by name, with two exceptions. An object that is
// being deleted can be replaced by another one of its name at any time, so it is
// patched only as it was read. So is a ledger: a manager that leads no longer must
// not bring back what the new one has replaced, or hosts would be configured twice.
func statusPatch(obj, before Object) client.Patch {
	if before.GetDeletionTimestamp().IsZero() && !records(obj, before) {
		return client.MergeFrom(before)
	}
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// records reports whether the ledger of the object has changed.
func records(obj, before Object) bool {
	r, ok := obj.(recorder)
	return ok && !equality.Semantic.DeepEqual(r.GetLedger(), before.(recorder).GetLedger())
}

// emit reports each problem when it appears, and Ready when it is reached after
// one. That thousands of objects are Ready as they should be is no news.
func (r *Runner) emit(ctx context.Context, obj Object, before condition.Conditions, told condition.Type) {
	for _, c := range *obj.GetConditions() {
		old := before.Get(c.Type)
		if old != nil && old.Status == c.Status && old.Reason == c.Reason {
			continue
		}
		log.FromContext(ctx).V(1).Info("Condition changed", "type", c.Type, "status", c.Status, "reason", c.Reason, "message", c.Message)
		if c.Type == told {
			continue
		}
		switch {
		case c.Type == condition.ReadyCondition && c.Status == corev1.ConditionTrue:
			if r.warned.forget(obj) {
				r.Events.Eventf(obj, nil, corev1.EventTypeNormal, string(c.Reason), "Reconciling", "%s", c.Message)
			}
		case c.Type != condition.ReadyCondition && c.Status == corev1.ConditionFalse && c.Severity != condition.SeverityInfo:
			r.warned.note(obj)
			r.Events.Eventf(obj, nil, corev1.EventTypeWarning, string(c.Reason), "Reconciling", "%s: %s", c.Type, c.Message)
		}
	}
}
