package furtherfiles

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/needs"
)

const (
	rules    = "# who may\n\"os_compute_api:servers:create\": \"role:member\"\n"
	resource = "meta:\n  schema_version: '1.0'\nproviders: []\n"
	paste    = "[composite:osapi_compute]\nuse = call:nova.api.openstack.urlmap:urlmap_factory\n/: oscomputeversions\n/v2.1: openstack_compute_api_v21\n" +
		"[pipeline:oscomputeversions]\npipeline = cors\n  http_proxy_to_wsgi\n"
)

func TestAServiceHasTheFilesThatItReads(t *testing.T) {
	all := map[string]string{"policy.yaml": rules, "api-paste.ini": paste, "vendor_data.json": "[1]", "provider.yaml": resource, "provider-b_2.yaml": resource}
	for name, tt := range map[string]struct {
		service Service
		reads   []string
	}{
		"the API":              {API, []string{"api-paste.ini", "policy.yaml"}},
		"the metadata service": {Metadata, []string{"api-paste.ini", "vendor_data.json"}},
		"nova-compute":         {Compute, []string{"policy.yaml", "provider-b_2.yaml", "provider.yaml", "vendor_data.json"}},
		"the console proxy":    {NoVNCProxy, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var reads []string
			for _, f := range Files("", novav1.FurtherFiles{DefaultConfigOverwrite: all}) {
				if tt.service.Check(f.Name, f.Text, false, len(f.Text)) == "" {
					reads = append(reads, f.Name)
				}
			}
			if diff := gocmp.Diff(tt.reads, reads); diff != "" {
				t.Errorf("what it reads (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoFileReplacesOneOfOurs has all names that the operators and the role write.
func TestNoFileReplacesOneOfOurs(t *testing.T) {
	for _, name := range []string{
		"nova.conf", "01-nova.conf", "01-nova-host.conf", "01-nova-files.conf", "02-nova-override.conf", "03-nova-secrets.conf", "01-template-01-config.conf", "program.ini", "serve.sh", "report.conf", "cells",
		"tls.crt", "tls.key", "tls-ca-bundle.pem", "provider_config", "provider", "providers", "../provider.yaml", "provider/../nova.conf.yaml", "provider\n.yaml", "Policy.yaml", "policy.json", "provider*.yaml", "",
	} {
		for _, service := range []Service{API, Metadata, Compute, NoVNCProxy} {
			if service.Check(name, rules, false, 1) == "" {
				t.Errorf("%s can have %q", service.program, name)
			}
		}
	}
}

func TestWhatNovaCannotReadIsRefusedWithItsLine(t *testing.T) {
	const secret = "hunter2"
	for name, tt := range map[string]struct{ file, text, want string }{
		"a policy": {"policy.yaml", rules, ""},
		"a policy of comments, as nova generates":    {"policy.yaml", "#\"a\": \"b\"\n", ""},
		"an empty policy":                            {"policy.yaml", "", ""},
		"a policy that is a list":                    {"policy.yaml", "\n- hunter2: a\n", "line 2: is a list, not a mapping: correct it"},
		"a policy that is a word":                    {"policy.yaml", secret, "line 1: is a single value, not a mapping: correct it"},
		"a policy with a rule twice":                 {"policy.yaml", "hunter2: a\nb: c\nhunter2: d\n", "line 3: mapping key *** already defined at line 1: correct it"},
		"a policy that is no YAML":                   {"policy.yaml", "a: b\nc: [hunter2\n", "line 1: did not find expected *** or ***: correct it"},
		"a policy of two documents":                  {"policy.yaml", "a: b\n---\nc: d\n", "line 2: a second document begins, but only one is allowed: correct it"},
		"a policy with an anchor that is missing":    {"policy.yaml", "a: *hunter2\n", "unknown anchor *** referenced: correct it"},
		"a policy that is no text":                   {"policy.yaml", "a: b\nc: \xff\n", "line 2: is not UTF-8: correct it"},
		"definitions of providers":                   {"provider.yaml", resource, ""},
		"definitions of providers that are empty":    {"provider.yaml", "# nothing\n", "line 1: is empty, not a mapping: correct it"},
		"vendor data":                                {"vendor_data.json", "\n {\"a\": [1]}\n", ""},
		"vendor data that is no JSON":                {"vendor_data.json", "\n{\n\"a\": hunter2}\n", "line 3: is not valid JSON: correct it"},
		"vendor data that ends too early":            {"vendor_data.json", "{\n\"a\": 1\n", "line 2: is not valid JSON: correct it"},
		"vendor data that is empty":                  {"vendor_data.json", "", "line 1: is not valid JSON: correct it"},
		"pipelines":                                  {"api-paste.ini", paste, ""},
		"pipelines with a line that is no option":    {"api-paste.ini", paste + "[a:b]\nhunter2\n", "line 9 is neither"},
		"pipelines without a section of PasteDeploy": {"api-paste.ini", "[DEFAULT]\na = b\n", "line 1: has no section of PasteDeploy, such as [composite:osapi_compute]: correct it"},
	} {
		t.Run(name, func(t *testing.T) {
			got := problem(tt.file, tt.text)
			if (tt.want == "") != (got == "") || !strings.HasPrefix(got, tt.want) {
				t.Errorf("it is %q, want %q", got, tt.want)
			}
			if strings.Contains(got, secret) {
				t.Errorf("a text, which may be of a Secret, shows in %q", got)
			}
		})
	}
}

func TestErrorsNameFieldAndNames(t *testing.T) {
	from := func(name, secret string) common.ConfigFile {
		return common.ConfigFile{Name: name, Secret: &common.FileSource{Name: secret}}
	}
	large := "a: " + strings.Repeat("b", maxBytes)
	for name, tt := range map[string]struct {
		service Service
		files   novav1.FurtherFiles
		want    []string
	}{
		"files that it reads": {API, novav1.FurtherFiles{DefaultConfigOverwrite: map[string]string{"policy.yaml": rules}, ConfigFiles: []common.ConfigFile{from("api-paste.ini", "s")}}, nil},
		"files that it does not read": {API, novav1.FurtherFiles{DefaultConfigOverwrite: map[string]string{"nova.conf": ""}, ConfigFiles: []common.ConfigFile{from("provider.yaml", "s")}}, []string{
			`spec.defaultConfigOverwrite[nova.conf]: Invalid value: "nova.conf": the API reads no such file: the names are policy.yaml, api-paste.ini`,
			`spec.configFiles[0].name: Invalid value: "provider.yaml": the API reads no such file: the names are policy.yaml, api-paste.ini`,
		}},
		"files of a service that reads none": {NoVNCProxy, novav1.FurtherFiles{DefaultConfigOverwrite: map[string]string{"policy.yaml": ""}}, []string{
			`spec.defaultConfigOverwrite[policy.yaml]: Invalid value: "policy.yaml": the console proxy reads no further files: remove it`,
		}},
		"one file twice": {API, novav1.FurtherFiles{DefaultConfigOverwrite: map[string]string{"policy.yaml": ""}, ConfigFiles: []common.ConfigFile{from("policy.yaml", "s")}}, []string{
			`spec.configFiles[0].name: Invalid value: "policy.yaml": is both in defaultConfigOverwrite and in configFiles: remove one of them`,
		}},
		"a text that cannot be read": {Compute, novav1.FurtherFiles{DefaultConfigOverwrite: map[string]string{"provider.yaml": "a: [\n"}}, []string{
			`spec.defaultConfigOverwrite[provider.yaml]: Invalid value: "provider.yaml": line 1: did not find expected node content: correct it`,
		}},
		"files that are too large together": {Compute, novav1.FurtherFiles{DefaultConfigOverwrite: map[string]string{"policy.yaml": large[:maxBytes-9], "provider.yaml": resource}}, []string{
			`spec.defaultConfigOverwrite[provider.yaml]: Invalid value: "provider.yaml": with it the files have 262179 bytes, and the maximum is 262144: shorten them`,
		}},
		"a name that no object has": {API, novav1.FurtherFiles{ConfigFiles: []common.ConfigFile{from("policy.yaml", "A b")}}, []string{"spec.configFiles[0].secret.name: Invalid value:"}},
	} {
		t.Run(name, func(t *testing.T) {
			errs := Errors(field.NewPath("spec"), tt.service, tt.files)
			if len(errs) != len(tt.want) {
				t.Fatalf("the errors are %v, want %q", errs, tt.want)
			}
			for i, want := range tt.want {
				if got := errs[i].Error(); !strings.HasPrefix(got, want) {
					t.Errorf("error %d is\n%s\nwant\n%s", i, got, want)
				}
			}
		})
	}
}

// look prints where oslo.config finds files that are named by default.
const look = `
import sys
from oslo_config import cfg
conf = cfg.ConfigOpts()
conf(["--config-file", "/dev/null", "--config-dir", sys.argv[1]], project="nova")
print(conf.find_file("policy.yaml"), conf.find_file("api-paste.ini"))
`

// EDPM_PYTHON is the interpreter that has oslo.config, by default /usr/bin/python3.
func TestPoliciesAndPipelinesAreFoundNextToTheOptions(t *testing.T) {
	python, directory := cmp.Or(os.Getenv("EDPM_PYTHON"), "/usr/bin/python3"), t.TempDir()
	needs.Oslo(t, python)
	for name, text := range map[string]string{"policy.yaml": rules, "api-paste.ini": paste, "vendor_data.json": "{", "01-nova.conf": "[DEFAULT]\n"} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), python, "-c", look, directory).CombinedOutput()
	if want := filepath.Join(directory, "policy.yaml") + " " + filepath.Join(directory, "api-paste.ini"); err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("oslo.config finds %s, want %s: %v", out, want, err)
	}
}
