package nova

import (
	"context"
	"slices"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/options"
	"github.com/edpm-operators/edpm-operators/internal/podified"
)

// readOptions is the phase that reads what the images of the services of the Nova know of options.
// Those of its cells are theirs.
func (s *scope) readOptions(ctx context.Context) error {
	status, images := &s.nova.Status, s.imagesInUse()
	if status.Jobs == nil {
		status.Jobs = map[string]string{}
	}
	if err := s.Options.Keep(ctx, s.nova, status.Jobs, podified.Selected(s.nova.Spec.NodeSelector), images); err != nil {
		return err
	}
	status.Conditions.MarkTrue(novav1.OptionsKnownCondition, "The options of all images are known: %d", len(images))
	return nil
}

// imagesInUse are those that the API and the scheduler run, and those to which an update brings
// them, so that their texts are judged before: sorted.
func (s *scope) imagesInUse() []string {
	if !s.wantsAPI() {
		return nil
	}
	var used []string
	for _, p := range []part{{component: novav1.APIComponent}, {component: novav1.SchedulerComponent}} {
		used = append(used, s.image(p), p.in(s.nova.Status.Images))
	}
	slices.Sort(used)
	return slices.DeleteFunc(slices.Compact(used), func(image string) bool { return image == "" })
}

// optionsJobs are the names of the Jobs that read the options of images.
func (s *scope) optionsJobs() []string {
	var names []string
	for _, image := range s.imagesInUse() {
		names = append(names, options.JobName(s.nova, image))
	}
	return names
}
