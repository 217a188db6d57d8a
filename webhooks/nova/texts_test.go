package nova

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

func TestTextsOfTemplatesAreJudgedByTheImageOfTheirComputes(t *testing.T) {
	of := func(image string, roles ...string) novav1.NovaComputeTemplate {
		return novav1.NovaComputeTemplate{Roles: roles, Images: novav1.NovaComputeImages{Compute: image}}
	}
	for name, c := range map[string]struct {
		templates []novav1.NovaComputeTemplate
		want      [][]string
	}{
		"none names an image":                        {[]novav1.NovaComputeTemplate{of(""), of("", "gpu")}, [][]string{{"cell"}, {"cell"}}},
		"one names its own":                          {[]novav1.NovaComputeTemplate{of("1", "gpu"), of("")}, [][]string{{"1"}, {"1", "cell"}}},
		"another one of the role names it":           {[]novav1.NovaComputeTemplate{of("", "gpu"), of("1", "gpu"), of("", "small")}, [][]string{{"1"}, {"1"}, {"cell"}}},
		"one for all names it, and a later one more": {[]novav1.NovaComputeTemplate{of("1"), of("2", "gpu"), of("", "small")}, [][]string{{"1", "2"}, {"2"}, {"1"}}},
		"one of its roles has another image":         {[]novav1.NovaComputeTemplate{of("", "small", "gpu"), of("1", "gpu")}, [][]string{{"1", "cell"}, {"1"}}},
	} {
		got, at := make([][]string, len(c.templates)), field.NewPath("spec")
		for _, text := range (recorded{novav1.ComputeComponent: "cell"}).cell(at, cellServices{}, "", c.templates) {
			for n := range c.templates {
				if text.Path.String() == at.Child("computeTemplates").Index(n).Child("customServiceConfig").String() {
					got[n] = append(got[n], text.Image)
				}
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTextsOfTheCellsOfANovaAreJudgedByTheImageOfTheirComputes(t *testing.T) {
	templates := []novav1.NovaComputeTemplate{{CustomServiceConfig: "[a]"}}
	spec := novav1.NovaSpec{CellTemplates: map[string]novav1.NovaCellTemplate{
		"cell0": {}, "cell1": {NovaComputeContainerImage: "own", ComputeTemplates: templates}, "cell2": {ComputeTemplates: templates},
	}}
	nova := &novav1.Nova{Spec: spec}
	nova.Status.Images = map[string]string{novav1.ComputeComponent: "all", "cell1/" + novav1.ComputeComponent: "before"}
	got := map[string]string{}
	for _, text := range novaTexts(nova) {
		if text.Config != "" {
			got[text.Path.String()] = text.Image
		}
	}
	want := map[string]string{
		"spec.cellTemplates[cell1].computeTemplates[0].customServiceConfig": "own",
		"spec.cellTemplates[cell2].computeTemplates[0].customServiceConfig": "all",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("images by field (-want +got):\n%s", diff)
	}
	cell := &novav1.NovaCell{Spec: novav1.NovaCellSpec{NovaComputeContainerImage: "own", ComputeTemplates: templates}}
	if texts := cellTexts(cell); texts[len(texts)-1].Image != "own" {
		t.Errorf("the template of a NovaCell is judged by %q; want its own image", texts[len(texts)-1].Image)
	}
}
