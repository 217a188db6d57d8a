package rollout

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

func TestTheImageThatComputesHaveAlthoughNoneIsRecorded(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := novav1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cell := func(image string) *novav1.NovaCell {
		c := &novav1.NovaCell{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cell1"}}
		if image != "" {
			c.Status.Images = map[string]string{novav1.ComputeComponent: image}
		}
		return c
	}
	of := func(name, cell, spec, recorded string) *novav1.NovaExternalCompute {
		c := compute(name, recorded)
		c.Namespace, c.Spec.CellName, c.Spec.NovaComputeContainerImage = "ns", cell, spec
		return &c
	}
	for name, c := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"what the cell has recorded":             {[]client.Object{cell("2"), of("a", "cell1", "", "1")}, "2"},
		"what a compute has recorded":            {[]client.Object{cell(""), of("a", "cell1", "", "1")}, "1"},
		"what its spec names, without a status":  {[]client.Object{of("a", "cell1", "1", "")}, "1"},
		"what most have, of whom one was chosen": {[]client.Object{of("a", "cell1", "mine", ""), of("b", "cell1", "1", ""), of("c", "cell1", "1", "")}, "1"},
		"not that of another cell":               {[]client.Object{of("a", "cell2", "1", "1")}, ""},
	} {
		reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.objects...).
			WithIndex(&novav1.NovaExternalCompute{}, "spec.cellName", func(obj client.Object) []string {
				return []string{obj.(*novav1.NovaExternalCompute).Spec.CellName}
			}).Build()
		if got, err := Present(t.Context(), reader, "ns", "cell1"); got != c.want || err != nil {
			t.Errorf("%s: it is %q (%v), want %q", name, got, err, c.want)
		}
	}
}
