package topology

import (
	"context"
	"fmt"
	"slices"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// +kubebuilder:rbac:groups=topology.openstack.org,resources=topologies,verbs=list;watch;patch

// Use returns the Topology that an object is to use, nil when want is nil, and sees to
// it that it is not removed while the object refers to it, or notes it as applied.
//
// This is how Kubernetes protects PersistentVolumeClaims (kubernetes.io/pvc-protection):
// whoever begins to use one asks the API server, not the cache, whether it is there and
// not being deleted; the controller of Topologies removes the finalizer of one that is
// being deleted once the API server, not the cache, has no object that uses it. Whichever
// comes first, the other sees it, because the reference was stored before both.
//
// A Topology that cannot be had, because it does not exist or is being deleted, is a
// *phase.Halt of the condition TopologyReady. One that is being deleted and is applied
// already stays in use.
func Use(ctx context.Context, c client.Client, user client.Object, want, applied *topologyv1.TopologyRef) (*topologyv1.Topology, error) {
	t, err := Get(ctx, c, user.GetNamespace(), want)
	if err != nil || t == nil {
		return nil, err
	}
	old, err := oldFinalizers(c, user)
	if err != nil {
		return nil, err
	}
	used := NameOf(applied) == t.Name
	if used && (!t.DeletionTimestamp.IsZero() || protected(t, old)) {
		return t, nil
	}
	err = protect(ctx, c, t, old)
	if apierrors.IsNotFound(err) {
		return nil, missing(t.Namespace, want)
	}
	return t, err
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

// oldFinalizers are those by which versions up to 0.1 held a Topology for an object.
func oldFinalizers(c client.Client, user client.Object) ([]string, error) {
	who, err := ConsumerOf(c.Scheme(), user)
	old := []string{who.oldFinalizer()}
	if who.Kind == NodesKind {
		old = append(old, Consumer{nodeKind, user.GetName()}.oldFinalizer())
	}
	return old, err
}

// protected reports whether a Topology has the finalizer, and none of the old ones.
func protected(t *topologyv1.Topology, old []string) bool {
	return slices.Contains(t.Finalizers, topologyv1.Finalizer) &&
		!slices.ContainsFunc(t.Finalizers, func(f string) bool { return slices.Contains(old, f) })
}

// protect adds the finalizer in place of old ones. The error says that the Topology
// that the API server has is being deleted, or is gone.
func protect(ctx context.Context, c client.Client, t *topologyv1.Topology, old []string) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, err := latest(ctx, c, t)
		switch {
		case err != nil:
			return err
		case !now.DeletionTimestamp.IsZero():
			return deleting(now)
		case protected(now, old):
			return nil
		}
		return apply.Finalizer(ctx, c, now, topologyv1.Finalizer, func(obj client.Object, name string) bool {
			obj.SetFinalizers(append(without(obj.GetFinalizers(), old), name))
			return true
		})
	})
}

func without(finalizers, old []string) []string {
	return slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == topologyv1.Finalizer || slices.Contains(old, f) })
}

// latest returns a Topology as the API server has it, by a patch of nothing: the
// manager has no right to get Topologies. Another one of its name is a conflict.
func latest(ctx context.Context, c client.Client, t *topologyv1.Topology) (*topologyv1.Topology, error) {
	now := &topologyv1.Topology{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: t.Name}}
	err := c.Patch(ctx, now, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"uid":%q}}`, t.UID)))
	return now, err
}

func missing(namespace string, ref *topologyv1.TopologyRef) error {
	return phase.Failing(condition.TopologyReadyCondition, topologyv1.TopologyMissingReason,
		"topologyRef: Topology %q does not exist in namespace %s: create it, or refer to another", ref.Name, namespace)
}

func deleting(t *topologyv1.Topology) error {
	return phase.Failing(condition.TopologyReadyCondition, topologyv1.TopologyDeletingReason,
		"topologyRef: Topology %q is being deleted and accepts no new users: refer to another one, or wait until it is deleted and create it again", t.Name)
}
