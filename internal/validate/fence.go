package validate

import (
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/edpm-operators/edpm-operators/apis/common"
)

// longestStatement is more than the name of who says something, and how it is known, need.
const longestStatement = 200

// Fence checks the annotation of a node that says that its host is off, and returns who says
// so; empty for no one.
func Fence(annotations map[string]string) (by string, errs field.ErrorList) {
	text, present := annotations[common.FenceAnnotation]
	if !present {
		return "", nil
	}
	path := field.NewPath("metadata", "annotations")
	by, key := strings.TrimSpace(text), path.Key(common.FenceAnnotation)
	switch {
	case by == "":
		errs = append(errs, field.Required(key, "name who says that the host is off, and how that is known; remove the annotation if no one does"))
	case len(by) > longestStatement || strings.ContainsFunc(by, func(r rune) bool { return !unicode.IsPrint(r) }):
		errs = append(errs, field.Invalid(key, text, "must be at most 200 bytes of one line: who says that the host is off, and how that is known"))
	}
	if _, drained := annotations[common.DrainAnnotation]; drained {
		errs = append(errs, field.Forbidden(path.Key(common.DrainAnnotation),
			"a host that is off cannot move its guests, which "+common.FenceAnnotation+" has evacuated: remove one of the annotations"))
	}
	return by, errs
}
