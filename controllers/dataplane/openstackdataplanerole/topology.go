package openstackdataplanerole

import (
	"context"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/internal/topology"
)

// topology is the phase that protects the Topology that the role refers to.
func (s *scope) topology(ctx context.Context) error {
	ref, status := topology.Nearest(s.role.Spec.TopologyRef), &s.role.Status
	t, err := topology.Use(ctx, s.Client, s.role, ref, status.LastAppliedTopology)
	if err != nil {
		return err
	}
	status.LastAppliedTopology = ref
	if t != nil {
		status.Conditions.MarkTrue(condition.TopologyReadyCondition, "Runs use Topology %s", t.Name)
	}
	return nil
}
