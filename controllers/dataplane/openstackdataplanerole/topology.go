package openstackdataplanerole

import (
	"context"
	"fmt"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/topology"
)

// topology is the phase that holds the Topology that the role refers to. The
// role has a finalizer of its own while it holds one.
func (s *scope) topology(ctx context.Context) error {
	ref, status := topology.Nearest(s.role.Spec.TopologyRef), &s.role.Status
	if ref != nil {
		if err := s.patchFinalizers(ctx, controllerutil.AddFinalizer); err != nil {
			return err
		}
	}
	t, err := topology.Ensure(ctx, s.Client, s.role, ref, status.LastAppliedTopology)
	if err != nil {
		return err
	}
	status.LastAppliedTopology = ref
	if t == nil {
		return s.patchFinalizers(ctx, controllerutil.RemoveFinalizer)
	}
	status.Conditions.MarkTrue(condition.TopologyReadyCondition, "Runs use Topology %s", t.Name)
	return nil
}

// release releases the Topology of a role that is being deleted, and then
// lets the role go.
func (s *scope) release(ctx context.Context) error {
	if err := topology.Release(ctx, s.Client, s.role, s.role.Status.LastAppliedTopology, s.role.Spec.TopologyRef); err != nil {
		return err
	}
	return client.IgnoreNotFound(s.patchFinalizers(ctx, controllerutil.RemoveFinalizer))
}

func (s *scope) patchFinalizers(ctx context.Context, change func(client.Object, string) bool) error {
	patched := s.role.DeepCopy()
	if !change(patched, dataplanev1.RoleFinalizer) {
		return nil
	}
	if err := s.Patch(ctx, patched, client.MergeFromWithOptions(s.role, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patching the finalizers: %w", err)
	}
	s.role.Finalizers = patched.Finalizers
	return nil
}
