package nova

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova"
	"github.com/edpm-operators/edpm-operators/internal/nova/rotation"
)

// holder holds the Secrets with credentials that the spec names. The API reaches the message
// buses of all cells.
func (s *scope) holder() *rotation.Holder {
	spec := s.nova.Spec
	named := []string{spec.Secret, spec.NotificationsBusSecretName}
	if s.wantsAPI() {
		for cell, template := range spec.CellTemplates {
			named = append(named, s.bus(cell, template))
		}
		named = append(named, nova.Snippets(s.components())...)
	}
	return &rotation.Holder{
		Client: s.Client, Inputs: s.Inputs, Events: s.Runner.Events, Kind: "nova", Owner: s.nova, Status: &s.nova.Status.ConfigStatus,
		Names: named,
	}
}

// release lets a deleted Nova go, with the Secrets that it holds once its pods have an owner.
func (s *scope) release(ctx context.Context) error {
	if err := s.Pods.Release(ctx, s.nova, nova.Bare(s.components())); err != nil || controllerutil.ContainsFinalizer(s.nova, s.Pods.Finalizer) {
		return err
	}
	return s.secrets.ReleaseAll(ctx)
}

// rolloutOf is what a Nova counts of a cell.
func rolloutOf(cell client.Object) string {
	if rollout := cell.(*novav1.NovaCell).Status.ConfigRollout; rollout != nil {
		return fmt.Sprint(*rollout)
	}
	return ""
}

// unmapped are the cells whose mapping does not have the present credentials: API, scheduler and
// conductors that reach other cells have them from there.
func (s *scope) unmapped() []rotation.Part {
	var parts []rotation.Part
	for _, cell := range s.withDatabase() {
		if s.mappings[cell] == nil {
			parts = append(parts, rotation.Part{Total: 1, Outdated: []string{"Job " + mappingJobName(s.nova.Name, cell)}})
		}
	}
	return parts
}

// inputsOf identifies what the present configuration of a cell is made from.
func (s *scope) inputsOf(cell *novav1.NovaCell) string {
	return rotation.Inputs(s.credentials(cell.ShortName()), s.restarts())
}

// reportRollout is the phase that says who runs the present configuration, in all cells.
func (s *scope) reportRollout(ctx context.Context) error {
	var parts []rotation.Part
	if s.configured() {
		parts = append(nova.Parts(s.components()), s.unmapped()...)
	}
	for _, cell := range s.cells {
		parts = append(parts, rotation.Cell(cell, s.inputsOf(cell)))
	}
	return s.secrets.Report(ctx, "", parts...)
}
