package rollout

import (
	"cmp"
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/hosted"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeimage"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// pullStep is what an update of the cell adds to the steps of a compute until it follows.
var pullStep = edpm.Step{Name: "pull-images", Playbook: "edpm.operators.pull_images"}

// Host is how a compute on a host follows its cell.
type Host struct {
	compute *novav1.NovaExternalCompute
	// Known from Follow on: the cell, and what its templates name for the compute.
	cell  *novav1.NovaCell
	named novav1.NovaComputeImages
}

// NewHost returns that of a compute, which is changed in place.
func NewHost(compute *novav1.NovaExternalCompute) *Host { return &Host{compute: compute} }

// Images returns what decides about the images of the steps. A new compute has that of its cell:
// the operators may bring a newer one, which a conductor does not know.
func (h *Host) Images(defaults images.Defaults) map[string]images.Component {
	compute, libvirt := novav1.ComputeComponent, novav1.LibvirtComponent
	return map[string]images.Component{
		compute: {Spec: computeimage.Named(h.compute, compute, h.compute.Status.TemplateImage), Default: cmp.Or(imageOf(h.cell), defaults.NovaCompute), Program: "nova-compute"},
		libvirt: {Spec: computeimage.Named(h.compute, libvirt, h.named.Libvirt), Default: defaults.NovaLibvirt, Program: "libvirt"},
	}
}

// due is the image to which the compute is to follow its cell, empty if it has it, if it was
// chosen, and if the cell has not changed its own.
func (h *Host) due() string {
	update := h.cell.Status.ComputeUpdate
	if update == nil || update.Image != imageOf(h.cell) || computeimage.Of(h.compute) == update.Image || isPinned(h.compute, update.Image) {
		return ""
	}
	return update.Image
}

// next is the image that the host pulls while its services run with another one, empty for
// none. A host that is deployed for the first time has nothing to interrupt.
func (h *Host) next() string {
	if !isDeployed(h.compute) || isInRepair(h.compute) {
		return ""
	}
	return h.due()
}

// Follow sets the image of the cell in the spec of the compute if it is its turn, once the host has
// pulled it, and when templates of the cell for the role no longer name the image it has. The compute
// has the new state afterwards; the error is a Conflict if it has changed meanwhile.
func (h *Host) Follow(ctx context.Context, c client.Client, cell *novav1.NovaCell, role string) error {
	h.cell, h.named = cell, computeimage.OfTemplates(cell.Spec.ComputeTemplates, role)
	if h.named.Compute != "" || !h.isReleased() {
		h.compute.Status.TemplateImage = cmp.Or(h.named.Compute, h.compute.Status.TemplateImage)
		return h.set(ctx, c, h.turn())
	}
	if !computeimage.IsChosen(h.compute, novav1.ComputeComponent) {
		if err := h.set(ctx, c, imageOf(cell)); err != nil {
			return err
		}
	}
	h.compute.Status.TemplateImage = ""
	return nil
}

// isReleased reports whether the compute has the image of a template that no longer names one, and
// can have that of the cell: no other one is the first to try it.
func (h *Host) isReleased() bool {
	update := h.cell.Status.ComputeUpdate
	return h.compute.Status.TemplateImage != "" && (update == nil || update.Verified)
}

// turn returns the image of the cell if it is the turn of the compute to get it, else nothing.
func (h *Host) turn() string {
	update := h.cell.Status.ComputeUpdate
	if h.due() == "" || isInRepair(h.compute) || !update.Verified && update.First != h.compute.Name || !hasPulled(h.compute, update.Image) {
		return ""
	}
	return update.Image
}

// set writes an image into the spec of the compute, unless it is there, or there is none.
func (h *Host) set(ctx context.Context, c client.Client, image string) error {
	if image == "" || image == h.compute.Spec.NovaComputeContainerImage {
		return nil
	}
	followed := h.compute.DeepCopy()
	followed.Spec.NovaComputeContainerImage = image
	if err := c.Patch(ctx, followed, client.MergeFromWithOptions(h.compute, client.MergeFromWithOptimisticLock{}), client.FieldOwner(computeimage.FieldManager)); err != nil {
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
