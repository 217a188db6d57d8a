package controllers_test

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// secretTypes are types of Kubernetes that name a Secret in their field Name.
var secretTypes = []reflect.Type{
	reflect.TypeFor[corev1.SecretKeySelector](), reflect.TypeFor[corev1.SecretProjection](),
	reflect.TypeFor[corev1.SecretEnvSource](), reflect.TypeFor[corev1.SecretReference](),
}

// secretFields are the paths of the fields of a type that name a Secret.
func secretFields(t reflect.Type, path string, within []reflect.Type) []string {
	if slices.Contains(within, t) {
		return nil // a type within itself
	}
	within = append(within[:len(within):len(within)], t)
	switch t.Kind() {
	case reflect.Pointer:
		return secretFields(t.Elem(), path, within)
	case reflect.Slice, reflect.Map:
		return secretFields(t.Elem(), path+"[]", within)
	case reflect.Struct:
		if slices.Contains(secretTypes, t) {
			return []string{path + ".name"}
		}
		var found []string
		for i := range t.NumField() {
			field := t.Field(i)
			if names, list := namesSecret(field); names {
				found = append(found, path+jsonPath(field)+strings.Repeat("[]", list))
				continue
			}
			found = append(found, secretFields(field.Type, path+jsonPath(field), within)...)
		}
		return found
	}
	return nil
}

// namesSecret reports whether a field has the name of a Secret, or (list 1) those
// of several.
func namesSecret(field reflect.StructField) (names bool, list int) {
	t := field.Type
	if t.Kind() == reflect.Slice {
		t, list = t.Elem(), 1
	}
	return t.Kind() == reflect.String && strings.Contains(field.Name, "Secret"), list
}

func jsonPath(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	if name == "" {
		return ""
	}
	return "." + name
}

// filled are the paths of an object whose text is the value.
func filled(v reflect.Value, path, value string) []string {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return filled(v.Elem(), path, value)
	case reflect.Slice:
		var found []string
		for i := range v.Len() {
			found = append(found, filled(v.Index(i), path+"[]", value)...)
		}
		return found
	case reflect.Map:
		var found []string
		for _, key := range v.MapKeys() {
			found = append(found, filled(v.MapIndex(key), path+"[]", value)...)
		}
		return found
	case reflect.Struct:
		var found []string
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				found = append(found, filled(v.Field(i), path+jsonPath(field), value)...)
			}
		}
		return found
	case reflect.String:
		if v.String() == value {
			return []string{path}
		}
	}
	return nil
}

// specOf is the spec of an object of edpm-operators, and what paths begin with.
func specOf(obj client.Object) (reflect.Value, string, bool) {
	v := reflect.ValueOf(obj).Elem()
	spec := v.FieldByName("Spec")
	return spec, v.Type().Name() + ".spec", spec.IsValid()
}

// fill sets every field that names a Secret to the value. Elements of slices and
// maps must be there; pointers are made.
func fill(v reflect.Value, value string) {
	if len(secretFields(v.Type(), "", nil)) == 0 {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		fill(v.Elem(), value)
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i), value)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			element := reflect.New(v.Type().Elem()).Elem()
			element.Set(v.MapIndex(key))
			fill(element, value)
			v.SetMapIndex(key, element)
		}
	case reflect.Struct:
		if slices.Contains(secretTypes, v.Type()) {
			v.FieldByName("Name").SetString(value)
			return
		}
		fillStruct(v, value)
	}
}

func fillStruct(v reflect.Value, value string) {
	for i := range v.NumField() {
		names, list := namesSecret(v.Type().Field(i))
		switch {
		case names && list == 1:
			v.Field(i).Set(reflect.ValueOf([]string{value}))
		case names:
			v.Field(i).SetString(value)
		case !isOneOf(v.Type()):
			fill(v.Field(i), value)
		}
	}
}

// isOneOf reports whether the fields are sources that exclude each other, and
// so are set by hand: of a variable or of a volume.
func isOneOf(t reflect.Type) bool {
	return strings.HasSuffix(t.Name(), "EnvVar") || strings.HasSuffix(t.Name(), "ExtraVolume")
}
