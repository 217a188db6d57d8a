package nodesets

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// planOf returns the plan of a text.
func planOf(t testing.TB, text string) *Plan {
	t.Helper()
	in := NewInputs()
	if err := in.Read("in.yaml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	plan, err := NewPlan(in)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// line is the line of the report about a path, without what is before the path; all are joined.
func line(plan *Plan, path string) string {
	var found []string
	for _, f := range plan.Findings {
		if f.Path == path {
			found = append(found, strings.TrimSuffix(string(f.Verdict)+": "+f.Text, ": "))
		}
	}
	return strings.Join(found, " | ")
}

// object returns an object of the plan; nil if it has none of that name.
func object(plan *Plan, kind, name string) *unstructured.Unstructured {
	for _, o := range plan.Objects {
		if o.GetKind() == kind && o.GetName() == name {
			return o
		}
	}
	return nil
}

// value of a field of an object.
func value(o *unstructured.Unstructured, path ...string) any {
	if o == nil {
		return "no object"
	}
	v, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	return v
}

// nodeSetOf is a NodeSet with lines of a spec.
func nodeSetOf(name, spec string) string {
	return "---\napiVersion: dataplane.openstack.org/v1beta1\nkind: OpenStackDataPlaneNodeSet\nmetadata: {name: " + name + ", namespace: openstack}\nspec:\n" + indent(spec)
}

// serviceOf is a service with lines of a spec.
func serviceOf(name, spec string) string {
	return "---\napiVersion: dataplane.openstack.org/v1beta1\nkind: OpenStackDataPlaneService\nmetadata: {name: " + name + ", namespace: openstack}\nspec:\n" + indent(spec)
}

// deploymentOf is a deployment with lines of a spec.
func deploymentOf(name, spec string) string {
	return "---\napiVersion: dataplane.openstack.org/v1beta1\nkind: OpenStackDataPlaneDeployment\nmetadata: {name: " + name + ", namespace: openstack}\nspec:\n" + indent(spec)
}

// mapOf is a ConfigMap without a namespace, as in files.
func mapOf(name, data string) string {
	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata:\n" + indent(data)
}

func indent(text string) string {
	var b strings.Builder
	for l := range strings.Lines(strings.Trim(text, "\n") + "\n") {
		b.WriteString("  " + l)
	}
	return b.String()
}

// novaOf is a service of a cell.
func novaOf(name, cell, more string) string {
	return serviceOf(name, "playbook: osp.edpm.nova\nedpmServiceType: nova\ndataSources:\n- secretRef: {name: "+cell+"-compute-config}\n- secretRef: {name: nova-migration-ssh-key}\n"+more)
}

func TestFieldsAndTheirLines(t *testing.T) {
	node := func(spec string) string {
		return "services: [run-os]\npreProvisioned: true\nnodeTemplate: {ansibleSSHPrivateKeySecret: key}\nnodes:\n  n0:\n" + indent(indent(spec))
	}
	vars := func(vars string) string {
		return "services: [run-os]\npreProvisioned: true\nnodes: {}\nnodeTemplate:\n  ansible:\n    ansibleVars:\n" + indent(indent(indent(vars)))
	}
	at := func(name string) string { return "spec.nodeTemplate.ansible.ansibleVars[" + name + "]" }
	for name, tt := range map[string]struct {
		text, path, want string
	}{
		"a variable of the same meaning":              {nodeSetOf("s", vars("edpm_timezone: UTC")), at("edpm_timezone"), "taken over"},
		"a variable with another name":                {nodeSetOf("s", vars("timesync_ntp_servers: [{hostname: a}]")), at("timesync_ntp_servers"), "renamed: edpm_ntp_servers"},
		"a variable with another form":                {nodeSetOf("s", vars("timesync_ntp_servers: a")), at("timesync_ntp_servers"), "no counterpart: edpm_ntp_servers has another form: it is not a list of mappings with hostname: write edpm_ntp_servers, a list of names"},
		"a variable that means something else":        {nodeSetOf("s", vars("edpm_reboot_strategy: force")), at("edpm_reboot_strategy"), "no counterpart: here it says whether step configure-kernel may reboot a host without guests for kernel arguments, auto or never; set it if that is meant"},
		"a variable of a role that is not here":       {nodeSetOf("s", vars("edpm_frr_bgp_uplinks: [a]")), at("edpm_frr_bgp_uplinks"), "no counterpart: it is a variable of role edpm_frr of edpm-ansible that no role has here"},
		"a variable of a pattern":                     {nodeSetOf("s", vars("edpm_frr_images_download_delay: 5")), at("edpm_frr_images_download_delay"), "not needed: downloads are tried again"},
		"a variable of the person":                    {nodeSetOf("s", vars("motd: hello")), at("motd"), "taken over: no role of edpm-ansible has it: it is for your own templates and plays"},
		"a variable that a step reads":                {nodeSetOf("s", vars("edpm_kernel_args: a=b")), at("edpm_kernel_args"), "taken over: for step configure-kernel"},
		"a value that admission refuses":              {nodeSetOf("s", vars("edpm_timezone: [hunter2]")), at("edpm_timezone"), "no counterpart: edpm_timezone is not a single value: write one str"},
		"a variable that changes whom ssh trusts":     {nodeSetOf("s", vars("ansible_ssh_common_args: hunter2")), at("ansible_ssh_common_args"), "no counterpart: ansible_ssh_common_args would change how hosts are reached and which of their keys are trusted: remove it; give the key of a host that was reinstalled in annotation edpm.openstack.org/host-key of its node"},
		"two variables that become one":               {nodeSetOf("s", vars("edpm_bootstrap_packages_bootstrap: [a]\nedpm_kernel_extra_packages: [b]")), at("edpm_kernel_extra_packages"), "no counterpart: edpm_packages_extra has a value already: join both"},
		"a template by the name of a file":            {nodeSetOf("s", vars("edpm_network_config_template: templates/single_nic_vlans/single_nic_vlans.j2")), at("edpm_network_config_template"), "no counterpart: is the name of a file of edpm-ansible: write its text in networkConfig.template"},
		"a template without variables":                {nodeSetOf("s", vars("edpm_network_config_template: |\n  a: b\n  c: d")), at("edpm_network_config_template"), "renamed: networkConfig.template"},
		"a template with variables of NetConfigs":     {nodeSetOf("s", vars("tenant_mtu: 9000\nedpm_network_config_template: |\n  {% set min_mtu = ctlplane_mtu %}\n  a: {{ tenant_mtu }} {{ min_mtu }}")), at("edpm_network_config_template"), "renamed: networkConfig.template | no counterpart: the template uses variables that openstack-operator makes of NetConfigs: set them in ansibleVars of the role: ctlplane_mtu"},
		"an environment variable":                     {nodeSetOf("s", node("{}")+"\nenv: [{name: A, value: b}]"), "spec.env[0]", "taken over"},
		"an environment variable that trusts":         {nodeSetOf("s", node("{}")+"\nenv: [{name: ANSIBLE_HOST_KEY_CHECKING, value: 'False'}]"), "spec.env[0]", "no counterpart: ANSIBLE_HOST_KEY_CHECKING would change how hosts are reached and which of their keys are trusted: remove it; give the key of a host that was reinstalled in annotation edpm.openstack.org/host-key of its node"},
		"an environment variable that is given twice": {nodeSetOf("s", node("{}")+"\nenv: [{name: A, value: b}, {name: A, value: c}]"), "spec.env[1]", "no counterpart: A is given twice: write it once"},
		"a service with a long name":                  {nodeSetOf("s", "services: [run-os, "+strings.Repeat("a", 64)+"]\nnodes: {}") + serviceOf(strings.Repeat("a", 64), "playbook: mine.yml"), "spec.services[1]", "no counterpart: " + strings.Repeat("a", 64) + ": names of steps have at most 63 characters: give it another name"},
		"tags":                                        {nodeSetOf("s", node("{}")+"\ntags: [a]"), "spec.tags", "no counterpart: set ansibleTags of deployStrategy to limit runs; variable nodeset_tags does not exist"},
		"TLS":                                         {nodeSetOf("s", node("{}")+"\ntlsEnabled: true"), "spec.tlsEnabled", "not needed: live migration is always over TLS; for the certificates of other services see the services"},
		"a field that is not known":                   {nodeSetOf("s", node("{}")+"\nfoo: {bar: hunter2}"), "spec.foo", "no counterpart: is not a field of this version of the kind: find out what it was for, and remove it"},
		"a field of a node that is not known":         {nodeSetOf("s", node("foo: 1")), "spec.nodes.n0.foo", "no counterpart: is not a field of this version of the kind: find out what it was for, and remove it"},
		"the address of a node":                       {nodeSetOf("s", node("ansible: {ansibleHost: 192.0.2.1}")), "spec.nodes[n0].ansible.ansibleHost", "taken over"},
		"the address in the management network":       {nodeSetOf("s", node("networks: [{name: ctlplane, fixedIP: 192.0.2.1}]")), "spec.nodes[n0].ansible.ansibleHost", "renamed: the address of the host in the management network"},
		"an address that is not known":                {nodeSetOf("s", node("hostName: a")), "spec.nodes[n0].ansible.ansibleHost", "no counterpart: the address is not known: set ansibleHost of the node, or its host name has to resolve"},
		"a network without an address":                {nodeSetOf("s", node("networks: [{name: tenant}]")), "spec.nodes[n0].networks[0].fixedIP", "no counterpart: nothing gives out addresses here: write the one that the host has in network tenant"},
		"a network with an address":                   {nodeSetOf("s", node("networks: [{name: tenant, subnetName: a, fixedIP: 192.0.2.1}]")), "spec.nodes[n0].networks[0]", "renamed: networks[].network has the name"},
		"a network that is given twice":               {nodeSetOf("s", node("networks: [{name: a}, {name: a}]")), "spec.nodes[n0].networks[1]", "no counterpart: network a is given twice: write it once"},
		"a network with a wrong address":              {nodeSetOf("s", node("networks: [{name: a, fixedIP: x}]")), "spec.nodes[n0].networks[0].fixedIP", "no counterpart: is not an IP address: write for example 192.168.122.100 or fd00::100, without a prefix length | no counterpart: nothing gives out addresses here: write the one that the host has in network a"},
		"labels of the machine of a node":             {nodeSetOf("s", node("bmhLabelSelector: {a: b}")), "spec.nodes[n0].bmhLabelSelector", "no counterpart: name the machine in bareMetalHost of the node"},
		"the NIC of a node":                           {nodeSetOf("s", node("ctlplaneInterface: eno1")), "spec.nodes[n0].ctlplaneInterface", "no counterpart: set ctlplaneInterface in baremetalSetTemplate of the role; nodes with another NIC need a role of their own, or networkData"},
		"user data of another namespace":              {nodeSetOf("s", node("userData: {name: a, namespace: b}")), "spec.nodes[n0].userData.namespace", "no counterpart: Secrets are read in the namespace of the role only: copy the Secret, and remove this"},
		"a port that is none":                         {nodeSetOf("s", node("ansible: {ansiblePort: 70000}")), "spec.nodes[n0].ansible.ansiblePort", "no counterpart: 70000 is not a port: write 1 to 65535"},
		"a host for all nodes":                        {nodeSetOf("s", "services: [run-os]\nnodes: {}\nnodeTemplate: {ansible: {ansibleHost: a}}"), "spec.nodeTemplate.ansible.ansibleHost", "no counterpart: a role has no host: set ansibleHost of each node"},
		"hosts that are provisioned":                  {nodeSetOf("s", node("{}")+"\nbaremetalSetTemplate: {bmhNamespace: a}"), "spec.baremetalSetTemplate", "not needed: it has no effect on hosts that are provisioned"},
		"hosts that are provisioned by defaults":      {nodeSetOf("s", "services: [run-os]\nnodes: {}"), "spec.preProvisioned", "no counterpart: the hosts are provisioned by defaults of openstack-operator: the role has preProvisioned: true, for hosts that run already; for others write baremetalSetTemplate"},
		"machines of another namespace":               {nodeSetOf("s", "services: [run-os]\nnodes: {}\nbaremetalSetTemplate: {bmhNamespace: a, bmhLabelSelector: {b: c}}"), "spec.baremetalSetTemplate.bmhNamespace", "no counterpart: must be the namespace of the role: register the machines in openstack, or create the role in the namespace of the BareMetalHosts"},
		"the user of machines":                        {nodeSetOf("s", "services: [run-os]\nnodes: {}\nbaremetalSetTemplate: {cloudUserName: a}"), "spec.baremetalSetTemplate.cloudUserName", "renamed: nodeTemplate.ansibleUser"},
		"an image of a provision server":              {nodeSetOf("s", "services: [run-os]\nnodes: {}\nbaremetalSetTemplate: {osImage: a}"), "spec.baremetalSetTemplate.osImage", "no counterpart: not supported, there is no OpenStackProvisionServer: set image.url and image.checksum instead"},
		"a field of machines that is not known":       {nodeSetOf("s", "services: [run-os]\nnodes: {}\nbaremetalSetTemplate: {osContainerImageUrl: a}"), "spec.baremetalSetTemplate.osContainerImageUrl", "no counterpart: is not a field of this version of the kind: find out what it was for, and remove it"},
		"a volume of the Kubernetes host":             {nodeSetOf("s", "services: [run-os]\nnodes: {}\nnodeTemplate: {extraMounts: [{volumes: [{name: a, hostPath: {path: /}}], mounts: [{name: a, mountPath: /a}]}]}"), "spec.nodeTemplate.extraMounts[0]", "no counterpart: extraMounts of a role can only be Secrets, ConfigMaps, claims, projections and empty directories, without propagation: use one of these"},
		"a volume of a claim":                         {nodeSetOf("s", "services: [run-os]\nnodes: {}\nnodeTemplate: {extraMounts: [{volumes: [{name: a, persistentVolumeClaim: {claimName: b}}], mounts: [{name: a, mountPath: /a}]}]}"), "spec.nodeTemplate.extraMounts[0]", "taken over"},
		"a service that is not needed":                {nodeSetOf("s", "services: [run-os, bootstrap]\nnodes: {}"), "spec.services[1]", "not needed: bootstrap: packages are installed by step install-os, from repositories that the host has"},
		"a service without a counterpart":             {nodeSetOf("s", "services: [run-os, swift]\nnodes: {}"), "spec.services[1]", "no counterpart: swift: write an EDPMServiceClass with plays that bring and remove it"},
		"a service that is not there":                 {nodeSetOf("s", "services: [run-os, mine]\nnodes: {}"), "spec.services[1]", "no counterpart: mine: no OpenStackDataPlaneService of that name is among the inputs, and openstack-operator has none: give it, too"},
		"a service that is there":                     {nodeSetOf("s", "services: [run-os, mine]\nnodes: {}") + serviceOf("mine", "playbookContents: '- hosts: all'"), "spec.services[1]", "taken over: step mine"},
		"a service after nova":                        {nodeSetOf("s", "services: [run-os, nova, mine]\nnodes: {}") + serviceOf("mine", "playbookContents: '- hosts: all'"), "spec.services[2]", "taken over: step mine, which is run in phase 0, before nova-compute: if it has to come after it, write an EDPMServiceClass with after: [nova], and a play that removes it"},
		"a step that is given twice":                  {nodeSetOf("s", "services: [run-os, run-os]\nnodes: {}"), "spec.services[1]", "not needed: step run-os is in the list already"},
		"no step that is left":                        {nodeSetOf("s", "services: [nova]\nnodes: {}"), "spec.services", "no counterpart: no step is left, and a role without steps has the default ones: configure-network, validate-network, install-os, configure-os, run-os"},
		"certificates without TLS":                    {nodeSetOf("s", "services: [run-os, install-certs]\ntlsEnabled: false\nnodes: {}"), "spec.services[1]", "not needed: install-certs: tlsEnabled is false"},
		"Ceph without Secrets":                        {nodeSetOf("s", "services: [run-os, ceph-client]\nnodes: {}"), "spec.services[1]", "no counterpart: ceph-client: extraMounts have no Secret of extraVolType Ceph: write step configure-ceph with playbook edpm.operators.configure_ceph and the Secrets with ceph.conf and keyrings"},
		"a play for another machine":                  {serviceOf("mine", "playbookContents: '- hosts: localhost'"), "spec.playbookContents", "no counterpart: a play is for localhost: a host has done a step when it reaches the end of the last play; write hosts: all, and delegate_to where a task is for another machine"},
		"a play that is none":                         {serviceOf("mine", "playbookContents: 'hunter2: x'"), "spec.playbookContents", `no counterpart: line 1: is a mapping, not a list of plays: write a YAML list of plays, each beginning with "- hosts:" or "- import_playbook:"`},
		"a play with files of openstack-operator":     {serviceOf("mine", "playbookContents: |\n  - hosts: all\n    roles: [osp.edpm.edpm_frr]\n    vars: {a: /var/lib/openstack/configs/mine/a}"), "spec.playbookContents", "renamed: play | no counterpart: it uses /var/lib/openstack/configs, osp.edpm: files of configMaps and secrets are in the variable edpm_config_files, and roles are those of edpm.operators"},
		"a playbook of another image":                 {serviceOf("mine", "playbook: mine.yml"), "spec.playbook", "taken over: it has to be in the image of the runner"},
		"a playbook of edpm-ansible":                  {serviceOf("mine", "playbook: osp.edpm.mine"), "spec.playbook", "no counterpart: no step here does what it does: write a play, or use openStackAnsibleEERunnerImage with both collections and the playbook under /runner/project"},
		"a service without a play":                    {serviceOf("mine", "label: a"), "spec", "no counterpart: it has neither playbook nor playbookContents"},
		"a role instead of a play":                    {serviceOf("mine", "role: a"), "spec.role", "no counterpart: write a play with the role"},
		"certificates of a service":                   {serviceOf("mine", "playbook: mine.yml\ntlsCerts: {default: {contents: [ips]}}"), "spec.tlsCerts", "no counterpart: no certificates are made for services of your own: make them with cert-manager, and name their Secrets in secrets"},
		"a service on all NodeSets":                   {serviceOf("mine", "playbook: mine.yml\ndeployOnAllNodeSets: true"), "spec.deployOnAllNodeSets", "no counterpart: a step is run on the hosts of its role only: add it to each role that needs it"},
		"a Secret of a service":                       {serviceOf("mine", "playbook: mine.yml\ndataSources: [{secretRef: {name: a, optional: true}}]"), "spec.dataSources[0]", "renamed: secrets, where it must exist"},
		"variables of a Secret":                       {nodeSetOf("s", "services: [run-os]\nnodes: {}\nnodeTemplate: {ansible: {ansibleVarsFrom: [{secretRef: {name: a}}]}}"), "spec.nodeTemplate.ansible.ansibleVarsFrom[0]", "no counterpart: Secret a is not read: name it in secrets of the OpenStackDataPlaneService that needs it, whose play finds its keys in edpm_config_files"},
		"variables of a ConfigMap that is missing":    {nodeSetOf("s", "services: [run-os]\nnodes: {}\nnodeTemplate: {ansible: {ansibleVarsFrom: [{configMapRef: {name: a}}]}}"), "spec.nodeTemplate.ansible.ansibleVarsFrom[0]", "no counterpart: ConfigMap a is not among the inputs: give it, too"},
		"variables of a ConfigMap that may miss":      {nodeSetOf("s", "services: [run-os]\nnodes: {}\nnodeTemplate: {ansible: {ansibleVarsFrom: [{configMapRef: {name: a, optional: true}}]}}"), "spec.nodeTemplate.ansible.ansibleVarsFrom[0]", "not needed: ConfigMap a is optional, and is not among the inputs"},
		"a deployment":                                {nodeSetOf("s", "services: [run-os]\nnodes: {}") + deploymentOf("d", "nodeSets: [s]"), "spec.nodeSets", "not needed: hosts follow their role once deployStrategy.deploy is no longer false"},
		"a deployment of a NodeSet that is missing":   {deploymentOf("d", "nodeSets: [s]"), "spec.nodeSets[0]", "no counterpart: NodeSet s is not among the inputs: give it, too"},
		"a service that only a deployment names":      {nodeSetOf("s", "services: [run-os]\nnodes: {}") + deploymentOf("d", "nodeSets: [s]\nservicesOverride: [run-os, update, ceph-client]"), "spec.servicesOverride[2]", "no counterpart: only the deployment names it: add it to services of the NodeSets whose hosts are to have it, and import again"},
		"a service that hosts have already":           {nodeSetOf("s", "services: [run-os]\nnodes: {}") + deploymentOf("d", "nodeSets: [s]\nservicesOverride: [run-os, update]"), "spec.servicesOverride[1]", "not needed: it was for one run"},
		"variables of a deployment":                   {deploymentOf("d", "nodeSets: []\nansibleExtraVars: {a: hunter2}"), "spec.ansibleExtraVars[a]", "no counterpart: runs have no extra variables: set it in ansibleVars of the role, if hosts are to keep it"},
		"an environment from a ConfigMap":             {deploymentOf("d", "nodeSets: []\nansibleEEEnvConfigMapName: a"), "spec.ansibleEEEnvConfigMapName", "no counterpart: write the variables in env of the role"},
		"an object of another kind":                   {"apiVersion: v1\nkind: Service\nmetadata: {name: a}\n" + nodeSetOf("s", "services: [run-os]\nnodes: {}"), "kind", "not needed: objects of this kind are not imported"},
		"a version that is not known":                 {strings.Replace(nodeSetOf("s", "nodes: {}"), "v1beta1", "v1", 1), "apiVersion", "no counterpart: only dataplane.openstack.org/v1beta1 is known: convert the object, for example by reading it from the cluster"},
		"a list":                                      {"apiVersion: v1\nkind: List\nitems:\n- apiVersion: dataplane.openstack.org/v1beta1\n  kind: OpenStackDataPlaneNodeSet\n  metadata: {name: s}\n  spec: {nodes: {}, services: [run-os], preProvisioned: true}\n", "spec.preProvisioned", "taken over"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planOf(t, tt.text)
			if diff := cmp.Diff(tt.want, line(plan, tt.path)); diff != "" {
				t.Errorf("the line of %s (-want +got):\n%s\nall:\n%v", tt.path, diff, plan.Findings)
			}
			for _, f := range plan.Findings {
				if strings.Contains(f.String(), "hunter2") {
					t.Errorf("a value is shown: %s", f)
				}
			}
		})
	}
}

func TestANodeSetBecomesARoleThatRunsNothing(t *testing.T) {
	plan := planOf(t, nodeSetOf("edpm", `
preProvisioned: true
services: [bootstrap, configure-os, run-os]
networkAttachments: [ctlplane]
nodeTemplate:
  ansibleSSHPrivateKeySecret: key
  managementNetwork: ctlplane
  ansible: {ansibleUser: cloud-admin, ansiblePort: 22, ansibleVars: {edpm_timezone: UTC}}
nodes:
  n0:
    hostName: n0
    ansible: {ansibleHost: 192.0.2.1, ansibleVars: {edpm_tuned_profile: a}}
`))
	role := object(plan, "OpenStackDataPlaneRole", "edpm")
	want := map[string]any{
		"deployStrategy": map[string]any{"deploy": false}, "networkAttachments": []any{"ctlplane"}, "preProvisioned": true,
		"services": []any{"configure-os", "run-os", "configure-tuned"},
		"nodeTemplate": map[string]any{
			"ansibleSSHPrivateKeySecret": "key", "managementNetwork": "ctlplane", "ansibleUser": "cloud-admin", "ansiblePort": int64(22),
			"ansibleVars": map[string]any{"edpm_timezone": "UTC"},
		},
	}
	if diff := cmp.Diff(want, value(role, "spec")); diff != "" {
		t.Errorf("the role (-want +got):\n%s", diff)
	}
	want = map[string]any{"role": "edpm", "hostName": "n0", "ansibleHost": "192.0.2.1", "node": map[string]any{"ansibleVars": map[string]any{"edpm_tuned_profile": "a"}}}
	if diff := cmp.Diff(want, value(object(plan, "OpenStackDataPlaneNode", "n0"), "spec")); diff != "" {
		t.Errorf("the node (-want +got):\n%s", diff)
	}
	if got := value(object(plan, "OpenStackDataPlaneService", "configure-tuned"), "spec", "playbook"); got != "edpm.operators.configure_tuned" {
		t.Errorf("the step of a variable has playbook %v", got)
	}
	for _, o := range plan.Objects {
		if o.GetNamespace() != "openstack" || o.Object["status"] != nil {
			t.Errorf("%s %s is %v", o.GetKind(), o.GetName(), o.Object)
		}
	}
}

func TestVariablesHaveThePrecedenceOfOpenstackOperator(t *testing.T) {
	plan := planOf(t, nodeSetOf("s", `
services: [run-os]
preProvisioned: true
nodeTemplate:
  ansible:
    ansibleVarsFrom:
    - {prefix: p_, configMapRef: {name: first}}
    - {prefix: p_, configMapRef: {name: second}}
    ansibleVars: {p_own: own}
nodes:
  n0:
    ansible: {ansibleHost: a, ansibleVarsFrom: [{prefix: q_, configMapRef: {name: first}}]}
`)+mapOf("first", "own: first\nboth: first\nnumber: '9000'\ntext: 2,6")+mapOf("second", "both: second"))
	if diff := cmp.Diff(map[string]any{"p_own": "own", "p_both": "second", "p_number": int64(9000), "p_text": "2,6"}, value(object(plan, "OpenStackDataPlaneRole", "s"), "spec", "nodeTemplate", "ansibleVars")); diff != "" {
		t.Errorf("variables of the role (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"q_own": "first", "q_both": "first", "q_number": int64(9000), "q_text": "2,6"}, value(object(plan, "OpenStackDataPlaneNode", "n0"), "spec", "node", "ansibleVars")); diff != "" {
		t.Errorf("variables of the node (-want +got):\n%s", diff)
	}
	if got, want := line(plan, "spec.nodeTemplate.ansible.ansibleVarsFrom[0]"), "p_own of ConfigMap first: ansibleVars have another value"; !strings.Contains(got, want) {
		t.Errorf("want %q in %q", want, got)
	}
}

func TestComputesHaveTheConfigurationInTheOrderOfFiles(t *testing.T) {
	plan := planOf(t, nodeSetOf("s", "services: [run-os, nova-two]\npreProvisioned: true\nnodes:\n  n0: {ansible: {ansibleHost: a}}\n  n1: {ansible: {ansibleHost: b}}\n")+
		novaOf("nova-two", "nova-cell2", "- configMapRef: {name: one}\n- configMapRef: {name: two}\n- secretRef: {name: vendordata}\n")+
		mapOf("one", "30-nova-b.conf: |\n  [DEFAULT]\n  host =\n    other\n  debug = true\nprovider1.yaml: x\n00-nova-first.conf: |\n  [DEFAULT]\n  transport_url = rabbit://u:hunter2@h\n  cpu_allocation_ratio = 1\n20-broken-nova.conf: |\n  debug = hunter2\n")+
		mapOf("two", "10-nova-a.conf: |\n  [libvirt]\n  rbd_user = openstack\n"))
	want := map[string]any{
		"cellName": "nova-cell2", "dataplaneNodeName": "n1", "customServiceConfigSecrets": []any{"vendordata"},
		"customServiceConfig": "[DEFAULT]\ncpu_allocation_ratio = 1\n\n[libvirt]\nrbd_user = openstack\n\n[DEFAULT]\ndebug = true\n",
	}
	if diff := cmp.Diff(want, value(object(plan, "NovaExternalCompute", "n1"), "spec")); diff != "" {
		t.Errorf("the compute (-want +got):\n%s", diff)
	}
	if got := object(plan, "OpenStackDataPlaneRole", "s").GetAnnotations()["nova.openstack.org/cell"]; got != "nova-cell2" {
		t.Errorf("the role is of cell %q", got)
	}
	for path, part := range map[string]string{
		"data[30-nova-b.conf]":      "no counterpart: line 2: [DEFAULT] host registers the host as another compute",
		"data[00-nova-first.conf]":  "no counterpart: line 2: [DEFAULT] transport_url connects it to another message bus",
		"data[20-broken-nova.conf]": "no counterpart: it is left out, as nova-compute cannot read it: line 1",
		"data[provider1.yaml]":      "no counterpart: it is not taken over: name ConfigMap one and this key in configFiles of the computes",
		"spec.dataSources[4]":       "renamed: customServiceConfigSecrets of the computes",
		"spec.dataSources[1]":       "not needed: guests are moved over TLS",
	} {
		if got := line(plan, path); !strings.Contains(got, part) {
			t.Errorf("the line of %s is %q; want %q in it", path, got, part)
		}
	}
	if got := line(plan, "data[00-nova-first.conf]"); !strings.Contains(got, "read after the generated configuration and not before") {
		t.Errorf("the line is %q", got)
	}
	for _, f := range plan.Findings {
		if strings.Contains(f.String(), "hunter2") {
			t.Errorf("a value is shown: %s", f)
		}
	}
}

func TestTheDefaultServiceOfNovaReadsNovaExtraConfig(t *testing.T) {
	set := nodeSetOf("s", "preProvisioned: true\nnodes: {n0: {ansible: {ansibleHost: a}}}\n")
	plan := planOf(t, set+mapOf("nova-extra-config", "25-nova-extra.conf: |\n  [compute]\n  cpu_shared_set = 2,6\n"))
	if got := value(object(plan, "NovaExternalCompute", "n0"), "spec", "customServiceConfig"); got != "[compute]\ncpu_shared_set = 2,6\n" {
		t.Errorf("the configuration is %q", got)
	}
	if plan = planOf(t, set); object(plan, "NovaExternalCompute", "n0") != nil {
		t.Error("a compute without a configuration of its own is written, which the operators create")
	}
	if got := object(plan, "OpenStackDataPlaneRole", "s").GetAnnotations(); got["nova.openstack.org/cell"] != "nova-cell1" || got["neutron.openstack.org/ovn"] != "ovn" {
		t.Errorf("the role has annotations %v", got)
	}
}

func TestANodeIsAComputeOfOneCell(t *testing.T) {
	nodes := "preProvisioned: true\nnodes: {n0: {ansible: {ansibleHost: a}}}\n"
	one, two := novaOf("nova-one", "cell1", ""), novaOf("nova-two", "cell2", "")
	plan := planOf(t, nodeSetOf("s", "services: [run-os, nova-one, nova-two]\n"+nodes)+one+two)
	if got := line(plan, "spec.services[2]"); got != "no counterpart: the list has another service for nova, and a node is a compute of one cell: keep one of both" {
		t.Errorf("the line is %q", got)
	}
	plan = planOf(t, nodeSetOf("s", "services: [run-os, nova-one]\n"+nodes)+novaOf("nova-one", "cell1", "- secretRef: {name: cell2-compute-config}\n"))
	if got := line(plan, "spec.dataSources[2]"); !strings.Contains(got, "the service is of cell cell1 as well") {
		t.Errorf("the line is %q", got)
	}
	plan = planOf(t, nodeSetOf("a", "services: [run-os, nova-one]\nnodes: {}")+nodeSetOf("b", "services: [run-os, nova-two]\nnodes: {}")+one+two)
	for role, cell := range map[string]string{"a": "cell1", "b": "cell2"} {
		if got := object(plan, "OpenStackDataPlaneRole", role).GetAnnotations()["nova.openstack.org/cell"]; got != cell {
			t.Errorf("role %s is of cell %q; want %q", role, got, cell)
		}
	}
}

func TestTheNameInNovaIsThatOfEdpmAnsible(t *testing.T) {
	for name, tt := range map[string]struct{ node, status, want string }{
		"of a full host name":    {"hostName: n0.example.com", "{}", "n0.example.com"},
		"of the status":          {"hostName: n0", "{allHostnames: {n0: {ctlplane: n0.ctlplane.example.com}}}", "n0.ctlplane.example.com"},
		"of a person":            {"hostName: n0.example.com\nansible: {ansibleVars: {edpm_nova_host: mine}}", "{}", "mine"},
		"that is not known":      {"hostName: n0", "{}", ""},
		"in a status of garbage": {"hostName: n0", "{allHostnames: [1]}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planOf(t, nodeSetOf("s", "services: [run-os, nova]\npreProvisioned: true\nnodes:\n  n0:\n"+indent(indent(tt.node)))+"\nstatus: "+tt.status+"\n")
			got, _ := value(object(plan, "OpenStackDataPlaneNode", "n0"), "spec", "node", "ansibleVars", "edpm_nova_host").(string)
			if got != tt.want {
				t.Errorf("edpm_nova_host is %q; want %q", got, tt.want)
			}
			if reported := strings.Contains(line(plan, "spec.nodes[n0].hostName"), "no counterpart: nova knows the host as"); reported != (tt.want == "") {
				t.Errorf("the line is %q", line(plan, "spec.nodes[n0].hostName"))
			}
		})
	}
}

func TestAddressesOfIPAMAreTakenFromTheStatus(t *testing.T) {
	plan := planOf(t, nodeSetOf("s", "services: [run-os]\npreProvisioned: true\nnodeTemplate: {networks: [{name: ctlplane, subnetName: a}, {name: tenant}]}\nnodes: {n0: {hostName: h0}}")+
		"status: {allIPs: {h0: {ctlplane: 192.0.2.1, tenant: 198.51.100.1}}}\n")
	node := object(plan, "OpenStackDataPlaneNode", "n0")
	if got := value(node, "spec", "ansibleHost"); got != "192.0.2.1" {
		t.Errorf("the host is reached at %v", got)
	}
	want := []any{map[string]any{"network": "ctlplane", "subnetName": "a", "fixedIP": "192.0.2.1"}, map[string]any{"network": "tenant", "fixedIP": "198.51.100.1"}}
	if diff := cmp.Diff(want, value(node, "spec", "node", "networks")); diff != "" {
		t.Errorf("the networks (-want +got):\n%s", diff)
	}
}

func TestOneHostOfTwoNodeSetsIsWrittenOnce(t *testing.T) {
	plan := planOf(t, nodeSetOf("a", "services: [run-os]\nnodes: {n0: {ansible: {ansibleHost: 192.0.2.1}}}")+
		nodeSetOf("b", "services: [run-os]\nnodes: {n0: {ansible: {ansibleHost: 192.0.2.2}}, n1: {ansible: {ansibleHost: 192.0.2.1}}, n2: {ansible: {ansibleHost: 192.0.2.3}}}"))
	for path, want := range map[string]string{
		"spec.nodes[n0]": "renamed: OpenStackDataPlaneNode n0 | no counterpart: it has the name of node n0 of OpenStackDataPlaneNodeSet/a: two nodes must not configure one host; correct or remove one of them",
		"spec.nodes[n1]": "no counterpart: it has the host of node n0 of OpenStackDataPlaneNodeSet/a: two nodes must not configure one host; correct or remove one of them",
		"spec.nodes[n2]": "renamed: OpenStackDataPlaneNode n2",
	} {
		if got := line(plan, path); got != want {
			t.Errorf("the line of %s is %q; want %q", path, got, want)
		}
	}
	if object(plan, "OpenStackDataPlaneNode", "n1") != nil || value(object(plan, "OpenStackDataPlaneNode", "n0"), "spec", "role") != "a" {
		t.Errorf("the objects are %v", plan.Objects)
	}
}

func TestSecretsForCephBelongToTheStep(t *testing.T) {
	plan := planOf(t, nodeSetOf("s", `
services: [run-os, ceph-client]
nodes: {}
nodeTemplate:
  extraMounts:
  - extraVolType: Ceph
    volumes: [{name: ceph, projected: {sources: [{secret: {name: ceph-conf-files}}]}}]
    mounts: [{name: ceph, mountPath: /etc/ceph}]
`))
	if diff := cmp.Diff(map[string]any{"playbook": "edpm.operators.configure_ceph", "secrets": []any{"ceph-conf-files"}}, value(object(plan, "OpenStackDataPlaneService", "configure-ceph"), "spec")); diff != "" {
		t.Errorf("the step (-want +got):\n%s", diff)
	}
	if got := value(object(plan, "OpenStackDataPlaneRole", "s"), "spec", "nodeTemplate", "extraMounts"); got != nil {
		t.Errorf("the volume stays: %v", got)
	}
}

func TestWhereRunnersRunIsATopology(t *testing.T) {
	set := nodeSetOf("s", "services: [run-os]\nnodes: {}")
	one := deploymentOf("d1", "nodeSets: [s]\nansibleJobNodeSelector: {zone: a}")
	for name, tt := range map[string]struct {
		more string
		last string
	}{
		"of one deployment":             {"", ""},
		"of two that agree":             {deploymentOf("d2", "nodeSets: [s]\nansibleJobNodeSelector: {zone: a}"), ""},
		"of two that have other labels": {deploymentOf("d2", "nodeSets: [s]\nansibleJobNodeSelector: {zone: b}"), "Topology s-runners is made of something else already: give one of them another name"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planOf(t, set+one+tt.more)
			if got := value(object(plan, "OpenStackDataPlaneRole", "s"), "spec", "topologyRef", "name"); got != "s-runners" {
				t.Errorf("the role refers to %v", got)
			}
			want := []any{map[string]any{"matchExpressions": []any{map[string]any{"key": "zone", "operator": "In", "values": []any{"a"}}}}}
			got := value(object(plan, "Topology", "s-runners"), "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the Topology (-want +got):\n%s", diff)
			}
			if found := strings.Contains(line(plan, "spec.ansibleJobNodeSelector"), "made of something else"); found != (tt.last != "") {
				t.Errorf("the lines are %q", line(plan, "spec.ansibleJobNodeSelector"))
			}
		})
	}
}

func TestObjectsAreInTheOrderOfTheirApplication(t *testing.T) {
	plan := planOf(t, nodeSetOf("s", "preProvisioned: true\nnodes: {n0: {ansible: {ansibleHost: a}}}\n")+mapOf("nova-extra-config", "a-nova.conf: '[compute]'")+
		deploymentOf("d", "nodeSets: [s]\nansibleJobNodeSelector: {zone: a}"))
	var kinds []string
	for _, o := range plan.Objects {
		kinds = append(kinds, o.GetKind())
	}
	if got := slices.Compact(kinds); !slices.Equal(got, order) {
		t.Errorf("the kinds are in the order %v", got)
	}
}
