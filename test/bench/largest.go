package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// largest is the largest object of a resource.
type largest struct {
	resource, name string
	bytes          int
}

// measured are the resources whose objects could grow with the nodes.
var measured = append([]schema.GroupVersionResource{
	{Group: "topology.openstack.org", Version: "v1beta1", Resource: "topologies"},
	{Version: "v1", Resource: "pods"},
}, written...)

// largestObjects returns the largest object of each resource, as JSON with its
// managed fields.
func largestObjects(ctx context.Context, config *rest.Config) ([]largest, error) {
	reader, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	var all []largest
	for _, gvr := range measured {
		of, err := largestOf(ctx, reader, gvr)
		if err != nil {
			return nil, fmt.Errorf("measuring %s: %w", gvr.Resource, err)
		}
		all = append(all, of)
	}
	return all, nil
}

func largestOf(ctx context.Context, reader dynamic.Interface, gvr schema.GroupVersionResource) (largest, error) {
	found, page := largest{resource: gvr.Resource}, metav1.ListOptions{Limit: 500}
	for {
		list, err := reader.Resource(gvr).Namespace(namespace).List(ctx, page)
		if err != nil {
			return found, err
		}
		for i := range list.Items {
			text, err := list.Items[i].MarshalJSON()
			if err != nil {
				return found, err
			}
			if len(text) > found.bytes {
				found.name, found.bytes = list.Items[i].GetName(), len(text)
			}
		}
		if page.Continue = list.GetContinue(); page.Continue == "" {
			return found, nil
		}
	}
}
