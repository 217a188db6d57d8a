package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	. "github.com/edpm-operators/edpm-operators/test/builders"
)

var _ = Describe("Consoles of guests", func() {
	const ready = novav1.LiveMigrationReadyCondition
	var w *world
	var cell *novav1.NovaCell

	// withProxy has the cell run a console proxy.
	withProxy := func() {
		GinkgoHelper()
		change(cell, func(c *novav1.NovaCell) {
			c.Spec.NoVNCProxyBaseURL, c.Spec.CellDatabaseHostname = "http://console.example/vnc_lite.html", "db"
			c.Spec.NoVNCProxyServiceTemplate.Replicas = ptr.To[int32](1)
		})
		w.condition(cell, novav1.ConsoleCAReadyCondition, "True/Ready/", "Secret cell1-console-ca signs the certificates of the console proxy")
	}
	computes := func(addresses ...string) {
		GinkgoHelper()
		w.make(w.role("compute").Cell("cell1").Obj())
		for i, address := range addresses {
			w.make(MakeNode(nodeNames(len(addresses))[i], w.ns).Role("compute").Host(address).Obj())
		}
		w.computesReady(nodeNames(len(addresses))...)
	}
	authority := func() *corev1.Secret { return MakeSecret(novav1.ConsoleCASecretName("cell1"), w.ns, "", "") }
	BeforeEach(func() {
		w = newCloud(patient)
		cell = MakeCell("cell1", w.ns).Obj()
	})

	It("are offered over TLS by a new compute of a cell with a console proxy, in one run", func() {
		withProxy()
		computes("192.0.2.1", "192.0.2.2")
		nodes := nodeNames(2)
		keys := map[string]bool{}
		for _, name := range nodes {
			w.condition(w.compute(name), ready, "True/Ready/", "2 computes")
			Expect(w.steps(name)).To(Equal([]string{"install-os", "libvirt-tls", "libvirt", "nova", "live-migration"}))
			Expect(w.last(name, "libvirt").Vars).To(HaveKeyWithValue("edpm_libvirt_console_tls", true))
			files := w.last(name, "libvirt-tls").Files
			Expect(files).To(And(HaveKey("console.crt"), HaveKey("console-ca.crt"), HaveKey("tls.crt")))
			keys[files["console.key"]] = true
			Expect(shown(Default, w.compute(name), ready)).NotTo(ContainSubstring("in clear"))
		}
		Expect(keys).To(HaveLen(2), "each host has a key of its own")

		By("giving no host the key of the authority")
		key := string(get(Default, authority()).Data["tls.key"])
		for _, e := range w.hosts.Book() {
			for _, content := range e.Files {
				Expect(content).NotTo(ContainSubstring(key))
			}
		}
		By("restarting the manager, which writes nothing")
		w.quiet()
		w.resync()
		Expect(w.wire.Since(0)).To(BeEmpty())
		w.exactlyOnce()
	})

	It("stay as they are on a host that was deployed before, until a person runs its steps again", func() {
		computes("192.0.2.1")
		name := nodeNames(1)[0]
		Expect(w.last(name, "libvirt-tls").Files).NotTo(HaveKey("console.crt"))
		Expect(get(Default, cell).Status.ConsoleCA).To(BeNil(), "a cell without a console proxy needs none")
		hashes := get(Default, w.compute(name)).Status.Hash
		withProxy()
		w.condition(w.compute(name), ready, "True/Ready/", "Consoles cross the network in clear", "kubectl edpm rerun "+name)
		w.quiet()
		after := get(Default, w.compute(name)).Status
		Expect(after.Hash).To(HaveKeyWithValue("libvirt", hashes["libvirt"]))
		Expect(after.Hash).To(HaveKeyWithValue("libvirt-tls", hashes["libvirt-tls"]))
		Expect(w.times(name, "libvirt-tls")+w.times(name, "libvirt")).To(Equal(2), "the proxy should run nothing of libvirt on the host")

		annotate(w.node(name), common.RerunAnnotation, "now")
		Eventually(func() any { return w.last(name, "libvirt").Vars }).Should(HaveKeyWithValue("edpm_libvirt_console_tls", true))
		Expect(w.last(name, "libvirt-tls").Files).To(HaveKey("console.crt"))
		Eventually(func() string { return shown(Default, w.compute(name), ready) }).Should(And(HavePrefix("True/Ready/"), Not(ContainSubstring("in clear"))))
		w.quiet()
		Expect(w.times(name, "libvirt-tls")).To(Equal(2))
	})

	It("keep their certificates when the cell runs no console proxy any more", func() {
		withProxy()
		computes("192.0.2.1")
		name := nodeNames(1)[0]
		change(cell, func(c *novav1.NovaCell) { c.Spec.NoVNCProxyServiceTemplate.Replicas = nil })
		w.quiet()
		Expect(w.times(name, "libvirt-tls") + w.times(name, "libvirt")).To(Equal(2))
		w.condition(cell, novav1.ConsoleCAReadyCondition, "True/Ready/")
	})

	It("get certificates of another authority when theirs is lost", func() {
		withProxy()
		computes("192.0.2.1")
		name := nodeNames(1)[0]
		before := w.last(name, "libvirt-tls").Files
		remove(authority())
		Eventually(func() any { return w.last(name, "libvirt-tls").Files["console-ca.crt"] }).ShouldNot(Equal(before["console-ca.crt"]))
		after := w.last(name, "libvirt-tls").Files
		Expect(after).To(HaveKeyWithValue("tls.crt", before["tls.crt"]), "live migration has an authority of its own")
		Expect(w.times(name, "libvirt")).To(Equal(1), "a certificate should not restart libvirt")

		By("saying what is wrong with one that cannot be used, and leaving the host alone")
		w.quiet()
		change(authority(), func(s *corev1.Secret) { s.Data["tls.crt"] = []byte("x") })
		w.condition(cell, novav1.ConsoleCAReadyCondition, "False/"+string(novav1.ConsoleCAInvalidReason)+"/Error", "Secret cell1-console-ca: key tls.crt has no certificate", "delete it")
		w.quiet()
		Expect(w.last(name, "libvirt-tls").Files).To(Equal(after))
	})
})
