package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm/v1beta1"
	"github.com/edpm-operators/edpm-operators/cmd/kubectl-edpm/internal/nodeview"
)

// subject is what a person named: a node, a role, or every node.
type subject struct {
	// node or role, or neither for every node of the namespace.
	node, role string
}

// has reports whether the node belongs to the subject.
func (s subject) has(n *dataplanev1.OpenStackDataPlaneNode) bool {
	return s == subject{} || n.Name == s.node || s.role != "" && n.Spec.Role == s.role
}

// prefixes by which a person can say whether a node or a role is meant.
var prefixes = map[string]bool{"node": true, "osdpnode": true, "openstackdataplanenode": true, "role": false, "osdprole": false, "openstackdataplanerole": false}

// candidates are what the argument can name.
func candidates(arg string) ([]subject, error) {
	kind, name, prefixed := strings.Cut(arg, "/")
	isNode, known := prefixes[strings.ToLower(kind)]
	switch {
	case !prefixed:
		return []subject{{node: arg}, {role: arg}}, nil
	case !known || name == "":
		return nil, fmt.Errorf("%q: write node/NAME, role/NAME, or the NAME of either", arg)
	case isNode:
		return []subject{{node: name}}, nil
	}
	return []subject{{role: name}}, nil
}

// find returns what the argument names: node/NAME, role/NAME, or the NAME of
// either. An empty one names every node.
func (c *connection) find(ctx context.Context, arg string) (subject, error) {
	if arg == "" {
		return subject{}, nil
	}
	possible, err := candidates(arg)
	if err != nil {
		return subject{}, err
	}
	var found []subject
	for _, s := range possible {
		if exists, err := c.exists(ctx, s); err != nil {
			return subject{}, err
		} else if exists {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 0:
		return subject{}, fmt.Errorf("there is neither a node nor a role %q in namespace %s: kubectl get osdpnode,osdprole -A lists all", arg, c.namespace)
	case 1:
		return found[0], nil
	}
	return subject{}, fmt.Errorf("there is a node and a role %q: write node/%s or role/%s", arg, arg, arg)
}

// node returns the node that the argument names.
func (c *connection) node(ctx context.Context, arg string) (*dataplanev1.OpenStackDataPlaneNode, error) {
	s, err := c.find(ctx, arg)
	if err != nil {
		return nil, err
	}
	if s.node == "" {
		return nil, fmt.Errorf("%q does not name a node: name each node of the role", arg)
	}
	n := &dataplanev1.OpenStackDataPlaneNode{}
	if err := c.client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: s.node}, n); err != nil {
		return nil, fmt.Errorf("reading node %s: %w", s.node, err)
	}
	return n, nil
}

// sayNoNodes says where nodes may be instead.
func (c *connection) sayNoNodes(out io.Writer) error {
	_, err := fmt.Fprintf(out, "There are no nodes in namespace %s, or none with this role: kubectl get osdpnode -A lists all\n", c.namespace)
	return err
}

// exists reports whether there is such a node or role.
func (c *connection) exists(ctx context.Context, s subject) (bool, error) {
	var obj client.Object = &dataplanev1.OpenStackDataPlaneNode{}
	if s.role != "" {
		obj = &dataplanev1.OpenStackDataPlaneRole{}
	}
	err := c.client.Get(ctx, types.NamespacedName{Namespace: c.namespace, Name: s.node + s.role}, obj)
	return err == nil, client.IgnoreNotFound(err)
}

// views returns how the nodes of the subject stand.
func (c *connection) views(ctx context.Context, r client.Reader, s subject) ([]nodeview.Node, error) {
	nodes, roles, runs := &dataplanev1.OpenStackDataPlaneNodeList{}, &dataplanev1.OpenStackDataPlaneRoleList{}, &ansibleeev1.OpenStackAnsibleEEList{}
	for _, l := range []client.ObjectList{nodes, roles, runs} {
		if err := c.list(ctx, r, l); err != nil {
			return nil, err
		}
	}
	chosen := slices.DeleteFunc(nodes.Items, func(n dataplanev1.OpenStackDataPlaneNode) bool { return !s.has(&n) })
	services, err := c.services(ctx, chosen)
	if err != nil {
		return nil, err
	}
	classes, err := c.classes(ctx)
	if err != nil {
		return nil, err
	}
	byName, byHost := map[string]*dataplanev1.OpenStackDataPlaneRole{}, nodeview.ByHost(runs.Items)
	for i := range roles.Items {
		byName[roles.Items[i].Name] = &roles.Items[i]
	}
	var views []nodeview.Node
	for i := range chosen {
		n := &chosen[i]
		source := nodeview.Source{Node: n, Role: byName[n.Spec.Role], Runs: byHost[n.Name], Classes: classes, Services: map[string]nodeview.Service{}}
		for _, e := range n.Status.Services {
			if object, known := services[e.Kind+"/"+e.ObjectName]; known && isOf(object, n.Name) {
				source.Services[e.Name] = serviceOf(object)
			}
		}
		views = append(views, nodeview.New(source))
	}
	return views, nil
}

// classes returns the classes of services of the namespace: none where the kind does not
// exist or may not be read.
func (c *connection) classes(ctx context.Context) ([]edpmv1.EDPMServiceClass, error) {
	list := &edpmv1.EDPMServiceClassList{}
	err := c.list(ctx, c.client, list)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	return list.Items, err
}

// services returns the objects behind the services of the nodes, by Kind/name. Those
// that may not be read, and those of kinds that are not of edpm-operators, are left out.
func (c *connection) services(ctx context.Context, nodes []dataplanev1.OpenStackDataPlaneNode) (map[string]*unstructured.Unstructured, error) {
	wanted := map[string]bool{}
	for _, n := range nodes {
		for _, e := range n.Status.Services {
			wanted[e.Kind] = true
		}
	}
	kinds, err := c.kindsNamed(wanted)
	if err != nil {
		return nil, err
	}
	found := map[string]*unstructured.Unstructured{}
	for _, k := range kinds {
		items, err := c.objectsOf(ctx, k)
		if err != nil && !apierrors.IsForbidden(err) {
			return nil, err
		}
		for i := range items {
			found[k.Kind+"/"+items[i].GetName()] = &items[i]
		}
	}
	return found, nil
}

// objectsOf returns all objects of a kind in the namespace.
func (c *connection) objectsOf(ctx context.Context, k apiKind) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
	if err := c.client.List(ctx, list, client.InNamespace(c.namespace)); err != nil {
		return nil, fmt.Errorf("listing %s in namespace %s: %w", k.Plural, c.namespace, err)
	}
	return list.Items, nil
}

// isOf reports whether an object is the service of the node. One that says it is of
// another node only has the name: EDPMService a-b-c can be class a on node b-c, or class
// a-b on node c.
func isOf(obj *unstructured.Unstructured, node string) bool {
	of, said, _ := unstructured.NestedString(obj.Object, "spec", "dataplaneNodeName")
	return !said || of == node
}

// serviceOf an object; empty if its status is not that of a service.
func serviceOf(obj *unstructured.Unstructured) nodeview.Service {
	status, _, _ := unstructured.NestedMap(obj.Object, "status")
	service := nodeview.Service{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(status, &service); err != nil {
		return nodeview.Service{}
	}
	return service
}
