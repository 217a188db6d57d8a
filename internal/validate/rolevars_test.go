package validate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/edpm-operators/edpm-operators/internal/validate"
)

func mistyped(name, near string) []string {
	return []string{fmt.Sprintf(`[%s]: Invalid value: "%[1]s": no role of the collection edpm.operators has this variable: write %s; `+
		`a variable of your own playbooks needs a name that differs more`, name, near)}
}

func TestVariablesOfTheCollection(t *testing.T) {
	wrong := func(name, text string) []string {
		return []string{fmt.Sprintf(`[%s]: Invalid value: "***": %s`, name, text)}
	}
	tests := map[string]struct {
		vars string
		want []string
	}{
		"that roles have are in order":                  {`{edpm_ntp_servers: [a], edpm_sysctl: {a: 1}, edpm_timezone: UTC, edpm_nftables_enabled: false, edpm_time_sync_seconds: 60}`, nil},
		"as Ansible converts them are in order":         {`{edpm_nftables_enabled: "No", edpm_time_sync_seconds: "60", edpm_hostname: 7}`, nil},
		"as templates are in order":                     {`{edpm_ntp_servers: "{{ servers }}", edpm_sysctl: "{% if a %}{}{% endif %}", edpm_nftables_policy: "{{ policy }}"}`, nil},
		"that the operator reads are no templates":      {`{edpm_nova_host: "{{ hunter2 }}"}`, wrong("edpm_nova_host", "is a template, which only Ansible evaluates: write the name itself, on each node")},
		"that the operator reads have no blocks":        {`{edpm_nova_host: "{% if hunter2 %}a{% endif %}"}`, wrong("edpm_nova_host", "is a template, which only Ansible evaluates: write the name itself, on each node")},
		"that the operator reads are in order":          {`{edpm_nova_host: compute-0.example}`, nil},
		"without a value are in order":                  {`{edpm_ntp_servers: null}`, nil},
		"of others are in order":                        {`{ntp_server: a, my_edpm_ntp_server: b, EDPM_X: c, edpm: d}`, nil},
		"that the operator sets are in order":           {`{edpm_run: a, edpm_config_files: {}, edpm_nova_compute_image: c}`, nil},
		"with a missing letter are named":               {`{edpm_ntp_server: [a]}`, mistyped("edpm_ntp_server", "edpm_ntp_servers")},
		"with two letters swapped are named":            {`{edpm_timezoen: UTC}`, mistyped("edpm_timezoen", "edpm_timezone")},
		"that resemble none are in order":               {`{edpm_kernel_args: x, edpm_sshd_allowed_ranges: [a]}`, nil},
		"that are mistyped among many others are named": {`{edpm_a: 1, edpm_b: 1, edpm_c: 1, edpm_d: 1, edpm_e: 1, edpm_f: 1, edpm_g: 1, edpm_h: 1, edpm_i: 1, edpm_j: 1, edpm_k: 1, edpm_timezoen: UTC}`, mistyped("edpm_timezoen", "edpm_timezone")},
		"with long names are in order":                  {"{edpm_" + strings.Repeat("x", 300) + ": 1}", nil},
		"as text instead of a list are refused":         {`{edpm_ntp_servers: "hunter2,b"}`, wrong("edpm_ntp_servers", "is not a list: write [a, b]")},
		"as a list instead of a mapping are refused":    {`{edpm_sysctl: [hunter2]}`, wrong("edpm_sysctl", "is not a mapping: write {name: value}")},
		"as text instead of a number are refused":       {`{edpm_time_sync_seconds: hunter2}`, wrong("edpm_time_sync_seconds", "is not an integer: write a number such as 5")},
		"with half a second are refused":                {`{edpm_time_sync_seconds: 0.5}`, wrong("edpm_time_sync_seconds", "is not an integer: write a number such as 5")},
		"as text instead of a boolean are refused":      {`{edpm_nftables_enabled: hunter2}`, wrong("edpm_nftables_enabled", "is not a boolean: write true or false")},
		"as a list instead of a boolean are refused":    {`{edpm_nftables_enabled: [true]}`, wrong("edpm_nftables_enabled", "is not a boolean: write true or false")},
		"as a list instead of text are refused":         {`{edpm_timezone: [hunter2]}`, wrong("edpm_timezone", "is not a single value: write one str")},
		"of which there are few values are refused":     {`{edpm_nftables_policy: hunter2}`, wrong("edpm_nftables_policy", "is none of the possible values: write one of drop, accept")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, messages(validate.AnsibleVars(at, textVars(tt.vars)))); diff != "" {
				t.Errorf("AnsibleVars of %s (-want +got):\n%s", tt.vars, diff)
			}
		})
	}
}

func TestAVariableThatWasWrongBeforeCanStayAndChange(t *testing.T) {
	before := validate.AnsibleVars(at, textVars(`{edpm_ntp_server: [a], edpm_sysctl: [a]}`))
	for vars, want := range map[string]int{
		`{edpm_ntp_server: [a], edpm_sysctl: [a], edpm_timezone: UTC}`:  0,
		`{edpm_ntp_server: [b], edpm_sysctl: b}`:                        0,
		`{edpm_timezone: UTC}`:                                          0,
		`{edpm_ntp_server: [a], edpm_sysctl: [a], edpm_timezoen: UTC}`:  1,
		`{edpm_ntp_server: [a], edpm_sysctl: [a], edpm_ntp_servers: a}`: 1,
	} {
		if got := validate.Ratchet(before, validate.AnsibleVars(at, textVars(vars))); len(got) != want {
			t.Errorf("%s: want %d errors, got %v", vars, want, messages(got))
		}
	}
}

func TestOfManyUnknownVariablesTheFirstAreCompared(t *testing.T) {
	var many strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&many, `"edpm_ntp_server%c%c": 1, `, 'a'+i%26, 'a'+i/26%26)
	}
	if got := messages(validate.AnsibleVars(at, &apiextensionsv1.JSON{Raw: []byte(`{` + many.String() + `"edpm_x": 1}`)})); len(got) != 100 {
		t.Errorf("want 100 errors, got %d", len(got))
	}
}
