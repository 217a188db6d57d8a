package validate

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/edpm-operators/edpm-operators/apis/common"
)

// FileSource checks the names of the objects that a file is made from.
func FileSource(path *field.Path, f common.ConfigFile) field.ErrorList {
	var errs field.ErrorList
	for source, from := range map[string]*common.FileSource{"secret": f.Secret, "configMap": f.ConfigMap} {
		if from != nil {
			errs = append(errs, RequiredName(path.Child(source, "name"), from.Name)...)
		}
	}
	return errs
}
