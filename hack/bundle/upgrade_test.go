package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/yaml"
)

// definitionsDir is relative to the root of the repository.
const definitionsDir = "config/crd/bases"

// judged are changes since the last release that crdify cannot judge, such as those
// of rules in CEL: by a part of what it says, with the reason why they are safe.
var judged = map[string]string{}

// TestDefinitionsStayUpgradeSafe compares the resource definitions with those of
// the last release: what the API server has stored must stay readable, and what
// clients send must stay valid. EDPM_CRD_BASE names another commit to compare
// with.
func TestDefinitionsStayUpgradeSafe(t *testing.T) {
	base := os.Getenv("EDPM_CRD_BASE")
	if base == "" {
		tag, err := git("describe", "--tags", "--abbrev=0", "--match=v*")
		if err != nil {
			t.Skip("there is no release to compare with: no tag v*. EDPM_CRD_BASE names a commit")
		}
		base = tag
	}
	files, err := git("ls-tree", "--name-only", base, definitionsDir+"/")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range strings.Fields(files) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			before, err := git("show", base+":"+file)
			if err != nil {
				t.Fatal(err)
			}
			after, err := os.ReadFile(filepath.Join("../..", file))
			if err != nil {
				t.Fatalf("the kind is gone, and with it all its objects: %v", err)
			}
			for _, problem := range incompatible(t, before, string(after)) {
				if !slices.ContainsFunc(slices.Collect(maps.Keys(judged)), func(text string) bool { return strings.Contains(problem, text) }) {
					t.Error(problem)
				}
			}
		})
	}
}

// git runs git in the root of the repository.
func git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// compatibility says which changes are safe. Descriptions are no part of it.
func compatibility() *config.Config {
	return &config.Config{
		UnhandledEnforcement: config.EnforcementPolicyError,
		Conversion:           config.ConversionPolicyIgnore,
		Validations: []config.ValidationConfig{
			// Clients of these kinds are people, who read what may be written: one more
			// choice breaks none of them.
			{Name: "enum", Enforcement: config.EnforcementPolicyError, Configuration: map[string]any{"additionPolicy": "Allow"}},
			{Name: "description", Enforcement: config.EnforcementPolicyNone},
		},
	}
}

// incompatible returns the changes that objects or clients do not survive.
func incompatible(t *testing.T, before, after string) []string {
	t.Helper()
	registry := runner.DefaultRegistry()
	check, err := runner.New(compatibility(), registry)
	if err != nil {
		t.Fatal(err)
	}
	results := check.Run(parseDefinition(t, before), parseDefinition(t, after))
	var problems []string
	add := func(where string, list []validations.ComparisonResult) {
		for _, result := range list {
			for _, problem := range result.Errors {
				problems = append(problems, fmt.Sprintf("%s%s: %s", where, result.Name, problem))
			}
		}
	}
	add("", results.CRDValidation)
	for version, properties := range results.SameVersionValidation {
		for path, list := range properties {
			add(version+" "+path+": ", list)
		}
	}
	return problems
}

func parseDefinition(t *testing.T, text string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(text), crd); err != nil {
		t.Fatal(err)
	}
	for _, version := range crd.Spec.Versions {
		unfold(version.Schema.OpenAPIV3Schema)
	}
	return crd
}

// unfold makes a property of what the values of a map look like: crdify compares
// properties and items, but takes any change within the values of a map for one
// that it cannot judge.
func unfold(schema *apiextensionsv1.JSONSchemaProps) {
	for name, below := range schema.Properties {
		unfold(&below)
		schema.Properties[name] = below
	}
	if schema.Items != nil {
		unfold(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		unfold(schema.AdditionalProperties.Schema)
		schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{"*": *schema.AdditionalProperties.Schema}
		schema.AdditionalProperties = nil
	}
}

const releasedDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cells.cell.example.org}
spec:
  group: cell.example.org
  names: {kind: Cell, plural: cells}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [name]
            properties:
              name: {type: string, maxLength: 63, description: A name.}
              mode: {type: string, enum: [Warn, Hold]}
              map: {type: object, additionalProperties: {type: object, properties: {inner: {type: integer}}}}
`

func TestChangesOfADefinition(t *testing.T) {
	tests := map[string]struct {
		old, new string
		safe     bool
	}{
		"a new field that may be left out is safe":   {"mode: {", "more: {type: string}\n              mode: {", true},
		"another description is safe":                {"A name.", "The name.", true},
		"one more choice is safe":                    {"[Warn, Hold]", "[Warn, Hold, Refuse]", true},
		"a choice that is gone is not":               {"[Warn, Hold]", "[Warn]", false},
		"a field that is gone is not":                {"              mode: {type: string, enum: [Warn, Hold]}\n", "", false},
		"a field that has to be given now is not":    {"required: [name]", "required: [name, mode]", false},
		"a field of another type is not":             {"{type: string, maxLength: 63", "{type: integer, maxLength: 63", false},
		"a new field in the values of a map is safe": {"{inner: {", "{more: {type: string}, inner: {", true},
		"a field that is gone from them is not":      {"{inner: {type: integer}}", "{}", false},
		"a field of another type in them is not":     {"inner: {type: integer}", "inner: {type: string}", false},
		"a narrower limit is not":                    {"maxLength: 63", "maxLength: 20", false},
		"a kind outside namespaces is not":           {"scope: Namespaced", "scope: Cluster", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			changed := strings.Replace(releasedDefinition, tt.old, tt.new, 1)
			if changed == releasedDefinition {
				t.Fatal("the test changes nothing")
			}
			if problems := incompatible(t, releasedDefinition, changed); tt.safe != (len(problems) == 0) {
				t.Errorf("safe = %t, want %t: %q", !tt.safe, tt.safe, problems)
			}
		})
	}
}
