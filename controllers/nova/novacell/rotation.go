package novacell

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/nova"
	"github.com/edpm-operators/edpm-operators/internal/nova/layers"
	"github.com/edpm-operators/edpm-operators/internal/nova/rotation"
)

// holder holds the Secrets with credentials that the spec names.
func (s *scope) holder() *rotation.Holder {
	spec := s.cell.Spec
	named := []string{spec.Secret, spec.CellMessageBusSecretName, spec.NotificationsBusSecretName}
	return &rotation.Holder{
		Client: s.Client, Inputs: s.Inputs, Events: s.Runner.Events, Kind: "novacell", Owner: s.cell, Status: &s.cell.Status.ConfigStatus,
		Names: slices.Concat(named, layers.SecretNames(s.cell), nova.Snippets(s.components())),
	}
}

// release lets a deleted cell go, with the Secrets that it holds once its pods have an owner.
func (s *scope) release(ctx context.Context) error {
	if err := s.Pods.Release(ctx, s.cell, nova.Bare(s.components())); err != nil || controllerutil.ContainsFinalizer(s.cell, s.Pods.Finalizer) {
		return err
	}
	return s.secrets.ReleaseAll(ctx)
}

// computeConfigHash identifies the configuration of computes: what is generated, what templates
// add, and the authorities that computes in pods trust.
func (s *scope) computeConfigHash(ctx context.Context, generated string) (string, error) {
	templates, err := layers.Digest(ctx, s.Inputs, s.cell)
	return inputs.Digest(map[string][]byte{
		"generated": []byte(generated), "templates": []byte(templates), "authorities": s.config.Authorities,
	})[:32], err
}

// reportRollout is the phase that says who runs the present configuration. It comes last: until
// all is deployed no one can.
func (s *scope) reportRollout(ctx context.Context) error {
	parts, present := s.podParts(), s.cell.Status.ComputeConfigHash
	for i := range s.computes {
		parts = append(parts, rotation.Compute(&s.computes[i], present))
	}
	inPods := &novav1.NovaComputeList{}
	if err := s.List(ctx, inPods, client.InNamespace(s.cell.Namespace), client.MatchingFields{"spec.cellName": s.cell.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the computes in pods: %w", err)
	}
	for i := range inPods.Items {
		parts = append(parts, rotation.PodCompute(&inPods.Items[i], present))
	}
	return s.secrets.Report(ctx, rotation.Inputs(s.secret, s.cell.Annotations), parts...)
}

// podParts are the services of the cell in pods.
func (s *scope) podParts() []rotation.Part {
	if s.config.Connection == "" {
		return nil
	}
	return nova.Parts(s.components())
}
