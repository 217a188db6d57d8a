package rollout

import (
	"cmp"
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/hosted"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// pullStep is what an update of the cell adds to the steps of a compute until it follows.
var pullStep = edpm.Step{Name: "pull-images", Playbook: "edpm.operators.pull_images"}

// Host is how a compute on a host follows its cell.
type Host struct {
	compute *novav1.NovaExternalCompute
	cell    *novav1.NovaCell // known from Follow on
}

// NewHost returns that of a compute, which is changed in place.
func NewHost(compute *novav1.NovaExternalCompute) *Host { return &Host{compute: compute} }

// Image returns that of nova-compute, as far as a compute says it.
func Image(compute *novav1.NovaExternalCompute) string {
	return cmp.Or(compute.Spec.NovaComputeContainerImage, compute.Status.Images[novav1.ComputeComponent])
}

// due is the image to which the compute is to follow its cell, empty if it has it, if it was
// chosen, and if the cell has not changed its own.
func (h *Host) due() string {
	update := h.cell.Status.ComputeUpdate
	if update == nil || update.Image != imageOf(h.cell) || Image(h.compute) == update.Image || isPinned(h.compute, update.Image) {
		return ""
	}
	return update.Image
}

// next is the image that the host pulls while its services run with another one, empty for
// none. A host that is deployed for the first time has nothing to interrupt.
func (h *Host) next() string {
	if !isDeployed(h.compute) {
		return ""
	}
	return h.due()
}

// Follow sets the image of the cell in the spec of the compute if it is its turn, once the host has
// pulled it. The compute has the new state afterwards; the error is a Conflict if it has
// changed meanwhile.
func (h *Host) Follow(ctx context.Context, c client.Client, cell *novav1.NovaCell) error {
	h.cell = cell
	update := cell.Status.ComputeUpdate
	if h.due() == "" || !update.Verified && update.First != h.compute.Name || !hasPulled(h.compute, update.Image) {
		return nil
	}
	followed := h.compute.DeepCopy()
	followed.Spec.NovaComputeContainerImage = update.Image
	if err := c.Patch(ctx, followed, client.MergeFromWithOptions(h.compute, client.MergeFromWithOptimisticLock{}), client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("setting the image of the cell: %w", err)
	}
	h.compute.ObjectMeta, h.compute.Spec = followed.ObjectMeta, followed.Spec
	return nil
}

// Step pulls the next image while the services run. What else the host is to pull, and by which
// login, is up to the steps of its role.
func (h *Host) Step() hosted.Step {
	return hosted.Step{
		Step: pullStep, Applies: func() bool { return h.next() != "" },
		Complete: func(t *edpm.Target) {
			t.Vars["edpm_images"] = []any{h.next()}
			t.Vars["edpm_images_prune"], t.Vars["edpm_images_auth_file"] = false, ""
		},
	}
}

// NotePulled is the phase that notes which image the host has pulled, once all steps have run. If
// it is the turn of the compute already, it follows at once.
func (h *Host) NotePulled(ctx context.Context) error {
	pulled := h.next()
	if pulled != "" && pulled != h.compute.Status.PulledImage {
		phase.Soon(ctx)
	}
	h.compute.Status.PulledImage = pulled
	return nil
}
