package podified

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/internal/apply"
)

// PodCount returns how many pods the StatefulSet of an owner is to have, 0 if there is none
// of it. It is read past the cache, which may show one from before it was scaled.
func (d *Deployer) PodCount(ctx context.Context, owner client.Object, name string) (int32, error) {
	set, err := d.ownSet(ctx, owner, name)
	if err != nil || set == nil {
		return 0, err
	}
	return ptr.Deref(set.Spec.Replicas, 1), nil
}

// Shrink scales the StatefulSet of an owner down, and changes nothing else of it.
func (d *Deployer) Shrink(ctx context.Context, owner client.Object, name string, replicas int32) error {
	set, err := d.ownSet(ctx, owner, name)
	if err != nil || set == nil || ptr.Deref(set.Spec.Replicas, 1) <= replicas {
		return err
	}
	_, err = d.scaleSet(ctx, set, replicas)
	return err
}

// scaleSet has a StatefulSet that is the owner's make so many pods, and returns it.
func (d *Deployer) scaleSet(ctx context.Context, set *appsv1.StatefulSet, replicas int32) (*appsv1.StatefulSet, error) {
	scaled := set.DeepCopy()
	scaled.Spec.Replicas = ptr.To(replicas)
	if err := d.Patch(ctx, scaled, client.MergeFromWithOptions(set, client.MergeFromWithOptimisticLock{}), client.FieldOwner(d.Manager)); err != nil {
		return set, fmt.Errorf("scaling StatefulSet %s: %w", set.Name, err)
	}
	return scaled, nil
}

// ownSet reads the StatefulSet of an owner past the cache; nil if there is none of it.
func (d *Deployer) ownSet(ctx context.Context, owner client.Object, name string) (*appsv1.StatefulSet, error) {
	set := &appsv1.StatefulSet{}
	if err := d.Live.Get(ctx, client.ObjectKey{Namespace: owner.GetNamespace(), Name: name}, set); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading StatefulSet %s: %w", name, err)
		}
		return nil, nil
	}
	if err := apply.Check(d.Client, owner, set, apply.Own); apply.IsConflict(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return set, nil
}

// PodNames returns the names of the pods of a service that exist, those that no StatefulSet
// has included. They are read past the cache.
func (d *Deployer) PodNames(ctx context.Context, owner client.Object, s *Service) ([]string, error) {
	pods, err := d.livePods(ctx, owner, s)
	return podNames(byOrdinal(s.Name, pods)), err
}

func (d *Deployer) livePods(ctx context.Context, owner client.Object, s *Service) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := d.Live.List(ctx, pods, client.InNamespace(owner.GetNamespace()), client.MatchingLabels(d.identity(owner, s.Component))); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	return pods.Items, nil
}
