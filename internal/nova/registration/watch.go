package registration

import (
	"context"

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

// WatchMachines wakes computes when their machines are powered off or on.
func WatchMachines(b *builder.Builder) {
	b.Watches(&dataplanev1.OpenStackDataPlaneNode{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(watch.Changes(func(node client.Object) bool {
		machine := node.(*dataplanev1.OpenStackDataPlaneNode).Status.BareMetalHost
		return machine != nil && machine.PoweredOff
	})))
}

// WatchHosts indexes the hosts in nova of computes, and wakes computes whose host another one has, or
// has no longer.
func WatchHosts(ctx context.Context, b *builder.Builder, c client.Reader, indexer client.FieldIndexer) error {
	ofHost := watch.Users(c, func() client.ObjectList { return &novav1.NovaExternalComputeList{} }, hostIndex, hostOf)
	b.Watches(&novav1.NovaExternalCompute{}, handler.EnqueueRequestsFromMapFunc(ofHost), builder.WithPredicates(hostChanges))
	return indexer.IndexField(ctx, &novav1.NovaExternalCompute{}, hostIndex, hostsOf)
}

// hostsOf leaves out computes that nova does not know, which have no host in common.
func hostsOf(obj client.Object) []string {
	if host := hostOf(obj); host != "" {
		return []string{host}
	}
	return nil
}

// hostChanges lets through that a compute has another host in nova, or none.
var hostChanges = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool { return hostOf(e.ObjectOld) != hostOf(e.ObjectNew) },
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
