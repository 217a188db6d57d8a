package hook

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/edpm-operators/edpm-operators/internal/catalogue"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
)

// Text is a customServiceConfig, with the image that reads it.
type Text struct {
	Path          *field.Path
	Image, Config string
}

// Options finds what images know of options: nil if that is not known.
type Options interface {
	Find(ctx context.Context, namespace, image string) (*catalogue.Catalogue, error)
}

// maxVerdicts bounds how many verdicts on one text are reported.
const maxVerdicts = 10

// judge returns what the images say of texts that the old object, if there is one, does not
// have: what was admitted before shows in a condition. So does what cannot be found now.
func (r Rules[T]) judge(ctx context.Context, namespace string, before, now []Text) (errs field.ErrorList, warnings []string) {
	known := map[string]bool{"": true}
	for _, text := range before {
		known[text.Config] = true
	}
	for _, text := range now {
		if known[text.Config] {
			continue
		}
		config, err := oslo.Parse(text.Config)
		if err != nil {
			continue // a rule says so
		}
		options, err := r.Options.Find(ctx, namespace, text.Image)
		if err != nil || options == nil {
			continue
		}
		refused, warned := split(text.Path, options.Check(config))
		errs, warnings = append(errs, refused...), append(warnings, warned...)
	}
	return errs, warnings
}

// split returns verdicts as errors and warnings of a field.
func split(path *field.Path, verdicts []catalogue.Verdict) (errs field.ErrorList, warnings []string) {
	for _, v := range verdicts {
		switch {
		case v.Refused && len(errs) < maxVerdicts:
			errs = append(errs, &field.Error{Type: field.ErrorTypeForbidden, Field: path.String(), BadValue: v.Value, Detail: v.String()})
		case !v.Refused && len(warnings) < maxVerdicts:
			warnings = append(warnings, fmt.Sprintf("%s: %s", path, v))
		}
	}
	return errs, warnings
}
