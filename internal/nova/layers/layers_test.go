package layers

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/needs"
)

func cellWith(templates ...novav1.NovaComputeTemplate) *novav1.NovaCell {
	cell := &novav1.NovaCell{Spec: novav1.NovaCellSpec{ComputeTemplates: templates}}
	cell.Name = "c"
	return cell
}

func computeWith(text string, secrets ...string) *novav1.NovaExternalCompute {
	compute := &novav1.NovaExternalCompute{}
	compute.Spec.CustomServiceConfig, compute.Spec.CustomServiceConfigSecrets = text, secrets
	return compute
}

func TestLayersAreThoseOfTheRoleAndThenTheComputesOwn(t *testing.T) {
	none, files := novav1.FurtherFiles{}, novav1.FurtherFiles{DefaultConfigOverwrite: map[string]string{"policy.yaml": "a: b"}}
	own := Layer{"spec.customServiceConfig", "own", []string{"s"}, "02-nova-override.conf", "03-nova-secrets.conf", none}
	all, large := novav1.NovaComputeTemplate{CustomServiceConfig: "all"}, novav1.NovaComputeTemplate{Roles: []string{"large", "huge"}, CustomServiceConfigSecrets: []string{"l"}}
	for name, tt := range map[string]struct {
		cell *novav1.NovaCell
		want []Layer
	}{
		"without templates": {cellWith(), []Layer{own}},
		"for all and for its role": {cellWith(all, large), []Layer{
			{"NovaCell c: spec.computeTemplates[0].customServiceConfig", "all", nil, "01-template-01-config.conf", "01-template-01-secrets.conf", none},
			{"NovaCell c: spec.computeTemplates[1].customServiceConfig", "", []string{"l"}, "01-template-02-config.conf", "01-template-02-secrets.conf", none}, own,
		}},
		"files of which do not have other names because of those of other roles, and of empty ones": {
			cellWith(novav1.NovaComputeTemplate{Roles: []string{"small"}, CustomServiceConfig: "x"}, novav1.NovaComputeTemplate{}, large), []Layer{
				{"NovaCell c: spec.computeTemplates[2].customServiceConfig", "", []string{"l"}, "01-template-01-config.conf", "01-template-01-secrets.conf", none}, own,
			},
		},
		"with files and nothing else": {cellWith(novav1.NovaComputeTemplate{FurtherFiles: files}), []Layer{
			{"NovaCell c: spec.computeTemplates[0].customServiceConfig", "", nil, "01-template-01-config.conf", "01-template-01-secrets.conf", files}, own,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := gocmp.Diff(tt.want, Of(tt.cell, "large", computeWith("own", "s"))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// order prints the values of an option in the order in which oslo.config reads them.
const order = `
import sys
from oslo_config import cfg
conf = cfg.ConfigOpts()
conf.register_opt(cfg.MultiStrOpt("x"))
conf(["--config-dir", sys.argv[1]], default_config_files=[], default_config_dirs=[])
print("\n".join(conf.x))
`

// EDPM_PYTHON is the interpreter that has oslo.config, by default /usr/bin/python3.
func TestOsloConfigReadsTheFilesInTheOrderOfTheLayers(t *testing.T) {
	python := cmp.Or(os.Getenv("EDPM_PYTHON"), "/usr/bin/python3")
	needs.Oslo(t, python)
	var templates []novav1.NovaComputeTemplate
	for range 32 { // as many as there may be
		templates = append(templates, novav1.NovaComputeTemplate{CustomServiceConfig: "x"})
	}
	files := []string{"01-nova-host.conf", novav1.GeneratedConfigKey}
	for _, l := range Of(cellWith(templates...), "r", computeWith("x")) {
		files = append(files, l.File, l.SecretsFile)
	}
	directory := t.TempDir()
	for _, name := range files {
		if err := os.WriteFile(filepath.Join(directory, name), []byte("[DEFAULT]\nx = "+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), python, "-c", order, directory).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if diff := gocmp.Diff(files, strings.Fields(string(out))); diff != "" {
		t.Errorf("oslo.config reads the files in another order (-want +got):\n%s", diff)
	}
}

func read(t *testing.T, compute *novav1.NovaExternalCompute, templates ...novav1.NovaComputeTemplate) *Content {
	t.Helper()
	content, err := Read(t.Context(), nil, "ns", Of(cellWith(templates...), "r", compute))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestAComputeWithoutFilesHasTheHashOfBefore has values of a version without further files: with
// others all computes would be configured again when this version starts.
func TestAComputeWithoutFilesHasTheHashOfBefore(t *testing.T) {
	generated := []byte("generated")
	content := read(t, computeWith("[DEFAULT]\nb = 2\n"), novav1.NovaComputeTemplate{CustomServiceConfig: "[DEFAULT]\na = 1\n"})
	if got := content.Hash(generated); got != "06cfdbebc9a8fd6243b3356be29e4ba4" {
		t.Errorf("what it has from its cell is %s", got)
	}
	want := map[string][]byte{"01-template-01-config.conf": []byte("[DEFAULT]\na = 1\n"), "02-nova-override.conf": []byte("[DEFAULT]\nb = 2\n")}
	if diff := gocmp.Diff(want, content.Files); diff != "" {
		t.Errorf("its files (-want +got):\n%s", diff)
	}
}

func TestAComputeIsKnownByWhatItHasFromItsCell(t *testing.T) {
	generated, template := []byte("generated"), novav1.NovaComputeTemplate{CustomServiceConfig: "[DEFAULT]\na = 1\n"}
	hash := read(t, computeWith("[DEFAULT]\nb = 2\n"), template).Hash(generated)
	own := computeWith("")
	own.Spec.DefaultConfigOverwrite = map[string]string{"policy.yaml": "c: d"}
	if read(t, own, template).Hash(generated) != hash {
		t.Error("what is the compute's own counts")
	}
	withFile := template
	withFile.DefaultConfigOverwrite = map[string]string{"policy.yaml": "a: b"}
	content := read(t, own, withFile)
	if content.Hash(generated) == hash || content.Hash(generated) != read(t, computeWith(""), withFile).Hash(generated) {
		t.Error("a file of a template does not count, or not where a compute has its own")
	}
	if got := string(content.Files["policy.yaml"]); got != "c: d" {
		t.Errorf("of two files with one name the compute reads %q, not its own", got)
	}
	if read(t, own, template).Hash([]byte("another")) == hash || read(t, own).Hash(generated) == hash || PodHash(generated, []byte("ca")) == PodHash(generated, nil) {
		t.Error("another configuration has the same hash")
	}
}
