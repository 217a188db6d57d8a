package registration

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// Watch wakes the computes of a kind, whose index holds their cells, when something changes
// that they read of their cell, also by what more lets through, and when it gets an API that
// is asked or loses it.
func Watch(b *builder.Builder, c client.Reader, list func() client.ObjectList, cellIndex string, more ...predicate.Predicate) *builder.Builder {
	ofCell := func(cell func(client.Object) string) handler.MapFunc { return watch.Users(c, list, cellIndex, cell) }
	ofNova := func(ctx context.Context, nova client.Object) []reconcile.Request {
		var requests []reconcile.Request
		for cell := range nova.(*novav1.Nova).Spec.CellTemplates {
			name := novav1.CellName(nova.GetName(), cell)
			requests = append(requests, ofCell(func(client.Object) string { return name })(ctx, nova)...)
		}
		return requests
	}
	return b.
		Watches(&novav1.NovaCell{}, handler.EnqueueRequestsFromMapFunc(ofCell(watch.ByName)),
			builder.WithPredicates(predicate.Or(append(more, cellChanges)...))).
		Watches(&novav1.Nova{}, handler.EnqueueRequestsFromMapFunc(ofNova), builder.WithPredicates(apiChanges))
}

// Index adds the indexes of computes on hosts.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	// Computes that nova does not know have no host in common.
	hosts := func(obj client.Object) []string { return nonEmpty(HostOf(obj)) }
	return errors.Join(
		indexer.IndexField(ctx, &novav1.NovaExternalCompute{}, HostIndex, hosts),
		indexer.IndexField(ctx, &novav1.NovaExternalCompute{}, DrainIndex, DrainOf),
	)
}

func nonEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// WatchMachines wakes computes when their machines are powered off or on.
func WatchMachines(b *builder.Builder) {
	b.Watches(&dataplanev1.OpenStackDataPlaneNode{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(watch.Changes(func(node client.Object) bool {
		machine := node.(*dataplanev1.OpenStackDataPlaneNode).Status.BareMetalHost
		return machine != nil && machine.PoweredOff
	})))
}

// apiChanges lets through that a Nova gets an API, or loses it.
var apiChanges = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool { return Observes(e.ObjectOld) != Observes(e.ObjectNew) },
}

// cellChanges lets through what computes wait for of their cell, once it has observed its
// spec: before, all of them would only say that they wait. A conductor that is being
// replaced does not concern them.
var cellChanges = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, now := e.ObjectOld.(*novav1.NovaCell), e.ObjectNew.(*novav1.NovaCell)
		return now.Status.ObservedGeneration == now.Generation && (before.Status.ObservedGeneration != now.Generation ||
			before.ConfiguresComputes() != now.ConfiguresComputes() || CellTrouble(before) != CellTrouble(now))
	},
}
