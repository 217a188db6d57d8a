package rollout

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// PodChanges lets through what a cell counts of its computes in pods.
var PodChanges = watch.SpecOr(func(obj client.Object) string {
	c := obj.(*novav1.NovaCompute)
	image := c.Status.Images[novav1.ComputeComponent]
	return fmt.Sprint(c.Status.ConfigHash, image, c.Status.ObservedGeneration, isPodsCurrent(c, image), c.Status.Conditions.IsTrue(condition.ReadyCondition), c.DeletionTimestamp.IsZero())
})

// PodImage is the image that the pods of a compute get to follow their cell, empty for none. Once
// the compute has recorded it, it stays.
func PodImage(cell *novav1.NovaCell, compute *novav1.NovaCompute) string {
	update := cell.Status.ComputeUpdate
	if update == nil || !update.Verified || update.Image != imageOf(cell) || update.Pods != compute.Name {
		return ""
	}
	return update.Image
}

// PodsHaveFollowed reports whether a compute in pods has the image of its cell.
func PodsHaveFollowed(cell *novav1.NovaCell, c *novav1.NovaCompute) bool {
	return c.Status.Images[novav1.ComputeComponent] == imageOf(cell)
}

// isPodsCurrent reports whether all pods of a compute run an image, and report to nova as far as
// that is observed.
func isPodsCurrent(c *novav1.NovaCompute, image string) bool {
	conditions := &c.Status.Conditions
	return c.Status.ObservedGeneration == c.Generation && c.Status.Images[novav1.ComputeComponent] == image &&
		conditions.IsTrue(condition.DeploymentReadyCondition) && (isUp(conditions) || keepsInstances(c))
}

// keepsInstances reports whether all pods are up, and some of them are not wanted any more and stay
// for their instances, which can be for ever.
func keepsInstances(c *novav1.NovaCompute) bool {
	shown := c.Status.Conditions.Get(novav1.ComputeServiceReadyCondition)
	isDown := func(h novav1.PodHostStatus) bool { return h.ComputeService == nil || !h.ComputeService.Up }
	return shown != nil && shown.Reason == novav1.InstancesPresentReason && !slices.ContainsFunc(c.Status.Hosts, isDown)
}

// nextPods returns the compute in pods whose turn it is to get an image: one after the other, as
// each replaces one of its pods at a time. It is the one that has the image and is not up with it
// yet, else one that works; empty if all have it that follow.
func nextPods(image string, inPods []novav1.NovaCompute) string {
	rank := func(c *novav1.NovaCompute) int {
		switch {
		case c.Status.Images[novav1.ComputeComponent] == image:
			return 0
		case c.Status.Conditions.IsTrue(condition.ReadyCondition):
			return 1
		}
		return 2
	}
	next, best := "", 0
	for i := range inPods {
		c := &inPods[i]
		follows := c.DeletionTimestamp.IsZero() && c.Spec.ContainerImage == ""
		if !follows || isPodsCurrent(c, image) {
			continue
		}
		if next == "" || cmp.Or(cmp.Compare(rank(c), best), cmp.Compare(c.Name, next)) < 0 {
			next, best = c.Name, rank(c)
		}
	}
	return next
}
