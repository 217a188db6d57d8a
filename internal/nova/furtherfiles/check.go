package furtherfiles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/oslo"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// Errors returns what is wrong with the files of an object or template. What Secrets and
// ConfigMaps have is looked at when it is read.
func Errors(at *field.Path, service Service, f novav1.FurtherFiles) field.ErrorList {
	var errs field.ErrorList
	total := 0
	for _, file := range Files("", f) {
		if file.From != nil {
			continue
		}
		total += len(file.Text)
		if why := service.Check(file.Name, file.Text, false, total); why != "" {
			errs = append(errs, field.Invalid(at.Child("defaultConfigOverwrite").Key(file.Name), file.Name, why))
		}
	}
	for i, file := range f.ConfigFiles {
		at := at.Child("configFiles").Index(i)
		_, again := f.DefaultConfigOverwrite[file.Name]
		errs = append(errs, validate.FileSource(at, file)...)
		if why := service.refuses(file.Name, again, 0); why != "" {
			errs = append(errs, field.Invalid(at.Child("name"), file.Name, why))
		}
	}
	return errs
}

// problem returns why the content is nothing that nova can read, with the line and without any of
// its text; empty if it is.
func problem(name, content string) string {
	why := ""
	switch {
	case !utf8.ValidString(content):
		why = fmt.Sprintf("line %d: is not UTF-8", line(content, len(validPrefix(content))))
	case path.Ext(name) == ".yaml":
		why = yamlProblem(name, content)
	case path.Ext(name) == ".json":
		why = jsonProblem(content)
	default:
		why = pasteProblem(content)
	}
	if why == "" {
		return ""
	}
	return why + ": correct it"
}

func validPrefix(content string) string {
	for i, r := range content {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(content[i:]); size <= 1 {
				return content[:i]
			}
		}
	}
	return content
}

// line is that of an offset, from 1.
func line(content string, offset int) int {
	return 1 + strings.Count(content[:min(offset, len(content))], "\n")
}

// yamlProblem : a policy may have nothing but comments, as the sample that nova generates has.
func yamlProblem(name, content string) string {
	why, isEmpty := validate.YAMLMapping(content)
	switch {
	case why != "" || name == policy:
		return why
	case isEmpty:
		return "line 1: is empty, not a mapping"
	}
	return providersProblem(content)
}

func jsonProblem(content string) string {
	var value any
	err := json.Unmarshal(bytes.TrimSpace([]byte(content)), &value)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		blank := len(content) - len(strings.TrimLeft(content, " \t\r\n"))
		return fmt.Sprintf("line %d: is not valid JSON", line(content, blank+max(int(syntax.Offset)-1, 0)))
	}
	return ""
}

// pasteProblem reads what oslo.config has in common with PasteDeploy: both are read as its
// files by nova behind a WSGI server.
func pasteProblem(content string) string {
	config, err := oslo.ParseSecret(content)
	var lines oslo.Errors
	switch {
	case errors.As(err, &lines):
		return fmt.Sprintf("line %d %s", lines[0].Line, lines[0].Reason)
	case err != nil:
		return err.Error()
	case !slices.ContainsFunc(config.Sections(), func(s oslo.Section) bool { return strings.Contains(s.Name, ":") }):
		return "line 1: has no section of PasteDeploy, such as [composite:osapi_compute]"
	}
	return ""
}
