package novacell

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
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
		Names: slices.Concat(named, layers.Sources("Secret", s.cell), nova.Snippets(s.components())),
	}
}

// release lets a deleted cell go, with the Secrets that it holds once its pods have an owner.
func (s *scope) release(ctx context.Context) error {
	if err := s.Pods.Release(ctx, s.cell, nova.Bare(s.components())); err != nil || controllerutil.ContainsFinalizer(s.cell, s.Pods.Finalizer) {
		return err
	}
	return s.secrets.ReleaseAll(ctx)
}

// reportRollout is the phase that says who runs the present configuration. It comes last: until
// all is deployed no one can.
func (s *scope) reportRollout(ctx context.Context) error {
	onHosts, err := s.hostParts(ctx)
	if err != nil {
		return err
	}
	parts := append(s.podParts(), onHosts...)
	for i := range s.inPods {
		parts = append(parts, rotation.PodCompute(&s.inPods[i], layers.PodHash(s.generated, s.config.Authorities)))
	}
	return s.secrets.Report(ctx, rotation.Inputs(s.secret, s.cell.Annotations), parts...)
}

// hostParts are the computes on hosts, each with what computes of its role are to run.
func (s *scope) hostParts(ctx context.Context) ([]rotation.Part, error) {
	present := map[string]string{} // by role
	var parts []rotation.Part
	for i := range s.computes {
		compute, node := &s.computes[i], &dataplanev1.OpenStackDataPlaneNode{}
		key := client.ObjectKey{Namespace: s.cell.Namespace, Name: compute.Spec.DataplaneNodeName}
		if err := s.Get(ctx, key, node, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading the node of compute %s: %w", compute.Name, err)
		}
		role := node.Spec.Role
		if _, known := present[role]; !known {
			present[role] = s.present(ctx, role)
		}
		parts = append(parts, rotation.Compute(compute, present[role]))
	}
	return parts, nil
}

// present identifies what computes of a role are to run; empty if that cannot be said, which
// they say themselves.
func (s *scope) present(ctx context.Context, role string) string {
	content, err := layers.Read(ctx, s.Inputs, s.cell.Namespace, layers.Templates(s.cell, role))
	if err != nil {
		return ""
	}
	return content.Hash(s.generated)
}

// podParts are the services of the cell in pods.
func (s *scope) podParts() []rotation.Part {
	if s.config.Connection == "" {
		return nil
	}
	return nova.Parts(s.components())
}
