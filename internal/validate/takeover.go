package validate

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/edpm-operators/edpm-operators/ansible"
	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
)

// TakeOver checks that a node names a tool from which the roles can take its host over.
func TakeOver(annotations map[string]string) *field.Error {
	value := annotations[common.TakeOverAnnotation]
	if value == "" || slices.Contains(Tools(), value) {
		return nil
	}
	return field.NotSupported(field.NewPath("metadata", "annotations").Key(common.TakeOverAnnotation), value, Tools())
}

// Tools returns the tools from which the roles can take a host over.
func Tools() []string {
	return slices.DeleteFunc(slices.Clone(ansible.Variables()[inherit.TakeOverVar].Choices), func(tool string) bool { return tool == "" })
}
