package webhooks_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	openstackv1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	. "github.com/edpm-operators/edpm-operators/test/builders"
)

// kinds makes an object of each kind that is in order, for a test to spoil.
var kinds = map[string]func(world) client.Object{
	"OpenStackDataPlane": func(w world) client.Object {
		return &dataplanev1.OpenStackDataPlane{ObjectMeta: w.meta("x", "-")}
	},
	"OpenStackDataPlaneRole":    func(w world) client.Object { return w.newRole("x", "-") },
	"OpenStackDataPlaneNode":    func(w world) client.Object { return w.newNode("x", "", "-") },
	"OpenStackDataPlaneService": newService,
	"OpenStackAnsibleEE": func(w world) client.Object {
		return &ansibleeev1.OpenStackAnsibleEE{ObjectMeta: w.meta("x", "-")}
	},
	"Nova": func(w world) client.Object {
		return &novav1.Nova{ObjectMeta: w.meta("x", "-"), Spec: novav1.NovaSpec{Secret: "osp-secret", KeystoneAuthURL: "http://keystone:5000"}}
	},
	"NovaCell":            func(w world) client.Object { return &novav1.NovaCell{ObjectMeta: w.meta("x", "-")} },
	"NovaExternalCompute": func(w world) client.Object { return w.newCompute("x", "cell1") },
	"OVNController":       func(w world) client.Object { return MakeOVNController("x", string(w), "ovn") },
	"OVNMetadataAgent":    func(w world) client.Object { return MakeOVNMetadataAgent("x", string(w), "ovn") },
	"NovaCompute": func(w world) client.Object {
		return &novav1.NovaCompute{ObjectMeta: w.meta("x", "-"), Spec: novav1.NovaComputeSpec{CellName: "cell1"}}
	},
	"Glance":    func(w world) client.Object { return &glancev1.Glance{ObjectMeta: w.meta("glance", "-")} },
	"GlanceAPI": func(w world) client.Object { return &glancev1.GlanceAPI{ObjectMeta: w.meta("x", "-")} },
	"OpenStackControlPlane": func(w world) client.Object {
		return &openstackv1.OpenStackControlPlane{ObjectMeta: w.meta("openstack", "-")}
	},
	"EDPMServiceClass": func(w world) client.Object { return MakeServiceClass("x", string(w)).Obj() },
	"EDPMService":      func(w world) client.Object { return MakeEDPMService("x", "n", string(w)) },
	"Topology":         func(w world) client.Object { return &topologyv1.Topology{ObjectMeta: w.meta("x", "-")} },
	"StorageCluster":   func(w world) client.Object { return &ocsv1.StorageCluster{ObjectMeta: w.meta("ocs", "-")} },
}

func newService(w world) client.Object {
	return &dataplanev1.OpenStackDataPlaneService{
		ObjectMeta: w.meta("x", "-"), Spec: dataplanev1.OpenStackDataPlaneServiceSpec{Playbook: "edpm.operators.run_os"},
	}
}

// with returns an object of the kind with the fields of a YAML spec set.
func with(w world, kind, spec string) client.Object {
	GinkgoHelper()
	obj := kinds[kind](w)
	Expect(yaml.UnmarshalStrict([]byte("spec:\n  "+strings.ReplaceAll(spec, "\n", "\n  ")), obj)).To(Succeed())
	return obj
}

// jumpKey is a public key of a host.
const jumpKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPiG1dsVVVsPIMPZ9JmPQVAwFbXzXjqMZUaxPSBEqRIN"

var _ = Describe("Admission", func() {
	var w world
	BeforeEach(func() { w = newWorld() })

	DescribeTable("refuses wrong inputs with field, value and remedy",
		func(kind, spec string, parts ...string) {
			refused(api.Create(ctx, with(w, kind, spec)), parts...)
		},
		Entry("a node whose hostName has an underscore", "OpenStackDataPlaneNode", `hostName: edpm_0`,
			`spec.hostName: Invalid value: "edpm_0"`, "RFC 1123", "for example edpm-compute-0.example.com"),
		Entry("a node whose ansibleHost is a mistyped address", "OpenStackDataPlaneNode", `ansibleHost: 192.168.122.300`,
			`spec.ansibleHost: Invalid value: "192.168.122.300"`, "for example 192.168.122.100"),
		Entry("a node with a fixed address that is a network", "OpenStackDataPlaneNode", `node: {networks: [{network: ctlplane}, {network: tenant, fixedIP: 172.17.0.1/24}]}`,
			`spec.node.networks[1].fixedIP: Invalid value: "172.17.0.1/24"`, "without a prefix length"),
		Entry("a node whose role is no name", "OpenStackDataPlaneNode", `role: Edpm`, `spec.role: Invalid value: "Edpm"`, "lower case"),
		Entry("a node whose variables are a list", "OpenStackDataPlaneNode", `node: {ansibleVars: [secret]}`,
			`spec.node.ansibleVars: Invalid value: "***": is a list`, "must be a mapping"),
		Entry("a node whose variables are no YAML", "OpenStackDataPlaneNode", `node: {ansibleVars: "a: 1\nb: secret: c"}`,
			`spec.node.ansibleVars: Invalid value: "***": line 2:`, `write one "name: value" per line`),
		Entry("a node whose user is an option of ssh", "OpenStackDataPlaneNode", `node: {ansibleUser: -oProxyCommand=x}`,
			`spec.node.ansibleUser: Invalid value: "-oProxyCommand=x"`, "for example cloud-admin"),
		Entry("a node whose key is no name", "OpenStackDataPlaneNode", `node: {ansibleSSHPrivateKeySecret: my_key}`,
			`spec.node.ansibleSSHPrivateKeySecret: Invalid value: "my_key"`, "lower case"),
		Entry("a node whose user data is in no namespace", "OpenStackDataPlaneNode", `node: {userData: {name: a, namespace: B}}`,
			`spec.node.userData.namespace: Invalid value: "B"`, "lower case"),
		Entry("a node with the task debugger", "OpenStackDataPlaneNode", `env: [{name: ANSIBLE_ENABLE_TASK_DEBUGGER, value: "True"}]`,
			`spec.env[0].name: Invalid value: "ANSIBLE_ENABLE_TASK_DEBUGGER"`, "remove it"),
		Entry("a node limited to a file", "OpenStackDataPlaneNode", `deployStrategy: {ansibleLimit: "@/etc/shadow"}`,
			`spec.deployStrategy.ansibleLimit: Invalid value: "@/etc/shadow"`, "for example edpm-compute-0,edpm-compute-1"),
		Entry("a node with a mount over the key", "OpenStackDataPlaneNode",
			`node: {extraMounts: [{volumes: [{name: v, emptyDir: {}}], mounts: [{name: v, mountPath: /runner/ssh}]}]}`,
			`spec.node.extraMounts[0].mounts[0].mountPath: Invalid value: "/runner/ssh"`, "mount elsewhere"),
		Entry("a role with a service that is no name", "OpenStackDataPlaneRole", `services: [configure-network, Install_OS]`,
			`spec.services[1]: Invalid value: "Install_OS"`, "lower case"),
		Entry("a role that names a service twice", "OpenStackDataPlaneRole", `services: [run-os, run-os]`, "spec.services", "each service can be named once"),
		Entry("a role with wrong tags", "OpenStackDataPlaneRole", `deployStrategy: {ansibleSkipTags: "a, b"}`,
			`spec.deployStrategy.ansibleSkipTags: Invalid value: "a, b"`, "for example install,configure"),
		Entry("a role with an attachment in another namespace", "OpenStackDataPlaneRole", `networkAttachments: [other/ctlplane]`,
			`spec.networkAttachments[0]: Invalid value: "other/ctlplane"`, "same namespace"),
		Entry("a node with a mistyped variable of the collection", "OpenStackDataPlaneNode", `node: {ansibleVars: {edpm_ntp_server: [a]}}`,
			`spec.node.ansibleVars[edpm_ntp_server]: Invalid value: "edpm_ntp_server": no role of the collection edpm.operators has this variable`, "write edpm_ntp_servers;"),
		Entry("a role in a data plane with a mistyped variable", "OpenStackDataPlane", `roles: {edpm: {nodeTemplate: {ansibleVars: "edpm_timezoen: UTC"}}}`,
			`spec.roles[edpm].nodeTemplate.ansibleVars[edpm_timezoen]`, "write edpm_timezone"),
		Entry("a role with a text where a list belongs", "OpenStackDataPlaneRole", `nodeTemplate: {ansibleVars: {edpm_ntp_servers: a}}`,
			`spec.nodeTemplate.ansibleVars[edpm_ntp_servers]: Invalid value: "***": is not a list`, "write [a, b]"),
		Entry("a role whose template has wrong variables", "OpenStackDataPlaneRole", `nodeTemplate: {ansibleVars: 12}`,
			`spec.nodeTemplate.ansibleVars: Invalid value: "***": is a single value`, "must be a mapping"),
		Entry("a role with too large a share", "OpenStackDataPlaneRole", `deployStrategy: {maxUnavailable: 150%}`,
			`spec.deployStrategy.maxUnavailable`, `"150%"`, `100)%`),
		Entry("a role with no host at a time", "OpenStackDataPlaneRole", `deployStrategy: {maxUnavailable: 0}`,
			`spec.deployStrategy.maxUnavailable: Invalid value: "0"`, "set a number from 1"),
		Entry("a data plane with a role that is no name", "OpenStackDataPlane", `roles: {Edpm: {}}`, `spec.roles[Edpm]: Invalid value: "Edpm"`, "lower case"),
		Entry("a data plane with a node that has a wrong host", "OpenStackDataPlane", `nodes: {edpm-0: {hostName: a_b}}`,
			`spec.nodes[edpm-0].hostName: Invalid value: "a_b"`, "RFC 1123"),
		Entry("a data plane with a role that has a wrong template", "OpenStackDataPlane", `roles: {edpm: {nodeTemplate: {ansibleUser: "a b"}}}`,
			`spec.roles[edpm].nodeTemplate.ansibleUser: Invalid value: "a b"`, "for example cloud-admin"),
		Entry("a service with a playbook outside the project", "OpenStackDataPlaneService", `playbook: ../site.yaml`,
			`spec.playbook: Invalid value: "../site.yaml"`, "under /runner/project"),
		Entry("a service with a play that is none", "OpenStackDataPlaneService", "playbook: ''\nplay: '- secret'",
			`spec.play: Invalid value: "***": line 1: is a single value, not a play`, `"- hosts:"`),
		Entry("a service with both", "OpenStackDataPlaneService", "play: '- hosts: all'", "set exactly one of playbook", "and play"),
		Entry("a service with a Secret that is no name", "OpenStackDataPlaneService", `secrets: [A]`, `spec.secrets[0]: Invalid value: "A"`, "lower case"),
		Entry("a run of an absolute playbook", "OpenStackAnsibleEE", `playbook: /etc/site.yaml`,
			`spec.playbook: Invalid value: "/etc/site.yaml"`, "for example edpm.operators.install_os"),
		Entry("a run of a text that is no playbook", "OpenStackAnsibleEE", `playbookContents: "hosts: all"`,
			`spec.playbookContents: Invalid value: "***": line 1: is a mapping, not a list of plays`, `"- hosts:"`),
		Entry("a run with both", "OpenStackAnsibleEE", "playbook: a.b.c\nplaybookContents: '- hosts: all'", "playbook and playbookContents exclude each other"),
		Entry("a run with a broken inventory", "OpenStackAnsibleEE", "inventory: \"all:\\n  hosts: a: secret\\n\"",
			`spec.inventory: Invalid value: "***": line 2:`, "YAML mapping of groups"),
		Entry("a run with the task debugger", "OpenStackAnsibleEE", `env: [{name: ANSIBLE_ENABLE_TASK_DEBUGGER, value: "1"}]`,
			`spec.env[0].name: Invalid value: "ANSIBLE_ENABLE_TASK_DEBUGGER"`, "remove it"),
		Entry("a run with a mount that leads up", "OpenStackAnsibleEE",
			`extraMounts: [{volumes: [{name: v, emptyDir: {}}], mounts: [{name: v, mountPath: /etc/../runner}]}]`,
			`spec.extraMounts[0].mounts[0].mountPath: Invalid value: "/etc/../runner"`, "clean absolute path"),
		Entry("a run with a volume of two kinds", "OpenStackAnsibleEE",
			`extraMounts: [{volumes: [{name: v, emptyDir: {}, secret: {secretName: s}}]}]`, `spec.extraMounts[0].volumes[0]`, "set exactly one of secret"),
		Entry("a run with inputs that are no name", "OpenStackAnsibleEE", `inputsSecretName: A`, `spec.inputsSecretName: Invalid value: "A"`, "lower case"),
		Entry("a role whose jump host has a port in its address", "OpenStackDataPlaneRole", `{nodeTemplate: {jumpHost: {address: "bastion:22", user: "jump", sshPrivateKeySecret: "jump-key", hostKey: "`+jumpKey+`"}}}`,
			`spec.nodeTemplate.jumpHost.address`, `Invalid value: "bastion:22"`, `without brackets, port or user`),
		Entry("a role whose jump host has the address of nothing", "OpenStackDataPlaneRole", `{nodeTemplate: {jumpHost: {address: "-oProxyCommand=id", user: "jump", sshPrivateKeySecret: "jump-key", hostKey: "`+jumpKey+`"}}}`,
			`spec.nodeTemplate.jumpHost.address`, `Invalid value: "-oProxyCommand=id"`, `for example 192.168.122.100`),
		Entry("a node whose jump host has no user", "OpenStackDataPlaneNode", `{node: {jumpHost: {address: "bastion", sshPrivateKeySecret: "jump-key", hostKey: "`+jumpKey+`"}}}`,
			`spec.node.jumpHost.user`, `at least 1 chars long`),
		Entry("a node whose user of the jump host is none", "OpenStackDataPlaneNode", `{node: {jumpHost: {address: "bastion", user: "a b", sshPrivateKeySecret: "jump-key", hostKey: "`+jumpKey+`"}}}`,
			`spec.node.jumpHost.user`, `Invalid value: "a b"`, `for example cloud-admin`),
		Entry("a node whose jump host has a port that is none", "OpenStackDataPlaneNode", `{node: {jumpHost: {address: "bastion", user: "jump", sshPrivateKeySecret: "jump-key", hostKey: "`+jumpKey+`", port: 70000}}}`,
			`spec.node.jumpHost.port`, `65535`),
		Entry("a node whose key for the jump host is of another namespace", "OpenStackDataPlaneNode", `{node: {jumpHost: {address: "bastion", user: "jump", sshPrivateKeySecret: "openstack/key", hostKey: "`+jumpKey+`"}}}`,
			`spec.node.jumpHost.sshPrivateKeySecret`, `Invalid value: "openstack/key"`, `same namespace`),
		Entry("a run whose jump host has a fingerprint as its key", "OpenStackAnsibleEE", `{jumpHost: {address: "bastion", user: "jump", sshPrivateKeySecret: "jump-key", hostKey: "SHA256:abc"}}`,
			`spec.jumpHost.hostKey`, `Invalid value: "SHA256:abc"`, `ssh_host_ed25519_key.pub`),
		Entry("a compute whose jump host has two keys", "NovaExternalCompute", `{jumpHost: {address: "bastion", user: "jump", sshPrivateKeySecret: "jump-key", hostKey: "`+jumpKey+`\n`+jumpKey+`"}}`,
			`spec.jumpHost.hostKey`, `Invalid value`, `one public key`),
		Entry("a run with a key that is no name", "OpenStackAnsibleEE", `sshKeySecretName: a/b`, `spec.sshKeySecretName: Invalid value: "a/b"`, "lower case"),
		Entry("a run with a container that is no name", "OpenStackAnsibleEE", `name: a.b`, `spec.name: Invalid value: "a.b"`, "63 lower case"),
		Entry("a run limited to an option", "OpenStackAnsibleEE", `ansibleLimit: --help`, `spec.ansibleLimit: Invalid value: "--help"`, "host pattern"),
		Entry("a compute with a line that is no option", "NovaExternalCompute", `customServiceConfig: "[DEFAULT]\ndebug True\n"`,
			`spec.customServiceConfig: Invalid value: "debug True": line 2`, `write "debug = <value>"`),
		Entry("a compute with a secret in a wrong line", "NovaExternalCompute", `customServiceConfig: "[DEFAULT]\ntransport_url hunter2\n"`,
			`spec.customServiceConfig: Invalid value: "transport_url ***": line 2`, `write "transport_url = <value>"`),
		Entry("a compute with the name of another", "NovaExternalCompute", `customServiceConfig: "[DEFAULT]\nhost = other\n"`,
			"spec.customServiceConfig: Forbidden: line 2: [DEFAULT] host", "edpm_nova_host"),
		Entry("a compute in pods with another bus", "NovaCompute", `customServiceConfig: "[DEFAULT]\ntransport_url = rabbit://h\n"`,
			"spec.customServiceConfig: Forbidden: line 2: [DEFAULT] transport_url", "set it in the Secret"),
		Entry("a conductor with another database", "NovaCell", `conductorServiceTemplate: {customServiceConfig: "[database]\nconnection = x\n"}`,
			"spec.conductorServiceTemplate.customServiceConfig: Forbidden: line 2: [database] connection", "cellDatabaseHostname"),
		Entry("a template of computes with the name of one", "NovaCell", `computeTemplates: [{}, {roles: [r], customServiceConfig: "[DEFAULT]\nhost = x\n"}]`,
			"spec.computeTemplates[1].customServiceConfig: Forbidden: line 2: [DEFAULT] host registers the host as another compute", "edpm_nova_host"),
		Entry("a template of computes with a broken snippet", "Nova", `cellTemplates: {cell1: {computeTemplates: [{customServiceConfig: "[DEFAULT]\npassword hunter2\n"}]}}`,
			`spec.cellTemplates[cell1].computeTemplates[0].customServiceConfig: Invalid value: "password ***": line 2`),
		Entry("a template of computes of a role that has no name", "NovaCell", `computeTemplates: [{roles: [No_Role], customServiceConfigSecrets: [No_Secret]}]`,
			`spec.computeTemplates[0].roles[0]: Invalid value: "No_Role"`, `spec.computeTemplates[0].customServiceConfigSecrets[0]: Invalid value: "No_Secret"`),
		Entry("files that an API does not read", "Nova", `apiServiceTemplate: {defaultConfigOverwrite: {nova.conf: x}, configFiles: [{name: provider.yaml, secret: {name: s}}]}`,
			`spec.apiServiceTemplate.defaultConfigOverwrite[nova.conf]: Invalid value: "nova.conf": the API reads no such file: the names are policy.yaml, api-paste.ini`,
			`spec.apiServiceTemplate.configFiles[0].name: Invalid value: "provider.yaml": the API reads no such file`),
		Entry("files of a metadata service and of a console proxy that they do not read", "NovaCell",
			`{metadataServiceTemplate: {defaultConfigOverwrite: {policy.yaml: ""}}, noVNCProxyServiceTemplate: {configFiles: [{name: policy.yaml, configMap: {name: c}}]}}`,
			`spec.metadataServiceTemplate.defaultConfigOverwrite[policy.yaml]: Invalid value: "policy.yaml": the metadata service reads no such file: the names are api-paste.ini, vendor_data.json`,
			`spec.noVNCProxyServiceTemplate.configFiles[0].name: Invalid value: "policy.yaml": the console proxy reads no further files: remove it`),
		Entry("a file of a template of computes that is no YAML", "Nova", `cellTemplates: {cell1: {computeTemplates: [{}, {defaultConfigOverwrite: {provider.yaml: "a: b\nc"}}]}}`,
			`spec.cellTemplates[cell1].computeTemplates[1].defaultConfigOverwrite[provider.yaml]: Invalid value: "provider.yaml": line 2`),
		Entry("a file of a compute that would replace what the operators write", "NovaExternalCompute", `defaultConfigOverwrite: {01-nova.conf: "[DEFAULT]"}`,
			`spec.defaultConfigOverwrite[01-nova.conf]: Invalid value: "01-nova.conf": nova-compute reads no such file: the names are policy.yaml, provider*.yaml, vendor_data.json`),
		Entry("a file of computes in pods of an object that has no name", "NovaCompute", `configFiles: [{name: policy.yaml, configMap: {name: No_Map}}]`,
			`spec.configFiles[0].configMap.name: Invalid value: "No_Map"`),
		Entry("a file from two sources", "NovaCompute", `configFiles: [{name: policy.yaml, configMap: {name: c}, secret: {name: s}}]`, "set exactly one of secret and configMap"),
		Entry("Secrets of services that have no name", "NovaCell", `metadataServiceTemplate: {customServiceConfigSecrets: [No_Secret]}`,
			`spec.metadataServiceTemplate.customServiceConfigSecrets[0]: Invalid value: "No_Secret"`),
		Entry("Secrets of a compute that have no name", "NovaExternalCompute", `customServiceConfigSecrets: [No_Secret]`, `spec.customServiceConfigSecrets[0]: Invalid value: "No_Secret"`),
		Entry("Secrets of computes in pods that have no name", "NovaCompute", `customServiceConfigSecrets: [No_Secret]`, `spec.customServiceConfigSecrets[0]: Invalid value: "No_Secret"`),
		Entry("an API with another database", "Nova", `apiServiceTemplate: {customServiceConfig: "[api_database]\nconnection = x\n"}`,
			"spec.apiServiceTemplate.customServiceConfig: Forbidden: line 2: [api_database] connection", "apiDatabaseInstance"),
		Entry("a control plane with a scheduler of another name", "OpenStackControlPlane",
			`nova: {template: {secret: s, keystoneAuthURL: "http://k:5000", schedulerServiceTemplate: {customServiceConfig: "[DEFAULT]\nhost = x\n"}}}`,
			"spec.nova.template.schedulerServiceTemplate.customServiceConfig: Forbidden: line 2: [DEFAULT] host"),
		Entry("a metadata agent of another OVN", "OVNMetadataAgent", `customServiceConfig: "[ovn]\novn_sb_connection = tcp:192.0.2.1:6642\n"`,
			"spec.customServiceConfig: Forbidden: line 2: [ovn] ovn_sb_connection", "spec.ovnConfigSecretName"),
		Entry("a service of a class with another name", "EDPMService", `customServiceConfig: "[DEFAULT]\nhost = x\n"`,
			"spec.customServiceConfig: Forbidden: line 2: [DEFAULT] host", "EDPMServiceClass"),
		Entry("a compute with options before any section", "NovaExternalCompute", `customServiceConfig: "debug = True"`,
			`spec.customServiceConfig: Invalid value: "debug = True": line 1`, `put "[DEFAULT]"`),
		Entry("a compute of a cell that is no name", "NovaExternalCompute", `cellName: Cell1`, `spec.cellName: Invalid value: "Cell1"`, "lower case"),
		Entry("a compute with an inventory that is no name", "NovaExternalCompute", `inventoryConfigMapName: a_b`, `spec.inventoryConfigMapName: Invalid value: "a_b"`, "lower case"),
		Entry("an ovn-controller with oslo.config", "OVNController", `customServiceConfig: "[DEFAULT]\ndebug = True\n"`,
			"spec.customServiceConfig must be empty", "ovn-controller reads no oslo.config", "in the OVNMetadataAgent of the node"),
		Entry("an ovn-controller whose OVN configuration is no name", "OVNController", `ovnConfigSecretName: Ovn`, `spec.ovnConfigSecretName: Invalid value: "Ovn"`, "lower case"),
		Entry("an ovn-controller without an OVN configuration", "OVNController", `ovnConfigSecretName: ""`, `spec.ovnConfigSecretName`, "should be at least 1 chars long"),
		Entry("an ovn-controller named unlike its node", "OVNController", `dataplaneNodeName: other`, "metadata.name must be the same as spec.dataplaneNodeName"),
		Entry("a metadata agent with a line that is no option", "OVNMetadataAgent", `customServiceConfig: "[DEFAULT]\ndebug True\n"`,
			`spec.customServiceConfig: Invalid value: "debug True": line 2`),
		Entry("a metadata agent named unlike its node", "OVNMetadataAgent", `dataplaneNodeName: other`, "metadata.name must be the same as spec.dataplaneNodeName"),
		Entry("a compute named unlike its node", "NovaExternalCompute", `dataplaneNodeName: other`, "metadata.name must be the same as spec.dataplaneNodeName"),
		Entry("a class without a clean-up", "EDPMServiceClass", `{cleanupPlay: ""}`, "set exactly one of cleanupPlaybook and cleanupPlay", "would stay on hosts"),
		Entry("a class with two playbooks", "EDPMServiceClass", `playbook: edpm.operators.x`, "set exactly one of playbook"),
		Entry("a class with a file that has two sources", "EDPMServiceClass", `configFiles: [{name: a, secret: {name: s}, configMap: {name: c}}]`, "set exactly one of secret and configMap"),
		Entry("a class that comes after itself", "EDPMServiceClass", `after: [nova, x]`, "spec.after names the class itself", "remove that entry"),
		Entry("a class with an annotation without domain", "EDPMServiceClass", `annotation: agent`, `spec.annotation: Invalid value: "agent"`, "example.org/agent"),
		Entry("a class with a broken snippet", "EDPMServiceClass", `customServiceConfig: "[DEFAULT"`, `spec.customServiceConfig: Invalid value: "[DEFAULT": line 1`),
		Entry("a service of a class on a node with another name", "EDPMService", `dataplaneNodeName: other`, `metadata.name: Invalid value: "x-n": must be x-other`),
		Entry("a service with a broken snippet", "EDPMService", `customServiceConfig: "[DEFAULT"`, `spec.customServiceConfig: Invalid value: "[DEFAULT": line 1`),
		Entry("a cell with a long name", "NovaCell", `cellName: a-name-that-has-thirty-six-characters`, "spec.cellName", "35"),
		Entry("a cell with a name that is no label", "NovaCell", `cellName: cell.1`, `spec.cellName: Invalid value: "cell.1"`, "lower case"),
		Entry("cell0 with metadata", "NovaCell", `{cellName: cell0, metadataServiceTemplate: {replicas: 1}}`,
			`spec.metadataServiceTemplate.replicas: Invalid value: 1`, "should be 0 for cell0"),
		Entry("a cell with a wrong console address", "NovaCell", `noVNCProxyBaseURL: console.example.org`,
			`spec.noVNCProxyBaseURL: Invalid value: "console.example.org"`, "write http:// or https://"),
		Entry("a cell with a wrong identity address", "NovaCell", `keystoneAuthURL: "keystone:5000"`,
			`spec.keystoneAuthURL: Invalid value: "keystone:5000"`, "write http:// or https://"),
		Entry("a cell with a broken snippet", "NovaCell", `conductorServiceTemplate: {customServiceConfig: "[DEFAULT"}`,
			`spec.conductorServiceTemplate.customServiceConfig: Invalid value: "[DEFAULT": line 1`),
		Entry("a cell with a bus that is no name", "NovaCell", `cellMessageBusSecretName: A`, `spec.cellMessageBusSecretName: Invalid value: "A"`, "lower case"),
		Entry("a nova with a wrong identity address", "Nova", `keystoneAuthURL: keystone`, `spec.keystoneAuthURL: Invalid value: "keystone"`, "write http:// or https://"),
		Entry("a nova with a cell that is no label", "Nova", `cellTemplates: {Cell1: {}}`, `spec.cellTemplates[Cell1]: Invalid value: "Cell1"`, "lower case"),
		Entry("a nova with a cell of a long name", "Nova", `cellTemplates: {a-name-that-has-thirty-six-characters: {}}`, `spec.cellTemplates[a-name-that-has-thirty-six-characters]: Invalid value: "a-name-that-has-thirty-six-characters"`, "should be shorter than 36 characters", "for example cell1"),
		Entry("a nova with metadata in cell0", "Nova", `cellTemplates: {cell0: {metadataServiceTemplate: {replicas: 2}}}`,
			`spec.cellTemplates[cell0].metadataServiceTemplate.replicas: Invalid value: 2`, "should be 0 for cell0"),
		Entry("a nova with a broken snippet", "Nova", `cellTemplates: {cell1: {noVNCProxyServiceTemplate: {customServiceConfig: "x"}}}`,
			`spec.cellTemplates[cell1].noVNCProxyServiceTemplate.customServiceConfig: Invalid value: "x": line 1`),
		Entry("a nova whose database has a port", "Nova", `apiDatabaseInstance: "db.example:3307"`, `spec.apiDatabaseInstance: Invalid value: "db.example:3307"`, "without brackets, port"),
		Entry("a nova with a cell whose database is no host", "Nova", `cellTemplates: {cell1: {cellDatabaseInstance: a_b}}`, `spec.cellTemplates[cell1].cellDatabaseInstance: Invalid value: "a_b"`, "for example"),
		Entry("a nova with a Topology elsewhere", "Nova", `cellTemplates: {cell1: {topologyRef: {name: t, namespace: other}}}`,
			`spec.cellTemplates[cell1].topologyRef.namespace: Invalid value: "other"`, "Customizing namespace field is not supported", "remove it"),
		Entry("a cell whose conductor follows a Topology elsewhere", "NovaCell", `conductorServiceTemplate: {topologyRef: {name: t, namespace: other}}`,
			`spec.conductorServiceTemplate.topologyRef.namespace: Invalid value: "other"`, "remove it"),
		Entry("a cell whose database is no host", "NovaCell", `cellDatabaseHostname: a_b`, `spec.cellDatabaseHostname: Invalid value: "a_b"`, "for example"),
		Entry("a podified compute with libvirt", "NovaCompute", `computeDriver: libvirt.LibvirtDriver`, `spec.computeDriver`, `"ironic.IronicDriver", "fake.FakeDriver"`),
		Entry("a podified compute with a broken snippet", "NovaCompute", `customServiceConfig: "x"`, `spec.customServiceConfig: Invalid value: "x": line 1`),
		Entry("a podified compute with a node selector that no node has", "NovaCompute", `nodeSelector: {"a b": c}`, `spec.nodeSelector`, `"a b"`),
		Entry("a podified compute with a Topology elsewhere", "NovaCompute", `topologyRef: {name: t, namespace: other}`, `spec.topologyRef.namespace`, "remove it"),
		Entry("a glance with an API whose name is too long", "Glance", `glanceAPIs: {a-name-that-has-thirty-nine-characters-ab: {}}`,
			`spec.glanceAPIs[a-name-that-has-thirty-nine-characters-ab]`, "must be no more than 38 characters", "StatefulSet glance-a-name"),
		Entry("a glance with an API that is no label", "Glance", `glanceAPIs: {Default: {}}`,
			`spec.glanceAPIs[Default]: Invalid value: "Default"`, "a lowercase RFC 1123 label must consist of lower case alphanumeric characters"),
		Entry("a glance with a Topology elsewhere", "Glance", `topologyRef: {name: t, namespace: other}`,
			`spec.topologyRef.namespace: Invalid value: "other": Customizing namespace field is not supported`, "remove it"),
		Entry("an API with a Topology elsewhere", "Glance", `glanceAPIs: {default: {topologyRef: {name: t, namespace: other}}}`,
			`spec.glanceAPIs[default].topologyRef.namespace: Invalid value: "other"`, "Customizing namespace field is not supported"),
		Entry("an API that is split and keeps files", "Glance", `glanceAPIs: {default: {type: split}}`,
			`spec.glanceAPIs[default].type: Invalid value: "split": The GlanceAPI layout type: split cannot be used in combination with File and NFS backend`, "set single"),
		Entry("an API that is split and inherits files", "Glance", `{customServiceConfig: "[DEFAULT]\nenabled_backends = a:file\n", glanceAPIs: {default: {type: split}}}`,
			`spec.glanceAPIs[default].type`, "set single"),
		Entry("an API with an endpoint that there is not", "Glance", `glanceAPIs: {default: {override: {service: {admin: {}}}}}`,
			`spec.glanceAPIs[default].override.service[admin]`, "invalid endpoint type: admin", "set public or internal"),
		Entry("an edge API with a public endpoint", "Glance", `glanceAPIs: {e: {type: edge, override: {service: {public: {}}}}}`,
			`spec.glanceAPIs[e].override.service[public]`, "has no public endpoint"),
		Entry("an API with an address that is none", "Glance", `glanceAPIs: {default: {override: {service: {public: {endpointURL: glance}}}}}`,
			`spec.glanceAPIs[default].override.service[public].endpointURL: Invalid value: "glance"`, "write http:// or https://"),
		Entry("a glance whose catalog entry is an edge API", "Glance", `{keystoneEndpoint: e, glanceAPIs: {e: {type: edge}}}`,
			`spec.keystoneEndpoint: Invalid value: "e": KeystoneEndpoint is assigned to an invalid GlanceAPI instance`, "whose type is not edge"),
		Entry("a glance whose catalog entry is nothing", "Glance", `{keystoneEndpoint: x, glanceAPIs: {a: {}}}`, `spec.keystoneEndpoint: Invalid value: "x"`, "set it to an entry of glanceAPIs"),
		Entry("an API with claims of no size", "Glance", `glanceAPIs: {default: {storage: {external: false}}}`,
			`spec.glanceAPIs[default].storage.storageRequest: Required value`, "set its size, for example 10G, or set external to true"),
		Entry("a glance with claims of size 0", "Glance", `storage: {storageRequest: 0}`, `spec.storage.storageRequest: Invalid value: "0"`, "larger than 0"),
		Entry("a glance with a database and no Secret", "Glance", `databaseHostname: db.example`, `spec.secret: Required value`, "set this field to the Secret"),
		Entry("an API with a broken snippet", "Glance", `glanceAPIs: {default: {customServiceConfig: "[DEFAULT"}}`,
			`spec.glanceAPIs[default].customServiceConfig: Invalid value: "[DEFAULT": line 1`),
		Entry("an API with too many pods", "Glance", `glanceAPIs: {default: {replicas: 33}}`, `spec.glanceAPIs.default.replicas`, "32"),
		Entry("a GlanceAPI with claims of no size", "GlanceAPI", `storage: {external: false}`, `spec.storage.storageRequest: Required value`),
		Entry("a GlanceAPI with a Topology elsewhere", "GlanceAPI", `topologyRef: {name: t, namespace: other}`, `spec.topologyRef.namespace`, "remove it"),
		Entry("a control plane with a Topology elsewhere", "OpenStackControlPlane", `topologyRef: {name: t, namespace: other}`,
			`spec.topologyRef.namespace: Invalid value: "other"`, "Customizing namespace field is not supported"),
		Entry("a control plane with an API that is split and keeps files", "OpenStackControlPlane", `glance: {template: {glanceAPIs: {default: {type: split}}}}`,
			`spec.glance.template.glanceAPIs[default].type: Invalid value: "split"`, "set single"),
		Entry("a control plane with a cell that is no label", "OpenStackControlPlane",
			`nova: {template: {secret: s, keystoneAuthURL: "http://k:5000", cellTemplates: {Cell1: {}}}}`, `spec.nova.template.cellTemplates[Cell1]`, "lower case"),
	)

	It("shows no value of a Secret", func() {
		err := api.Create(ctx, with(w, "NovaExternalCompute", `customServiceConfig: "[DEFAULT]\ntransport_url hunter2\n"`))
		Expect(err).To(HaveOccurred())
		Expect(err.Error()).NotTo(ContainSubstring("hunter2"))
		err = api.Create(ctx, with(w, "OpenStackDataPlaneNode", `node: {ansibleVars: "pw: *hunter2"}`))
		Expect(err).To(HaveOccurred())
		Expect(err.Error()).NotTo(ContainSubstring("hunter2"))
	})

	It("accepts valid objects of every kind", func() {
		for kind, spec := range map[string]string{
			"OpenStackDataPlane":        `{roles: {edpm: {}}, nodes: {edpm-0: {role: edpm, hostName: edpm-0, ansibleHost: 10.0.0.1}}}`,
			"OpenStackDataPlaneRole":    `{nodeTemplate: {ansibleVars: {a: {b: 1}}, ansibleUser: cloud-admin}, deployStrategy: {maxUnavailable: 10%, ansibleLimit: "edpm-*:!edpm-7"}}`,
			"OpenStackDataPlaneNode":    `{hostName: edpm-0.example.com, ansibleHost: "fd00::1", node: {ansibleVars: "a: 1\nb: 2\n"}, deployStrategy: {maxUnavailable: 3}}`,
			"OpenStackDataPlaneService": `{secrets: [ceph], openStackAnsibleEERunnerImage: "quay.io/a/b:c"}`,
			"OpenStackAnsibleEE":        `{playbook: edpm.operators.run_os, inventory: "all: {hosts: {a: {}}}", ansibleTags: "a,b"}`,
			"Nova":                      `{cellTemplates: {cell0: {metadataServiceTemplate: {replicas: 0}}, cell1: {}}}`,
			"NovaCell":                  `{cellName: cell1, keystoneAuthURL: "https://k:5000", noVNCProxyBaseURL: "http://c/vnc_lite.html", computeTemplates: [{roles: [a, b.c], customServiceConfig: "[DEFAULT]\ndebug = true\n", customServiceConfigSecrets: [s], defaultConfigOverwrite: {policy.yaml: "a: b"}, configFiles: [{name: provider.yaml, configMap: {name: c}}]}]}`,
			"NovaExternalCompute":       `{customServiceConfig: "[libvirt]\ncpu_mode = host-model\n", networkAttachments: [ctlplane]}`,
			"OVNController":             `{containerImage: "ovn:1", customServiceConfig: ""}`,
			"OVNMetadataAgent":          `{customServiceConfig: "[DEFAULT]\ndebug = True\n"}`,
			"EDPMServiceClass":          `{after: [nova], configFiles: [{name: a.conf, secret: {name: s}}], vars: "a: 1", deployStrategy: {maxUnavailable: 10%, batchSize: 3}}`,
			"EDPMService":               `{customServiceConfig: "[DEFAULT]\ndebug = true\n"}`,
			"NovaCompute":               `{computeDriver: fake.FakeDriver, replicas: 0, topologyRef: {}, nodeSelector: {}}`,
			"Glance":                    `{storage: {storageRequest: 11G, external: true}, glanceAPIs: {default: {topologyRef: {name: default-sample}}, azone: {type: edge, replicas: 3, storage: {external: false}}}}`,
			"GlanceAPI":                 `{apiType: edge, storage: {storageRequest: 10Gi, storageClass: lvms-local-storage}}`,
			"OpenStackControlPlane":     `{secret: s, topologyRef: {name: t}, glance: {template: {databaseHostname: db.example, glanceAPIs: {default: {topologyRef: {}}}}}}`,
		} {
			Expect(api.Create(ctx, with(w, kind, spec))).To(Succeed(), kind)
		}
	})

	DescribeTable("refuses a class with a reserved or invalid name", func(name, part string) {
		class := MakeServiceClass(name, string(w)).Obj()
		class.Spec.Annotation = "example.org/agent"
		refused(api.Create(ctx, class), "metadata.name", part)
	},
		Entry("that of nova", "nova", "is reserved"),
		Entry("that of a typed service", "ovn-metadata", "is reserved"),
		Entry("that of a step that removes", "agent-cleanup", "is reserved"),
		Entry("one with dots", "example.agent", "lower case letters, digits and hyphens"),
		Entry("one that is too long", strings.Repeat("a", 51), "at most 50 characters"),
	)

	It("refuses changes of a class or service that would orphan something on hosts", func() {
		class, service := MakeServiceClass("x", string(w)).Obj(), MakeEDPMService("x", "n", string(w))
		create(class)
		create(service)
		class.Spec.Annotation = "example.org/other"
		refused(api.Update(ctx, class), "spec.annotation", "cannot be changed", "Create another class")
		Expect(api.Get(ctx, client.ObjectKeyFromObject(class), class)).To(Succeed())
		class.Spec.CleanupPlay = ""
		refused(api.Update(ctx, class), "set exactly one of cleanupPlaybook and cleanupPlay")
		service.Spec.ClassName = "y"
		refused(api.Update(ctx, service), "spec.className", "cannot be changed")
	})

	It("refuses changes of the fields that define a compute", func() {
		w.compute("x", "cell1")
		compute := w.newCompute("x", "")
		Expect(api.Get(ctx, client.ObjectKeyFromObject(compute), compute)).To(Succeed())
		compute.Spec.DataplaneNodeName = "y"
		refused(api.Update(ctx, compute), "spec.dataplaneNodeName", `"y"`, "cannot be changed", "create an object for the other node")
	})
})

var _ = Describe("Warnings", func() {
	var w world
	BeforeEach(func() {
		w = newWorld()
		warnings.take()
	})

	It("name options that the deployment owns, once", func() {
		create(with(w, "NovaExternalCompute", `customServiceConfig: "[placement]\npassword = hunter2\n[DEFAULT]\ndebug = True\n"`))
		Expect(warnings.take()).To(ConsistOf(And(
			HavePrefix("spec.customServiceConfig: line 2: [placement] password"), Not(ContainSubstring("hunter2")))))
		compute := w.newCompute("x", "")
		Expect(api.Get(ctx, client.ObjectKeyFromObject(compute), compute)).To(Succeed())
		compute.Spec.SSHKeySecretName = "key"
		Expect(api.Update(ctx, compute)).To(Succeed())
		Expect(warnings.take()).To(BeEmpty(), "the snippet has not changed")
	})
	It("name options of templates of computes that the deployment owns, once", func() {
		cell := with(w, "NovaCell", `computeTemplates: [{}, {customServiceConfig: "[placement]\npassword = hunter2\n"}]`).(*novav1.NovaCell)
		create(cell)
		Expect(warnings.take()).To(ConsistOf(And(
			HavePrefix("spec.computeTemplates[1].customServiceConfig: line 2: [placement] password"), Not(ContainSubstring("hunter2")))))
		cell.Spec.KeystoneAuthURL = "http://k:5000"
		Expect(api.Update(ctx, cell)).To(Succeed())
		Expect(warnings.take()).To(BeEmpty(), "the templates have not changed")
	})
	It("name the shared secret of a metadata agent, which the OVN configuration has", func() {
		create(with(w, "OVNMetadataAgent", `customServiceConfig: "[DEFAULT]\nmetadata_proxy_shared_secret = hunter2\n"`))
		Expect(warnings.take()).To(ConsistOf(And(
			HavePrefix("spec.customServiceConfig: line 2: [DEFAULT] metadata_proxy_shared_secret"), Not(ContainSubstring("hunter2")))))
	})
	It("name the node that has the same host", func() {
		newWorld().apiNode("elsewhere", "10.0.0.1")
		w.apiNode("a", "10.0.0.1")
		Expect(warnings.take()).To(BeEmpty())
		Eventually(func() []string { return w.warningsFor("b", "10.0.0.1") }, timeout).Should(
			ConsistOf(And(ContainSubstring("10.0.0.1 is the host of node a as well"), ContainSubstring("correct the address"))))
		w.apiNode("b", "10.0.0.1")
		Expect(warnings.take()).To(HaveLen(1))
		w.apiNode("c", "10.0.0.2")
		Expect(w.updateNode("b", func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.HostName = "b" })).To(Succeed())
		Expect(warnings.take()).To(BeEmpty(), "the address has not changed")
	})
	It("name roles that a data plane does not have, and shared hosts", func() {
		create(with(w, "OpenStackDataPlane", `{roles: {edpm: {}}, nodes: {a: {role: edpm, ansibleHost: h}, b: {role: other, ansibleHost: h}}}`))
		Expect(warnings.take()).To(ConsistOf(
			ContainSubstring("spec.nodes[b].role: role other is not in spec.roles"),
			ContainSubstring("spec.nodes[b].ansibleHost: h is the host of node a as well")))
	})
})

func (w world) apiNode(name, host string) {
	GinkgoHelper()
	node := w.newNode(name, "", "-")
	node.Spec.AnsibleHost = host
	create(node)
}

// warningsFor are those of a node that is only tried: the manager's cache, by which
// it warns, is a moment behind.
func (w world) warningsFor(name, host string) []string {
	GinkgoHelper()
	node := w.newNode(name, "", "-")
	node.Spec.AnsibleHost = host
	Expect(api.Create(ctx, node, client.DryRunAll)).To(Succeed())
	return warnings.take()
}

var _ = Describe("The annotation that takes a host over", func() {
	It("rejects a tool that it is not for, and accepts the others", func() {
		node := newWorld().newNode("edpm-0", "", "-")
		node.Annotations = map[string]string{common.TakeOverAnnotation: "puppet"}
		refused(api.Create(ctx, node), "metadata.annotations[edpm.openstack.org/take-over]", `"puppet"`, `supported values: "edpm-ansible", "kolla-ansible", "packages"`)
		node.Annotations[common.TakeOverAnnotation] = "packages"
		create(node)
	})
})

var _ = Describe("The annotations for the drain of a host", func() {
	It("rejects a way and a number that do not exist with field, value and remedy, and accepts others", func() {
		node := newWorld().newNode("edpm-0", "", "-")
		node.Annotations = map[string]string{common.DrainAnnotation: "true"}
		refused(api.Create(ctx, node), "metadata.annotations[edpm.openstack.org/drain]", `"true"`, `"live", "cold", "stop"`)
		node.Annotations = map[string]string{common.FenceAnnotation: ""}
		refused(api.Create(ctx, node), "metadata.annotations[edpm.openstack.org/fence]", "name who says that the host is off")
		node.Annotations = map[string]string{common.FenceAnnotation: "anna", common.DrainAnnotation: "live"}
		refused(api.Create(ctx, node), "metadata.annotations[edpm.openstack.org/drain]", "remove one of the annotations")
		node.Annotations = map[string]string{common.DrainAnnotation: "live", common.DrainParallelAnnotation: "many"}
		refused(api.Create(ctx, node), "metadata.annotations[edpm.openstack.org/drain-parallel]", `"many"`, "must be a number from 1 to 50")
		node.Annotations[common.DrainParallelAnnotation] = "4"
		create(node)
		node.Annotations[common.DrainAnnotation] = "yes"
		refused(api.Update(ctx, node), "metadata.annotations[edpm.openstack.org/drain]", `"yes"`)
	})
})

var _ = Describe("The annotation for the key of a host", func() {
	It("rejects a value that is no key with field, value and remedy, and accepts a key", func() {
		node := newWorld().newNode("edpm-0", "", "-")
		node.Annotations = map[string]string{common.HostKeyAnnotation: "SHA256:abc"}
		refused(api.Create(ctx, node), "metadata.annotations[edpm.openstack.org/host-key]", `"SHA256:abc"`, "ssh_host_ed25519_key.pub")
		node.Annotations[common.HostKeyAnnotation] = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl root@edpm-0"
		create(node)
	})
})
