package validate

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/edpm-operators/edpm-operators/internal/oslo"
)

// maxLines bounds how many lines of one snippet are reported.
const maxLines = 10

// ServiceConfig checks an oslo.config snippet as oslo.config would read it.
// Each rejected line is an error whose value is the line with secrets masked.
func ServiceConfig(path *field.Path, text string) field.ErrorList {
	_, err := oslo.Parse(text)
	var lines oslo.Errors
	if !errors.As(err, &lines) {
		return nil
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
