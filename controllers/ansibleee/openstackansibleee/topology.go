package openstackansibleee

import (
	"context"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/internal/topology"
)

// place makes the Pod of a Job that is about to be created go where the Topology
// says. A run holds no Topology: it needs it at this moment only.
func (s *scope) place(ctx context.Context) error {
	t, err := topology.Get(ctx, s.Client, s.run.Namespace, topology.Nearest(s.run.Spec.TopologyRef))
	if err != nil {
		return err
	}
	topology.Apply(&s.want.Spec.Template, t, runners(s.run), consumers(s.run)...)
	return nil
}

// placed is the phase that says that the Topology was followed.
func (s *scope) placed(context.Context) error {
	if ref := topology.Nearest(s.run.Spec.TopologyRef); ref != nil {
		s.run.Status.Conditions.MarkTrue(condition.TopologyReadyCondition, "The Job was created from Topology %s", ref.Name)
	}
	return nil
}

// runners selects the Pods that a constraint without a labelSelector counts: all
// runners, of the same role if the run has one.
func runners(run *ansibleeev1.OpenStackAnsibleEE) *metav1.LabelSelector {
	labels := map[string]string{ansibleeev1.RunnerLabel: "true"}
	if role, ok := run.Labels[common.RoleLabel]; ok {
		labels[common.RoleLabel] = role
	}
	return &metav1.LabelSelector{MatchLabels: labels}
}

// consumers are the objects by whose reference the run may follow a Topology:
// the role of its hosts, or the nodes of that role.
func consumers(run *ansibleeev1.OpenStackAnsibleEE) []topology.Consumer {
	if run.Spec.Role == "" {
		return nil
	}
	return []topology.Consumer{{Kind: "OpenStackDataPlaneRole", Name: run.Spec.Role}, topology.NodesOf(run.Spec.Role)}
}
