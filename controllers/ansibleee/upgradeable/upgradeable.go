// Package upgradeable keeps the Operator Lifecycle Manager from upgrading the
// operators while Ansible is at work on hosts.
package upgradeable

import (
	"context"
	"fmt"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// NameVariable is the environment variable by which OLM says which
// OperatorCondition is that of the manager (olm.operatorframework.io, "Communicating Operator Conditions to OLM").
const NameVariable = "OPERATOR_CONDITION_NAME"

// Reasons of the condition Upgradeable.
const (
	RunsInProgress = "RunsInProgress"
	NoRuns         = "NoRunsInProgress"
)

// Reconciler sets the condition Upgradeable of the manager's OperatorCondition. OLM
// lets the manager read and change that object, and no other of its kind.
type Reconciler struct {
	client.Client
	// Live reads without a cache, which would need the right to list.
	Live client.Reader
	// Condition is the OperatorCondition of the manager.
	Condition types.NamespacedName
}

// Reconcile writes the condition if it has changed.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	busy, err := r.busy(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	stored := &operatorsv2.OperatorCondition{}
	if err := r.Live.Get(ctx, r.Condition, stored); err != nil {
		return ctrl.Result{}, fmt.Errorf("reading OperatorCondition %s: %w", r.Condition, err)
	}
	changed := stored.DeepCopy()
	meta.SetStatusCondition(&changed.Spec.Conditions, upgradeable(busy))
	if equality.Semantic.DeepEqual(stored.Spec, changed.Spec) {
		return ctrl.Result{}, nil
	}
	if err := r.Patch(ctx, changed, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})); err != nil {
		return ctrl.Result{}, fmt.Errorf("writing OperatorCondition %s: %w", r.Condition, err)
	}
	return ctrl.Result{}, nil
}

// upgradeable is the condition. Its message has no numbers, which would be written
// at every start and end of a run.
func upgradeable(busy bool) metav1.Condition {
	c := metav1.Condition{Type: operatorsv2.Upgradeable, Status: metav1.ConditionTrue, Reason: NoRuns, Message: "No run of Ansible is in progress"}
	if busy {
		c.Status, c.Reason = metav1.ConditionFalse, RunsInProgress
		c.Message = "Runs of Ansible are in progress on hosts; the upgrade continues when they have finished. kubectl get osaee -A lists them"
	}
	return c
}

// busy reports whether any run is in progress.
func (r *Reconciler) busy(ctx context.Context) (bool, error) {
	runs := &ansibleeev1.OpenStackAnsibleEEList{}
	if err := r.List(ctx, runs, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing all runs: %w", err)
	}
	for i := range runs.Items {
		if !runs.Items[i].Finished() {
			return true, nil
		}
	}
	return false, nil
}

// SetupWithManager adds the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	only := reconcile.Request{NamespacedName: r.Condition}
	return ctrl.NewControllerManagedBy(mgr).
		Named("upgradeable").
		Watches(&ansibleeev1.OpenStackAnsibleEE{}, handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
			return []reconcile.Request{only}
		}), builder.WithPredicates(startsAndEnds)).
		// A manager before this one may have said that runs were in progress, of which none is left.
		WatchesRawSource(source.TypedFunc[reconcile.Request](func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			q.Add(only)
			return nil
		})).
		Complete(r)
}

// startsAndEnds lets through what can change whether a run is in progress.
var startsAndEnds = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.(*ansibleeev1.OpenStackAnsibleEE).Finished() != e.ObjectNew.(*ansibleeev1.OpenStackAnsibleEE).Finished()
	},
}
