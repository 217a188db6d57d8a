package podified

import (
	"context"
	"fmt"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/names"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// claim checks, before anything is written, that nothing of the service belongs to
// another user, and that its Services and StatefulSet will select every pod that
// runs. What another operator made is taken over as a whole or not at all: its pods
// would read the new configuration, or its Services lose them.
func (p *deployment) claim(ctx context.Context) error {
	var conflicts apply.Conflicts
	config, err := p.Inputs.Generated(ctx, p.owner.GetNamespace(), p.ConfigName())
	if err != nil {
		return inputs.Halt(condition.DeploymentReadyCondition, err)
	}
	if config != nil {
		if err := conflicts.Add(p.check(config)); err != nil {
			return err
		}
	}
	for _, service := range p.services() {
		if err := conflicts.Add(p.checkNamed(ctx, service.Name, &corev1.Service{})); err != nil {
			return err
		}
	}
	for _, obj := range []client.Object{&appsv1.StatefulSet{}, &policyv1.PodDisruptionBudget{}} {
		if err := conflicts.Add(p.checkNamed(ctx, p.Name, obj)); err != nil {
			return err
		}
	}
	if err := conflicts.Err(); err != nil {
		return apply.Halt(condition.DeploymentReadyCondition, err)
	}
	return p.selectsAll()
}

// checkNamed checks an object, if there is one.
func (p *deployment) checkNamed(ctx context.Context, name string, obj client.Object) error {
	err := p.Get(ctx, client.ObjectKey{Namespace: p.owner.GetNamespace(), Name: name}, obj)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	return p.check(obj)
}

func (p *deployment) check(obj client.Object) error {
	return apply.Check(p.Client, p.owner, obj, apply.Own)
}

// selectsAll checks that every pod of the set has the labels by which all pods of
// the owner are selected. Those of another operator may lack them, and a pod
// without them would lose its StatefulSet for good.
func (p *deployment) selectsAll() error {
	identity := labels.Set(p.identity(p.owner, p.Component))
	lacking := filter(p.pods, func(pod *corev1.Pod) bool { return !identity.AsSelector().Matches(labels.Set(pod.Labels)) })
	if len(lacking) == 0 {
		return nil
	}
	return phase.Stalled(condition.DeploymentReadyCondition, common.ConflictReason,
		"Pods %[1]s of StatefulSet %[2]s do not have the labels %[3]s, by which they are selected: add them (kubectl label pod %[4]s %[5]s). If a label has another value that the StatefulSet selects by, delete the StatefulSet",
		names.List(podNames(lacking), names.Few), p.Name, identity, strings.Join(podNames(lacking), " "), strings.ReplaceAll(identity.String(), ",", " "))
}

// whole returns a StatefulSet that is ours with its spec, or nil if it is not ours.
// Of one that has lost its owner, or that a person has handed over, the cache knows
// the name only.
func (p *deployment) whole(ctx context.Context, set *appsv1.StatefulSet) (*appsv1.StatefulSet, error) {
	if err := p.check(set); apply.IsConflict(err) {
		return nil, nil // claim says so
	} else if err != nil {
		return nil, err
	}
	if set.Spec.Selector != nil {
		return set, nil
	}
	all := &appsv1.StatefulSet{}
	err := p.Live.Get(ctx, client.ObjectKeyFromObject(set), all)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading StatefulSet %s: %w", set.Name, err)
	}
	if err != nil || apply.IsConflict(p.check(all)) {
		return nil, nil //nolint:nilerr // there is none
	}
	return all, nil
}
