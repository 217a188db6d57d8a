package validate

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ObjectName checks the name of a Secret, ConfigMap or other object of the
// same namespace (DNS-1123 subdomain, Kubernetes object names).
func ObjectName(path *field.Path, value string) field.ErrorList {
	return named(path, value, validation.IsDNS1123Subdomain, `must be the name of an object in the same namespace: lower case letters, digits, "-" and "."`)
}

// RequiredName checks the name of an object that must be there.
func RequiredName(path *field.Path, value string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Invalid(path, value, `is empty: remove the entry, or give it a name of lower case letters, digits, "-" and "."`)}
	}
	return ObjectName(path, value)
}

// ObjectNames checks each name of a list.
func ObjectNames(path *field.Path, values []string) field.ErrorList {
	var errs field.ErrorList
	for i, value := range values {
		errs = append(errs, RequiredName(path.Index(i), value)...)
	}
	return errs
}

// Label checks a name that becomes part of other names (DNS-1123 label).
func Label(path *field.Path, value string) field.ErrorList {
	return named(path, value, validation.IsDNS1123Label, `use at most 63 lower case letters, digits and "-"`)
}

func named(path *field.Path, value string, problems func(string) []string, remedy string) field.ErrorList {
	if value == "" {
		return nil
	}
	found := problems(value)
	if len(found) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, remedy+" ("+strings.Join(found, "; ")+")")}
}

// Ratchet returns the errors of an updated object without those that the old
// object has as well. Thus an object stored under older rules, or while the
// webhook was away, can still be changed elsewhere.
func Ratchet(old, updated field.ErrorList) field.ErrorList {
	known := map[[2]any]bool{}
	for _, err := range old {
		known[ratchetKey(err)] = true
	}
	var fresh field.ErrorList
	for _, err := range updated {
		if !known[ratchetKey(err)] {
			fresh = append(fresh, err)
		}
	}
	return fresh
}

// ratchetKey tells errors apart, also by the text of a value that they do not show.
func ratchetKey(err *field.Error) [2]any {
	value, _ := err.BadValue.(string)
	return [2]any{err.Error(), value}
}
