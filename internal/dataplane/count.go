package dataplane

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
)

// Counts is how many nodes each role has. Events maintain it: listing the nodes
// of a role whenever one of them needs the number would cost their square.
type Counts struct {
	mu sync.Mutex
	of map[types.NamespacedName]int
}

// Count returns the numbers of nodes that the cache has, from then on.
func Count(ctx context.Context, nodes cache.Informers) (*Counts, error) {
	informer, err := nodes.GetInformer(ctx, &dataplanev1.OpenStackDataPlaneNode{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("counting the nodes of roles: %w", err)
	}
	counts := &Counts{of: map[types.NamespacedName]int{}}
	_, err = informer.AddEventHandler(counts)
	return counts, err
}

// Of returns how many nodes the role has.
func (c *Counts) Of(namespace, role string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[types.NamespacedName{Namespace: namespace, Name: role}]
}

// OnAdd counts a node.
func (c *Counts) OnAdd(obj any, _ bool) { c.add(obj, 1) }

// OnUpdate counts a node in its present role.
func (c *Counts) OnUpdate(before, after any) {
	c.add(before, -1)
	c.add(after, 1)
}

// OnDelete counts a node no longer.
func (c *Counts) OnDelete(obj any) {
	if unseen, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = unseen.Obj
	}
	c.add(obj, -1)
}

func (c *Counts) add(obj any, n int) {
	node := obj.(client.Object)
	key := types.NamespacedName{Namespace: node.GetNamespace(), Name: Role(node)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[key] += n; c.of[key] == 0 {
		delete(c.of, key)
	}
}
