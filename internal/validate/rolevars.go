package validate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/edpm-operators/edpm-operators/ansible"
)

const (
	// maxUnknown is the most unknown variables that are compared with the known ones, which takes time for each.
	maxUnknown = 100
	// maxName is the most characters of a name that can be a mistyped one.
	maxName = 64
	// maxTypo is how many letters of a mistyped name may differ: a variable with another name is one of the user's own playbooks.
	maxTypo = 2
)

// booleans are what Ansible takes for true and false.
var booleans = append([]string{"false", "no", "off", "0", "n", "f"}, truths...)

// literal are the variables that the operator reads as well: it evaluates no templates, and would look for another host in nova.
var literal = []string{"edpm_nova_host"}

// roleVars checks the variables whose names begin as those of the collection do: they must not be mistyped ones of a role, and their values
// have to be of the type that the role takes. No value is shown, so that an object that was stored with a mistake can be changed, even in the value.
func roleVars(path *field.Path, vars map[string]any) field.ErrorList {
	var errs field.ErrorList
	unknown := 0
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		variable, known := ansible.Variables()[name]
		switch {
		case !strings.HasPrefix(name, ansible.Prefix):
		case slices.Contains(literal, name) && template(fmt.Sprint(vars[name])):
			errs = append(errs, hidden(path.Key(name), "is a template, which only Ansible evaluates", "write the name itself, on each node")...)
		case known:
			errs = append(errs, typed(path.Key(name), variable, vars[name])...)
		case unknown < maxUnknown:
			unknown++
			errs = append(errs, mistyped(path, name)...)
		}
	}
	return errs
}

func mistyped(path *field.Path, name string) field.ErrorList {
	if len(name) > maxName {
		return nil
	}
	near := nearest(name, slices.Sorted(maps.Keys(ansible.Variables())))
	if near == "" {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Key(name), name, fmt.Sprintf(
		"no role of the collection edpm.operators has this variable: write %s; a variable of your own playbooks needs a name that differs more", near))}
}

// typed checks the type of a value. Templates are evaluated by Ansible only, which checks their values before the first task of the role.
func typed(path *field.Path, variable ansible.Variable, value any) field.ErrorList {
	text, single := scalar(value)
	if value == nil || template(text) {
		return nil
	}
	if what, remedy := mismatch(variable.Type, value, text, single); what != "" {
		return hidden(path, what, remedy)
	}
	if len(variable.Choices) > 0 && !slices.Contains(variable.Choices, text) {
		return hidden(path, "is none of the possible values", "write one of "+strings.Join(variable.Choices, ", "))
	}
	return nil
}

// template reports whether Ansible evaluates a text.
func template(text string) bool { return strings.Contains(text, "{{") || strings.Contains(text, "{%") }

// mismatch says what a value is not, and what to write; empty if it has the type.
func mismatch(kind string, value any, text string, single bool) (what, remedy string) {
	_, list := value.([]any)
	_, mapping := value.(map[string]any)
	switch {
	case kind == "list" && !list:
		return "is not a list", "write [a, b]"
	case kind == "dict" && !mapping:
		return "is not a mapping", "write {name: value}"
	case kind == "list" || kind == "dict":
		return "", ""
	case kind == "int" && !integer(text):
		return "is not an integer", "write a number such as 5"
	case kind == "bool" && !slices.Contains(booleans, strings.ToLower(text)):
		return "is not a boolean", "write true or false"
	case !single:
		return "is not a single value", "write one " + kind
	}
	return "", ""
}

// integer reports whether Ansible takes a text for a whole number.
func integer(text string) bool {
	number, err := strconv.ParseFloat(text, 64)
	return err == nil && number == float64(int64(number))
}

// scalar returns the text of a single value, and whether it is one.
func scalar(value any) (string, bool) {
	switch value.(type) {
	case []any, map[string]any:
		return "", false
	}
	return strings.TrimSpace(fmt.Sprint(value)), true
}

// nearest returns the name that a mistyped one most likely stands for, or "" if none is near.
func nearest(name string, names []string) string {
	best, least := "", maxTypo+1
	for _, candidate := range names {
		if differ := len(name) - len(candidate); max(differ, -differ) > maxTypo {
			continue
		}
		if d := distance(name, candidate); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance returns how many letters have to be inserted, deleted or replaced to get from one text to the other (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(row[j+1]+1, row[j]+1, replaced)
		}
	}
	return row[len(b)]
}
