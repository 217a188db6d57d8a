package dataplane

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
)

// SetServiceStatus makes the node show the entry, as the node that is given does then, and reports
// whether that was a change. Each service applies its own entry under its own
// field manager. If the node no longer exists the error is NotFound.
func SetServiceStatus(ctx context.Context, c client.Client, node *dataplanev1.OpenStackDataPlaneNode, entry dataplanev1.NodeServiceStatus) (bool, error) {
	if old, ok := find(node, entry.Name); ok && equality.Semantic.DeepEqual(old, entry) {
		return false, nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&entry)
	if err != nil {
		return false, err
	}
	if err := send(ctx, c, node, entry.Name, []any{fields}); err != nil {
		return true, err
	}
	node.Status.Services = append(without(node, entry.Name), entry)
	return true, nil
}

// RemoveServiceStatus takes the entry off the node, and reports whether it was there.
func RemoveServiceStatus(ctx context.Context, c client.Client, node *dataplanev1.OpenStackDataPlaneNode, service string) (bool, error) {
	if _, ok := find(node, service); !ok {
		return false, nil
	}
	return true, client.IgnoreNotFound(send(ctx, c, node, service, []any{}))
}

// HasServiceStatus reports whether the node shows an entry of the service.
func HasServiceStatus(node *dataplanev1.OpenStackDataPlaneNode, service string) bool {
	_, ok := find(node, service)
	return ok
}

func without(node *dataplanev1.OpenStackDataPlaneNode, service string) []dataplanev1.NodeServiceStatus {
	return slices.DeleteFunc(slices.Clone(node.Status.Services), func(s dataplanev1.NodeServiceStatus) bool { return s.Name == service })
}

func find(node *dataplanev1.OpenStackDataPlaneNode, service string) (dataplanev1.NodeServiceStatus, bool) {
	for _, s := range node.Status.Services {
		if s.Name == service {
			return s, true
		}
	}
	return dataplanev1.NodeServiceStatus{}, false
}

// send applies the service's part of the status. The UID keeps it from
// creating a node that no longer exists.
func send(ctx context.Context, c client.Client, node *dataplanev1.OpenStackDataPlaneNode, service string, entries []any) error {
	obj := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"services": entries}}}
	obj.SetGroupVersionKind(dataplanev1.GroupVersion.WithKind("OpenStackDataPlaneNode"))
	obj.SetNamespace(node.Namespace)
	obj.SetName(node.Name)
	obj.SetUID(node.UID)
	err := c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("edpm-service-"+service), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("showing service %s on node %s: %w", service, node.Name, err)
	}
	return nil
}
