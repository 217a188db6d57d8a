package nodesets

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrongInputsAreErrorsThatNameTheDocument(t *testing.T) {
	set := nodeSetOf("s", "nodes: {}")
	for name, tt := range map[string]struct{ text, want string }{
		"no YAML":                           {"a: [hunter2", "in.yaml: document 1: is not valid YAML"},
		"a field that is given twice":       {set + "---\na: hunter2\na: hunter2\n", "in.yaml: document 2: is not valid YAML, or has a field twice"},
		"a text":                            {"hunter2", "in.yaml: document 1: is not a Kubernetes object"},
		"a list":                            {"- hunter2", "in.yaml: document 1: is not a Kubernetes object"},
		"no kind":                           {"metadata: {name: a}", "in.yaml: document 1: is not a Kubernetes object: it needs kind and metadata.name"},
		"no name":                           {"apiVersion: v1\nkind: ConfigMap\n", "in.yaml: document 1: is not a Kubernetes object: it needs kind and metadata.name"},
		"an object that is given twice":     {set + set, "in.yaml: document 2: OpenStackDataPlaneNodeSet s is in in.yaml already: give it once"},
		"a field of another type":           {nodeSetOf("s", "nodes: [hunter2]"), "in.yaml: document 1: OpenStackDataPlaneNodeSet s: json: cannot unmarshal array"},
		"a ConfigMap of another type":       {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: 5}\n", "in.yaml: document 1: ConfigMap a: "},
		"an object in a list, of no kind":   {"apiVersion: v1\nkind: List\nitems: [{metadata: {name: a}}]", "in.yaml: document 1: items[0]: is not a Kubernetes object"},
		"an object in a list that is wrong": {"apiVersion: v1\nkind: List\nitems: [hunter2]", "in.yaml: document 1: items[0]: is not a Kubernetes object"},
	} {
		t.Run(name, func(t *testing.T) {
			err := NewInputs().Read("in.yaml", []byte(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("the error is %v; want %q in it", err, tt.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error has the text: %v", err)
			}
		})
	}
}

func TestTextsWithoutObjectsAreEmpty(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n---\n# nothing\n", "apiVersion: v1\nkind: List\nitems: []\n", mapOf("a", "b: c")} {
		in := NewInputs()
		if err := in.Read("in.yaml", []byte(text)); err != nil || !in.IsEmpty() {
			t.Errorf("%q has objects, or an error: %v", text, err)
		}
	}
}

func TestOfSecretsNothingButTheNameIsKept(t *testing.T) {
	in := NewInputs()
	if err := in.Read("in.yaml", []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {b: hunter2}\ndata: {c: aHVudGVyMg==}\n")); err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%+v", in); !in.IsEmpty() || len(in.findings) != 0 || strings.Contains(text, "hunter2") || strings.Contains(text, "aHVudGVyMg") {
		t.Errorf("the inputs are %s", text)
	}
}

// FuzzImport has whatever people may give: nothing may panic, and what is written has names.
func FuzzImport(f *testing.F) {
	files, err := filepath.Glob("testdata/upstream/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("there are no samples: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add(nodeSetOf("s", "nodes: {n0: {networks: [{}]}}\nservices: ['']\nbaremetalSetTemplate: []\n") + novaOf("nova", "", ""))
	f.Add(nodeSetOf("s", "preProvisioned: false\nbaremetalSetTemplate: {image: {url: x}, baremetalHosts: {a: {ctlPlaneIP: x}}}\nnodeTemplate: {extraMounts: [null, {}]}"))
	f.Fuzz(func(t *testing.T, text string) {
		in := NewInputs()
		if in.Read("in.yaml", []byte(text)) != nil {
			return
		}
		plan, err := NewPlan(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range plan.Objects {
			if o.GetName() == "" || o.GetKind() == "" {
				t.Errorf("an object has no name or kind: %v", o.Object)
			}
		}
		if Print(io.Discard, plan.Objects) != nil || Report(io.Discard, plan.Findings) != nil {
			t.Error("it cannot be printed")
		}
	})
}
