package topology

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// +kubebuilder:rbac:groups=topology.openstack.org,resources=topologies,verbs=list;watch;patch

// MaxHolders is how many finalizers a Topology takes. Each is noted twice, the
// second time in the managed fields: with 1,000 of the longest names a Topology is
// still far smaller than etcd takes, and than a list of Topologies should be.
const MaxHolders = 1000

// Ensure returns the Topology that the consumer is to have, nil when want is
// nil, and ensures that it is not removed before the consumer releases it. What
// it held before, above all what was applied, is released after the new one is
// held, so that pods never follow a Topology that is gone. One that cannot be
// had, because it does not exist or is on its way out, is a *phase.Halt of the
// condition TopologyReady, and the old one stays held.
func Ensure(ctx context.Context, c client.Client, consumer client.Object, want, applied *topologyv1.TopologyRef) (*topologyv1.Topology, error) {
	t, err := Hold(ctx, c, consumer, want)
	if err != nil {
		return nil, err
	}
	return t, ReleaseOthers(ctx, c, consumer, []*topologyv1.TopologyRef{want}, applied)
}

// Hold is the first half of Ensure: what the consumer held before stays held.
func Hold(ctx context.Context, c client.Client, consumer client.Object, want *topologyv1.TopologyRef) (*topologyv1.Topology, error) {
	t, err := Get(ctx, c, consumer.GetNamespace(), want)
	if err != nil || t == nil {
		return nil, err
	}
	who, err := ConsumerOf(c.Scheme(), consumer)
	if err != nil {
		return nil, err
	}
	return t, hold(ctx, c, who, t)
}

// Release releases every Topology, for a consumer that is being deleted, which
// passes what was applied and what it refers to: it may hold the latter already.
// References to nothing and to what is gone are in order.
func Release(ctx context.Context, c client.Client, consumer client.Object, refs ...*topologyv1.TopologyRef) error {
	return ReleaseOthers(ctx, c, consumer, nil, refs...)
}

// ReleaseOthers is the second half of Ensure: it releases all but what is kept. It
// finds what the consumer holds as far as the cache shows it, which is how a hold
// is found that the manager did not live to note, and what was noted, which the
// cache may not show yet.
func ReleaseOthers(ctx context.Context, c client.Client, consumer client.Object, kept []*topologyv1.TopologyRef, noted ...*topologyv1.TopologyRef) error {
	who, err := ConsumerOf(c.Scheme(), consumer)
	if err != nil {
		return err
	}
	list := &topologyv1.TopologyList{}
	if err := c.List(ctx, list, client.InNamespace(consumer.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Topologies: %w", err)
	}
	for i := range list.Items {
		t := &list.Items[i]
		held := slices.Contains(t.Finalizers, who.Finalizer()) || slices.Contains(NamesOf(noted...), t.Name)
		if !held || slices.Contains(NamesOf(kept...), t.Name) {
			continue
		}
		if err := release(ctx, c, t, who); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("releasing Topology %s: %w", t.Name, err)
		}
	}
	return nil
}

// release removes the finalizer of the consumer. If the cache shows none it may be
// late: that is a conflict then.
func release(ctx context.Context, c client.Client, t *topologyv1.Topology, who Consumer) error {
	return change(ctx, c, t, func(after *topologyv1.Topology) error {
		controllerutil.RemoveFinalizer(after, who.Finalizer())
		return nil
	})
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
	err := change(ctx, c, t, func(after *topologyv1.Topology) error { return add(after, who.Finalizer()) })
	if apierrors.IsNotFound(err) {
		return missing(t.Namespace, &topologyv1.TopologyRef{Name: t.Name})
	}
	return err
}

// add adds a finalizer to what is to be written.
func add(t *topologyv1.Topology, finalizer string) error {
	switch {
	case slices.Contains(t.Finalizers, finalizer):
	case !t.DeletionTimestamp.IsZero():
		return deleting(t)
	case len(t.Finalizers) >= MaxHolders:
		return phase.Failing(condition.TopologyReadyCondition, topologyv1.TopologyFullReason,
			"topologyRef: Topology %q is used by %d objects and accepts no more: create another one with the same spec, and refer to that", t.Name, len(t.Finalizers))
	}
	controllerutil.AddFinalizer(t, finalizer)
	return nil
}

func deleting(t *topologyv1.Topology) error {
	return phase.Failing(condition.TopologyReadyCondition, topologyv1.TopologyDeletingReason,
		"topologyRef: Topology %q is being deleted and accepts no new users: refer to another one, or wait until it is deleted and create it again", t.Name)
}

// change writes the finalizers as edit makes them. All consumers write under the
// field manager of the process: a manager for each would be most of a Topology.
// Those of this process write one after the other, each on what the one before has
// left, since the cache is late. What others have written is a conflict, and it is
// tried again with what the API server has; after some attempts that is the error.
func change(ctx context.Context, c client.Client, t *topologyv1.Topology, edit func(*topologyv1.Topology) error) error {
	w := writerOf(t)
	w.Lock()
	defer w.Unlock()
	if w.last != nil && newer(w.last, t) {
		t = w.last
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		after := t.DeepCopy()
		if err := edit(after); err != nil {
			return err
		}
		err := c.Patch(ctx, after, client.MergeFromWithOptions(t, client.MergeFromWithOptimisticLock{}))
		switch {
		case err == nil:
			w.last = after
		case apierrors.IsConflict(err):
			now, unread := latest(ctx, c, t)
			if unread != nil {
				return unread
			}
			t = now
		}
		return err
	})
}

// writer is held by whoever writes to a Topology, and has what was written last.
type writer struct {
	sync.Mutex
	last *topologyv1.Topology
}

// writers are those of the Topologies that were written to lately.
var writers = struct {
	sync.Mutex
	*lru.Cache
}{Cache: lru.New(100)}

func writerOf(t *topologyv1.Topology) *writer {
	writers.Lock()
	defer writers.Unlock()
	if w, ok := writers.Get(t.UID); ok {
		return w.(*writer)
	}
	w := &writer{}
	writers.Add(t.UID, w)
	return w
}

// newer reports whether a is a later version of the same object than b.
func newer(a, b client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0
}

// latest returns a Topology as the API server has it, by a patch of nothing: the
// manager has no right to get Topologies. Another one of its name is a conflict.
func latest(ctx context.Context, c client.Client, t *topologyv1.Topology) (*topologyv1.Topology, error) {
	now := &topologyv1.Topology{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: t.Name}}
	err := c.Patch(ctx, now, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"uid":%q}}`, t.UID)))
	return now, err
}
