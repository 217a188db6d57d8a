package openstackdataplanerole

import (
	"context"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/topology"
)

// topology is the phase that holds the Topology that the role refers to. The
// role has a finalizer of its own while it holds one.
func (s *scope) topology(ctx context.Context) error {
	ref, status := topology.Nearest(s.role.Spec.TopologyRef), &s.role.Status
	if ref != nil {
		if err := s.finalizer(ctx, controllerutil.AddFinalizer); err != nil {
			return err
		}
	}
	t, err := topology.Ensure(ctx, s.Client, s.role, ref, status.LastAppliedTopology)
	if err != nil {
		return err
	}
	status.LastAppliedTopology = ref
	if t == nil {
		return s.finalizer(ctx, controllerutil.RemoveFinalizer)
	}
	status.Conditions.MarkTrue(condition.TopologyReadyCondition, "Runs use Topology %s", t.Name)
	return nil
}

// release releases the Topology of a role that is being deleted, and then
// removes the finalizer.
func (s *scope) release(ctx context.Context) error {
	if err := topology.Release(ctx, s.Client, s.role, s.role.Status.LastAppliedTopology, s.role.Spec.TopologyRef); err != nil {
		return err
	}
	return client.IgnoreNotFound(s.finalizer(ctx, controllerutil.RemoveFinalizer))
}

func (s *scope) finalizer(ctx context.Context, change func(client.Object, string) bool) error {
	return apply.Finalizer(ctx, s.Client, s.role, dataplanev1.RoleFinalizer, change)
}
