package controllers_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/edpm-operators/edpm-operators/apis/common/hosted"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakekube"
)

const rolledOut = novav1.ConfigRolledOutCondition

func (w *world) secret(name string) *corev1.Secret { return MakeSecret(name, w.ns, "", "") }

// holders are the finalizers of a Secret without their prefix.
func (w *world) holders(g Gomega, secret string) []string {
	var holders []string
	for _, finalizer := range get(g, w.secret(secret)).Finalizers {
		holders = append(holders, strings.TrimPrefix(finalizer, "nova.openstack.org/"))
	}
	slices.Sort(holders)
	return holders
}

func (w *world) held(secret string, by ...string) {
	GinkgoHelper()
	Eventually(func(g Gomega) { g.Expect(w.holders(g, secret)).To(Equal(by)) }).Should(Succeed())
}

// secretOf makes a Secret with the passwords of a cell or of a Nova.
func (w *world) secretOf(name string, keysAndValues ...string) {
	GinkgoHelper()
	secret := w.secret(name)
	secret.Data = map[string][]byte{}
	for i := 0; i < len(keysAndValues); i += 2 {
		secret.Data[keysAndValues[i]] = []byte(keysAndValues[i+1])
	}
	w.make(secret)
}

// options are those lines that a host was given, of each of its runs.
func (w *world) options(host string, options ...string) []string {
	var all []string
	for _, e := range w.did(host, novav1.NovaStep) {
		var lines []string
		for _, line := range strings.Split(e.Files[novav1.GeneratedConfigKey], "\n") {
			if slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(line, o+" = ") }) && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
		all = append(all, strings.Join(lines, ", "))
	}
	return all
}

var _ = Describe("Another Secret for the computes of a cell", func() {
	var w *world
	var cell *novav1.NovaCell
	hosts := []string{"n000", "n001"}

	BeforeEach(func() {
		w = newCloud()
		cell = MakeCell("cell1", w.ns).Obj()
		// Neither host waits for the other, whichever of them comes first.
		w.make(w.role("compute").Cell("cell1").MaxUnavailable(len(hosts)).Obj())
		w.makeNodes(len(hosts), "compute")
		w.computesReady(hosts...)
		w.condition(cell, rolledOut, "True/Ready/", "All 2 pods and computes run the present configuration")
		w.held("cell1-bus", "novacell-cell1")
	})
	// rotate changes the cell while a host fails, and repairs it.
	rotate := func(former string, change func()) {
		GinkgoHelper()
		sick := w.sick(map[string]fakekube.Outcome{"n001/nova": fakekube.Failed})
		change()
		w.halted(w.compute("n001"), condition.DeploymentReadyCondition, condition.Reason(edpm.Failed))
		w.condition(cell, rolledOut, "False/ConfigRollingOut/Info", "1 of 2 pods and computes", "Others: n001", "Held until then: Secret "+former)
		remove(w.secret(former))
		Consistently(func(g Gomega) { g.Expect(w.holders(g, former)).To(Equal([]string{"novacell-cell1"})) }).Should(Succeed())
		w.restart()
		w.condition(cell, rolledOut, "False/ConfigRollingOut/Info", "Others: n001")
		Expect(w.holders(Default, former)).NotTo(BeEmpty())

		sick.heal("n001/nova")
		w.condition(cell, rolledOut, "True/Ready/", "All 2 pods and computes")
		gone(w.secret(former))
		Expect(get(Default, cell).Status.HeldSecrets).NotTo(ContainElement(former))
	}

	It("keeps the former one with the message bus until the last host has the new user", func() {
		w.make(MakeSecret("bus-2", w.ns, "transport_url", "rabbit://user2:pass2@cell1/?ssl=1"))
		rotate("cell1-bus", func() { change(cell, func(c *novav1.NovaCell) { c.Spec.CellMessageBusSecretName = "bus-2" }) })
		w.held("bus-2", "novacell-cell1")

		By("starting the manager again, which writes nothing")
		w.quiet()
		w.resync()
		Expect(w.wire.Since(0)).To(BeEmpty())

		By("deleting the cell, which holds nothing any more")
		remove(cell)
		gone(cell)
		Expect(w.holders(Default, "bus-2")).To(BeEmpty())
		Expect(w.holders(Default, "cell1-password")).To(BeEmpty())
	})

	It("gives hosts the new service user with its password, and never one of them", func() {
		w.secretOf("password-2", "ServicePassword", "password-2")
		rotate("cell1-password", func() {
			change(cell, func(c *novav1.NovaCell) { c.Spec.Secret, c.Spec.ServiceUser = "password-2", "nova2" })
		})
		Expect(slices.Compact(w.options("n001", "username", "password"))).To(Equal([]string{"username = nova, password = password-1", "username = nova2, password = password-2"}))

		By("changing both in the Secret")
		change(w.secret("password-2"), func(s *corev1.Secret) {
			s.Data = map[string][]byte{"ServiceUser": []byte("nova3\n"), "ServicePassword": []byte("password-3")}
		})
		Eventually(func() []string { return w.options("n000", "username", "password") }).Should(Equal([]string{
			"username = nova, password = password-1", "username = nova2, password = password-2", "username = nova3, password = password-3",
		}))
	})

	It("keeps the former one with an application credential", func() {
		w.secretOf("ac-1", "auth.conf", "[keystone_authtoken]\napplication_credential_id = one\n")
		w.secretOf("ac-2", "auth.conf", "[keystone_authtoken]\napplication_credential_id = two\n")
		use := func(secret string) {
			change(cell, func(c *novav1.NovaCell) {
				c.Spec.ComputeTemplates = []novav1.NovaComputeTemplate{{Roles: []string{"compute"}, CustomServiceConfigSecrets: []string{secret}}}
			})
		}
		use("ac-1")
		w.held("ac-1", "novacell-cell1")
		Eventually(func(g Gomega) { g.Expect(w.times("n000", "nova")).To(Equal(2)) }).Should(Succeed())
		w.condition(cell, rolledOut, "True/Ready/")
		rotate("ac-1", func() { use("ac-2") })
		w.held("ac-2", "novacell-cell1")
	})

	It("does not wait for a compute that was never deployed", func() {
		w.make(MakeNode("new", w.ns).Role("compute").Host("10.0.0.9").Deploy(false).Obj())
		w.halted(w.compute("new"), hostedv1.DataPlaneNodeReadyCondition, hostedv1.NodeNotReadyReason)
		w.makeMoreNodes(2, 3, "compute")
		w.computesReady("n002")
		w.condition(cell, rolledOut, "True/Ready/", "All 3 pods and computes")
	})

	It("keeps one that the spec names although it is deleted, and says so", func() {
		remove(w.secret("cell1-bus"))
		w.condition(cell, rolledOut, "True/Ready/", "Secret cell1-bus is being deleted, and is kept as long as the spec names it: name another one")
		w.ready(cell)
		w.make(MakeSecret("bus-2", w.ns, "transport_url", "rabbit://user2:pass2@cell1/?ssl=1"))
		change(cell, func(c *novav1.NovaCell) { c.Spec.CellMessageBusSecretName = "bus-2" })
		gone(w.secret("cell1-bus"))
		w.condition(cell, rolledOut, "True/Ready/", "All 2")
	})
})

var _ = Describe("Secrets that the operators may read and not change", func() {
	It("are not held, which the condition says until the configuration is rolled out", func() {
		w := newPlace()
		w.make(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "read"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "watch", "create"}},
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"patch"}, ResourceNames: []string{"cell1-compute-config", "cell1-migration-ca", "cell1-migration-key"}},
		}}, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "read"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "read"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: managerConfig.Impersonate.UserName}},
		})
		w.running = startManager(w.ns, w.opts)
		w.makeCell("cell1")
		cell := MakeCell("cell1", w.ns).Obj()
		w.condition(cell, rolledOut, "True/Ready/", "Secret cell1-bus cannot be held, so do not delete it")
		w.calm()
		remove(cell)
		gone(cell)
	})
})

var _ = Describe("Another Secret for a Nova", func() {
	// start makes a Nova with databases, a host and pods.
	start := func() (*world, *novav1.Nova) {
		GinkgoHelper()
		w, server := newOpenStack()
		startSets(w.ns)
		nova := MakeNova("nova", w.ns, "", "")
		w.makeNodes(1, "compute")
		up(server, "n000")
		w.computesReady("n000")
		w.condition(nova, rolledOut, "True/Ready/", "run the present configuration")
		w.held("osp-secret", "nova-nova")
		w.held("rabbitmq-transport-url-nova-cell1-transport", "nova-nova", "novacell-nova-cell1")
		w.secretOf("osp-2", "NovaPassword", "p2", "NovaAPIDatabasePassword", "a2", "NovaCellDatabasePassword", "d2")
		w.make(MakeSecret("bus-2", w.ns, "transport_url", "rabbit://user2:x@cell1"))
		server.Accept("nova2", "p2")
		return w, nova
	}
	// rotate changes service user, database users and the bus of cell1 in one write.
	rotate := func(nova *novav1.Nova) {
		GinkgoHelper()
		change(nova, func(n *novav1.Nova) {
			n.Spec.Secret, n.Spec.ServiceUser, n.Spec.APIDatabaseUser = "osp-2", "nova2", "api2"
			for name, t := range n.Spec.CellTemplates {
				t.CellDatabaseUser = "cell2"
				if name == "cell1" {
					t.CellMessageBusSecretName = "bus-2"
				}
				n.Spec.CellTemplates[name] = t
			}
		})
	}
	ended := func(w *world, nova *novav1.Nova) {
		GinkgoHelper()
		gone(w.secret("osp-secret"))
		gone(w.secret("rabbitmq-transport-url-nova-cell1-transport"))
		w.condition(nova, rolledOut, "True/Ready/", "run the present configuration")
		w.held("osp-2", "nova-nova")
		w.held("bus-2", "nova-nova", "novacell-nova-cell1")
		Expect(slices.Compact(w.options("n000", "username", "password"))).To(Equal([]string{"username = nova, password = p", "username = nova2, password = p2"}))
		Expect(slices.Compact(w.options("n000", "transport_url"))).To(Equal([]string{"transport_url = rabbit://cell1", "transport_url = rabbit://user2:x@cell1"}))
		for _, set := range []string{"nova-api", "nova-scheduler", "nova-cell0-conductor", "nova-cell1-conductor"} {
			config := string(get(Default, w.secret(set+"-config-data")).Data[novav1.GeneratedConfigKey])
			Expect(config).To(And(ContainSubstring("cell2:d2@"), ContainSubstring("username = nova2"), ContainSubstring("password = p2")), set)
		}
	}

	It("keeps the former ones until all cells and the API run the new configuration", func() {
		w, nova := start()
		sick := w.sick(map[string]fakekube.Outcome{"n000/nova": fakekube.Failed})
		rotate(nova)
		w.halted(w.compute("n000"), condition.DeploymentReadyCondition, condition.Reason(edpm.Failed))
		w.condition(nova, rolledOut, "False/ConfigRollingOut/Info", "Others: n000", "Held until then: Secret osp-secret, rabbitmq-transport-url-nova-cell1-transport")
		remove(w.secret("osp-secret"), w.secret("rabbitmq-transport-url-nova-cell1-transport"))
		Expect(w.holders(Default, "osp-secret")).To(Equal([]string{"nova-nova"}))
		Eventually(func(g Gomega) {
			mappings := get(g, nova).Status.ChangedMappings
			g.Expect(mappings).NotTo(BeEmpty(), "cells are mapped with other credentials")
			g.Expect(get(g, w.secret("nova-cell0-conductor-config-data")).Data).To(HaveKeyWithValue("cell-mappings", []byte(mappings)), "the super conductor restarts")
		}).Should(Succeed())
		Expect(get(Default, w.secret("nova-cell1-conductor-config-data")).Data).NotTo(HaveKey("cell-mappings"), "it reaches no other cell")

		sick.heal("n000/nova")
		w.computesReady("n000")
		ended(w, nova)

		By("deleting it")
		remove(nova)
		gone(nova)
		Expect(w.holders(Default, "osp-2")).To(BeEmpty())
	})

	Context("ends in the same way even if the manager dies at any write", func() {
		eachDeath(2, 8, func(rng *rand.Rand) {
			w, nova := start()
			w.calm()
			at, answered := 1+rng.IntN(40), rng.IntN(2) == 0
			By(fmt.Sprintf("dying at write %d, answered: %v, in %s", at, answered, w.ns))
			cut := w.wire.cutAfter(at, answered)
			rotate(nova)
			remove(w.secret("osp-secret"), w.secret("rabbitmq-transport-url-nova-cell1-transport"))
			cut.orUntil(func(g Gomega) {
				g.Expect(api.Get(ctx, client.ObjectKeyFromObject(w.secret("osp-secret")), w.secret("osp-secret"))).NotTo(Succeed())
			})
			w.restart()
			ended(w, nova)
			w.exactlyOnce()
		})
	})
})

var _ = Describe("A Nova whose cells have different types of queues", func() {
	It("is mapped with the type of each cell, and without a type while all have one", func() {
		w, _ := newOpenStack()
		startSets(w.ns)
		nova := MakeNova("nova", w.ns, "", "")
		urlOf := func(g Gomega, cell string) string {
			config := string(get(g, w.secret("nova-"+cell+"-mapping-config-data")).Data[novav1.GeneratedConfigKey])
			_, url, _ := strings.Cut(config, "transport_url = ")
			url, _, _ = strings.Cut(url, "\n")
			return url
		}
		// mapped expects the URLs by which cells are mapped, and how often they were so far.
		mapped := func(urls map[string]string, times map[string]int) {
			GinkgoHelper()
			Eventually(func(g Gomega) {
				for cell, url := range urls {
					g.Expect(urlOf(g, cell)).To(Equal(url), cell)
				}
			}).Should(Succeed())
			w.condition(nova, novav1.NovaCellMappingsReadyCondition, "True/Ready/")
			w.quiet()
			got := map[string]int{}
			for name, n := range w.databases.times() {
				if cell, _, isMapping := strings.Cut(strings.TrimPrefix(name, "nova-"), "-mapping-"); isMapping {
					got[cell] += n
				}
			}
			Expect(got).To(Equal(times))
		}
		w.condition(nova, novav1.NovaCellMappingsReadyCondition, "True/Ready/")
		mapped(map[string]string{"cell0": "rabbit://cell0", "cell1": "rabbit://cell1"}, map[string]int{"cell0": 1, "cell1": 1})

		By("adding a cell with classic queues")
		const quorum = "amqp_durable_queues=true&rabbit_quorum_queue=true&rabbit_transient_quorum_queue=true"
		w.secretOf("bus-2", "transport_url", "rabbit://cell2?ssl=1", "quorumqueues", "false")
		change(nova, func(n *novav1.Nova) {
			n.Spec.CellTemplates["cell2"] = novav1.NovaCellTemplate{CellDatabaseInstance: "openstack", CellMessageBusSecretName: "bus-2"}
		})
		w.condition(&novav1.NovaCell{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "nova-cell2"}}, condition.InputReadyCondition, "True/Ready/")
		mapped(map[string]string{
			"cell0": "rabbit://cell0", "cell1": "rabbit://cell1?" + quorum, "cell2": "rabbit://cell2?ssl=1&" + strings.ReplaceAll(quorum, "true", "false"),
		}, map[string]int{"cell0": 1, "cell1": 2, "cell2": 1})
		Expect(get(Default, w.secret("nova-api-config-data")).Data[novav1.GeneratedConfigKey]).To(ContainSubstring("transport_url = rabbit://cell0\n"), "its own message bus")

		By("moving it to quorum queues in another virtual host")
		w.secretOf("bus-3", "transport_url", "rabbit://cell2/other", "quorumqueues", "true")
		change(nova, func(n *novav1.Nova) {
			two := n.Spec.CellTemplates["cell2"]
			two.CellMessageBusSecretName = "bus-3"
			n.Spec.CellTemplates["cell2"] = two
		})
		mapped(map[string]string{"cell0": "rabbit://cell0", "cell1": "rabbit://cell1", "cell2": "rabbit://cell2/other"}, map[string]int{"cell0": 1, "cell1": 3, "cell2": 2})
	})
})

var _ = Describe("Databases that are verified from now on", func() {
	It("restart conductors that reach other cells once all cells are mapped so", func() {
		w, _ := newOpenStack()
		startSets(w.ns)
		nova := MakeNova("nova", w.ns, "", "")
		w.condition(nova, novav1.NovaCellMappingsReadyCondition, "True/Ready/")
		before := get(Default, nova).Status.CellMappings
		Expect(before).NotTo(BeEmpty())
		w.secretOf("bundle", "tls-ca-bundle.pem", "authorities")
		change(nova, func(n *novav1.Nova) { n.Spec.CABundleSecretName, n.Spec.DatabaseTLS = "bundle", true })
		Eventually(func(g Gomega) {
			status := get(g, nova).Status
			g.Expect(status.ChangedMappings).To(And(Not(BeEmpty()), Equal(status.CellMappings), Not(Equal(before))))
			g.Expect(get(g, w.secret("nova-cell0-conductor-config-data")).Data).To(HaveKeyWithValue("cell-mappings", []byte(status.ChangedMappings)))
		}).Should(Succeed())
		Expect(get(Default, w.secret("nova-cell1-conductor-config-data")).Data).NotTo(HaveKey("cell-mappings"), "it reaches no other cell")
	})
})

// startPods has all pods ready, until both that the cell counts are.
func (w *world) startPods(cell *novav1.NovaCell) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		sets := &appsv1.StatefulSetList{}
		g.Expect(api.List(ctx, sets, client.InNamespace(w.ns))).To(Succeed())
		for i := range sets.Items {
			readySet(ctx, &sets.Items[i])
		}
		g.Expect(shown(g, cell, rolledOut)).To(HavePrefix("True/Ready/: All 2 pods"))
	}).Should(Succeed())
}

var _ = Describe("A cell with pods", func() {
	It("waits for them before it releases a Secret", func() {
		w := newWorld(func(o *controllers.Options) { o.Images.NovaConductor = "conductor:1" })
		w.databases = startDatabases(w.ns)
		cell := MakeCell("cell1", w.ns).Obj()
		cell.Spec.CellDatabaseHostname = "database.example"
		w.secretOf("cell1-password", "ServicePassword", "p", "CellDatabasePassword", "d")
		w.secretOf("password-2", "ServicePassword", "p", "CellDatabaseUser", "other", "CellDatabasePassword", "d2")
		ironic := &novav1.NovaCompute{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "ironic"}, Spec: novav1.NovaComputeSpec{CellName: "cell1"}}
		w.make(MakeSecret("cell1-bus", w.ns, "transport_url", "rabbit://cell1"), cell, ironic)
		w.condition(cell, rolledOut, "False/ConfigRollingOut/Info", "0 of 2 pods and computes", "Others: cell1-conductor, ironic")
		w.startPods(cell)
		Expect(get(Default, cell).Status.Conductor.UpdatedCount).To(BeEquivalentTo(1))

		change(cell, func(c *novav1.NovaCell) { c.Spec.Secret = "password-2" })
		w.condition(cell, rolledOut, "False/ConfigRollingOut/Info", "1 of 2 pods and computes", "Others: cell1-conductor", "Held until then: Secret cell1-password")
		w.held("cell1-password", "novacell-cell1")
		w.startPods(cell)
		Eventually(func(g Gomega) { g.Expect(w.holders(g, "cell1-password")).To(BeEmpty()) }).Should(Succeed())
		Expect(string(get(Default, w.secret("cell1-conductor-config-data")).Data[novav1.GeneratedConfigKey])).To(ContainSubstring("other:d2@database.example"))
	})
})
