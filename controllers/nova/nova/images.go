package nova

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/podified"
)

// part is a service of a Nova or of one of its cells, with the StatefulSet that runs it.
type part struct{ component, cell, set string }

// key of the image of a part in a record of images: that of a service of a cell if its
// template names one, else that of the component.
func (p part) key() string {
	if p.cell == "" {
		return p.component
	}
	return p.cell + "/" + p.component
}

// in returns the image of the part in a record.
func (p part) in(images map[string]string) string {
	if image, own := images[p.key()]; own {
		return image
	}
	return images[p.component]
}

// image returns what a part runs now: during an update what its step has reached.
func (s *scope) image(p part) string {
	if deployed := s.nova.Status.Deployed; deployed != nil {
		return p.in(deployed)
	}
	return p.in(s.nova.Status.Images)
}

// cellParts are the services of a component in all cells, and the component itself, whose
// image a new cell gets.
func (s *scope) cellParts(component string, set func(cell string) string) []part {
	parts := []part{{component: component}}
	for _, cell := range slices.Sorted(maps.Keys(s.nova.Spec.CellTemplates)) {
		parts = append(parts, part{component, cell, set(novav1.CellName(s.nova.Name, cell))})
	}
	return parts
}

// chooseImages is the phase that chooses the images of a Nova and of its cells, so that all
// are of one release.
func (s *scope) chooseImages(ctx context.Context) error {
	s.forgetRefused()
	before, choices := maps.Clone(s.nova.Status.Images), s.imageChoices()
	if before[novav1.ComputeComponent] == "" {
		image, err := s.presentCompute(ctx)
		if err != nil {
			return err
		}
		choices[novav1.ComputeComponent] = podified.Component{Default: cmp.Or(image, s.Images.NovaCompute)}
	}
	if err := podified.ChooseImages(ctx, s.Client, s.nova, choices); err != nil {
		return err
	}
	s.beginUpdate(before)
	return nil
}

// presentCompute is the image of a compute on a host that an earlier version of the operators
// deployed, empty if none names one: new computes are to be of the same release.
func (s *scope) presentCompute(ctx context.Context) (string, error) {
	for _, cell := range slices.Sorted(maps.Keys(s.nova.Spec.CellTemplates)) {
		computes := &novav1.NovaExternalComputeList{}
		ofCell := client.MatchingFields{"spec.cellName": novav1.CellName(s.nova.Name, cell)}
		if err := s.List(ctx, computes, client.InNamespace(s.nova.Namespace), ofCell); err != nil {
			return "", fmt.Errorf("listing the computes of cell %s: %w", cell, err)
		}
		for _, compute := range computes.Items {
			if image := compute.Spec.NovaComputeContainerImage; image != "" {
				return image, nil
			}
		}
	}
	return "", nil
}

// imageChoices has what decides about the images: of components, and of services of cells
// whose templates name one.
func (s *scope) imageChoices() map[string]podified.Component {
	name, spec, own := s.nova.Name, s.nova.Spec, s.Images
	choices := map[string]podified.Component{
		novav1.APIComponent: {
			Spec: spec.APIServiceTemplate.ContainerImage, Default: own.NovaAPI, Sets: []string{novav1.APIName(name)}, Job: databaseJobName(name),
		},
		novav1.SchedulerComponent: {
			Spec: spec.SchedulerServiceTemplate.ContainerImage, Default: own.NovaScheduler, Sets: []string{novav1.SchedulerName(name)},
		},
		novav1.ConductorComponent:  {Default: own.NovaConductor},
		novav1.MetadataComponent:   {Default: own.NovaAPI},
		novav1.NoVNCProxyComponent: {Default: own.NovaNoVNC},
		novav1.ComputeComponent:    {Default: own.NovaCompute},
	}
	for _, step := range s.steps() {
		for _, p := range step.parts {
			if p.cell == "" {
				continue
			}
			if named := namedImage(spec.CellTemplates[p.cell], p.component); named != "" {
				choices[p.key()] = podified.Component{Spec: named}
			} else if p.set != "" {
				c := choices[p.component]
				c.Sets = append(c.Sets, p.set)
				choices[p.component] = c
			}
		}
	}
	return choices
}

// namedImage is the image that the template of a cell names for a component, if any.
func namedImage(t novav1.NovaCellTemplate, component string) string {
	return map[string]string{
		novav1.ConductorComponent:  t.ConductorServiceTemplate.ContainerImage,
		novav1.MetadataComponent:   t.MetadataServiceTemplate.ContainerImage,
		novav1.NoVNCProxyComponent: t.NoVNCProxyServiceTemplate.ContainerImage,
		novav1.ComputeComponent:    t.NovaComputeContainerImage,
	}[component]
}

// nameImages has a cell run the images that its services have reached.
func (s *scope) nameImages(cell string, spec *novav1.NovaCellSpec) {
	for component, image := range map[string]*string{
		novav1.ConductorComponent:  &spec.ConductorServiceTemplate.ContainerImage,
		novav1.MetadataComponent:   &spec.MetadataServiceTemplate.ContainerImage,
		novav1.NoVNCProxyComponent: &spec.NoVNCProxyServiceTemplate.ContainerImage,
		novav1.ComputeComponent:    &spec.NovaComputeContainerImage,
	} {
		*image = s.image(part{component: component, cell: cell})
	}
}
