package hosted

import (
	"context"

	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// images are the phases that choose the images of the object.
func (s *Scope) images() []phase.Phase {
	if s.parts.Images == nil {
		return nil
	}
	return []phase.Phase{phase.OptionalOf(common.UpdateAvailableCondition, func(context.Context) error {
		images.Record(s.Object.(images.Released), s.parts.Images())
		return nil
	})}
}
