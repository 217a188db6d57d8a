package edpm

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// everyGroup stands in the queue for the history of all groups together.
var everyGroup = Group{}

// pruneDelay is how long ends of runs are gathered into one look at all of them.
const pruneDelay = 30 * time.Second

// pruneOldest deletes the oldest finished runs while there are more than
// HistoryTotal of them, except those that are needed. The history of a group
// bounds them by roles and steps; their Pods count for the whole cluster, which
// removes finished ones, needed or not, from 12,500 on
// (kube-controller-manager, --terminated-pod-gc-threshold).
func (e *Engine) pruneOldest(ctx context.Context) error {
	list := &ansibleeev1.OpenStackAnsibleEEList{}
	if err := e.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing all runs: %w", err)
	}
	var kept []*ansibleeev1.OpenStackAnsibleEE
	for i := range list.Items {
		run := &list.Items[i]
		if _, mine := e.owners[run.Spec.OwnerKind]; mine && len(run.Spec.Targets) > 0 && run.Finished() && run.DeletionTimestamp.IsZero() {
			kept = append(kept, run)
		}
	}
	slices.SortFunc(kept, func(a, b *ansibleeev1.OpenStackAnsibleEE) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	excess := len(kept) - e.HistoryTotal
	for _, run := range kept {
		if excess <= 0 {
			break
		}
		deleted, err := e.discard(ctx, run)
		if err != nil {
			return err
		}
		if deleted {
			excess--
		}
	}
	return nil
}
