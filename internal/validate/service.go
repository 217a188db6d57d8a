package validate

import (
	"fmt"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxSetName is the longest name of a StatefulSet: its revisions, which have a
// hash behind it, are values of labels.
const maxSetName = validation.LabelValueMaxLength - 11

// NodeSelector checks the labels that nodes must have.
func NodeSelector(path *field.Path, selector *map[string]string) field.ErrorList {
	if selector == nil {
		return nil
	}
	return metav1validation.ValidateLabels(*selector, path)
}

// PartOfSetName checks a name, such as the key of a map, that becomes part of
// the name of the StatefulSet set.
func PartOfSetName(path *field.Path, name, set string) field.ErrorList {
	errs := Label(path, name)
	if over := len(set) - maxSetName; over > 0 {
		errs = append(errs, field.Invalid(path, name, fmt.Sprintf(
			"must be no more than %d characters: it becomes part of StatefulSet %s, whose name can have %d", len(name)-over, set, maxSetName)))
	}
	return errs
}
