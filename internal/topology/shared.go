package topology

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// NodesKind is the kind of the consumer that stands for all nodes of a role that
// refer to a Topology themselves: its name is that of the role. With a finalizer
// and a field manager for each of thousands of nodes the Topology would be larger
// than etcd takes.
const NodesKind = "OpenStackDataPlaneNodes"

// nodeKind had a finalizer for each node in versions before NodesKind.
const nodeKind = "OpenStackDataPlaneNode"

// NodesOf returns the consumer that stands for the nodes of a role.
func NodesOf(role string) Consumer { return Consumer{Kind: NodesKind, Name: role} }

// Shared holds Topologies for consumers that stand for many objects. Those that
// hold and the one that releases are in one process and read one cache: an object
// that holds is in the cache before, so that it is either seen by the release, or
// sees what that has removed. The zero value is ready for use.
type Shared struct {
	mu sync.RWMutex
	// removed are finalizers that the cache may still show.
	removed sync.Map
}

// Hold is Ensure for an object that the consumer stands for. What the object held
// before is released by Release, once its status no longer notes it as applied.
func (s *Shared) Hold(ctx context.Context, c client.Client, who Consumer, namespace string, want, applied *topologyv1.TopologyRef) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t, err := Get(ctx, c, namespace, want)
	if err != nil || t == nil {
		return err
	}
	if !t.DeletionTimestamp.IsZero() {
		return keep(t, applied)
	}
	mark := removal(t, who.Finalizer())
	if _, removed := s.removed.Load(mark); !removed {
		return hold(ctx, c, who, t)
	}
	if t, err = latest(ctx, c, t); err != nil {
		return err
	}
	if err := hold(ctx, c, who, t); err != nil {
		return err
	}
	s.removed.Delete(mark)
	return nil
}

// keep lets an object continue using a Topology that is being deleted if it used it
// before: nodes hold it, and nothing can be added. Others of the same role do not
// begin to use it.
func keep(t *topologyv1.Topology, applied *topologyv1.TopologyRef) error {
	if NameOf(applied) == t.Name && slices.ContainsFunc(t.Finalizers, ofNodes) {
		return nil
	}
	return deleting(t)
}

func removal(t *topologyv1.Topology, finalizer string) string { return string(t.UID) + " " + finalizer }

// Release removes the finalizers of consumers of NodesKind that stand for no object
// any more. holders reads from the cache which nodes hold the Topology: it returns
// the role of each. Finalizers of single nodes, of versions before, are removed once
// the node holds the Topology no longer or its role does so for it.
func (s *Shared) Release(ctx context.Context, c client.Client, t *topologyv1.Topology, holders func() (roles map[string]string, err error)) error {
	if !slices.ContainsFunc(t.Finalizers, ofNodes) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	roles, err := holders()
	if err != nil {
		return err
	}
	kept := t.DeepCopy()
	kept.Finalizers = slices.DeleteFunc(kept.Finalizers, idle(t, roles))
	if len(kept.Finalizers) == len(t.Finalizers) {
		return nil
	}
	for _, f := range t.Finalizers {
		if ofRole(f) && !slices.Contains(kept.Finalizers, f) {
			s.removed.Store(removal(t, f), true)
		}
	}
	if err := c.Patch(ctx, kept, client.MergeFromWithOptions(t, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("releasing Topology %s: %w", t.Name, err)
	}
	return nil
}

// idle returns which finalizers of nodes hold the Topology for no node, given the
// roles of the nodes that do. As long as a role has none of its own yet, because a
// node has just moved to it, those of all roles stay.
func idle(t *topologyv1.Topology, roles map[string]string) func(string) bool {
	stays, covered := map[string]bool{}, true
	for node, role := range roles {
		shared := NodesOf(role).Finalizer()
		held := slices.Contains(t.Finalizers, shared)
		stays[shared], stays[Consumer{Kind: nodeKind, Name: node}.Finalizer()] = true, !held
		covered = covered && held
	}
	return func(f string) bool { return ofNodes(f) && !stays[f] && (covered || !ofRole(f)) }
}

// ofNodes reports whether a finalizer is that of nodes: of one, or of a role.
func ofNodes(finalizer string) bool {
	kind, _, ok := consumerOf(finalizer)
	return ofRole(finalizer) || ok && kind == strings.ToLower(nodeKind)
}

// ofRole reports whether a finalizer is that of the nodes of a role.
func ofRole(finalizer string) bool {
	kind, _, ok := consumerOf(finalizer)
	return ok && kind == strings.ToLower(NodesKind)
}
