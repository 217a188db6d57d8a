package hosted

import (
	"context"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// NodeIndex holds the node of an object, where nodes have several of a kind.
const NodeIndex = "hosted.node"

func nodeOf(obj client.Object) string {
	spec, _ := obj.(Object).Hosted()
	return spec.DataplaneNodeName
}

func indexNode(obj client.Object) []string { return []string{nodeOf(obj)} }

// nodesOfRole maps a role to its nodes.
func nodesOfRole(c client.Reader) handler.MapFunc {
	return watch.Users(c, func() client.ObjectList { return &dataplanev1.OpenStackDataPlaneNodeList{} }, dataplane.RoleIndex, watch.ByName)
}

// byNode maps an object to its node, and to those of which an object could have its name:
// one that is refused because of it continues when the name is free.
func (k *kind) byNode(_ context.Context, obj client.Object) []reconcile.Request {
	if k.MultiInstance == nil { // named like its node, also when it belongs to something else
		return []reconcile.Request{watch.Request(obj.GetNamespace(), obj.GetName())}
	}
	requests := []reconcile.Request{watch.Request(obj.GetNamespace(), nodeOf(obj))}
	for _, node, more := strings.Cut(obj.GetName(), "-"); more; _, node, more = strings.Cut(node, "-") {
		if node != nodeOf(obj) {
			requests = append(requests, watch.Request(obj.GetNamespace(), node))
		}
	}
	return requests
}

// ofNode makes a map function to nodes one to the objects that these nodes have, or
// are about to get.
func (k *kind) ofNode(toNodes handler.MapFunc) handler.MapFunc {
	if k.MultiInstance == nil { // objects are named like their nodes
		return toNodes
	}
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		found := map[reconcile.Request]bool{}
		var requests []reconcile.Request
		for _, node := range toNodes(ctx, obj) {
			for _, name := range k.namesOn(ctx, node.NamespacedName) {
				r := watch.Request(node.Namespace, name)
				if !found[r] {
					requests = append(requests, r)
				}
				found[r] = true
			}
		}
		return requests
	}
}

// namesOn are the names of the objects that a node has or is about to get. What cannot
// be read is left out: the objects that exist come with their own events.
func (k *kind) namesOn(ctx context.Context, key client.ObjectKey) []string {
	var names []string
	objects, err := k.on(ctx, key)
	for _, obj := range objects {
		names = append(names, obj.GetName())
	}
	node := &dataplanev1.OpenStackDataPlaneNode{}
	if err != nil || k.Get(ctx, key, node) != nil {
		return names
	}
	role, err := k.roleOf(ctx, k.Client, node)
	classes, oerr := k.classes(ctx, key.Namespace)
	if err != nil || oerr != nil {
		return names
	}
	for _, o := range classes {
		if k.selects(node, role, o) {
			names = append(names, k.objectName(o.Name, node.Name))
		}
	}
	return names
}

// nodesOfNamespace maps an object to all nodes of its namespace.
func (k *kind) nodesOfNamespace(ctx context.Context, obj client.Object) []reconcile.Request {
	list := &dataplanev1.OpenStackDataPlaneNodeList{}
	if err := k.List(ctx, list, client.InNamespace(obj.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has stopped
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, watch.Request(list.Items[i].Namespace, list.Items[i].Name))
	}
	return requests
}
