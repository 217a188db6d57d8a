package webhooks_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
)

// as returns a client of a user who may do with the kinds of edpm-operators in the
// namespace what the role edit allows, and has more rights on top.
func (w world) as(user string, more ...rbacv1.PolicyRule) client.Client {
	GinkgoHelper()
	var groups []string
	for _, makeKind := range kinds {
		gvk, err := api.GroupVersionKindFor(makeKind(w))
		Expect(err).NotTo(HaveOccurred())
		groups = append(groups, gvk.Group)
	}
	all := rbacv1.PolicyRule{
		APIGroups: groups, Verbs: []string{"get", "list", "create", "update", "patch", "delete"},
		Resources: []string{
			"openstackansibleees", "openstackdataplanes", "openstackdataplaneroles", "openstackdataplanenodes", "openstackdataplaneservices",
			"nova", "novacells", "novacomputes", "novaexternalcomputes", "ovncontrollers", "ovnmetadataagents", "glances", "glanceapis", "topologies", "openstackcontrolplanes", "edpmserviceclasses", "edpmservices",
		},
	}
	create(&rbacv1.Role{ObjectMeta: w.meta(user, "-"), Rules: append(more, all)})
	create(&rbacv1.RoleBinding{
		ObjectMeta: w.meta(user, "-"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	})
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := client.New(config, client.Options{Scheme: env.Scheme})
	Expect(err).NotTo(HaveOccurred())
	// The authorizer learns of the role from a watch.
	Eventually(func() error { return c.List(ctx, &ansibleeev1.OpenStackAnsibleEEList{}, client.InNamespace(w)) }, timeout).Should(Succeed())
	return c
}

// raw returns an object of the kind with a spec that no client has checked.
func raw(w world, kind, spec string) client.Object {
	GinkgoHelper()
	gvk, err := api.GroupVersionKindFor(kinds[kind](w))
	Expect(err).NotTo(HaveOccurred())
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	Expect(yaml.Unmarshal([]byte("spec: "+spec), &obj.Object)).To(Succeed())
	obj.SetGroupVersionKind(gvk)
	obj.SetNamespace(string(w))
	obj.SetName("x")
	return obj
}

func volume(source string) string {
	return "{extraMounts: [{volumes: [{name: v, " + source + "}], mounts: [{name: v, mountPath: /mnt}]}]}"
}

func mount(path string) string {
	return "{extraMounts: [{volumes: [{name: v, emptyDir: {}}], mounts: [{name: v, " + path + "}]}]}"
}

// What a user of a namespace may try, see docs/security.md.
var _ = Describe("A user who may write every kind of the operators in a namespace", func() {
	const oneOf = "set exactly one of secret, configMap, persistentVolumeClaim, projected, emptyDir"

	DescribeTable("cannot",
		func(kind, spec string, parts ...string) {
			w := newWorld()
			refused(w.as("tenant").Create(ctx, raw(w, kind, spec)), parts...)
		},
		Entry("mount a directory of a Kubernetes node", "OpenStackAnsibleEE", volume(`hostPath: {path: /}`), oneOf),
		Entry("mount a directory of a node next to an allowed volume", "OpenStackAnsibleEE", volume(`name: v, hostPath: {path: /}`), oneOf),
		Entry("mount a network volume", "OpenStackAnsibleEE", volume(`nfs: {server: a, path: /}`), oneOf),
		Entry("mount by a storage driver", "OpenStackAnsibleEE", volume(`csi: {driver: secrets-store.csi.k8s.io}`), oneOf),
		Entry("mount a volume that is made for the Pod", "OpenStackAnsibleEE", volume(`ephemeral: {volumeClaimTemplate: {}}`), oneOf),
		Entry("mount an image", "OpenStackAnsibleEE", volume(`image: {reference: a}`), oneOf),
		Entry("mount them through a node", "OpenStackDataPlaneNode", "{node: "+volume(`hostPath: {path: /}`)+"}", oneOf),
		Entry("mount them through a role", "OpenStackDataPlaneRole", "{nodeTemplate: "+volume(`hostPath: {path: /}`)+"}", oneOf),
		Entry("mount them through a data plane", "OpenStackDataPlane", "{roles: {r: {nodeTemplate: "+volume(`hostPath: {path: /}`)+"}}}", oneOf),
		Entry("mount the token of a service account", "OpenStackAnsibleEE", volume(`projected: {sources: [{serviceAccountToken: {path: t}}]}`), "a runner gets no token"),
		Entry("mount a certificate of the cluster", "OpenStackAnsibleEE", volume(`projected: {sources: [{podCertificate: {signerName: a/b, keyType: ED25519}}]}`), "no certificate"),
		Entry("mount a token through a node", "OpenStackDataPlaneNode", "{node: "+volume(`projected: {sources: [{serviceAccountToken: {path: t}}]}`)+"}", "a runner gets no token"),
		Entry("mount a Secret of another namespace", "OpenStackAnsibleEE", volume(`secret: {secretName: openstack/key}`), "same namespace"),
		Entry("project a Secret of another namespace", "OpenStackAnsibleEE", volume(`projected: {sources: [{secret: {name: openstack/key}}]}`), "same namespace"),
		Entry("mount over the inputs of a run", "OpenStackAnsibleEE", mount("mountPath: /runner"), "which the run uses itself"),
		Entry("mount over the known hosts", "OpenStackAnsibleEE", mount("mountPath: /runner/.known_hosts"), "which the run uses itself"),
		Entry("mount over the result", "OpenStackAnsibleEE", mount("mountPath: /dev/termination-log"), "which the run uses itself"),
		Entry("lead a mount out of its volume", "OpenStackAnsibleEE", mount("mountPath: /mnt, subPath: ../../etc"), "is not a relative path"),
		Entry("give more mounts than a Pod should have", "OpenStackAnsibleEE", "{extraMounts: ["+strings.Repeat("{extraVolType: a}, ", 500)+"]}", "spec.extraMounts: Too many: 500: must have at most 16 items"),

		Entry("log in with a key of another namespace", "OpenStackDataPlaneNode", `{node: {ansibleSSHPrivateKeySecret: openstack/key}}`, "same namespace"),
		Entry("log in with it through a compute", "NovaExternalCompute", `{dataplaneNodeName: x, cellName: cell1, sshKeySecretName: openstack/key}`, "spec.sshKeySecretName"),
		Entry("log in with it by a run", "OpenStackAnsibleEE", `{sshKeySecretName: openstack/key}`, "same namespace"),
		Entry("run with inputs of another namespace", "OpenStackAnsibleEE", `{inputsSecretName: openstack/run}`, "same namespace"),
		Entry("take the environment of another namespace", "OpenStackAnsibleEE", `{envConfigMapName: openstack/env}`, "same namespace"),
		Entry("read an inventory of another namespace", "NovaExternalCompute", `{dataplaneNodeName: x, cellName: cell1, inventoryConfigMapName: openstack/inv}`, "spec.inventoryConfigMapName"),
		Entry("join a cell of another namespace", "NovaExternalCompute", `{dataplaneNodeName: x, cellName: openstack/cell1}`, "spec.cellName"),
		Entry("read an OVN configuration of another namespace", "OVNController", `{dataplaneNodeName: x, ovnConfigSecretName: openstack/ovn}`, "spec.ovnConfigSecretName"),
		Entry("copy a Secret of another namespace to a host", "OpenStackDataPlaneService", `{playbook: a.b.c, secrets: [openstack/key]}`, "spec.secrets[0]"),
		Entry("follow a Topology of another namespace", "OpenStackAnsibleEE", `{topologyRef: {name: t, namespace: openstack}}`, "spec.topologyRef.namespace"),
		Entry("follow it with a role", "OpenStackDataPlaneRole", `{topologyRef: {name: t, namespace: openstack}}`, "spec.topologyRef.namespace"),
		Entry("attach a run to a network of another namespace", "OpenStackAnsibleEE", `{networkAttachments: [openstack/net]}`, "same namespace"),
		Entry("attach pods to it", "Glance", `{glanceAPIs: {a: {networkAttachments: [openstack/net]}}}`, "networkAttachments"),
		Entry("read passwords of another namespace", "Glance", `{secret: openstack/osp-secret}`, "spec.secret"),

		Entry("run a playbook outside the project", "OpenStackAnsibleEE", `{playbook: ../../etc/ansible/x.yml}`, "stays under /runner/project"),
		Entry("run an absolute playbook", "OpenStackDataPlaneService", `{playbook: /mnt/x.yml}`, "stays under /runner/project"),
		Entry("give an option for a playbook", "OpenStackDataPlaneService", `{playbook: "-e@/etc/passwd"}`, "stays under /runner/project"),
		Entry("give an option for tags", "OpenStackDataPlaneRole", `{deployStrategy: {ansibleTags: "-e a=b"}}`, "list of tags"),
		Entry("give a file for a limit", "OpenStackDataPlaneRole", `{deployStrategy: {ansibleLimit: "@/runner/ssh/ssh-privatekey"}}`, "host pattern"),
		Entry("give an option for a host", "OpenStackDataPlaneNode", `{ansibleHost: -oProxyCommand=id}`, "neither an IP address nor a host name"),
		Entry("give a template for a host", "OpenStackDataPlaneNode", `{hostName: "{{ lookup('pipe', 'id') }}"}`, "RFC 1123"),
		Entry("give two lines for a host", "OpenStackDataPlaneNode", `{ansibleHost: "a\n[all:vars]"}`, "neither an IP address nor a host name"),
		Entry("give an option for a user", "OpenStackDataPlaneRole", `{nodeTemplate: {ansibleUser: "-oProxyCommand=id"}}`, "user name"),

		Entry("turn off in silence that host keys are checked", "OpenStackDataPlaneRole", `{env: [{name: ANSIBLE_HOST_KEY_CHECKING, value: "False"}]}`, "spec.env[0].value", "annotation edpm.openstack.org/host-key"),
		Entry("hide that in a template", "OpenStackDataPlaneRole", `{nodeTemplate: {ansibleVars: {ansible_ssh_args: "-o Strict{{''}}HostKeyChecking=no"}}}`, "spec.nodeTemplate.ansibleVars[ansible_ssh_args]", "host-key"),
		Entry("reach hosts by another plugin", "OpenStackDataPlaneNode", `{node: {ansibleVars: "ansible_connection: paramiko"}}`, "spec.node.ansibleVars[ansible_connection]", "host-key"),
		Entry("reach hosts by another program", "OpenStackAnsibleEE", `{env: [{name: ANSIBLE_SSH_EXECUTABLE, value: /mnt/ssh}]}`, "spec.env[0].value", "host-key"),
		Entry("change it in an inventory", "OpenStackAnsibleEE", `{inventory: "h1 ansible_ssh_common_args='-F x'"}`, "spec.inventory", "host-key"),
		Entry("change it by extra variables", "OpenStackAnsibleEE", `{extraVars: {ansible_ssh_extra_args: -F x}}`, "spec.extraVars[ansible_ssh_extra_args]", "host-key"),
		Entry("change it by arguments", "OpenStackAnsibleEE", `{cmdLine: "--ssh-common-args='-F x'"}`, "spec.cmdLine", "host-key"),
		Entry("turn it off by variables", "OpenStackDataPlaneNode", `{node: {ansibleVars: {ansible_ssh_args: -o StrictHostKeyChecking=no}}}`, "spec.node.ansibleVars[ansible_ssh_args]", "host-key"),
		Entry("hide a Python object in variables", "OpenStackDataPlaneNode", `{node: {ansibleVars: "a: !!python/object/apply:os.system [id]"}}`, "would be lost"),

		Entry("write a configuration of 1.2 MB", "NovaExternalCompute", `{dataplaneNodeName: x, cellName: cell1, customServiceConfig: "`+strings.Repeat("#", 1200<<10)+`"}`, "spec.customServiceConfig", "Too long: may not be more than 262144"),
		Entry("write a class that reaches hosts by other means", "EDPMServiceClass", `{annotation: example.org/a, play: "- hosts: all", cleanupPlay: "- hosts: all", vars: {ansible_connection: local}}`, "spec.vars[ansible_connection]"),
		Entry("hide that in the text of its variables", "EDPMServiceClass", `{annotation: example.org/a, play: "- hosts: all", cleanupPlay: "- hosts: all", vars: "ansible_ssh_args: -o StrictHostKeyChecking=no"}`, "spec.vars[ansible_ssh_args]", "host-key"),
		Entry("run a playbook of the runner by a class", "EDPMServiceClass", `{annotation: example.org/a, playbook: ../x.yaml, cleanupPlay: "- hosts: all"}`, "spec.playbook", "/runner/project"),
		Entry("write a file of a class outside its directory", "EDPMServiceClass", `{annotation: example.org/a, play: "- hosts: all", cleanupPlay: "- hosts: all", configFiles: [{name: ../x, secret: {name: s}}]}`, "spec.configFiles[0]", "without directories"),
		Entry("give a class a Secret of another namespace", "EDPMServiceClass", `{annotation: example.org/a, play: "- hosts: all", cleanupPlay: "- hosts: all", configFiles: [{name: x, secret: {name: openstack/key}}]}`, "spec.configFiles[0].secret.name", "same namespace"),
		Entry("select nodes by an annotation that means something else", "EDPMServiceClass", `{annotation: edpm.openstack.org/rerun, play: "- hosts: all", cleanupPlay: "- hosts: all"}`, "spec.annotation", "a meaning of their own"),
		Entry("write a play of a class that no process can be given", "EDPMServiceClass", `{annotation: example.org/a, play: "- hosts: all", cleanupPlay: "- hosts: all # `+strings.Repeat("x", 130<<10)+`"}`, "spec.cleanupPlay", "use at most 127 KiB"),
		Entry("log in with a key of another namespace through a service of a class", "EDPMService", `{className: a, dataplaneNodeName: x, sshKeySecretName: openstack/key}`, "spec.sshKeySecretName"),
		Entry("write one for the conductor", "NovaCell", `{conductorServiceTemplate: {customServiceConfig: "`+strings.Repeat("#", 300<<10)+`"}}`, "Too long: may not be more than 262144"),
		Entry("write variables of 900 KB", "OpenStackDataPlaneNode", `{node: {ansibleVars: {a: "`+strings.Repeat("x", 900<<10)+`"}}}`, "spec.node.ansibleVars", "write at most 256 KiB"),
		Entry("write an inventory of 10,000 hosts into a run", "OpenStackAnsibleEE", `{inventory: "`+strings.Repeat(`edpm-compute-0000 ansible_host=192.168.122.100\n`, 10000)+`"}`, "spec.inventory", "use at most 127 KiB"),
		Entry("write a play that no process can be given", "OpenStackDataPlaneService", `{play: "- hosts: all # `+strings.Repeat("x", 130<<10)+`"}`, "spec.play", "use at most 127 KiB"),
	)

	It("cannot claim that a host has converged", func() {
		w := newWorld()
		tenant := w.as("tenant")
		claim := func(name string) *ansibleeev1.OpenStackAnsibleEE {
			return &ansibleeev1.OpenStackAnsibleEE{ObjectMeta: w.meta(name, "-"), Spec: ansibleeev1.OpenStackAnsibleEESpec{
				Step: "install-os", Role: "r", OwnerKind: "OpenStackDataPlaneNode", Targets: []ansibleeev1.Target{{Host: "n", Hash: "h", OwnerUID: "u"}},
			}}
		}
		forbidden := func(err error) {
			GinkgoHelper()
			Expect(apierrors.IsForbidden(err)).To(BeTrue(), "want it forbidden, got: %v", err)
			Expect(err.Error()).To(ContainSubstring("spec.targets is set by the operators"))
		}
		forbidden(tenant.Create(ctx, claim("forged")))

		By("adding targets to a run of their own")
		own := &ansibleeev1.OpenStackAnsibleEE{ObjectMeta: w.meta("own", "-")}
		Expect(tenant.Create(ctx, own)).To(Succeed())
		own.Spec.Targets = claim("").Spec.Targets
		forbidden(tenant.Update(ctx, own))

		By("changing what a run of the operators does")
		run := claim("run")
		create(run)
		run.Spec.PlaybookContents = "- hosts: []"
		forbidden(tenant.Update(ctx, run))
		Expect(api.Get(ctx, client.ObjectKeyFromObject(run), run)).To(Succeed())
		metav1.SetMetaDataLabel(&run.ObjectMeta, "mine", "true")
		Expect(tenant.Update(ctx, run)).To(Succeed(), "labels are anybody's")

		By("writing the status")
		run.Status.JobStatus = ansibleeev1.JobSucceeded
		Expect(apierrors.IsForbidden(tenant.Status().Update(ctx, run))).To(BeTrue())

		By("having the rights of the operators")
		operator := w.as("operator", rbacv1.PolicyRule{
			APIGroups: []string{ansibleeev1.GroupVersion.Group}, Resources: []string{"openstackansibleees/targets"}, Verbs: []string{"update"},
		})
		Expect(operator.Create(ctx, claim("real"))).To(Succeed())
	})
})
