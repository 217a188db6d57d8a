package main

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// inlineLimit is how many bytes the objects of a bundle may have where OLM puts
// all of them into one object: the ConfigMap of an unpacked bundle holds 1 MiB, an
// InstallPlan with the objects inline has to fit into the 1.5 MiB of a request to
// etcd.
const inlineLimit = 1 << 20

// fit drops the descriptions of the schemas if the objects are too large with
// them, and reports whether it did. Without them kubectl explain says less, and
// nothing else changes. It fails if that is not enough.
func fit(objects []*unstructured.Unstructured, limit int) (bool, error) {
	size, err := inlineSize(objects)
	if err != nil || size <= limit {
		return false, err
	}
	for _, obj := range objects {
		if obj.GetKind() == "CustomResourceDefinition" {
			trim(obj)
		}
	}
	if size, err = inlineSize(objects); err == nil && size > limit {
		err = fmt.Errorf("the bundle has %d bytes without descriptions and may have %d: make one of fewer operators", size, limit)
	}
	return true, err
}

// inlineSize returns the length of the objects as texts within a JSON object.
func inlineSize(objects []*unstructured.Unstructured) (int, error) {
	size := 0
	for _, obj := range objects {
		text, err := json.Marshal(obj)
		if err != nil {
			return 0, fmt.Errorf("measuring %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		quoted, err := json.Marshal(string(text))
		if err != nil {
			return 0, fmt.Errorf("measuring %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		size += len(quoted)
	}
	return size, nil
}

// trim drops the descriptions of a resource definition except that of the kind.
func trim(crd *unstructured.Unstructured) {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, version := range versions {
		root, _, _ := unstructured.NestedMap(version.(map[string]any), "schema", "openAPIV3Schema")
		description, described := root["description"]
		trimSchema(root)
		if described {
			root["description"] = description
		}
		_ = unstructured.SetNestedMap(version.(map[string]any), root, "schema", "openAPIV3Schema")
	}
	_ = unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")
}

// trimSchema drops the descriptions of a schema and of all below it. A property
// that is called description stays.
func trimSchema(schema map[string]any) {
	delete(schema, "description")
	for _, key := range []string{"items", "additionalProperties", "not"} {
		if below, ok := schema[key].(map[string]any); ok {
			trimSchema(below)
		}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := schema[key].([]any)
		for _, below := range list {
			trimSchema(below.(map[string]any))
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, below := range properties {
		trimSchema(below.(map[string]any))
	}
}
