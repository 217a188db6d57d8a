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
	own := Layer{"spec.customServiceConfig", "own", []string{"s"}, "02-nova-override.conf", "03-nova-secrets.conf"}
	all, large := novav1.NovaComputeTemplate{CustomServiceConfig: "all"}, novav1.NovaComputeTemplate{Roles: []string{"large", "huge"}, CustomServiceConfigSecrets: []string{"l"}}
	for name, tt := range map[string]struct {
		cell *novav1.NovaCell
		want []Layer
	}{
		"without templates": {cellWith(), []Layer{own}},
		"for all and for its role": {cellWith(all, large), []Layer{
			{"NovaCell c: spec.computeTemplates[0].customServiceConfig", "all", nil, "01-template-01-config.conf", "01-template-01-secrets.conf"},
			{"NovaCell c: spec.computeTemplates[1].customServiceConfig", "", []string{"l"}, "01-template-02-config.conf", "01-template-02-secrets.conf"}, own,
		}},
		"files of which do not have other names because of those of other roles, and of empty ones": {
			cellWith(novav1.NovaComputeTemplate{Roles: []string{"small"}, CustomServiceConfig: "x"}, novav1.NovaComputeTemplate{}, large), []Layer{
				{"NovaCell c: spec.computeTemplates[2].customServiceConfig", "", []string{"l"}, "01-template-01-config.conf", "01-template-01-secrets.conf"}, own,
			},
		},
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

func TestAComputeIsKnownByWhatItHasFromItsCell(t *testing.T) {
	generated, template := []byte("generated"), map[string][]byte{"01-template-01-config.conf": []byte("t"), "02-nova-override.conf": []byte("own")}
	hash := Hash(generated, template)
	if Hash(generated, map[string][]byte{"01-template-01-config.conf": []byte("t"), "03-nova-secrets.conf": []byte("other")}) != hash {
		t.Error("what is the compute's own counts")
	}
	if Hash([]byte("another"), template) == hash || Hash(generated, nil) == hash || PodHash(generated, []byte("ca")) == PodHash(generated, nil) {
		t.Error("another configuration has the same hash")
	}
}
