package hosted

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
)

// The cache shows neither node nor role with the annotation.
func TestAServiceIsRemovedFromANodeOnlyIfTheAPIServerSaysSoToo(t *testing.T) {
	annotated := map[string]string{"example.org/x": "true"}
	for name, c := range map[string]struct {
		node, role map[string]string
		roleLess   bool
		late       bool
	}{
		"no one has the annotation":           {nil, nil, false, false},
		"the role has it by now":              {nil, annotated, false, true},
		"the node has it by now":              {annotated, nil, false, true},
		"the role has it, and the node opted": {map[string]string{"example.org/x": "false"}, annotated, false, false},
		"the role no longer exists":           {nil, nil, true, true},
	} {
		scheme := runtime.NewScheme()
		if err := dataplanev1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		s := newScope(Parts{})
		s.MultiInstance = several()
		live := s.Node.DeepCopy()
		live.Annotations = c.node
		objects := []client.Object{live}
		if !c.roleLess {
			role := &dataplanev1.OpenStackDataPlaneRole{}
			role.Namespace, role.Name, role.Annotations = "ns", "r", c.role
			objects = append(objects, role)
		}
		s.Client = fake.NewClientBuilder().WithScheme(scheme).Build()
		s.Live = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
		s.Node.Annotations = nil
		p := &serviceOnNode{&creator{kind: s.kind}, ServiceClass{Name: "x", Annotation: "example.org/x"}, s.Node, &dataplanev1.OpenStackDataPlaneRole{}}
		err := p.deselect(t.Context(), newAgent("x"))
		if apierrors.IsConflict(err) != c.late || !c.late && err != nil {
			t.Errorf("%s: the error is %v, want a conflict: %v", name, err, c.late)
		}
	}
}
