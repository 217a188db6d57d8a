package podified

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/edpm-operators/edpm-operators/internal/apply"
)

// Release lets an object that is being deleted go, once nothing is left behind:
// no pods that are no one's. The StatefulSets of its services go with it. While a
// StatefulSet that was to be recreated is still there, nothing happens; its end wakes
// the owner.
func (d *Deployer) Release(ctx context.Context, owner client.Object, services []*Service) error {
	if !controllerutil.ContainsFinalizer(owner, d.Finalizer) {
		return nil
	}
	for _, s := range services {
		replaced, err := d.replaced(ctx, owner, s.Name)
		if err != nil || replaced {
			return err
		}
		if err := d.collect(ctx, owner, s); err != nil {
			return err
		}
	}
	for _, s := range services {
		d.predictions.forget(owner.GetNamespace(), s.Name)
	}
	return client.IgnoreNotFound(apply.Finalizer(ctx, d.Client, owner, d.Finalizer, controllerutil.RemoveFinalizer))
}

// replaced reports whether a StatefulSet is on its way out that leaves its pods.
func (d *Deployer) replaced(ctx context.Context, owner client.Object, name string) (bool, error) {
	set := &appsv1.StatefulSet{}
	err := d.Live.Get(ctx, client.ObjectKey{Namespace: owner.GetNamespace(), Name: name}, set)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading StatefulSet %s: %w", name, err)
	}
	if err != nil || !controllerutil.ContainsFinalizer(set, metav1.FinalizerOrphanDependents) {
		return false, nil //nolint:nilerr // it is gone
	}
	if err = apply.Check(d.Client, owner, set); apply.IsConflict(err) {
		return false, nil
	}
	return err == nil, err
}

// collect deletes the pods of the owner that no StatefulSet has: they were left
// by one that was to be made again, and the next one never came. They are read
// past the cache, which may not show yet who has them. Pods that a StatefulSet did
// not make are left alone, whatever their labels.
func (d *Deployer) collect(ctx context.Context, owner client.Object, s *Service) error {
	pods, err := d.livePods(ctx, owner, s)
	if err != nil {
		return err
	}
	for i := range pods {
		pod := &pods[i]
		if metav1.GetControllerOf(pod) != nil || ordinal(s.Name, pod) < 0 || pod.Labels[appsv1.StatefulSetPodNameLabel] != pod.Name {
			continue
		}
		if err := d.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

// Remove deletes what was made of services that their owner no longer wants, and
// leaves nothing else of them behind either. When the owner keeps none, it is released.
func (d *Deployer) Remove(ctx context.Context, owner client.Object, kept, unwanted []*Service) error {
	for _, s := range unwanted {
		made := []client.Object{&appsv1.StatefulSet{}, &policyv1.PodDisruptionBudget{}}
		names := []string{s.Name, s.Name}
		for _, service := range s.Services {
			made, names = append(made, &corev1.Service{}), append(names, service.Name)
		}
		for i, child := range made {
			if err := d.removeChild(ctx, owner, child, names[i]); err != nil {
				return err
			}
		}
	}
	if len(kept) == 0 {
		return d.Release(ctx, owner, unwanted)
	}
	return nil
}

func (d *Deployer) removeChild(ctx context.Context, owner, child client.Object, name string) error {
	err := d.Get(ctx, client.ObjectKey{Namespace: owner.GetNamespace(), Name: name}, child)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	return apply.Delete(ctx, d.Client, owner, child, apply.Own)
}
