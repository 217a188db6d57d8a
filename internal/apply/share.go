package apply

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Share makes the owner one of several of a child that was made for another one, given its
// present state: Kubernetes deletes the child with the last of them. Nothing is written if it is
// one already. What edpm-operators did not write is left alone.
func Share(ctx context.Context, c client.Client, owner, child client.Object) error {
	if !Applied(child) || len(othersOf(owner, child)) < len(child.GetOwnerReferences()) {
		return nil
	}
	shared := child.DeepCopyObject().(client.Object)
	if err := controllerutil.SetOwnerReference(owner, shared, c.Scheme()); err != nil {
		return err
	}
	return patchOwners(ctx, c, shared, child)
}

// Leave is the opposite of Share, for the owner that the child was made for too: the last owner
// deletes the child.
func Leave(ctx context.Context, c client.Client, owner, child client.Object) error {
	others := othersOf(owner, child)
	if !Applied(child) || len(others) == len(child.GetOwnerReferences()) || !child.GetDeletionTimestamp().IsZero() {
		return nil
	}
	if len(others) > 0 {
		left := child.DeepCopyObject().(client.Object)
		left.SetOwnerReferences(others)
		return patchOwners(ctx, c, left, child)
	}
	// With the version: another owner may share it in this moment.
	uid, version := child.GetUID(), child.GetResourceVersion()
	if err := client.IgnoreNotFound(c.Delete(ctx, child, client.Preconditions{UID: &uid, ResourceVersion: &version})); err != nil {
		return fmt.Errorf("deleting %T %s: %w", child, child.GetName(), err)
	}
	return nil
}

// othersOf are the owners of a child but one.
func othersOf(owner, child client.Object) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(child.GetOwnerReferences()), func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() })
}

// patchOwners writes the owners of a child that has not changed meanwhile: in a merge patch the list is one value.
func patchOwners(ctx context.Context, c client.Client, changed, child client.Object) error {
	if err := c.Patch(ctx, changed, client.MergeFromWithOptions(child, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patching the owners of %T %s: %w", child, child.GetName(), err)
	}
	return nil
}
