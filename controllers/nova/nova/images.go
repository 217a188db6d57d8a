package nova

import (
	"cmp"
	"context"
	"maps"
	"slices"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/rollout"
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

// image returns what a part runs now: during an update what its step has reached. One that had no
// image before the update, and so did not run, has nothing to wait for.
func (s *scope) image(p part) string {
	return cmp.Or(p.in(s.nova.Status.Deployed), p.in(s.nova.Status.Images))
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
	if len(before) == 0 {
		var err error
		if before, err = s.running(ctx); err != nil {
			return err
		}
		choices[novav1.ComputeComponent] = podified.Component{Default: cmp.Or(before[novav1.ComputeComponent], s.Images.NovaCompute)}
	}
	if err := podified.ChooseImages(ctx, s.Client, s.nova, choices); err != nil {
		return err
	}
	s.beginUpdate(before)
	return nil
}

// running are the images that run although none are recorded: the Nova is of an earlier version, or was
// restored from a backup without its status. Other images that its spec names are an update of these.
func (s *scope) running(ctx context.Context) (map[string]string, error) {
	images := map[string]string{}
	for _, step := range s.steps() {
		for _, p := range step.parts {
			image, err := s.runs(ctx, p)
			if err != nil {
				return nil, err
			}
			if image == "" {
				continue
			}
			images[p.key()] = image
			if namedImage(s.nova.Spec.CellTemplates[p.cell], p.component) == "" {
				images[p.component] = cmp.Or(images[p.component], image)
			}
		}
	}
	return images, nil
}

// runs returns the image of a part that runs, empty if none does.
func (s *scope) runs(ctx context.Context, p part) (string, error) {
	switch {
	case p.component == novav1.ComputeComponent && p.cell != "" && p.cell != novav1.Cell0Name: // that has no computes
		return rollout.Present(ctx, s.Client, s.nova.Namespace, novav1.CellName(s.nova.Name, p.cell))
	case p.set == "":
		return "", nil
	}
	return podified.Running(ctx, s.Client, s.nova.Namespace, p.set)
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
