package topology

import (
	"context"
	"fmt"
	"slices"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// +kubebuilder:rbac:groups=topology.openstack.org,resources=topologies,verbs=list;watch;patch

// Ensure returns the Topology that the consumer is to have, nil when want is
// nil, and sees to it that it cannot go before the consumer lets go of it. What
// it held before, above all what was applied, is released after the new one is
// held, so that pods never follow a Topology that is gone. One that cannot be
// had, because it does not exist or is on its way out, is a *phase.Halt of the
// condition TopologyReady, and the old one stays held.
func Ensure(ctx context.Context, c client.Client, consumer client.Object, want, applied *topologyv1.TopologyRef) (*topologyv1.Topology, error) {
	t, err := Get(ctx, c, consumer.GetNamespace(), want)
	if err != nil {
		return nil, err
	}
	who, err := ConsumerOf(c.Scheme(), consumer)
	if err != nil {
		return nil, err
	}
	if t != nil {
		if err := hold(ctx, c, who, t); err != nil {
			return nil, err
		}
	}
	return t, releaseAllBut(ctx, c, consumer.GetNamespace(), who, NameOf(want), NamesOf(applied))
}

// Release lets go of every Topology, for a consumer that is being deleted, which
// passes what was applied and what it refers to: it may hold the latter already.
// References to nothing and to what is gone are in order.
func Release(ctx context.Context, c client.Client, consumer client.Object, refs ...*topologyv1.TopologyRef) error {
	who, err := ConsumerOf(c.Scheme(), consumer)
	if err != nil {
		return err
	}
	return releaseAllBut(ctx, c, consumer.GetNamespace(), who, "", NamesOf(refs...))
}

// releaseAllBut releases what the consumer holds as far as the cache shows it,
// which is how a hold is found that the manager did not live to note, and what
// was noted, which the cache may not show yet.
func releaseAllBut(ctx context.Context, c client.Client, namespace string, who Consumer, kept string, noted []string) error {
	list := &topologyv1.TopologyList{}
	if err := c.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Topologies: %w", err)
	}
	for i := range list.Items {
		t := &list.Items[i]
		held := slices.Contains(t.Finalizers, who.Finalizer()) || slices.Contains(noted, t.Name)
		if !held || t.Name == kept {
			continue
		}
		if err := release(ctx, c, t, who); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("releasing Topology %s: %w", t.Name, err)
		}
	}
	return nil
}

func release(ctx context.Context, c client.Client, t *topologyv1.Topology, who Consumer) error {
	now, err := setFinalizers(ctx, c, t, who)
	if err != nil || !slices.Contains(now.GetFinalizers(), who.Finalizer()) {
		return err
	}
	// Somebody else applied it as well, for example with the object from a backup.
	before := now.DeepCopy()
	controllerutil.RemoveFinalizer(now, who.Finalizer())
	return c.Patch(ctx, now, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// Get returns the Topology that is referred to, nil for a nil reference. One
// that does not exist is a *phase.Halt of the condition TopologyReady.
func Get(ctx context.Context, c client.Reader, namespace string, ref *topologyv1.TopologyRef) (*topologyv1.Topology, error) {
	if ref == nil {
		return nil, nil
	}
	t := &topologyv1.Topology{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, t)
	if apierrors.IsNotFound(err) {
		return nil, missing(namespace, ref)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Topology %s: %w", ref.Name, err)
	}
	return t, nil
}

func missing(namespace string, ref *topologyv1.TopologyRef) error {
	return phase.Failing(condition.TopologyReadyCondition, topologyv1.TopologyMissingReason,
		"topologyRef: Topology %q does not exist in namespace %s: create it, or refer to another", ref.Name, namespace)
}

// hold adds the finalizer of the consumer unless it is there.
func hold(ctx context.Context, c client.Client, who Consumer, t *topologyv1.Topology) error {
	if slices.Contains(t.Finalizers, who.Finalizer()) {
		return nil
	}
	if !t.DeletionTimestamp.IsZero() {
		return deleting(t)
	}
	return add(ctx, c, who, t)
}

// add adds the finalizer of the consumer.
func add(ctx context.Context, c client.Client, who Consumer, t *topologyv1.Topology) error {
	switch _, err := setFinalizers(ctx, c, t, who, who.Finalizer()); {
	case apierrors.IsNotFound(err):
		return missing(t.Namespace, &topologyv1.TopologyRef{Name: t.Name})
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		// The API server adds no finalizer to what is being deleted.
		return deleting(t)
	case err != nil:
		return fmt.Errorf("holding Topology %s: %w", t.Name, err)
	}
	return nil
}

func deleting(t *topologyv1.Topology) error {
	return phase.Failing(condition.TopologyReadyCondition, topologyv1.TopologyDeletingReason,
		"topologyRef: Topology %q is being deleted and takes no new users: refer to another, or wait until it is gone and create it anew", t.Name)
}

// setFinalizers applies the finalizers of one consumer, or none, and returns the
// Topology as it is then. Each consumer applies under a field manager of its
// own, and finalizers are a set: those of others are not touched, however many
// write at the same time. The UID keeps a Topology that is gone from being
// created anew: that is a conflict, as when too many write, and is to be tried
// again with what the cache shows then.
func setFinalizers(ctx context.Context, c client.Client, t *topologyv1.Topology, who Consumer, finalizers ...string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(topologyv1.GroupVersion.WithKind("Topology"))
	u.SetNamespace(t.Namespace)
	u.SetName(t.Name)
	u.SetUID(t.UID)
	u.SetFinalizers(finalizers)
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(who.Finalizer()), client.ForceOwnership)
	return u, err
}
