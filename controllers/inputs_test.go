package controllers_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	. "github.com/edpm-operators/edpm-operators/test/builders"
)

// calm expects that no one reconciles in a loop and nothing is run, once what was under
// way has come to its end, and computes have waited for others.
func (w *world) calm() {
	GinkgoHelper()
	nothingHappens := func(g Gomega, d time.Duration) {
		before, executions := reconciliations(), len(w.hosts.Book())
		time.Sleep(d)
		g.Expect(reconciliations()-before).To(BeNumerically("<", 10*float64(d)/float64(still)), "reconciliations in %v in which nothing happens", d)
		g.Expect(w.hosts.Book()).To(HaveLen(executions))
	}
	Eventually(func(g Gomega) {
		nothingHappens(g, patience+still)
		nothingHappens(g, still) // on a busy machine what waited for long may come at once
	}).WithTimeout(later).Should(Succeed())
}

// plight is a wrong input and its remedy, in a cloud with role compute and node n.
type plight struct {
	// wrong makes the input wrong, before the role and the node are made.
	wrong func(*world, *dataplanev1.OpenStackDataPlaneRole, *dataplanev1.OpenStackDataPlaneNode)
	// on the compute instead of the node.
	compute bool
	shows   condition.Type
	reason  condition.Reason
	says    []string
	fix     func(*world)
}

func envFromSecret(name, secret, key string) corev1.EnvVar {
	ref := &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key}
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: ref}}
}

func envFromConfigMap(name, configMap, key string) corev1.EnvVar {
	ref := &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}, Key: key}
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: ref}}
}

func (w *world) changeRole(f func(*dataplanev1.OpenStackDataPlaneRole)) {
	GinkgoHelper()
	change(MakeRole("compute", w.ns).Obj(), f)
}

func (w *world) changeNode(f func(*dataplanev1.OpenStackDataPlaneNode)) {
	GinkgoHelper()
	change(w.node("n"), f)
}

var _ = DescribeTable("The manager names a wrong input with its remedy, starts no run and no loop, and continues when it is fixed:",
	func(p plight) {
		w := newCloud()
		role, node := w.role("compute").Cell("cell1").Obj(), MakeNode("n", w.ns).Role("compute").Obj()
		p.wrong(w, role, node)
		if role.Name != "" {
			w.make(role)
		}
		w.make(node)
		object := judged(w.node("n"))
		if p.compute {
			object = w.compute("n")
			Eventually(w.computes).Should(HaveKey("n"))
		}
		w.halted(object, p.shows, p.reason, p.says...)
		w.calm()
		p.fix(w)
		w.computesReady("n")
		w.exactlyOnce()
	},
	Entry("no ssh key Secret", plight{
		wrong: func(w *world, r *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			r.Spec.NodeTemplate.AnsibleSSHPrivateKeySecret = "other"
		},
		shows: condition.InputReadyCondition, reason: common.SecretMissingReason, says: []string{`Secret "other" does not exist: create it`},
		fix: func(w *world) { w.make(MakeSecret("other", w.ns, "ssh-privatekey", "key")) },
	}),
	Entry("no key in the ssh key Secret", plight{
		wrong: func(w *world, r *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			w.make(MakeSecret("other", w.ns, "id_rsa", "key"))
			r.Spec.NodeTemplate.AnsibleSSHPrivateKeySecret = "other"
		},
		shows: condition.InputReadyCondition, reason: common.SecretKeyMissingReason, says: []string{`Secret "other" has no key "ssh-privatekey"`, "add it"},
		fix: func(w *world) { w.setSecret("other", "ssh-privatekey", "key") },
	}),
	Entry("no Secret with the key of the jump host", plight{
		wrong: func(_ *world, r *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			r.Spec.NodeTemplate.JumpHost = MakeJumpHost("bastion.example.com", "other")
		},
		shows: condition.InputReadyCondition, reason: common.SecretMissingReason, says: []string{`Secret "other" does not exist: create it`},
		fix: func(w *world) { w.make(MakeSecret("other", w.ns, "ssh-privatekey", "key")) },
	}),
	Entry("a jump host with the address and the key of no host", plight{
		wrong: func(w *world, r *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			r.Spec.NodeTemplate.JumpHost = MakeJumpHost("jump@bastion", "ssh-key")
			r.Spec.NodeTemplate.JumpHost.HostKey = "SHA256:abc"
		},
		shows: condition.InputReadyCondition, reason: dataplanev1.InvalidSpecReason,
		says: []string{`jumpHost.address: Invalid value: "jump@bastion"`, "without brackets, port or user", "jumpHost.hostKey", "ssh_host_ed25519_key.pub"},
		fix: func(w *world) {
			w.changeRole(func(r *dataplanev1.OpenStackDataPlaneRole) {
				r.Spec.NodeTemplate.JumpHost = MakeJumpHost("bastion", "ssh-key")
			})
		},
	}),
	Entry("no ssh key named", plight{
		wrong: func(w *world, r *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			r.Spec.NodeTemplate.AnsibleSSHPrivateKeySecret = ""
		},
		shows: condition.InputReadyCondition, reason: common.SecretMissingReason, says: []string{"set ansibleSSHPrivateKeySecret in spec.node, or in spec.nodeTemplate of role compute"},
		fix: func(w *world) {
			w.changeNode(func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.Node.AnsibleSSHPrivateKeySecret = "ssh-key" })
		},
	}),
	Entry("no role", plight{
		wrong: func(w *world, r *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			r.Name = ""
		},
		shows: condition.InputReadyCondition, reason: dataplanev1.RoleMissingReason, says: []string{`OpenStackDataPlaneRole "compute" does not exist: create it, or set another role`},
		fix: func(w *world) { w.make(w.role("compute").Cell("cell1").Obj()) },
	}),
	Entry("no role named", plight{
		wrong: func(w *world, _ *dataplanev1.OpenStackDataPlaneRole, n *dataplanev1.OpenStackDataPlaneNode) {
			n.Spec.Role = ""
		},
		shows: condition.InputReadyCondition, reason: dataplanev1.RoleMissingReason, says: []string{"spec.role is empty: set it to the OpenStackDataPlaneRole"},
		fix: func(w *world) {
			w.changeNode(func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.Role = "compute" })
		},
	}),
	Entry("an unknown service", plight{
		wrong: func(w *world, r *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			r.Spec.Services = []string{"install-os", "own"}
		},
		shows: condition.InputReadyCondition, reason: dataplanev1.ServiceMissingReason, says: []string{`OpenStackDataPlaneService "own" does not exist: create it, or remove the name`},
		fix: func(w *world) { w.make(MakeService("own", w.ns)) },
	}),
	Entry("no Secret of the environment", plight{
		wrong: func(w *world, r *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			r.Spec.Env = []corev1.EnvVar{envFromSecret("TOKEN", "env", "token")}
		},
		shows: condition.InputReadyCondition, reason: common.SecretMissingReason, says: []string{`Secret "env" does not exist: create it`},
		fix: func(w *world) { w.make(MakeSecret("env", w.ns, "token", "t")) },
	}),
	Entry("no key in the ConfigMap of the environment", plight{
		wrong: func(w *world, _ *dataplanev1.OpenStackDataPlaneRole, n *dataplanev1.OpenStackDataPlaneNode) {
			w.make(MakeConfigMap("env", w.ns, "other", "o"))
			n.Spec.Env = []corev1.EnvVar{envFromConfigMap("PROXY", "env", "proxy")}
		},
		shows: condition.InputReadyCondition, reason: common.ConfigMapKeyMissingReason, says: []string{`ConfigMap "env" has no key "proxy"`},
		fix: func(w *world) { w.setConfigMap("env", "proxy", "http://proxy") },
	}),
	Entry("no ConfigMap of a service", plight{
		wrong: func(w *world, r *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			own := MakeService("own", w.ns)
			own.Spec.ConfigMaps = []string{"files"}
			w.make(own)
			r.Spec.Services = []string{"own"}
		},
		shows: condition.InputReadyCondition, reason: common.ConfigMapMissingReason, says: []string{`ConfigMap "files" does not exist: create it`},
		fix: func(w *world) { w.make(MakeConfigMap("files", w.ns, "a", "b")) },
	}),
	Entry("no Secret of a service", plight{
		wrong: func(w *world, r *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			own := MakeService("own", w.ns)
			own.Spec.Secrets = []string{"files"}
			w.make(own)
			r.Spec.Services = []string{"own"}
		},
		shows: condition.InputReadyCondition, reason: common.SecretMissingReason, says: []string{`Secret "files" does not exist: create it`},
		fix: func(w *world) { w.make(MakeSecret("files", w.ns, "a", "b")) },
	}),
	Entry("no Secret of an extra mount", plight{
		wrong: func(w *world, r *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			r.Spec.NodeTemplate.ExtraMounts = MakeRole("", "").Mount("ceph").Spec.NodeTemplate.ExtraMounts
		},
		shows: condition.InputReadyCondition, reason: common.SecretMissingReason, says: []string{`Secret "ceph" does not exist`},
		fix: func(w *world) { w.make(MakeSecret("ceph", w.ns, "a", "b")) },
	}),
	Entry("variables of the role that are no mapping", plight{
		wrong: func(w *world, r *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			r.Spec.NodeTemplate.AnsibleVars = JSON(`"- a\n- b\n"`)
		},
		shows: condition.InputReadyCondition, reason: dataplanev1.InvalidVarsReason, says: []string{"ansibleVars of the role: must be a string with a YAML mapping"},
		fix: func(w *world) {
			w.changeRole(func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.NodeTemplate.AnsibleVars = JSON(`"a: b"`) })
		},
	}),
	Entry("variables of the node that are no YAML", plight{
		wrong: func(w *world, _ *dataplanev1.OpenStackDataPlaneRole, n *dataplanev1.OpenStackDataPlaneNode) {
			n.Spec.Node.AnsibleVars = JSON(`"a: [b"`)
		},
		shows: condition.InputReadyCondition, reason: dataplanev1.InvalidVarsReason, says: []string{"ansibleVars of the node"},
		fix: func(w *world) {
			w.changeNode(func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.Node.AnsibleVars = nil })
		},
	}),
	Entry("a limit that cannot be read", plight{
		wrong: func(w *world, r *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			r.Spec.DeployStrategy.AnsibleLimit = "n,~("
		},
		shows: condition.InputReadyCondition, reason: dataplanev1.InvalidSpecReason, says: []string{`ansibleLimit: "(" is not a regular expression`},
		fix: func(w *world) {
			w.changeRole(func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.DeployStrategy.AnsibleLimit = "~n.*" })
		},
	}),
	Entry("bare metal without an image", plight{
		wrong: func(w *world, r *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			r.Spec.BaremetalSetTemplate = &dataplanev1.BaremetalSetTemplate{BaremetalHosts: map[string]dataplanev1.BaremetalHost{"n": {}}}
		},
		shows: dataplanev1.ProvisionReadyCondition, reason: dataplanev1.InvalidSpecReason, says: []string{"spec.baremetalSetTemplate.image is missing", "or set preProvisioned: true if the hosts run already"},
		fix: func(w *world) {
			w.changeRole(func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.PreProvisioned = ptr.To(true) })
		},
	}),
	Entry("an inventory ConfigMap of another owner", plight{
		wrong: func(w *world, _ *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			theirs := MakeConfigMap("dataplanenode-n", w.ns, "inventory", "x")
			cell := get(Default, MakeCell("cell1", w.ns).Obj())
			theirs.OwnerReferences = ownedBy(cell.Name, string(cell.UID), "nova.openstack.org/v1beta1", "NovaCell")
			w.make(theirs)
		},
		shows: condition.InputReadyCondition, reason: common.ConflictReason, says: []string{`ConfigMap "dataplanenode-n" belongs to NovaCell/cell1: delete it if nothing needs it`},
		fix: func(w *world) {
			remove(MakeConfigMap("dataplanenode-n", w.ns, "", ""))
			annotate(w.node("n"), "look", "again")
		},
	}),
	Entry("no such cell", plight{
		wrong: func(_ *world, r *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			r.Annotations[novav1.CellAnnotation] = "cell2"
		},
		compute: true, shows: novav1.NovaCellReadyCondition, reason: novav1.CellMissingReason, says: []string{`NovaCell "cell2" does not exist in namespace`, "create it"},
		fix: func(w *world) { w.makeCell("cell2") },
	}),
	Entry("a cell that is not Ready", plight{
		wrong: func(w *world, r *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			r.Annotations[novav1.CellAnnotation] = "cell2"
			w.make(MakeCell("cell2", w.ns).Obj(), MakeSecret("cell2-password", w.ns, "ServicePassword", "p"))
		},
		compute: true, shows: novav1.NovaCellReadyCondition, reason: novav1.CellNotReadyReason, says: []string{"Waiting until NovaCell cell2 provides the configuration of its computes"},
		fix: func(w *world) { w.make(MakeSecret("cell2-bus", w.ns, "transport_url", "rabbit://x")) },
	}),
	Entry("a snippet that is no configuration", plight{
		wrong: func(w *world, _ *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			early := MakeCompute("n", w.ns, "cell1")
			early.Spec.CustomServiceConfig = "[DEFAULT\ndebug = true\n"
			w.make(early)
		},
		compute: true, shows: condition.ServiceConfigReadyCondition, reason: novav1.InvalidConfigReason, says: []string{"spec.customServiceConfig", "line 1"},
		fix: func(w *world) {
			change(w.compute("n"), func(c *novav1.NovaExternalCompute) { c.Spec.CustomServiceConfig = "[DEFAULT]\ndebug = true\n" })
		},
	}),
	Entry("a snippet that would make another compute of it", plight{
		wrong: func(w *world, _ *dataplanev1.OpenStackDataPlaneRole, _ *dataplanev1.OpenStackDataPlaneNode) {
			early := MakeCompute("n", w.ns, "cell1")
			early.Spec.CustomServiceConfig = "[DEFAULT]\nhost = other-name\ntransport_url = rabbit://elsewhere\n"
			w.make(early)
		},
		compute: true, shows: condition.ServiceConfigReadyCondition, reason: novav1.InvalidConfigReason, says: []string{
			"spec.customServiceConfig: line 2: [DEFAULT] host registers the host as another compute", "edpm_nova_host", "line 3: [DEFAULT] transport_url", "the Secret of the message bus",
		},
		fix: func(w *world) {
			change(w.compute("n"), func(c *novav1.NovaExternalCompute) { c.Spec.CustomServiceConfig = "[DEFAULT]\ndebug = true\n" })
		},
	}),
)

var _ = Describe("A compute whose inventory or key is wrong", func() {
	var w *world
	var role *dataplanev1.OpenStackDataPlaneRole
	var node *dataplanev1.OpenStackDataPlaneNode

	BeforeEach(func() {
		w = newCloud()
		role, node = w.role("compute").Cell("cell1").Obj(), MakeNode("n", w.ns).Role("compute").Obj()
	})

	// foreign makes a ConfigMap of something else in the place of the inventory.
	foreign := func(key, text string) func() {
		return func() {
			GinkgoHelper()
			owner := MakeConfigMap("somebody", w.ns, "a", "b")
			w.make(owner)
			inventory := MakeConfigMap("dataplanenode-n", w.ns, key, text)
			inventory.OwnerReferences = ownedBy("somebody", string(owner.UID), "v1", "ConfigMap")
			w.make(inventory)
		}
	}
	removeForeign := func() { remove(MakeConfigMap("dataplanenode-n", w.ns, "", "")) }

	It("says when it is in cell0, which has no computes", func() {
		node.Annotations = map[string]string{novav1.CellAnnotation: "zero"}
		w.make(MakeCell("zero", w.ns).ShortName(novav1.Cell0Name).Obj(), role, node)
		w.halted(w.compute("n"), novav1.NovaCellReadyCondition, novav1.CellZeroReason, "cell0, which has no computes", "delete the node")
		w.nodesReady("n")
		w.calm()
		remove(node)
		gone(node)
		Expect(w.times("n", cleanup)).To(BeZero(), "nothing was put on the host")
	})

	DescribeTable("says so, and heals",
		func(wrong, fix func(), reason condition.Reason, says string) {
			wrong()
			w.make(role, node)
			w.halted(w.compute("n"), condition.InputReadyCondition, reason, says)
			w.calm()
			fix()
			w.computesReady("n")
		},
		Entry("no key in the ConfigMap", foreign("other", "x"), removeForeign,
			common.ConfigMapKeyMissingReason, `ConfigMap "dataplanenode-n" has no key "inventory"`),
		Entry("no YAML", foreign("inventory", "[all]\nn\n"), removeForeign,
			novav1.InvalidInventoryReason, `ConfigMap "dataplanenode-n", key "inventory": not a YAML inventory`),
		Entry("another host", foreign("inventory", "all: {hosts: {x: }}"), removeForeign,
			novav1.InvalidInventoryReason, `host "n" is not in the inventory: add it under all.hosts`),
		Entry("no Secret", func() { role.Spec.NodeTemplate.AnsibleSSHPrivateKeySecret = "other" },
			func() { w.make(MakeSecret("other", w.ns, "ssh-privatekey", "key")) },
			common.SecretMissingReason, `Secret "other" does not exist`),
		Entry("no key in the Secret", func() {
			w.make(MakeSecret("other", w.ns, "x", "y"))
			role.Spec.NodeTemplate.AnsibleSSHPrivateKeySecret = "other"
		},
			func() { w.setSecret("other", "ssh-privatekey", "key") },
			common.SecretKeyMissingReason, `Secret "other" has no key "ssh-privatekey"`),
		Entry("no key named", func() { role.Spec.NodeTemplate.AnsibleSSHPrivateKeySecret = "" },
			func() {
				change(role, func(r *dataplanev1.OpenStackDataPlaneRole) {
					r.Spec.NodeTemplate.AnsibleSSHPrivateKeySecret = "ssh-key"
				})
			},
			novav1.InvalidSpecReason, "spec.sshKeySecretName is empty"),
	)

	It("waits for a node that cannot generate its inventory, and warns of nothing", func() {
		node.Spec.Node.AnsibleVars = JSON(`"a: ["`)
		w.make(role, node)
		w.halted(w.compute("n"), novav1.DataPlaneNodeReadyCondition, novav1.NodeNotReadyReason, "Waiting for OpenStackDataPlaneNode n to become Ready: see its conditions")
		w.calm()
		change(node, func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.Node.AnsibleVars = nil })
		w.computesReady("n")
		Expect(w.events("n")).NotTo(ContainElement(ContainSubstring("ConfigMapMissing")), "a person could do nothing about it")
	})

	It("loses Ready when its inventory is deleted and its node cannot generate another, and heals", func() {
		w.make(role, node)
		w.computesReady("n")
		change(node, func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.Node.AnsibleVars = JSON(`"a: ["`) })
		w.halted(node, condition.InputReadyCondition, dataplanev1.InvalidVarsReason)
		remove(MakeConfigMap("dataplanenode-n", w.ns, "", ""))
		w.halted(w.compute("n"), condition.InputReadyCondition, common.ConfigMapMissingReason, `ConfigMap "dataplanenode-n" does not exist`)
		change(node, func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.Node.AnsibleVars = nil })
		w.computesReady("n")
		w.exactlyOnce()
	})

	It("loses Ready when its key is deleted, and heals", func() {
		w.make(role, node)
		w.computesReady("n")
		remove(MakeSecret("ssh-key", w.ns, "", ""))
		w.halted(w.compute("n"), condition.InputReadyCondition, common.SecretMissingReason)
		w.make(MakeSecret("ssh-key", w.ns, "ssh-privatekey", "key-1"))
		w.computesReady("n")
		w.exactlyOnce()
	})

	It("shows no password in any condition, event or ConfigMap", func() {
		w.setSecret("cell1-password", "ServicePassword", "hunter2-word")
		w.setSecret("ssh-key", "ssh-privatekey", "hunter2-key")
		w.make(role, node)
		w.computesReady("n")
		w.quiet()
		for _, list := range []client.ObjectList{
			&corev1.ConfigMapList{}, &corev1.EventList{}, &novav1.NovaCellList{}, &novav1.NovaExternalComputeList{},
			&dataplanev1.OpenStackDataPlaneNodeList{}, &corev1.PodList{},
		} {
			Expect(api.List(ctx, list, client.InNamespace(w.ns))).To(Succeed())
			Expect(asText(list)).NotTo(ContainSubstring("hunter2"), "%T", list)
		}
	})
})
