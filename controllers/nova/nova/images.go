package nova

import (
	"cmp"
	"context"
	"maps"
	"slices"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/podified"
)

// chooseImages is the phase that chooses the images of a Nova and of its cells, so that all
// are of one release. Those of a cell that its template names are not among them.
func (s *scope) chooseImages(ctx context.Context) error {
	name, spec := s.nova.Name, s.nova.Spec
	components := map[string]podified.Component{
		novav1.APIComponent: {
			Spec: spec.APIServiceTemplate.ContainerImage, Default: s.Images.NovaAPI,
			Sets: []string{novav1.APIName(name)}, Job: databaseJobName(name),
		},
		novav1.SchedulerComponent: {
			Spec: spec.SchedulerServiceTemplate.ContainerImage, Default: s.Images.NovaScheduler,
			Sets: []string{novav1.SchedulerName(name)},
		},
		novav1.ConductorComponent:  {Default: s.Images.NovaConductor},
		novav1.MetadataComponent:   {Default: s.Images.NovaAPI},
		novav1.NoVNCProxyComponent: {Default: s.Images.NovaNoVNC},
		novav1.ComputeComponent:    {Default: s.Images.NovaCompute},
	}
	for _, cell := range slices.Sorted(maps.Keys(spec.CellTemplates)) {
		t, full := spec.CellTemplates[cell], novav1.CellName(name, cell)
		for component, of := range map[string]struct{ named, set string }{
			novav1.ConductorComponent:  {t.ConductorServiceTemplate.ContainerImage, novav1.ConductorName(full)},
			novav1.MetadataComponent:   {t.MetadataServiceTemplate.ContainerImage, novav1.MetadataName(full)},
			novav1.NoVNCProxyComponent: {t.NoVNCProxyServiceTemplate.ContainerImage, novav1.NoVNCProxyName(full)},
		} {
			if of.named == "" {
				c := components[component]
				c.Sets = append(c.Sets, of.set)
				components[component] = c
			}
		}
	}
	return podified.ChooseImages(ctx, s.Client, s.nova, components)
}

// nameImages has a cell whose template names no images run those of the Nova.
func (s *scope) nameImages(cell *novav1.NovaCellSpec) {
	release := s.nova.Status.Images
	for component, image := range map[string]*string{
		novav1.ConductorComponent:  &cell.ConductorServiceTemplate.ContainerImage,
		novav1.MetadataComponent:   &cell.MetadataServiceTemplate.ContainerImage,
		novav1.NoVNCProxyComponent: &cell.NoVNCProxyServiceTemplate.ContainerImage,
		novav1.ComputeComponent:    &cell.NovaComputeContainerImage,
	} {
		*image = cmp.Or(*image, release[component])
	}
}
