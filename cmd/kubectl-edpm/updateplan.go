package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// plan prints what an update replaces, and for a Nova in which order, and on how many hosts.
func (u *updateCommand) plan(ctx context.Context, out io.Writer, r *released) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "COMPONENT\tPRESENT IMAGE\tNEW IMAGE")
	for _, name := range slices.Sorted(maps.Keys(r.Status.Update.Images)) {
		fmt.Fprintf(w, "%s\t%s\t%s\n", name, r.Status.Images[name], r.Status.Update.Images[name])
	}
	if err := w.Flush(); err != nil || r.Kind != "Nova" {
		return err
	}
	cells := &novav1.NovaCellList{}
	if err := u.client.List(ctx, cells, client.InNamespace(r.Namespace)); err != nil {
		return fmt.Errorf("listing the cells of Nova %s: %w", r.Name, err)
	}
	fmt.Fprintf(out, "\nNothing changes until a check of databases and computes has passed: see condition %s.\nThen, each step after the one before is complete:\n", novav1.UpgradeCheckReadyCondition)
	for i, step := range steps(r.Status.Update.Images) {
		fmt.Fprintf(out, "  %d. %s\n", i+1, step)
	}
	if r.Status.Update.Images[novav1.ComputeComponent] != "" {
		printComputes(out, cells.Items, r.UID)
	}
	return nil
}

// steps of the update of a Nova, of those components whose image is replaced: see docs/nova.md#updates.
func steps(images map[string]string) []string {
	isReplaced := func(component string) bool { return images[component] != "" }
	var all []string
	if isReplaced(novav1.APIComponent) {
		all = append(all, "schema of the API database")
	}
	for _, step := range novav1.UpdateOrder {
		if slices.ContainsFunc(step.Components, isReplaced) {
			all = append(all, step.Name)
		}
	}
	if isReplaced(novav1.ComputeComponent) {
		all = append(all, "conductors, scheduler and API restart once")
	}
	return append(all, "data of all mapped cells is migrated")
}

// printComputes prints how many computes on hosts follow in the cells of the Nova with the UID.
func printComputes(out io.Writer, cells []novav1.NovaCell, nova types.UID) {
	fmt.Fprintln(out, "Hosts pull the image first. nova-compute restarts on them; guests keep running, and none is moved:")
	for i := range cells {
		cell := &cells[i]
		owner, computes := metav1.GetControllerOf(cell), cell.Status.Computes
		if owner == nil || owner.UID != nova || computes == nil {
			continue
		}
		fmt.Fprintf(out, "  NovaCell %s: %d hosts", cell.Name, computes.Total-computes.Pinned)
		if computes.Pinned > 0 {
			fmt.Fprintf(out, "; %d keep an image that was chosen for them", computes.Pinned)
		}
		fmt.Fprintln(out)
	}
}
