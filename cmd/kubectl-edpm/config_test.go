package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// makeLayers makes the cell of the computes, with templates, and what it generates.
func (k *kubectl) makeLayers() {
	k.t.Helper()
	cell := &novav1.NovaCell{ObjectMeta: k.meta("nova-cell1")}
	cell.Spec.ComputeTemplates = []novav1.NovaComputeTemplate{
		{Roles: []string{"other"}, CustomServiceConfig: "[DEFAULT]\nother_role = 1\n"},
		{CustomServiceConfig: "[DEFAULT]\nreserved_host_memory_mb = 2048\n[pci]\nalias = {}\n"},
		{Roles: []string{"edpm-compute"}, CustomServiceConfigSecrets: []string{"more", "missing"}},
		{FurtherFiles: novav1.FurtherFiles{DefaultConfigOverwrite: map[string]string{"policy.yaml": "a: " + password + "\n"}, ConfigFiles: []common.ConfigFile{
			{Name: "vendor_data.json", Secret: &common.FileSource{Name: "more", Key: "vendor"}}, {Name: "provider.yaml", ConfigMap: &common.FileSource{Name: "missing"}},
		}}},
	}
	k.make(cell)
	k.make(&corev1.Secret{ObjectMeta: k.meta("nova-cell1-compute-config"), StringData: map[string]string{
		"01-nova.conf": "[DEFAULT]\nreserved_host_memory_mb = 512\ntransport_url = rabbit://" + password + "\n[placement]\npassword = " + password + "\nusername = nova\n",
	}})
	k.make(&corev1.Secret{ObjectMeta: k.meta("more"), StringData: map[string]string{"a": "[DEFAULT]\nanything = " + password + "\n", "b": "[DEFAULT]\n" + password + "\n", "vendor": "\"" + password + "\""}})
	k.make(&corev1.ConfigMap{ObjectMeta: k.meta("policies"), Data: map[string]string{"policy.yaml": "a: b\n"}})
}

func TestConfig(t *testing.T) {
	k := newDataPlane(t)
	k.makeLayers()
	k.refuses([]string{"config", "none"}, `"none" not found`)
	compute := &novav1.NovaExternalCompute{ObjectMeta: k.meta("edpm-compute-0")}
	k.read(compute)
	compute.Spec.ConfigFiles = []common.ConfigFile{{Name: "policy.yaml", ConfigMap: &common.FileSource{Name: "policies"}}}
	compute.Spec.CustomServiceConfig = "[pci]\nalias = mine\n[DEFAULT]\n# more\nreserved_host_memory_mb = 4096\n"
	if err := k.client.Update(context.Background(), compute); err != nil {
		t.Fatal(err)
	}
	before := k.resourceVersions()
	out := k.says("", []string{"config", "edpm-compute-0"},
		"01-template-01-config.conf    NovaCell nova-cell1: spec.computeTemplates[1].customServiceConfig\n",
		`01-template-02-secrets.conf   NovaCell nova-cell1: spec.computeTemplates[2].customServiceConfigSecrets: Secret "more", key "a"`+"\n",
		`Secret "more", key "b": oslo.config does not accept it: line 2 is neither`, `Secret "missing": secrets "missing" not found`,
		"02-nova-override.conf         NovaExternalCompute edpm-compute-0: spec.customServiceConfig\n",
		"policy.yaml                   NovaCell nova-cell1: spec.computeTemplates[3].defaultConfigOverwrite[policy.yaml]: "+
			`replaced by NovaExternalCompute edpm-compute-0: spec.configFiles[policy.yaml]: ConfigMap "policies", key "policy.yaml"`+"\n",
		`NovaExternalCompute edpm-compute-0: spec.configFiles[policy.yaml]: ConfigMap "policies", key "policy.yaml": 5 bytes`+"\n",
		fmt.Sprintf(`spec.computeTemplates[3].configFiles[vendor_data.json]: Secret "more", key "vendor": %d bytes`, len(password)+2)+"\n", `key "provider.yaml": configmaps "missing" not found`,
		"\n[DEFAULT]\n"+`reserved_host_memory_mb = 512    # 01-nova.conf:2
reserved_host_memory_mb = 2048   # 01-template-01-config.conf:2
reserved_host_memory_mb = 4096   # 02-nova-override.conf:5
transport_url = ***              # 01-nova.conf:3
anything = ***                   # 01-template-02-secrets.conf:2
`, "password = ***", "username = nova", "[pci]\nalias = {}", "alias = mine",
		"The host may have another configuration: "+string(condition.DeploymentReadyCondition)+" is not True: Step nova failed")
	json := k.says("", []string{"config", "edpm-compute-0", "-o", "json"}, `"value": "4096",`, `"layer": "NovaExternalCompute edpm-compute-0: spec.customServiceConfig"`)
	for _, text := range []string{out, json} {
		if strings.Contains(text, password) || strings.Contains(text, "other_role") {
			t.Errorf("a secret, or the template of another role, is shown:\n%s", text)
		}
	}
	if after := k.resourceVersions(); after != before {
		t.Errorf("something was written: %s, then %s", before, after)
	}
}
