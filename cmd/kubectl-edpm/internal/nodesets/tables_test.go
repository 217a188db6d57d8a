package nodesets

import (
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/edpm-operators/edpm-operators/ansible"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

// unspecified are variables that people set for edpm-ansible and that its argument
// specifications do not have.
var unspecified = []string{
	"timesync_ntp_servers", "dns_search_domains", "edpm_selinux_mode", "edpm_nova_compute_container_image", "edpm_nova_libvirt_container_image",
	"edpm_neutron_metadata_agent_image", "edpm_iscsid_image", "edpm_multipathd_image", "edpm_logrotate_crond_image", "edpm_container_registry_login",
	"gather_facts", "enable_debug", "edpm_tls_certs_enabled",
}

func TestEachVariableOfTheTableHasOneVerdict(t *testing.T) {
	for name, rule := range variableRules() {
		verdicts := 0
		for _, is := range []bool{rule.Same, rule.Becomes != "", rule.Keep, rule.NotNeeded != "", rule.NoCounterpart != ""} {
			if is {
				verdicts++
			}
		}
		if verdicts != 1 {
			t.Errorf("%s has %d verdicts", name, verdicts)
		}
		if rule.Convert != "" && conversions[rule.Convert] == nil {
			t.Errorf("%s: there is no conversion %s", name, rule.Convert)
		}
		if rule.Step != "" && serviceTable().Steps[rule.Step] == "" {
			t.Errorf("%s: there is no step %s", name, rule.Step)
		}
	}
}

func TestWhatVariablesBecomeExistsInTheRoles(t *testing.T) {
	for name, rule := range variableRules() {
		target := rule.Becomes
		if rule.Same {
			target = name
		}
		if _, ok := ansible.Variables()[target]; target != "" && !ok {
			t.Errorf("%s becomes %s, which no role has", name, target)
		}
	}
}

func TestTheTableHasVariablesOfEdpmAnsible(t *testing.T) {
	for name := range variableRules() {
		if _, ok := upstreamRoles()[name]; !ok && !strings.Contains(name, "*") && !slices.Contains(unspecified, name) {
			t.Errorf("edpm-ansible has no variable %s at commit %s", name, upstream().Commit)
		}
	}
	for _, pattern := range patterns() {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(upstreamRoles())), func(name string) bool { ok, _ := path.Match(pattern, name); return ok }) {
			t.Errorf("no variable of edpm-ansible matches %s", pattern)
		}
	}
}

// A variable that both have may mean something else, which is nothing to guess.
func TestEachVariableThatBothHaveIsDecided(t *testing.T) {
	both := 0
	for name := range ansible.Variables() {
		if _, ok := upstreamRoles()[name]; !ok {
			continue
		}
		both++
		if _, ok := variableRules()[name]; !ok && name != templateVariable {
			t.Errorf("%s is a variable here and of edpm-ansible, and not in the table", name)
		}
	}
	if both == 0 {
		t.Error("no variable is compared")
	}
}

func TestServicesOfTheTable(t *testing.T) {
	table := serviceTable()
	for name, rule := range table.Services {
		verdicts := 0
		for _, is := range []bool{rule.Step != "", rule.OVN, rule.Nova, rule.NotNeeded != "", rule.NoCounterpart != ""} {
			if is {
				verdicts++
			}
		}
		if verdicts != 1 {
			t.Errorf("%s has %d verdicts", name, verdicts)
		}
		if rule.Step != "" && rule.Playbook == "" && !slices.Contains(dataplanev1.DefaultServices, rule.Step) {
			t.Errorf("%s becomes %s, which is not built in", name, rule.Step)
		}
		playbookExists(t, rule.Playbook)
	}
	for _, name := range table.Defaults {
		if _, ok := table.Services[name]; !ok {
			t.Errorf("%s is a default service, and not in the table", name)
		}
	}
	for _, playbook := range table.Steps {
		playbookExists(t, playbook)
	}
}

func playbookExists(t *testing.T, name string) {
	t.Helper()
	if name == "" {
		return
	}
	file := envtest.File("ansible", "playbooks", strings.TrimPrefix(name, "edpm.operators.")+".yml")
	if _, err := os.Stat(file); err != nil {
		t.Errorf("there is no playbook %s: %v", name, err)
	}
}
