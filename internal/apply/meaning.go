package apply

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// meaning returns the fields of desired that are set, for a hash that lasts: an
// object means the same whether the libraries of this build write "status": {} or
// "creationTimestamp": null into its JSON or not, and whether their types have
// fields that no one sets. want is desired as it is sent, with its kind and owner.
func meaning(desired client.Object, want *unstructured.Unstructured) map[string]any {
	if _, ok := desired.(*unstructured.Unstructured); ok {
		return want.Object
	}
	content := setFields(reflect.ValueOf(desired)).(map[string]any)
	delete(content, "status")
	content["apiVersion"], content["kind"] = want.GetAPIVersion(), want.GetKind()
	return content
}

// setFields returns a value without the fields of structs that have their zero
// value or are empty. A pointer to an empty struct is set: an emptyDir is one.
func setFields(v reflect.Value) any {
	if _, ok := v.Interface().(json.Marshaler); ok && v.Kind() != reflect.Pointer {
		return v.Interface() // a time or a quantity
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return setFields(v.Elem())
	case reflect.Struct:
		return setFieldsOf(v)
	case reflect.Map:
		content := map[string]any{}
		for key, value := range v.Seq2() {
			content[key.String()] = setFields(value)
		}
		return content
	case reflect.Slice:
		return items(v)
	}
	return v.Interface()
}

func items(v reflect.Value) any {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return v.Interface() // bytes, which JSON has as text
	}
	list := make([]any, v.Len())
	for i := range list {
		list[i] = setFields(v.Index(i))
	}
	return list
}

func setFieldsOf(v reflect.Value) map[string]any {
	content := map[string]any{}
	for field, value := range v.Fields() {
		if !field.IsExported() || value.IsZero() {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		switch set := setFields(value); {
		case empty(value, set):
		case name == "": // inline
			maps.Copy(content, set.(map[string]any))
		default:
			content[name] = set
		}
	}
	return content
}

// empty reports whether a value that is not zero has nothing in it; set are its fields.
func empty(v reflect.Value, set any) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	case reflect.Struct:
		fields, isMap := set.(map[string]any)
		return isMap && len(fields) == 0
	}
	return false
}
