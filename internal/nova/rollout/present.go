package rollout

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeimage"
)

// Present returns the image of nova-compute in a cell for an object that has recorded none, because it
// is of an earlier version or was restored from a backup without its status: new computes are to be of
// the release of the others. It is what the cell has recorded, else what most computes on hosts have, of
// which one may have another that was chosen for it; empty if none is known.
func Present(ctx context.Context, c client.Reader, namespace, name string) (string, error) {
	cell, computes := &novav1.NovaCell{}, &novav1.NovaExternalComputeList{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cell); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading NovaCell %s: %w", name, err)
	}
	if image := imageOf(cell); image != "" {
		return image, nil
	}
	if err := c.List(ctx, computes, client.InNamespace(namespace), client.MatchingFields{"spec.cellName": name}, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("listing the computes of cell %s: %w", name, err)
	}
	count := map[string]int{}
	for i := range computes.Items {
		count[computeimage.Of(&computes.Items[i])]++
	}
	delete(count, "")
	return mostFrequent(count), nil
}

// mostFrequent is the image that most have, the first by name of several.
func mostFrequent(count map[string]int) string {
	most := ""
	for _, image := range slices.Sorted(maps.Keys(count)) {
		if count[image] > count[most] {
			most = image
		}
	}
	return most
}
