package validate

import (
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v3"
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

// doubleQuoted is a key that a YAML error repeats.
var doubleQuoted = regexp.MustCompile(`"[^"]*"`)

// YAMLMapping returns why a text is not one YAML mapping without repeated keys, with the line
// and without a word of the text; empty if it is one. So it is for a text with nothing but
// comments.
func YAMLMapping(text string) (problemOf string, isEmpty bool) {
	root, err := document(text)
	if err == nil && root.Kind == yaml.MappingNode {
		var values map[string]any
		err = root.Decode(&values)
	}
	switch {
	case err != nil:
		return doubleQuoted.ReplaceAllString(problem(err), masked), false
	case root.Kind == 0 || root.Tag == "!!null":
		return "", true
	case root.Kind != yaml.MappingNode:
		return fmt.Sprintf("line %d: is %s, not a mapping", root.Line, nodeKind(root)), false
	}
	return "", false
}
