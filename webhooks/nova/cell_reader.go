package nova

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplanenodes,verbs=get;list
// +kubebuilder:rbac:groups=dataplane.openstack.org,resources=openstackdataplaneroles,verbs=get
// +kubebuilder:rbac:groups=nova.openstack.org,resources=novaexternalcomputes,verbs=get;list
// +kubebuilder:rbac:groups=nova.openstack.org,resources=novacells,verbs=get

// cellReader reads what decides the cells of nodes. It must read from the API
// server: a cache may miss a write that was stored a moment ago. What is in a cache
// exists: known is one, for what only warns of something missing.
type cellReader struct {
	client.Reader
	known client.Reader
}

// role returns the named role, nil if there is none.
func (r cellReader) role(ctx context.Context, namespace, name string) (*dataplanev1.OpenStackDataPlaneRole, error) {
	role := &dataplanev1.OpenStackDataPlaneRole{}
	found, err := r.find(ctx, namespace, name, role)
	if !found {
		return nil, err
	}
	return role, nil
}

// recorded returns the cell of the node's NovaExternalCompute, "" if it has none.
func (r cellReader) recorded(ctx context.Context, namespace, node string) (string, error) {
	compute := &novav1.NovaExternalCompute{}
	found, err := r.find(ctx, namespace, node, compute)
	if !found {
		return "", err
	}
	return compute.Spec.CellName, nil
}

// find reports whether the object exists, after reading it.
func (r cellReader) find(ctx context.Context, namespace, name string, obj client.Object) (bool, error) {
	if name == "" {
		return false, nil
	}
	err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %T %s/%s to find the cell of a node: %w", obj, namespace, name, err)
	}
	return true, nil
}

// inheritingNodes returns the names of the nodes that take the annotation of the role,
// having none themselves. It reads only metadata, and only of this role's
// nodes: a data plane may have thousands.
func (r cellReader) inheritingNodes(ctx context.Context, namespace, role string) ([]string, error) {
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(dataplanev1.GroupVersion.WithKind("OpenStackDataPlaneNodeList"))
	err := r.List(ctx, nodes, client.InNamespace(namespace), client.MatchingFields{"spec.role": role})
	if err != nil {
		return nil, fmt.Errorf("listing the nodes of role %s/%s: %w", namespace, role, err)
	}
	var names []string
	for _, node := range nodes.Items {
		if _, own := node.Annotations[novav1.CellAnnotation]; !own {
			names = append(names, node.Name)
		}
	}
	return names, nil
}

// unread stands for the recorded cell of a node that no error names.
const unread = "?"

// recordedOutside returns, by node, the recorded cells of nodes that are not in the given
// one. Of computes in other cells, which may be tens of thousands, it reads only
// metadata, and whole only those that an error names.
func (r cellReader) recordedOutside(ctx context.Context, namespace, cell string, nodes []string) (map[string]string, error) {
	computes := &metav1.PartialObjectMetadataList{}
	computes.SetGroupVersionKind(novav1.GroupVersion.WithKind("NovaExternalComputeList"))
	err := r.List(ctx, computes, client.InNamespace(namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("spec.cellName", cell)})
	if err != nil {
		return nil, fmt.Errorf("listing the computes of %s that are not in cell %s: %w", namespace, cell, err)
	}
	foreign, cells := map[string]bool{}, map[string]string{}
	for i := range computes.Items {
		foreign[computes.Items[i].Name] = true
	}
	for _, node := range slices.Sorted(slices.Values(nodes)) {
		if !foreign[node] {
			continue
		}
		if cells[node] = unread; len(cells) > maxNamed {
			continue
		}
		if cells[node], err = r.recorded(ctx, namespace, node); err != nil {
			return nil, err
		}
	}
	return cells, nil
}

// warnings says what a person wants to know before a cell is set for good.
func (r cellReader) warnings(ctx context.Context, namespace, cell string) ([]string, error) {
	if cell == "" {
		return nil, nil
	}
	found := &novav1.NovaCell{}
	exists, err := cellReader{Reader: r.known}.find(ctx, namespace, cell, found)
	if !exists {
		exists, err = r.find(ctx, namespace, cell, found)
	}
	switch {
	case err != nil:
		return nil, err
	case !exists:
		return []string{fmt.Sprintf("%s: NovaCell %s does not exist in namespace %s yet; nothing is deployed until it does, and the annotation cannot be changed later: check the name", annotationPath, cell, namespace)}, nil
	case found.ShortName() == novav1.Cell0Name:
		return []string{fmt.Sprintf("%s: NovaCell %s is cell0, which has no computes; nothing will be deployed, and the annotation cannot be changed later", annotationPath, cell)}, nil
	}
	return nil, nil
}
