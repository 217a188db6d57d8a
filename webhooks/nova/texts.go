package nova

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeimage"
	"github.com/edpm-operators/edpm-operators/webhooks/internal/hook"
)

// recorded are the images of an object, by component. Without a record texts are judged whose image
// is named.
type recorded map[string]string

func (i recorded) service(at *field.Path, component string, t novav1.NovaServiceTemplate) hook.Text {
	return hook.Text{Path: at.Child("customServiceConfig"), Image: cmp.Or(t.ContainerImage, i[component]), Config: t.CustomServiceConfig}
}

// cell are the texts of the services and of the computes of a cell, which names an image for computes
// or none.
func (i recorded) cell(at *field.Path, s cellServices, image string, templates []novav1.NovaComputeTemplate) []hook.Text {
	texts := []hook.Text{
		i.service(at.Child("conductorServiceTemplate"), novav1.ConductorComponent, s.conductor.NovaServiceTemplate),
		i.service(at.Child("metadataServiceTemplate"), novav1.MetadataComponent, s.metadata.NovaServiceTemplate),
		i.service(at.Child("noVNCProxyServiceTemplate"), novav1.NoVNCProxyComponent, s.noVNCProxy.NovaServiceTemplate),
	}
	for n, t := range templates {
		for _, image := range ofComputes(templates, t, cmp.Or(image, i[novav1.ComputeComponent])) {
			texts = append(texts, hook.Text{Path: at.Child("computeTemplates").Index(n).Child("customServiceConfig"), Image: image, Config: t.CustomServiceConfig})
		}
	}
	return texts
}

// ofComputes are the images of the computes that a template is for. One for all roles is for computes
// of each role for which another template names an image, too. Where none does it is that of the cell.
func ofComputes(templates []novav1.NovaComputeTemplate, t novav1.NovaComputeTemplate, cell string) []string {
	roles := t.Roles
	if len(roles) == 0 {
		roles = []string{""} // those to which only templates for all roles apply
		for _, other := range templates {
			roles = append(roles, other.Roles...)
		}
	}
	var images []string
	for _, role := range roles {
		images = append(images, cmp.Or(computeimage.OfTemplates(templates, role).Compute, cell))
	}
	slices.Sort(images)
	return slices.Compact(images)
}

func cellTexts(cell *novav1.NovaCell) []hook.Text {
	spec := cell.Spec
	services := cellServices{spec.ConductorServiceTemplate, spec.MetadataServiceTemplate, spec.NoVNCProxyServiceTemplate}
	return recorded(cell.Status.Images).cell(field.NewPath("spec"), services, spec.NovaComputeContainerImage, spec.ComputeTemplates)
}

func novaTexts(nova *novav1.Nova) []hook.Text {
	return SpecTexts(field.NewPath("spec"), nova.Spec, nova.Status.Images)
}

// SpecTexts returns the texts of the spec of a Nova, wherever it is written, with the images that
// read them: those that it names, or that the Nova has recorded by component.
func SpecTexts(at *field.Path, spec novav1.NovaSpec, record map[string]string) []hook.Text {
	images := recorded(record)
	texts := []hook.Text{
		images.service(at.Child("apiServiceTemplate"), novav1.APIComponent, spec.APIServiceTemplate.NovaServiceTemplate),
		images.service(at.Child("schedulerServiceTemplate"), novav1.SchedulerComponent, spec.SchedulerServiceTemplate),
	}
	for _, name := range slices.Sorted(maps.Keys(spec.CellTemplates)) {
		t := spec.CellTemplates[name]
		services := cellServices{t.ConductorServiceTemplate, t.MetadataServiceTemplate, t.NoVNCProxyServiceTemplate}
		texts = append(texts, images.cell(at.Child("cellTemplates").Key(name), services, t.NovaComputeContainerImage, t.ComputeTemplates)...)
	}
	return texts
}

func computeTexts(compute *novav1.NovaExternalCompute) []hook.Text {
	return []hook.Text{{Path: field.NewPath("spec", "customServiceConfig"), Image: computeimage.Of(compute), Config: compute.Spec.CustomServiceConfig}}
}

func podifiedComputeTexts(compute *novav1.NovaCompute) []hook.Text {
	return []hook.Text{{Path: field.NewPath("spec", "customServiceConfig"), Image: compute.Spec.ContainerImage, Config: compute.Spec.CustomServiceConfig}}
}
