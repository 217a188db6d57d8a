package nova

import (
	"context"
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

func roleIn(cell string) *dataplanev1.OpenStackDataPlaneRole {
	role := &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r"}}
	if cell != "" {
		role.Annotations = map[string]string{novav1.CellAnnotation: cell}
	}
	return role
}

func nodeIn(cell string) *dataplanev1.OpenStackDataPlaneNode {
	node := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n"}, Spec: dataplanev1.OpenStackDataPlaneNodeSpec{Role: "r"}}
	if cell != "" {
		node.Annotations = map[string]string{novav1.CellAnnotation: cell}
	}
	return node
}

func computeIn(cell string) *novav1.NovaExternalCompute {
	return &novav1.NovaExternalCompute{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n"}, Spec: novav1.NovaExternalComputeSpec{CellName: cell}}
}

// readerOf reads the objects, and counts the requests.
func readerOf(t *testing.T, requests *int, objects ...client.Object) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{dataplanev1.AddToScheme, novav1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			*requests++
			return c.Get(ctx, key, obj, opts...)
		},
	}).Build()
}

// A node is created or annotated with as few requests to the API server as its cell can
// be judged with.
func TestTheCellOfANodeTakesFewRequests(t *testing.T) {
	cell := &novav1.NovaCell{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	for name, tt := range map[string]struct {
		live, cached []client.Object
		old, node    *dataplanev1.OpenStackDataPlaneNode
		requests     int
		refused      string
	}{
		"created in a role with a cell": {
			live: []client.Object{roleIn("a"), cell}, cached: []client.Object{roleIn("a"), cell}, node: nodeIn(""), requests: 1},
		"created in a role that the cache does not show with a cell yet": {
			live: []client.Object{roleIn("a"), cell}, cached: []client.Object{roleIn(""), cell}, node: nodeIn(""), requests: 2},
		"created with an annotation": {
			live: []client.Object{roleIn(""), cell}, cached: []client.Object{roleIn(""), cell}, node: nodeIn("a"), requests: 1},
		"created again where it is recorded, in a role that has another cell than in the cache": {
			live: []client.Object{roleIn("b"), computeIn("a")}, cached: []client.Object{roleIn("a"), cell}, node: nodeIn(""), requests: 2,
			refused: "node n is in cell a and cannot be moved to cell b"},
		"recorded a moment ago": {
			live: []client.Object{roleIn("b"), computeIn("a")}, cached: []client.Object{roleIn("b"), cell}, node: nodeIn(""), requests: 2,
			refused: "node n is in cell a and cannot be moved to cell b"},
		"annotated": {
			live: []client.Object{roleIn(""), cell}, cached: []client.Object{cell}, old: nodeIn(""), node: nodeIn("a"), requests: 2},
		"annotated in a role that got another cell a moment ago": {
			live: []client.Object{roleIn("b"), cell}, cached: []client.Object{roleIn(""), cell}, old: nodeIn(""), node: nodeIn("a"), requests: 2,
			refused: "node n is in cell b and cannot be moved to cell a"},
	} {
		t.Run(name, func(t *testing.T) {
			requests, fromCache := 0, 0
			rule := nodeCell{cellReader{readerOf(t, &requests, tt.live...), readerOf(t, &fromCache, tt.cached...)}}
			var err error
			if tt.old == nil {
				_, err = rule.ValidateCreate(t.Context(), tt.node)
			} else {
				_, err = rule.ValidateUpdate(t.Context(), tt.old, tt.node)
			}
			switch {
			case tt.refused == "" && err != nil:
				t.Errorf("it is refused: %v", err)
			case tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused)):
				t.Errorf("want it refused because %q, got %v", tt.refused, err)
			}
			if requests != tt.requests {
				t.Errorf("%d requests to the API server, want %d", requests, tt.requests)
			}
		})
	}
}
