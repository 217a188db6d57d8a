package nodesets

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files")

// samples are the inputs of upstream, and those of the directory that EDPM_UPSTREAM_SAMPLES names.
func samples(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, dir := range []string{"testdata/upstream", os.Getenv("EDPM_UPSTREAM_SAMPLES")} {
		files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if dir != "" {
			all = append(all, files...)
		}
	}
	if len(all) < 8 {
		t.Fatalf("there are only %d samples", len(all))
	}
	return all
}

// planOfSample reads a sample by its base name, so that the report does not have its directory.
func planOfSample(t testing.TB, file string) *Plan {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	in := NewInputs()
	if err := in.Read(filepath.Base(file), text); err != nil {
		t.Fatal(err)
	}
	plan, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestSamplesBecomeTheGoldenFiles(t *testing.T) {
	for _, name := range []string{"sample-nova_cell_custom", "ci-global-service"} {
		plan := planOfSample(t, filepath.Join("testdata", "upstream", name+".yaml"))
		objects, report := &bytes.Buffer{}, &bytes.Buffer{}
		if err := Print(objects, plan.Objects); err != nil {
			t.Fatal(err)
		}
		if err := Report(report, plan.Findings); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".yaml", objects.Bytes())
		golden(t, name+".txt", report.Bytes())
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s, which -update writes (-want +got):\n%s", file, diff)
	}
}

// Nothing is dropped in silence: each field of a spec is in a line of its own, or below one.
func TestTheReportHasEveryFieldOfTheSamples(t *testing.T) {
	for _, file := range samples(t) {
		said := map[string]bool{}
		for _, f := range planOfSample(t, file).Findings {
			said[f.Object+" "+plain(f.Path)] = true
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range strings.Split("\n"+string(text), "\n---\n") {
			var o map[string]any
			if err := yaml.Unmarshal([]byte(document), &o); err != nil {
				t.Fatal(err)
			}
			kind, _ := o["kind"].(string)
			metadata, _ := o["metadata"].(map[string]any)
			if !slices.Contains([]string{NodeSetKind, ServiceKind, DeploymentKind}, kind) {
				continue
			}
			object := fmt.Sprintf("%s/%s", kind, metadata["name"])
			for _, path := range leaves("spec", o["spec"]) {
				if !isSaid(said, object, path) {
					t.Errorf("%s: %s: the report says nothing of %s", file, object, path)
				}
			}
		}
	}
}

// plain is a path with dots only.
func plain(path string) string { return strings.NewReplacer("[", ".", "]", "").Replace(path) }

// leaves are the paths of all values.
func leaves(path string, value any) []string {
	var all []string
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			all = append(all, leaves(path+"."+key, value[key])...)
		}
	case []any:
		for i, v := range value {
			all = append(all, leaves(fmt.Sprintf("%s.%d", path, i), v)...)
		}
	case nil:
	default:
		all = append(all, path)
	}
	return all
}

// isSaid reports whether a line is about a field or one above it. That a node exists is no line
// about its fields.
func isSaid(said map[string]bool, object, path string) bool {
	for at := path; at != ""; at = at[:max(strings.LastIndex(at, "."), 0)] {
		isNode := strings.HasPrefix(at, "spec.nodes.") && strings.Count(at, ".") == 2
		if said[object+" "+at] && !isNode {
			return true
		}
	}
	return false
}

// The counts of the documentation are logged, those of the inputs that are here a golden file.
func TestEverySampleBecomesObjectsOrLines(t *testing.T) {
	objects, lines, counts := 0, map[Verdict]int{}, &bytes.Buffer{}
	for _, file := range samples(t) {
		plan, of := planOfSample(t, file), map[Verdict]int{}
		objects += len(plan.Objects)
		for _, f := range plan.Findings {
			lines[f.Verdict]++
			of[f.Verdict]++
		}
		if len(plan.Objects) == 0 && len(plan.Findings) == 0 {
			t.Errorf("%s becomes nothing, and no line says why", file)
		}
		if filepath.Dir(file) == filepath.Join("testdata", "upstream") {
			fmt.Fprintf(counts, "%s: %d objects, lines %v\n", filepath.Base(file), len(plan.Objects), of)
		}
	}
	golden(t, "counts.txt", counts.Bytes())
	t.Logf("%d inputs: %d objects, lines %v", len(samples(t)), objects, lines)
}
