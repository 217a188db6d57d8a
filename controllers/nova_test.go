package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/nova"
	. "github.com/edpm-operators/edpm-operators/test/builders"
)

var _ = Describe("Nova", func() {
	var w *world
	var nova *novav1.Nova

	BeforeEach(func() {
		w = newWorld()
		w.make(MakeSecret("osp-secret", w.ns, "NovaPassword", "password-1"))
		nova = MakeNova("nova", w.ns, "osp-secret", "cell1")
	})
	cell := func(name string) *novav1.NovaCell { return MakeCell(name, w.ns).Obj() }
	bus := func(cell string) {
		GinkgoHelper()
		w.make(MakeSecret("rabbitmq-transport-url-nova-"+cell+"-transport", w.ns, "transport_url", "rabbit://"+cell))
	}

	It("creates a NovaCell of each cell, with its passwords, and is Ready once they are", func() {
		w.make(nova)
		w.halted(nova, novav1.NovaAllCellsReadyCondition, novav1.CellsNotReadyReason, "0/2 cells are Ready", "NovaCell nova-cell0 is not")
		w.halted(cell("nova-cell1"), condition.InputReadyCondition, common.SecretMissingReason, `Secret "rabbitmq-transport-url-nova-cell1-transport" does not exist`)
		bus("cell0")
		bus("cell1")
		w.ready(nova, cell("nova-cell0"), cell("nova-cell1"))
		Expect(get(Default, nova).Status.CellsSummary).To(Equal("2/2"))
		one := get(Default, cell("nova-cell1"))
		Expect(one.Spec.CellName + " " + one.Spec.Secret).To(Equal("cell1 nova-cell1"))
		Expect(metav1.GetControllerOf(one).Name).To(Equal("nova"))
		Expect(get(Default, MakeSecret("nova-cell1", w.ns, "", "")).Data).To(Equal(map[string][]byte{"ServiceUser": []byte("nova"), "ServicePassword": []byte("password-1")}))
		Expect(one.Status.ComputeConfigSecretName).To(Equal("nova-cell1-compute-config"))

		By("having no configuration for computes of cell0")
		zero := get(Default, cell("nova-cell0"))
		Expect(zero.Status.ComputeConfigSecretName).To(BeEmpty())
		Expect(zero.Status.Conditions.Get(novav1.NovaComputeServiceConfigReadyCondition)).To(BeNil())
	})

	It("waits for its cells before it is Ready", func() {
		bus("cell0")
		bus("cell1")
		w.make(nova)
		Eventually(func(g Gomega) bool {
			ready := shown(g, nova, condition.ReadyCondition)
			summary := nova.Status.CellsSummary
			if len(ready) > 4 && ready[:4] == "True" {
				Expect(summary).To(Equal("2/2"), "when it says that it is Ready")
				return true
			}
			return false
		}).WithPolling(1).Should(BeTrue())
	})

	It("says what is wrong with its Secret, and heals", func() {
		nova.Spec.Secret = "other"
		w.make(nova)
		w.halted(nova, condition.InputReadyCondition, common.SecretMissingReason, `Secret "other" does not exist`)
		w.make(MakeSecret("other", w.ns, "x", "y"))
		w.halted(nova, condition.InputReadyCondition, common.SecretKeyMissingReason, `Secret "other" has no key "NovaPassword"`)
		w.calm()
		w.setSecret("other", "NovaPassword", "p")
		bus("cell0")
		bus("cell1")
		w.ready(nova)
	})

	It("carries a changed password to its cells", func() {
		bus("cell0")
		bus("cell1")
		w.make(nova)
		w.ready(nova)
		before := get(Default, cell("nova-cell1")).Status.Hash
		w.setSecret("osp-secret", "NovaPassword", "password-2")
		Eventually(func(g Gomega) map[string]string { return get(g, cell("nova-cell1")).Status.Hash }).ShouldNot(Equal(before))
		w.ready(nova)
		Expect(string(get(Default, MakeSecret("nova-cell1-compute-config", w.ns, "", "")).Data["01-nova.conf"])).To(ContainSubstring("password = password-2\n"))
	})

	It("keeps a cell that has computes, and says so", func() {
		for _, c := range []string{"cell0", "cell1", "cell2"} {
			bus(c)
		}
		nova.Spec.CellTemplates["cell2"] = novav1.NovaCellTemplate{}
		w.make(nova, MakeSecret("ssh-key", w.ns, "ssh-privatekey", "k"), w.role("compute").Cell("nova-cell2").Obj(), MakeNode("n", w.ns).Role("compute").Obj())
		w.computesReady("n")
		w.ready(nova)
		change(nova, func(n *novav1.Nova) { delete(n.Spec.CellTemplates, "cell2") })
		w.halted(nova, novav1.NovaAllCellsReadyCondition, novav1.ComputesRemainingReason, "NovaCell nova-cell2 has 1 computes: delete their nodes and NovaComputes first, or add the cell to spec.cellTemplates again")
		w.calm()
		w.computesReady("n")

		By("removing the node")
		remove(w.node("n"))
		gone(w.node("n"))
		gone(cell("nova-cell2"))
		w.ready(nova)
		Expect(get(Default, nova).Status.CellsSummary).To(Equal("2/2"))
	})

	It("leaves a NovaCell of another owner alone, says so, and creates the others", func() {
		theirs := cell("nova-cell1")
		owner := get(Default, MakeSecret("osp-secret", w.ns, "", ""))
		theirs.OwnerReferences = ownedBy("osp-secret", string(owner.UID), "v1", "Secret")
		nova.Spec.CellTemplates["cell2"] = novav1.NovaCellTemplate{}
		w.make(theirs, nova)
		w.halted(nova, novav1.NovaAllCellsReadyCondition, common.ConflictReason, `NovaCell "nova-cell1" belongs to Secret/osp-secret`)
		get(Default, cell("nova-cell2"))
		w.calm()
		remove(theirs)
		bus("cell0")
		bus("cell1")
		bus("cell2")
		annotate(nova, "look", "again")
		w.ready(nova)
	})
})

var _ = Describe("A cell", func() {
	var w *world

	BeforeEach(func() { w = newWorld() })
	config := func(g Gomega) string {
		return string(get(g, MakeSecret("c-compute-config", w.ns, "", "")).Data[novav1.GeneratedConfigKey])
	}
	make := func(password, url string) *novav1.NovaCell {
		GinkgoHelper()
		c := MakeCell("c", w.ns).Obj()
		w.make(MakeSecret("c-password", w.ns, "ServicePassword", password), MakeSecret("c-bus", w.ns, "transport_url", url), c)
		return c
	}

	It("generates the configuration of its computes, and again when its inputs change", func() {
		c := make("pa$$word\n", "rabbit://u:p$1@h/?ssl=1\n")
		w.ready(c)
		Expect(config(Default)).To(And(
			ContainSubstring("\ntransport_url = rabbit://u:p$$1@h/?ssl=1\n"), ContainSubstring("\npassword = pa$$$$word\n"),
			ContainSubstring("\nauth_url = http://keystone.example:5000\n"), ContainSubstring("\nusername = nova\n"),
			ContainSubstring("[vnc]\nenabled = False\n"), ContainSubstring("region_name = regionOne\n"),
		))
		hash := get(Default, c).Status.Hash
		Expect(hash).To(HaveKey("c-compute-config"))

		By("giving it a console")
		change(c, func(c *novav1.NovaCell) { c.Spec.NoVNCProxyBaseURL = "http://console.example/vnc_lite.html" })
		Eventually(config).Should(And(ContainSubstring("[vnc]\nenabled = True\n"), ContainSubstring("novncproxy_base_url = http://console.example/vnc_lite.html\n")))
		w.ready(c)
		Expect(get(Default, c).Status.Hash).NotTo(Equal(hash))

		By("a user changing the Secret by hand")
		w.setSecret("c-compute-config", "01-nova.conf", "mine")
		Eventually(config).Should(ContainSubstring("enabled = True"))
	})

	It("keeps the configuration that another version has made until its inputs change, so that no compute is configured again", func() {
		const password, url = "p", "rabbit://u:p@h/"
		c := MakeCell("c", w.ns).Obj()
		w.make(MakeSecret("c-password", w.ns, "ServicePassword", password), c)
		w.halted(c, condition.InputReadyCondition, common.SecretMissingReason, `Secret "c-bus" does not exist`)

		By("an update from a version that did not note what it was made from")
		made := nova.Config{TransportURL: url, ServicePassword: password, KeystoneAuthURL: c.Spec.KeystoneAuthURL, ServiceUser: c.Spec.ServiceUser, Keystone: c.Spec.Keystone}
		text, err := made.Compute()
		Expect(err).NotTo(HaveOccurred())
		text = "# earlier\n" + text
		data := map[string][]byte{novav1.GeneratedConfigKey: []byte(text)}
		secret := MakeSecret("c-compute-config", w.ns, novav1.GeneratedConfigKey, text)
		secret.OwnerReferences, secret.Annotations = ownedBy(c.Name, string(c.UID), novav1.GroupVersion.String(), "NovaCell"), map[string]string{"edpm.openstack.org/applied-hash": "earlier"}
		Expect(api.Create(ctx, secret, client.FieldOwner("edpm-novacell"))).To(Succeed())
		Expect(api.Status().Patch(ctx, c, jsonPatch(`{"status":{"computeConfigSecretName":"c-compute-config","hash":{"c-compute-config":"`+inputs.Digest(data)+`"}}}`))).To(Succeed())
		w.make(MakeSecret("c-bus", w.ns, "transport_url", url))
		w.ready(c)
		Expect(config(Default)).To(Equal(text))
		Expect(get(Default, c).Status.ComputeConfigInputs).NotTo(BeEmpty())
		w.calm()

		By("changing an input")
		w.setSecret("c-password", "ServicePassword", "changed")
		Eventually(config).Should(And(ContainSubstring("password = changed\n"), Not(ContainSubstring("# earlier"))))
		w.ready(c)

		By("deleting the Secret, which takes the settings of the present version")
		remove(secret)
		Eventually(config).Should(ContainSubstring("password = changed\n"))
	})

	It("uses quorum queues, and keeps them while its virtual host is the same", func() {
		c := make("x", "rabbit://u:p@h/one")
		w.ready(c)
		quorum := ContainSubstring("\nrabbit_quorum_queue = true\n")
		Expect(config(Default)).To(quorum)

		By("its Secret asking for classic queues")
		classic := func(url string) {
			change(MakeSecret("c-bus", w.ns, "", ""), func(s *corev1.Secret) {
				s.Data = map[string][]byte{"transport_url": []byte(url), "quorumqueues": []byte("false")}
			})
		}
		classic("rabbit://u:changed@h/one")
		w.halted(c, condition.InputReadyCondition, novav1.QueueTypeChangedReason, "Secret c-bus", "is in use with quorum queues", "set transport_url to another virtual host, or quorumqueues to true")
		Expect(config(Default)).To(And(quorum, ContainSubstring("u:p@h/one")))
		Expect(asText(get(Default, c))).NotTo(ContainSubstring("changed"))
		w.calm()

		By("reaching it by another port, and one host more")
		classic("rabbit://u:changed@h:5671,u:changed@i:5671/one?ssl=1")
		w.halted(c, condition.InputReadyCondition, novav1.QueueTypeChangedReason, "is in use with quorum queues")
		Expect(config(Default)).To(And(quorum, ContainSubstring("u:p@h/one")))

		By("giving it another virtual host")
		classic("rabbit://u:changed@h/two")
		w.ready(c)
		Expect(config(Default)).To(And(ContainSubstring("\namqp_durable_queues = false\n"), Not(ContainSubstring("quorum"))))
	})

	It("keeps its queues when it was restored from a backup without its status", func() {
		bus := MakeSecret("c-bus", w.ns, "transport_url", "rabbit://u:p@h/one")
		bus.Data["quorumqueues"] = []byte("false")
		c := MakeCell("c", w.ns).Obj()
		w.make(bus, MakeSecret("c-password", w.ns, "ServicePassword", "x"), c)
		w.ready(c)
		Expect(config(Default)).NotTo(ContainSubstring("quorum"))
		change(MakeSecret("c-bus", w.ns, "", ""), func(s *corev1.Secret) { delete(s.Data, "quorumqueues") })
		w.ready(c)

		Eventually(func(g Gomega) {
			c := get(g, c)
			c.Status = novav1.NovaCellStatus{}
			g.Expect(api.Status().Update(ctx, c)).To(Succeed())
		}).Should(Succeed())
		annotate(c, "look", "again")
		w.ready(c)
		Expect(get(Default, c).Status.MessageBus).To(HaveField("QuorumQueues", false))
		Expect(config(Default)).NotTo(ContainSubstring("quorum"))
	})

	DescribeTable("refuses what would become other configuration",
		func(password, url string) {
			c := make(password, url)
			w.halted(c, novav1.NovaComputeServiceConfigReadyCondition, novav1.InvalidConfigReason, "a value has a line break", "check the Secrets c-password and c-bus")
			Expect(get(Default, c).Status.ComputeConfigSecretName).To(BeEmpty())
			Expect(asText(get(Default, c))).NotTo(ContainSubstring("hunter2"))
			w.calm()
			w.setSecret("c-password", "ServicePassword", "good")
			w.setSecret("c-bus", "transport_url", "rabbit://good")
			w.ready(c)
		},
		Entry("a line break in the password", "hunter2\n[DEFAULT]\ndebug = true", "rabbit://x"),
		Entry("a line break in the message bus", "x", "rabbit://hunter2\n\ndebug = true"),
	)

	It("runs no conductor, and no compute in pods, with the name or the database of another one", func() {
		w := newWorld(func(o *controllers.Options) {
			o.Images.NovaConductor, o.Images.NovaCompute = "conductor:1", "compute:1"
		})
		c := MakeCell("c", w.ns).Obj()
		c.Spec.CellDatabaseHostname = "db.example"
		c.Spec.ConductorServiceTemplate.CustomServiceConfig = "[database]\nconnection = mysql+pymysql://u:hunter2@elsewhere/d\n"
		secret := MakeSecret("c-password", w.ns, "ServicePassword", "p")
		secret.Data["CellDatabasePassword"] = []byte("d")
		pods := &novav1.NovaCompute{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "p"}, Spec: novav1.NovaComputeSpec{CellName: "c", CustomServiceConfig: "[DEFAULT]\nhost = other\n"}}
		w.make(secret, MakeSecret("c-bus", w.ns, "transport_url", "rabbit://x"), c, pods)
		w.halted(c, condition.ServiceConfigReadyCondition, novav1.InvalidConfigReason,
			"spec.conductorServiceTemplate.customServiceConfig: line 2: [database] connection connects it to the database of another cell", "cellDatabaseHostname")
		w.halted(pods, condition.ServiceConfigReadyCondition, novav1.InvalidConfigReason, "spec.customServiceConfig: line 2: [DEFAULT] host", "each pod has its own name")
		Expect(asText(get(Default, c).Status)).NotTo(ContainSubstring("hunter2"))
		sets := &appsv1.StatefulSetList{}
		Expect(api.List(ctx, sets, client.InNamespace(w.ns))).To(Succeed())
		Expect(sets.Items).To(BeEmpty())
		w.calm()
	})

	It("keeps its computes deployed with the last good configuration while its inputs are wrong", func() {
		cloud := newCloud()
		cloud.make(cloud.role("compute").Cell("cell1").Obj(), MakeNode("n", cloud.ns).Role("compute").Obj())
		cloud.computesReady("n")
		cloud.setSecret("cell1-bus", "other", "x")
		cloud.halted(cloud.compute("n"), novav1.NovaCellReadyCondition, novav1.CellNotReadyReason)
		cloud.nothingRuns()
		cloud.setSecret("cell1-bus", "transport_url", "rabbit://user:pass@cell1/?ssl=1")
		cloud.computesReady("n")
		cloud.exactlyOnce()
	})

	It("says which field is missing when a user creates it without", func() {
		c := &novav1.NovaCell{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "c"}}
		w.make(c)
		w.halted(c, condition.InputReadyCondition, novav1.InvalidSpecReason, "is empty: set it, or have a Nova create this cell")
		w.calm()
	})
})
