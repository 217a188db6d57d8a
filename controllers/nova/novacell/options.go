package novacell

import (
	"context"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/options"
	"github.com/edpm-operators/edpm-operators/internal/podified"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// readOptions is the phase that reads what the images of the cell and of its computes know of
// options.
func (s *scope) readOptions(ctx context.Context) error {
	status := &s.cell.Status
	if status.Jobs == nil {
		status.Jobs = map[string]string{}
	}
	if err := s.Options.Keep(ctx, s.cell, status.Jobs, podified.Selected(s.cell.Spec.NodeSelector), s.imagesInUse()); err != nil {
		return err
	}
	if err := s.Pods.KeepJobs(ctx, s.cell, status.Jobs, s.jobs()...); err != nil {
		return err
	}
	status.Conditions.MarkTrue(novav1.OptionsKnownCondition, "The options of all images are known: %d", len(s.imagesInUse()))
	return nil
}

// imagesInUse are those that run nova for the cell, sorted.
func (s *scope) imagesInUse() []string {
	used := map[string]bool{}
	for i := range s.computes {
		c := &s.computes[i]
		used[c.Status.Images[novav1.ComputeComponent]] = true
		used[c.Spec.NovaComputeContainerImage] = true
	}
	for i := range s.inPods {
		used[s.inPods[i].Status.Images[novav1.ComputeComponent]] = true
	}
	if s.cell.ShortName() != novav1.Cell0Name {
		used[s.cell.Status.Images[novav1.ComputeComponent]] = true
	}
	if s.withoutConductor() == "" {
		for _, c := range s.components() {
			if c.Wanted() {
				used[c.RunsImage()] = true
			}
		}
	}
	delete(used, "")
	return slices.Sorted(maps.Keys(used))
}

// optionsJobs are the names of the Jobs that read the options of images.
func (s *scope) optionsJobs() []string {
	var names []string
	for _, image := range s.imagesInUse() {
		names = append(names, options.JobName(s.cell, image))
	}
	return names
}

// allCells are the cells of the namespace: those that use the image of a ConfigMap wait for it, or
// have to make it again.
func (r *Reconciler) allCells(ctx context.Context, cm client.Object) []reconcile.Request {
	cells := &novav1.NovaCellList{}
	if err := r.List(ctx, cells, client.InNamespace(cm.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache cannot fail
	}
	var requests []reconcile.Request
	for i := range cells.Items {
		requests = append(requests, watch.Request(cm.GetNamespace(), cells.Items[i].Name))
	}
	return requests
}
