package validate

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/edpm-operators/edpm-operators/internal/identity"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
)

// maxLines bounds how many lines of one snippet are reported.
const maxLines = 10

// ServiceConfig checks the oslo.config snippet of a service as oslo.config would read
// it. Each rejected line is an error whose value is the line with secrets masked. One
// that would make another service of it is forbidden.
func ServiceConfig(path *field.Path, service identity.Service, text string) field.ErrorList {
	config, err := oslo.Parse(text)
	var lines oslo.Errors
	if !errors.As(err, &lines) {
		return identityErrors(path, identity.Find(service, config))
	}
	var errs field.ErrorList
	for _, line := range lines[:min(len(lines), maxLines)] {
		errs = append(errs, field.Invalid(path, line.Text, fmt.Sprintf("line %d %s", line.Line, line.Reason)))
	}
	if more := len(lines) - maxLines; more > 0 {
		errs = append(errs, field.Invalid(path, masked, fmt.Sprintf("and %d more lines: correct the lines above first", more)))
	}
	return errs
}

// identityErrors have the value for Ratchet; a forbidden one is never shown.
func identityErrors(path *field.Path, found []identity.Finding) field.ErrorList {
	var errs field.ErrorList
	for _, f := range found {
		errs = append(errs, &field.Error{Type: field.ErrorTypeForbidden, Field: path.String(), BadValue: f.Value, Detail: f.Message})
	}
	return errs
}

// ServiceConfigWarnings names the options of a snippet that the deployment
// sets itself. A snippet that cannot be read has none.
func ServiceConfigWarnings(path *field.Path, text string) []string {
	config, err := oslo.Parse(text)
	if err != nil {
		return nil
	}
	var warnings []string
	for _, w := range oslo.Owned(config) {
		warnings = append(warnings, fmt.Sprintf("%s: %s", path, w))
	}
	return warnings
}
