package nova

import (
	"context"
	"fmt"
	"strings"
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

// unreadable is a reader that no rule may read from.
func unreadable(t *testing.T) client.Reader {
	t.Helper()
	return fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			t.Errorf("%T %q is read", obj, key.Name)
			return nil
		},
	}).Build()
}

// A node that names no role has none: an empty one would give it the annotations of no role.
func TestWhatHasNoNameDoesNotExist(t *testing.T) {
	cells := cellReader{unreadable(t), unreadable(t)}
	if role, err := cells.role(t.Context(), "ns", ""); role != nil || err != nil {
		t.Errorf("the role without a name is %v, %v; want none", role, err)
	}
	if cell, err := cells.recorded(t.Context(), "ns", ""); cell != "" || err != nil {
		t.Errorf("the cell of a node without a name is %q, %v; want none", cell, err)
	}
	if exists, err := cells.find(t.Context(), "ns", "", &novav1.NovaCell{}); exists || err != nil {
		t.Errorf("the NovaCell without a name exists: %v, %v", exists, err)
	}
}

func TestSettingACellWarns(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := novav1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cell := func(name string) client.Object {
		return &novav1.NovaCell{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: novav1.NovaCellSpec{CellName: strings.TrimPrefix(name, "nova-")}}
	}
	reader := func(objects ...client.Object) client.Reader {
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	}
	for name, c := range map[string]struct {
		known, stored client.Reader
		cell, want    string
	}{
		"not of no cell, and reads nothing":          {unreadable(t), unreadable(t), "", ""},
		"of a cell that does not exist":              {reader(), reader(), "nova-cell1", "NovaCell nova-cell1 does not exist in namespace ns"},
		"not of a cell that exists":                  {reader(cell("nova-cell1")), unreadable(t), "nova-cell1", ""},
		"not of a cell that was stored a moment ago": {reader(), reader(cell("nova-cell1")), "nova-cell1", ""},
		"of cell0": {reader(cell("nova-cell0")), unreadable(t), "nova-cell0", "is cell0, which has no computes"},
		"of a cell that exists in another namespace only": {reader(), reader(inNamespace(cell("nova-cell1"), "other")), "nova-cell1", "NovaCell nova-cell1 does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			warnings, err := cellReader{Reader: c.stored, known: c.known}.warnings(t.Context(), "ns", c.cell)
			if err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(warnings, "\n"); (c.want == "") != (text == "") || !strings.Contains(text, c.want) {
				t.Errorf("warns %q; want %q", text, c.want)
			}
		})
	}
}

func inNamespace(obj client.Object, namespace string) client.Object {
	obj.SetNamespace(namespace)
	return obj
}
