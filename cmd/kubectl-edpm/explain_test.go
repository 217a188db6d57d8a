package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/edpm-operators/edpm-operators/internal/conditions"
)

// offline runs the plugin without a cluster.
func offline(args ...string) (string, error) {
	var out bytes.Buffer
	root := newRoot(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
	root.SetArgs(append(args, "--kubeconfig", "/nonexistent"))
	err := root.Execute()
	return out.String(), err
}

func TestExplain(t *testing.T) {
	t.Run("a reason", func(t *testing.T) {
		want := `InputReady of NovaExternalCompute
  True when node, inventory and SSH key exist
  CellMismatch
    means the annotation names another cell than cellName; nothing is run
    do    restore the annotation, or delete the node and create it again: see the cell rule (docs/cell-rule.md)
  see docs/novaexternalcompute.md#conditions
`
		out, err := offline("explain", "cellmismatch")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("the reasons of services without Go", func(t *testing.T) {
		for name, words := range map[string][]string{
			"ServiceClassReady":       {"ServiceClassReady of EDPMService\n", "ServiceClassMissing\n    means the class does not exist"},
			"PrecedingServiceMissing": {"PrecedingServicesReady of EDPMService\n", "see docs/edpmservice.md#conditions"},
			"AfterCycle":              {"InputReady of EDPMServiceClass\n", "PrecedingServicesReady of EDPMService\n"},
			"ServiceClassInUse":       {"ServicesReady of EDPMServiceClass\n", "remove the annotation of the class"},
			"AnnotationMissing":       {"EDPMService", "OVNController", "OVNMetadataAgent"},
		} {
			out, err := offline("explain", name)
			for _, w := range words {
				if err != nil || !strings.Contains(out, w) {
					t.Errorf("%s does not say %q (%v):\n%s", name, w, err, out)
				}
			}
		}
	})
	t.Run("a condition, as data", func(t *testing.T) {
		out, err := offline("explain", "ProvisionReady", "-o", "json")
		var found []conditions.Match
		if err := json.Unmarshal([]byte(out), &found); err != nil || len(found) != 2 || len(found[0].Condition.Reasons) != 2 {
			t.Errorf("it is %+v (%v)", found, err)
		}
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("all of them", func(t *testing.T) {
		out, err := offline("explain")
		if err != nil || !strings.Contains(out, "\nCellMismatch\n") || !strings.Contains(out, "\nProvisionReady\n") {
			t.Errorf("it lists (%v)\n%s", err, out)
		}
	})
	for name, says := range map[string]string{
		"Sunshine":    `"Sunshine" is neither a condition nor a reason of edpm-operators: kubectl edpm explain lists all of them`,
		"secretmissi": "similar ones: SecretMissing",
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := offline("explain", name); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("the error is %v\n%s", err, out)
			}
		})
	}
}

func TestPaint(t *testing.T) {
	got := paint("inputs   True   -\n1 nova   False   Failed\n1 nova   False   Refused\n    Step nova: False alarm\nFalsehood\n")
	want := "inputs   " + green + "True" + normal + "   -\n1 nova   " + red + "False" + normal + "   " + red + "Failed" + normal + "\n1 nova   " + red + "False" + normal + "   " + red + "Refused" + normal + "\n    Step nova: False alarm\nFalsehood\n"
	if got != want {
		t.Errorf("%q", got)
	}
}
