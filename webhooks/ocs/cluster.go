package ocs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
)

// +kubebuilder:rbac:groups="",resources=nodes;persistentvolumeclaims,verbs=list

// cluster reads what there is, by metadata only: labels tell whose a claim is, and
// where a node is.
type cluster struct{ client.Reader }

// claims returns those that Rook made for OSDs in the namespace.
func (r cluster) claims(ctx context.Context, namespace string) ([]*corev1.PersistentVolumeClaim, error) {
	items, err := r.metadata(ctx, "PersistentVolumeClaimList", client.InNamespace(namespace), client.HasLabels{cephv1.DeviceSetLabel})
	var claims []*corev1.PersistentVolumeClaim
	for i := range items {
		claims = append(claims, &corev1.PersistentVolumeClaim{ObjectMeta: items[i].ObjectMeta})
	}
	return claims, err
}

// nodes returns those of the whole cluster.
func (r cluster) nodes(ctx context.Context) ([]*corev1.Node, error) {
	items, err := r.metadata(ctx, "NodeList")
	var nodes []*corev1.Node
	for i := range items {
		nodes = append(nodes, &corev1.Node{ObjectMeta: items[i].ObjectMeta})
	}
	return nodes, err
}

func (r cluster) metadata(ctx context.Context, kind string, opts ...client.ListOption) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	if err := r.List(ctx, list, opts...); err != nil {
		return nil, fmt.Errorf("reading the %s: %w", kind, err)
	}
	return list.Items, nil
}
