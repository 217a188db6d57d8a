package nova

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// crowdedCell is a reader of a namespace whose role has n nodes, all of them in
// cell a, among as many other computes of that cell. It counts what is read whole.
func crowdedCell(t *testing.T, n int, whole *int) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{dataplanev1.AddToScheme, novav1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	answer := func(list *metav1.PartialObjectMetadataList, prefixes ...string) {
		for _, prefix := range prefixes {
			for i := range n {
				list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("%s%05d", prefix, i)}})
			}
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			metadata, ok := list.(*metav1.PartialObjectMetadataList)
			switch {
			case !ok:
				t.Errorf("%T is listed with the whole of its objects", list)
			case metadata.Kind == "NovaExternalComputeList":
				answer(metadata, "n", "other")
			default:
				answer(metadata, "n")
			}
			return nil
		},
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			*whole++
			if compute, ok := obj.(*novav1.NovaExternalCompute); ok {
				compute.Name, compute.Spec.CellName = key.Name, "a"
			}
			return nil
		},
	}).Build()
}

// The webhook has ten seconds, whatever the number of computes.
func TestAnnotatingARoleReadsFewComputesWhole(t *testing.T) {
	for _, n := range []int{3, 5000} {
		whole := 0
		crowd := crowdedCell(t, n, &whole)
		rule := roleCell{cellReader{crowd, crowd}}
		role := &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r"}}
		changes, err := rule.changes(t.Context(), role, "", "b")
		if err != nil {
			t.Fatal(err)
		}
		found := forbiddenChanges(changes)
		if len(found) != n || whole > maxNamed {
			t.Errorf("%d of %d nodes are refused after reading %d computes; want all of them after at most %d", len(found), n, whole, maxNamed)
		}
		for _, c := range found[:min(n, maxNamed)] {
			if c.recorded != "a" {
				t.Errorf("the cell of %s, which the error names, is %q", c.node, c.recorded)
			}
		}
	}
}
