package podified

import (
	"context"
	"fmt"
	"slices"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/placement"
)

// place asks where the pods would go before anything is written. With
// enforcement Hold, pods that run are left alone if some would find no place once
// they are made again; a set that does not exist yet has nothing to lose and is
// made. Pods that are only added or removed touch none that runs: scaling is never
// held back.
func (p *deployment) place(ctx context.Context) error {
	p.want = p.statefulSet()
	recreates, err := p.recreatesPods(ctx)
	if err != nil {
		return err
	}
	all, err := p.problems(ctx, recreates)
	if err != nil {
		return err
	}
	problems, preferences := placement.Preferences(all)
	if len(problems) == 0 {
		message := "Every pod is scheduled or can be scheduled"
		if len(preferences) > 0 {
			message += ". " + placement.Describe(preferences)
		}
		p.mark().MarkTrue(topologyv1.PlacementReadyCondition, "%s", message)
		return nil
	}
	p.held = recreates && p.set != nil && p.holds() && slices.ContainsFunc(problems, unfit)
	severity, message := condition.SeverityWarning, placement.Describe(problems)
	if p.held {
		severity = condition.SeverityError
		message += fmt.Sprintf(" Topology %s has enforcement Hold: running pods are not changed until this is fixed.", p.topology.Name)
	}
	p.mark().MarkFalse(topologyv1.PlacementReadyCondition, problems[0].Reason, severity, "%s", message)
	return nil
}

// recreatesPods reports whether writing the set makes the pods that run again. Only the
// API server knows, whatever was written before and by which version: it is asked
// what it would make of the set.
func (p *deployment) recreatesPods(ctx context.Context) (bool, error) {
	if p.set == nil || immutable(p.set, p.want) != "" {
		return true, nil
	}
	after := &appsv1.StatefulSet{}
	err := apply.Child(ctx, client.NewDryRunClient(p.Client), p.Manager, p.owner, p.want.DeepCopy(), after)
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		return true, nil // writing it says why
	}
	return !equality.Semantic.DeepEqual(after.Spec.Template, p.set.Spec.Template), apply.Halt(condition.DeploymentReadyCondition, err)
}

func (p *deployment) holds() bool {
	return p.topology != nil && p.topology.Spec.Enforcement == topologyv1.Hold
}

// problems are those of pods that are to be made: all pods if they are made again,
// else those that are missing, of an older revision, or have no node. What would
// become of a pod that runs as it should is no problem. An inert selector is one in
// any case.
func (p *deployment) problems(ctx context.Context, recreates bool) ([]placement.Problem, error) {
	workload := placement.Workload{
		Namespace: p.owner.GetNamespace(), Name: p.Name, Replicas: p.Replicas,
		Template: p.want.Spec.Template, ClaimTemplates: p.want.Spec.VolumeClaimTemplates,
	}
	if !recreates {
		workload.Kept = podNames(filter(p.pods, p.isCurrent))
	}
	if !recreates && p.isPlaced() {
		problems, err := p.predictor.InertRules(ctx, workload)
		p.predictions.note(p, problems)
		return problems, err
	}
	if last, known := p.predictions.of(p); known && !recreates && !p.isObserved() {
		return last, nil
	}
	// From here on what changes concerns the pods: it may come too late for the snapshot.
	p.predictions.note(p, nil, workload)
	problems, err := p.predict(ctx, workload)
	switch {
	case err != nil:
		p.predictions.forget(p.owner.GetNamespace(), p.Name)
	case slices.ContainsFunc(problems, unfit):
		p.predictions.note(p, problems, workload)
	default:
		p.predictions.note(p, problems)
	}
	return problems, err
}

func (p *deployment) predict(ctx context.Context, workload placement.Workload) ([]placement.Problem, error) {
	prediction, err := p.predictor.Predict(ctx, placement.Key{Kind: p.Controller, NamespacedName: client.ObjectKeyFromObject(p.owner)}, workload)
	if err != nil {
		return nil, fmt.Errorf("predicting where the pods of StatefulSet %s would go: %w", p.Name, err)
	}
	return slices.Concat(prediction.Problems, prediction.Preferences), nil
}

// unfit reports whether the problem keeps pods from their place.
func unfit(problem placement.Problem) bool { return problem.Reason != topologyv1.InertSelectorReason }

// isPlaced reports whether every pod is of the present revision and has a node.
func (p *deployment) isPlaced() bool {
	for i := range p.Replicas {
		if p.isPending(fmt.Sprintf("%s-%d", p.Name, i)) {
			return false
		}
	}
	return true
}

// isObserved reports whether the StatefulSet controller has seen the present set:
// before, no one knows which revision is the newest.
func (p *deployment) isObserved() bool { return p.set.Status.ObservedGeneration >= p.set.Generation }

// isPending reports whether the pod of that name has to be made or placed.
func (p *deployment) isPending(name string) bool {
	at := slices.IndexFunc(p.pods, func(pod *corev1.Pod) bool { return pod.Name == name })
	if at < 0 || !p.isObserved() {
		return true
	}
	return p.pods[at].Spec.NodeName == "" || !p.isCurrent(p.pods[at])
}

// isCurrent reports whether a pod is of the present revision.
func (p *deployment) isCurrent(pod *corev1.Pod) bool {
	return p.isObserved() && pod.Labels[appsv1.ControllerRevisionHashLabelKey] == p.set.Status.UpdateRevision
}
