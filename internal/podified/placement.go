package podified

import (
	"context"
	"fmt"
	"slices"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/placement"
)

// place asks where the pods would go before anything is written. With
// enforcement Hold, pods that run are left alone if some would find no place; a
// set that does not exist yet has nothing to lose and is made.
func (p *deployment) place(ctx context.Context) error {
	p.want = p.statefulSet()
	changes, err := p.changes()
	if err != nil {
		return err
	}
	problems, err := p.problems(ctx, changes)
	if err != nil {
		return err
	}
	if len(problems) == 0 {
		p.mark().MarkTrue(topologyv1.PlacementReadyCondition, "Every pod has a node or would find one")
		return nil
	}
	severity, message := condition.SeverityWarning, placement.Describe(problems)
	if p.held = changes && p.set != nil && p.holds() && slices.ContainsFunc(problems, unfit); p.held {
		severity = condition.SeverityError
		message += fmt.Sprintf(" Topology %s has enforcement Hold: the pods that run are left as they are until this is mended.", p.topology.Name)
	}
	p.mark().MarkFalse(topologyv1.PlacementReadyCondition, problems[0].Reason, severity, "%s", message)
	return nil
}

// changes tells whether the set is to be written.
func (p *deployment) changes() (bool, error) {
	if p.set == nil {
		return true, nil
	}
	return apply.Differs(p.Client, p.owner, p.want, p.set)
}

func (p *deployment) holds() bool {
	return p.topology != nil && p.topology.Spec.Enforcement == topologyv1.Hold
}

// problems are those of pods that are to be made: all pods if the set is to
// change, else those that are still of an older revision or have no node. What
// would become of a pod that runs as it should is no problem. An inert selector
// is one in any case.
func (p *deployment) problems(ctx context.Context, changes bool) ([]placement.Problem, error) {
	workload := placement.Workload{
		Namespace: p.owner.GetNamespace(), Name: p.Name, Replicas: p.Replicas,
		Template: p.want.Spec.Template, ClaimTemplates: p.want.Spec.VolumeClaimTemplates,
	}
	if !changes && p.settled() {
		return workload.InertSelectors()
	}
	world, err := placement.Read(ctx, p.Client)
	if err != nil {
		return nil, err
	}
	verdict, err := placement.Predict(ctx, world, workload)
	if err != nil {
		return nil, fmt.Errorf("predicting where the pods of StatefulSet %s would go: %w", p.Name, err)
	}
	return slices.DeleteFunc(verdict.Problems, func(problem placement.Problem) bool {
		return unfit(problem) && !changes && !slices.ContainsFunc(problem.Pods, p.toBeMade)
	}), nil
}

// unfit tells whether the problem keeps pods from their place.
func unfit(problem placement.Problem) bool { return problem.Reason != topologyv1.InertSelectorReason }

// settled tells whether every pod is of the present revision and has a node.
func (p *deployment) settled() bool {
	for i := range p.Replicas {
		if p.toBeMade(fmt.Sprintf("%s-%d", p.Name, i)) {
			return false
		}
	}
	return true
}

// toBeMade tells whether the pod of that name has to be made or placed.
func (p *deployment) toBeMade(name string) bool {
	at := slices.IndexFunc(p.pods, func(pod *corev1.Pod) bool { return pod.Name == name })
	if at < 0 || p.set.Status.ObservedGeneration < p.set.Generation {
		return true
	}
	pod := p.pods[at]
	return pod.Spec.NodeName == "" || pod.Labels[appsv1.ControllerRevisionHashLabelKey] != p.set.Status.UpdateRevision
}
