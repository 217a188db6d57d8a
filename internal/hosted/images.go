package hosted

import (
	"context"
	"maps"
	"slices"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// images are the phases that choose the images of the object, all of which are needed.
func (s *Scope) images() []phase.Phase {
	if s.parts.Images == nil {
		return nil
	}
	return []phase.Phase{phase.OptionalOf(common.UpdateAvailableCondition, func(context.Context) error {
		object, choices := s.Object.(images.Released), s.parts.Images()
		images.Record(object, choices)
		for _, name := range slices.Sorted(maps.Keys(choices)) {
			if object.GetRelease().Images[name] == "" {
				return phase.Stalled(condition.InputReadyCondition, common.ImageMissingReason, "%s", images.Missing(choices[name].Program))
			}
		}
		return nil
	})}
}
