package rollout

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
)

func own(image string) func(*novav1.NovaExternalCompute) {
	return func(c *novav1.NovaExternalCompute) { c.Spec.NovaComputeContainerImage = image }
}

func TestAHostPullsTheImageThatItsComputeIsAboutToGet(t *testing.T) {
	cell := &novav1.NovaCell{}
	cell.Status.Images = map[string]string{novav1.ComputeComponent: "2"}
	for name, c := range map[string]struct {
		update *novav1.ComputeUpdate
		change []func(*novav1.NovaExternalCompute)
		want   string
	}{
		"of an update":                         {&novav1.ComputeUpdate{Image: "2"}, nil, "2"},
		"of none":                              {nil, nil, ""},
		"of one that another image followed":   {&novav1.ComputeUpdate{Image: "1.5"}, nil, ""},
		"which the compute has":                {&novav1.ComputeUpdate{Image: "2"}, []func(*novav1.NovaExternalCompute){own("2")}, ""},
		"not in place of a chosen one":         {&novav1.ComputeUpdate{Image: "2"}, []func(*novav1.NovaExternalCompute){chosen}, ""},
		"not before its first deployment":      {&novav1.ComputeUpdate{Image: "2"}, []func(*novav1.NovaExternalCompute){fresh}, ""},
		"not while it is in repair":            {&novav1.ComputeUpdate{Image: "2"}, []func(*novav1.NovaExternalCompute){inRepair}, ""},
		"not when it is deleted":               {&novav1.ComputeUpdate{Image: "2"}, []func(*novav1.NovaExternalCompute){leaving}, ""},
		"although the spec names no image":     {&novav1.ComputeUpdate{Image: "2"}, []func(*novav1.NovaExternalCompute){own("")}, "2"},
		"also after its turn, until it has it": {&novav1.ComputeUpdate{Image: "2", Verified: true}, []func(*novav1.NovaExternalCompute){unpulled}, "2"},
	} {
		cell.Status.ComputeUpdate = c.update
		one := compute("n1", "1", c.change...)
		h := NewHost(&one)
		h.cell = cell
		if got := h.Step().Applies(); got != (c.want != "") {
			t.Errorf("%s: the step applies: %v, want %v", name, got, !got)
		}
		target := &edpm.Target{Vars: map[string]any{"edpm_images_prune": true}}
		h.Step().Complete(target)
		want := map[string]any{"edpm_images": []any{c.want}, "edpm_images_prune": false, "edpm_images_auth_file": ""}
		if diff := cmp.Diff(want, target.Vars); diff != "" {
			t.Errorf("%s: variables of the step (-want +got):\n%s", name, diff)
		}
		if err := h.NotePulled(context.Background()); err != nil || one.Status.PulledImage != c.want {
			t.Errorf("%s: it has noted %q (%v), want %q", name, one.Status.PulledImage, err, c.want)
		}
	}
}
