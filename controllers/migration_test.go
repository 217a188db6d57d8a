package controllers_test

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/keyutil"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/migration/certificates"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakekube"
)

// authority is the Secret with the authority of live migrations of a cell.
func (w *world) authority(cell string) *corev1.Secret {
	return MakeSecret(novav1.MigrationCASecretName(cell), w.ns, "", "")
}

// moves are how often the steps of live migration were run on a host.
func (w *world) moves(host string) []int {
	return []int{w.times(host, "libvirt-tls"), w.times(host, "libvirt"), w.times(host, "nova"), w.times(host, "live-migration")}
}

// last is the last execution of a step on a host.
func (w *world) last(host, step string) fakekube.Execution {
	GinkgoHelper()
	all := w.did(host, step)
	Expect(all).NotTo(BeEmpty(), "%s should be run on %s", step, host)
	return all[len(all)-1]
}

// verified returns the certificate of libvirt on a host if it is valid for its address.
func verified(files map[string]string, address string) *x509.Certificate {
	GinkgoHelper()
	return verify(files, [3]string{"tls.crt", "tls.key", "ca.crt"}, address)
}

// verifiedOfQEMU returns that of QEMU.
func verifiedOfQEMU(files map[string]string, address string) *x509.Certificate {
	GinkgoHelper()
	return verify(files, [3]string{"qemu.crt", "qemu.key", "qemu-ca.crt"}, address)
}

func verify(files map[string]string, names [3]string, address string) *x509.Certificate {
	GinkgoHelper()
	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM([]byte(files[names[2]]))).To(BeTrue())
	block, _ := pem.Decode([]byte(files[names[0]]))
	Expect(block).NotTo(BeNil())
	leaf, err := x509.ParseCertificate(block.Bytes)
	Expect(err).NotTo(HaveOccurred())
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: address, KeyUsages: []x509.ExtKeyUsage{usage}})
		Expect(err).NotTo(HaveOccurred())
	}
	key, err := keyutil.ParsePrivateKeyPEM([]byte(files[names[1]]))
	Expect(err).NotTo(HaveOccurred())
	Expect(key.(*ecdsa.PrivateKey).Public()).To(Equal(leaf.PublicKey))
	return leaf
}

var _ = Describe("Live migration", func() {
	const ready = novav1.LiveMigrationReadyCondition
	var w *world

	// says waits until a condition is False for the reason, and Ready is True.
	says := func(obj judged, t condition.Type, reason condition.Reason, parts ...string) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			got := shown(g, obj, t)
			g.Expect(got).To(HavePrefix("False/" + string(reason) + "/"))
			for _, part := range parts {
				g.Expect(got).To(ContainSubstring(part))
			}
			isReady(g, obj)
		}).Should(Succeed())
	}
	// computes makes computes of cell1 that are annotated at once.
	computes := func(addresses map[string]string) {
		GinkgoHelper()
		w.make(w.role("compute").Cell("cell1").Obj())
		for name, address := range addresses {
			w.make(MakeNode(name, w.ns).Role("compute").Host(address).Obj())
		}
	}
	BeforeEach(func() { w = newCloud(patient) })
	pair := map[string]string{"a": "192.0.2.1", "b": "2001:db8::2"}

	It("gives each compute of a cell its certificate, its address and its peers, once", func() {
		computes(pair)
		w.computesReady("a", "b")
		for name, address := range pair {
			w.condition(w.compute(name), ready, "True/Ready/", "Guests can be moved within NovaCell cell1, which has 2 computes; this one is reached at "+address)
			Expect(w.steps(name)).To(Equal([]string{"install-os", "libvirt-tls", "libvirt", "nova", "live-migration"}))
			tls := w.last(name, "libvirt-tls")
			verified(tls.Files, address)
			verified(tls.Files, name)
			Expect(tls.Vars).To(HaveKeyWithValue("edpm_libvirt_image", "libvirt:1"))
			Expect(w.last(name, "libvirt").Vars).To(HaveKeyWithValue("edpm_migration_address", address))
			verifiedOfQEMU(tls.Files, address)
			Expect(tls.Files["qemu-ca.crt"]).NotTo(ContainSubstring(tls.Files["ca.crt"]), "QEMU has an authority of its own")
			Expect(w.last(name, "libvirt").Files).To(BeEmpty(), "a certificate is no input of libvirt")
			Expect(w.last(name, "libvirt").Vars).To(HaveKeyWithValue("edpm_libvirt_tls_clients", "OU=libvirt of "+w.ns+"/cell1,CN=*"))
			peers := w.last(name, "live-migration")
			Expect(peers.Vars).To(HaveKeyWithValue("edpm_migration_peers", map[string]any{"a": pair["a"], "b": pair["b"]}))
		}
		By("restarting the manager, which writes nothing")
		w.quiet()
		w.resync()
		Expect(w.wire.Since(0)).To(BeEmpty())
		w.exactlyOnce()
	})

	It("makes the authority of a cell once, and gives no one else its key", func() {
		computes(pair)
		w.computesReady("a", "b")
		before := get(Default, w.authority("cell1"))
		Expect(before.OwnerReferences).To(HaveLen(1))
		Expect(before.OwnerReferences[0].Name).To(Equal("cell1"))
		key := string(before.Data["tls.key"])
		for _, e := range w.hosts.Book() {
			for _, content := range e.Files {
				Expect(content).NotTo(ContainSubstring(key))
			}
		}
		w.resync()
		Expect(get(Default, w.authority("cell1")).Data).To(Equal(before.Data))
	})

	It("lets in a compute that joins the cell, and no more one that left, without a restart", func() {
		computes(map[string]string{"a": "192.0.2.1"})
		w.condition(w.compute("a"), ready, "True/Ready/", "1 computes")
		w.make(MakeNode("b", w.ns).Role("compute").Host("192.0.2.2").Obj())
		w.computesReady("b")
		Eventually(func() any { return w.last("a", "live-migration").Vars["edpm_migration_peers"] }).Should(HaveKey("b"))
		w.condition(w.compute("a"), ready, "True/Ready/", "2 computes")
		Expect(w.moves("a")).To(Equal([]int{1, 1, 1, 2}))
		remove(w.node("b"))
		gone(w.node("b"))
		Eventually(func() any { return w.last("a", "live-migration").Vars["edpm_migration_peers"] }).ShouldNot(HaveKey("b"))
		Expect(w.moves("a")).To(Equal([]int{1, 1, 1, 3}))
		w.ready(w.compute("a"))
	})

	It("renews the certificate of the authority before it ends, and keeps trust in the old one", func() {
		computes(map[string]string{"a": "192.0.2.1"})
		w.computesReady("a")
		old, err := certificates.NewAuthority("cell1", time.Now().Add(-9*365*24*time.Hour))
		Expect(err).NotTo(HaveOccurred())
		change(w.authority("cell1"), func(s *corev1.Secret) { s.Data = old })
		Eventually(func() any { return w.last("a", "libvirt-tls").Files["ca.crt"] }).Should(
			And(ContainSubstring(string(old["tls.crt"])), ContainSubstring(string(get(Default, w.authority("cell1")).Data["tls.crt"]))))
		w.condition(w.compute("a"), ready, "True/Ready/")
		Expect(get(Default, w.authority("cell1")).Data).To(HaveKeyWithValue("tls.key", old["tls.key"]))
		Expect(w.times("a", "libvirt")+w.times("a", "nova")).To(Equal(2), "a certificate should run neither libvirt nor nova again")
	})

	It("does not replace an authority that is lost while computes have certificates of it", func() {
		computes(map[string]string{"a": "192.0.2.1"})
		w.computesReady("a")
		before := get(Default, w.authority("cell1"))
		w.quiet()
		remove(w.authority("cell1"))
		says(MakeCell("cell1", w.ns).Obj(), novav1.MigrationCAReadyCondition, novav1.MigrationCALostReason,
			"Secret cell1-migration-ca no longer exists", "restore it from a backup", "spec.migrationCASecretName")
		says(w.compute("a"), ready, novav1.MigrationCANotReadyReason, "cannot be renewed", "MigrationCAReady of NovaCell cell1")
		w.ready(MakeCell("cell1", w.ns).Obj(), w.compute("a"))

		By("configuring nova all the same")
		change(w.compute("a"), func(c *novav1.NovaExternalCompute) { c.Spec.CustomServiceConfig = "[DEFAULT]\ndebug = false\n" })
		Eventually(func() int { return w.times("a", "nova") }).Should(Equal(2))
		Expect(w.moves("a")).To(Equal([]int{1, 1, 2, 1}))

		By("having a new compute wait, whose libvirt could not listen")
		w.make(MakeNode("b", w.ns).Role("compute").Host("192.0.2.2").Obj())
		w.halted(w.compute("b"), novav1.NovaCellReadyCondition, novav1.CellNotReadyReason, "can sign the certificate of the host for live migration")

		By("restoring it")
		before.ResourceVersion, before.UID = "", ""
		w.make(before)
		w.computesReady("a", "b")
		w.condition(w.compute("b"), ready, "True/Ready/", "2 computes")
		Expect(w.times("a", "libvirt-tls")).To(Equal(1), "it has the certificate that it had")
	})

	It("makes another authority for a cell without computes that lost its own", func() {
		before := get(Default, w.authority("cell1")).Data
		remove(w.authority("cell1"))
		Eventually(func(g Gomega) any { return get(g, w.authority("cell1")).Data }).ShouldNot(Equal(before))
	})

	It("takes the authority of a Secret that the cell names, and says what is wrong with it", func() {
		computes(map[string]string{"a": "192.0.2.1"})
		w.computesReady("a")
		cell := MakeCell("cell1", w.ns).Obj()
		change(cell, func(c *novav1.NovaCell) { c.Spec.MigrationCASecretName = "issuer" })
		says(cell, novav1.MigrationCAReadyCondition, common.SecretMissingReason, `Secret "issuer" does not exist`)
		w.make(MakeSecret("issuer", w.ns, "tls.crt", "x"))
		says(cell, novav1.MigrationCAReadyCondition, novav1.MigrationCAInvalidReason, "Secret issuer: key tls.crt has no certificate in PEM format")
		Expect(w.times("a", "libvirt-tls")).To(Equal(1))
		given, err := certificates.NewAuthority("issuer", time.Now())
		Expect(err).NotTo(HaveOccurred())
		change(MakeSecret("issuer", w.ns, "", ""), func(s *corev1.Secret) { s.Data = maps.Clone(given) })
		Eventually(func() any { return w.last("a", "libvirt-tls").Files["ca.crt"] }).Should(Equal(string(given["tls.crt"])))
		w.condition(w.compute("a"), ready, "True/Ready/")
		Expect(get(Default, MakeSecret("issuer", w.ns, "", "")).Data).To(Equal(given), "a given Secret should be left alone")
	})

	It("is not configured on a host without an address, and is once it has one in the network of the cell", func() {
		w.make(w.role("compute").Cell("cell1").Obj(), MakeNode("a", w.ns).Role("compute").Host("a.example.org").Obj())
		w.computesReady("a")
		says(w.compute("a"), ready, novav1.MigrationAddressMissingReason, "no IP address in ansibleHost of its node")
		Expect(w.moves("a")).To(Equal([]int{0, 1, 1, 0}))
		Expect(w.last("a", "nova").Vars).NotTo(HaveKey("edpm_migration_address"))

		change(MakeCell("cell1", w.ns).Obj(), func(c *novav1.NovaCell) { c.Spec.MigrationNetwork = "InternalAPI" })
		says(w.compute("a"), ready, novav1.MigrationAddressMissingReason, "in network InternalAPI: set fixedIP")
		change(w.node("a"), func(n *dataplanev1.OpenStackDataPlaneNode) {
			n.Spec.Node.Networks = []dataplanev1.NetworkSection{{Network: "InternalAPI", FixedIP: "192.0.2.7"}}
		})
		w.condition(w.compute("a"), ready, "True/Ready/", "reached at 192.0.2.7")
		Expect(w.last("a", "nova").Vars).To(HaveKeyWithValue("edpm_migration_address", "192.0.2.7"))
	})

	It("is not configured on a host that an earlier version has deployed before a person runs its steps again", func() {
		node := MakeNode("a", w.ns).Role("compute").Host("a.example.org").Obj()
		node.Spec.Node.Networks = []dataplanev1.NetworkSection{{Network: "InternalAPI", FixedIP: "192.0.2.7"}}
		w.make(w.role("compute").Cell("cell1").Obj(), node)
		w.computesReady("a") // without an address, and so as the earlier version did
		w.running.end()
		Expect(api.Status().Patch(ctx, w.compute("a"), jsonPatch(`{"status":{"liveMigration":null}}`))).To(Succeed())
		change(MakeCell("cell1", w.ns).Obj(), func(c *novav1.NovaCell) { c.Spec.MigrationNetwork = "InternalAPI" })
		w.running = startManager(w.ns, w.opts)
		says(w.compute("a"), ready, novav1.MigrationNotConfiguredReason, "kubectl edpm rerun a")
		w.quiet()
		Expect(w.moves("a")).To(Equal([]int{0, 1, 1, 0}))

		annotate(w.node("a"), common.RerunAnnotation, "now")
		w.condition(w.compute("a"), ready, "True/Ready/", "reached at 192.0.2.7")
		Expect(w.moves("a")).To(Equal([]int{1, 2, 2, 1}))
		w.quiet()
	})

	// shared makes the computes of cell1 those of a version that gave libvirt and QEMU one certificate.
	shared := func(names ...string) {
		GinkgoHelper()
		w.running.end()
		for _, name := range names {
			Expect(api.Status().Patch(ctx, w.compute(name), jsonPatch(`{"status":{"liveMigration":{"qemuAuthority":null}}}`))).To(Succeed())
		}
		Expect(api.Status().Patch(ctx, MakeCell("cell1", w.ns).Obj(), jsonPatch(`{"status":{"qemuAuthority":null}}`))).To(Succeed())
		w.running = startManager(w.ns, w.opts)
		for _, name := range names {
			w.condition(w.compute(name), ready, "True/Ready/", "QEMU has the key of libvirt", "kubectl edpm rerun "+name)
			Expect(w.last(name, "libvirt-tls").Files).NotTo(HaveKey("qemu.crt"))
		}
		w.quiet()
	}

	It("gives QEMU a certificate of its own on hosts of an earlier version when asked, in an order in which guests can be moved at any time", func() {
		cell := MakeCell("cell1", w.ns).Obj()
		computes(pair)
		w.computesReady("a", "b")
		shared("a", "b")
		w.condition(cell, novav1.MigrationCAReadyCondition, "True/Ready/", "2 computes have not reached Trusted", "kubectl edpm rerun <node>")
		ofA, ofB := w.moves("a"), w.moves("b")

		By("having one host trust the authority in addition")
		annotate(w.node("a"), common.RerunAnnotation, "now")
		w.condition(cell, novav1.MigrationCAReadyCondition, "True/Ready/", "1 computes have not reached Trusted")
		Eventually(func() string { return shown(Default, w.compute("a"), ready) }).Should(And(HavePrefix("True/Ready/"), Not(ContainSubstring("key of libvirt"))))
		w.quiet()
		files := w.last("a", "libvirt-tls").Files
		verifiedOfQEMU(files, pair["a"])
		Expect(files["qemu-ca.crt"]).To(HaveSuffix(files["ca.crt"]), "it accepts what the other host has")
		Expect(verifiedOfQEMU(map[string]string{"qemu.crt": files["qemu.crt"], "qemu.key": files["qemu.key"], "qemu-ca.crt": files["ca.crt"]}, pair["a"])).NotTo(BeNil(), "the other host accepts it")
		Expect(w.last("a", "libvirt").Vars).NotTo(HaveKey("edpm_libvirt_tls_clients"), "libvirt of the other host has no name that it would accept")
		Expect(w.moves("b")).To(Equal(ofB), "nothing is run on a host because of another one")
		Expect(w.moves("a")).To(Equal([]int{ofA[0] + 1, ofA[1] + 1, ofA[2] + 1, ofA[3] + 1}))

		By("going on when all trust it")
		annotate(w.node("b"), common.RerunAnnotation, "now")
		Eventually(func() any { return get(Default, cell).Status.QEMUAuthority }).Should(Equal(novav1.QEMUAuthorityOnly))
		for name, address := range pair {
			Eventually(func() any { return get(Default, w.compute(name)).Status.LiveMigration.QEMUAuthority }).Should(Equal(novav1.QEMUAuthorityOnly))
			w.condition(w.compute(name), ready, "True/Ready/")
			files := w.last(name, "libvirt-tls").Files
			verifiedOfQEMU(files, address)
			Expect(files["qemu-ca.crt"]).NotTo(ContainSubstring(files["ca.crt"]))
			Expect(w.last(name, "libvirt").Vars).To(HaveKeyWithValue("edpm_libvirt_tls_clients", "OU=libvirt of "+w.ns+"/cell1,CN=*"))
		}
		Eventually(func() string { return shown(Default, cell, novav1.MigrationCAReadyCondition) }).Should(And(HavePrefix("True/Ready/"), Not(ContainSubstring("QEMU"))))
		w.quiet()
		Expect(w.times("a", "libvirt")).To(Equal(ofA[1]+2), "once when asked, and once for the names that it lets in")
		Expect(w.times("a", "nova")).To(Equal(ofA[2] + 1))
		w.resync()
		Expect(w.wire.Since(0)).To(BeEmpty())
	})

	It("does not wait for a host of an earlier version that is removed, and gives a new one what the others have", func() {
		cell := MakeCell("cell1", w.ns).Obj()
		computes(pair)
		w.computesReady("a", "b")
		shared("a", "b")
		w.make(MakeNode("c", w.ns).Role("compute").Host("192.0.2.3").Obj())
		w.computesReady("c")
		Eventually(func() any { return get(Default, w.compute("c")).Status.LiveMigration.QEMUAuthority }).Should(Equal(novav1.QEMUAuthorityTrusted))
		annotate(w.node("a"), common.RerunAnnotation, "now")
		w.condition(cell, novav1.MigrationCAReadyCondition, "True/Ready/", "1 computes have not reached Trusted")
		remove(w.node("b"))
		gone(w.node("b"))
		Eventually(func() any { return get(Default, cell).Status.QEMUAuthority }).Should(Equal(novav1.QEMUAuthorityOnly))
		for _, name := range []string{"a", "c"} {
			Eventually(func() any { return w.last(name, "libvirt").Vars }).Should(HaveKey("edpm_libvirt_tls_clients"))
		}
		w.quiet()
	})

	// given is a Secret with a certificate of libvirt, by an authority of that age.
	given := func(host, address string, age time.Duration) *corev1.Secret {
		GinkgoHelper()
		data, err := certificates.NewAuthority("given", time.Now().Add(-age))
		Expect(err).NotTo(HaveOccurred())
		authority, err := certificates.Parse(data, time.Now())
		Expect(err).NotTo(HaveOccurred())
		secret := MakeSecret(host+"-libvirt", w.ns, "", "")
		secret.Data, err = authority.Libvirt(certificates.Compute{ID: host, Name: host, Address: netip.MustParseAddr(address)}, time.Now())
		Expect(err).NotTo(HaveOccurred())
		return secret
	}
	const none, almostAll = 0, 10*365*24*time.Hour - 10*time.Minute
	give := func(names string) {
		GinkgoHelper()
		change(MakeCell("cell1", w.ns).Obj(), func(c *novav1.NovaCell) {
			c.Spec.MigrationCertificates = &novav1.MigrationCertificates{SecretName: "{node}-libvirt", AllowedNames: names}
		})
	}

	It("has a new host wait for the certificate that a person gives, and leaves QEMU the authority of the cell", func() {
		give("O=example,CN=*")
		computes(map[string]string{"a": "192.0.2.1"})
		w.halted(w.compute("a"), novav1.NovaCellReadyCondition, novav1.CellNotReadyReason, `Waiting for the certificate of the host for live migration: Secret "a-libvirt" does not exist`)
		secret := given("a", "192.0.2.1", none)
		w.make(secret)
		w.computesReady("a")
		w.condition(w.compute("a"), ready, "True/Ready/", "The certificate in Secret a-libvirt is valid until 20")
		tls := w.last("a", "libvirt-tls").Files
		for _, key := range []string{"tls.crt", "tls.key", "ca.crt"} {
			Expect(tls).To(HaveKeyWithValue(key, string(secret.Data[key])))
		}
		verifiedOfQEMU(tls, "192.0.2.1")
		Expect(tls["qemu-ca.crt"]).NotTo(ContainSubstring(tls["ca.crt"]), "libvirt lets in no one with a certificate of QEMU")
		Expect(w.last("a", "libvirt").Vars).To(HaveKeyWithValue("edpm_libvirt_tls_clients", "O=example,CN=*"))
		w.quiet()
		w.resync()
		Expect(w.wire.Since(0)).To(BeEmpty())
	})

	It("refuses names of Secrets and of certificates that cannot be", func() {
		for _, c := range []struct{ secret, names, want string }{
			{"{host}-libvirt", "", `spec.migrationCertificates.secretName: Invalid value: "{host}-libvirt": is no name of a Secret: use lower-case`},
			{"A", "", "as in {node}-libvirt"},
			{"{node}-libvirt", "CN=\"a\"", "spec.migrationCertificates.allowedNames: Invalid value: "},
			{"{node}-libvirt", "CN={{ x }}", "use * or ? in their place"},
		} {
			cell := get(Default, MakeCell("cell1", w.ns).Obj())
			cell.Spec.MigrationCertificates = &novav1.MigrationCertificates{SecretName: c.secret, AllowedNames: c.names}
			Expect(api.Update(ctx, cell)).To(MatchError(ContainSubstring(c.want)))
		}
	})

	It("says what is wrong with a certificate that a person gives, and keeps the one before", func() {
		computes(map[string]string{"a": "192.0.2.1"})
		w.computesReady("a")
		give("")
		says(w.compute("a"), ready, common.SecretMissingReason, `Secret "a-libvirt" does not exist`)
		w.make(MakeSecret("a-libvirt", w.ns, "tls.crt", "x"))
		says(w.compute("a"), ready, novav1.MigrationCertificateInvalidReason, "Secret a-libvirt, which spec.migrationCertificates of NovaCell cell1 names for the host", "the keys tls.crt and tls.key have no certificate")
		hand := func(secret *corev1.Secret) {
			GinkgoHelper()
			change(MakeSecret("a-libvirt", w.ns, "", ""), func(s *corev1.Secret) { s.Data = secret.Data })
		}
		hand(given("a", "192.0.2.2", none))
		says(w.compute("a"), ready, novav1.MigrationCertificateInvalidReason, "not for 192.0.2.1, where other computes reach the host")
		Expect(w.times("a", "libvirt-tls")).To(Equal(1))

		By("using one that is valid")
		good := given("a", "192.0.2.1", none)
		hand(good)
		w.condition(w.compute("a"), ready, "True/Ready/")
		Expect(w.last("a", "libvirt-tls").Files).To(HaveKeyWithValue("tls.crt", string(good.Data["tls.crt"])))
		w.quiet()
		ran := w.moves("a")

		By("using the next one, without a restart, and saying when that ends")
		hand(given("a", "192.0.2.1", almostAll))
		says(w.compute("a"), ready, novav1.MigrationCertificateEndsReason, "The certificate in Secret a-libvirt is valid until", "renew it")
		Expect(w.moves("a")).To(Equal([]int{ran[0] + 1, ran[1], ran[2], ran[3] + 1}))

		By("keeping that, too, when the Secret is gone")
		w.quiet()
		remove(MakeSecret("a-libvirt", w.ns, "", ""))
		says(w.compute("a"), ready, common.SecretMissingReason, `Secret "a-libvirt" does not exist`)
		w.quiet()
		Expect(w.times("a", "libvirt")).To(Equal(ran[1]))
	})

	It("names the computes that a host does not reach, which keeps nothing from being Ready", func() {
		w.hosts.Note("a", "Not reached over TLS: b (no answer)")
		computes(map[string]string{"a": "192.0.2.1", "b": "192.0.2.2"})
		w.computesReady("a", "b")
		says(w.compute("a"), ready, novav1.PeerUnreachableReason, "does not reach libvirt over TLS on b (no answer)")
		w.condition(w.compute("b"), ready, "True/Ready/")

		By("restarting the manager")
		w.resync()
		says(w.compute("a"), ready, novav1.PeerUnreachableReason, "b (no answer)")

		By("believing b, once its libvirt was run again and it reaches a")
		w.hosts.Note("a", "")
		annotate(w.compute("b"), common.RerunAnnotation, "fixed")
		w.condition(w.compute("a"), ready, "True/Ready/")
		Expect(w.times("a", "live-migration")).To(Equal(1))
	})

	It("has a host look once more when all computes that it named were run again, and there were others", func() {
		w.hosts.Note("a", "Not reached over TLS: b (no answer), 2 more")
		computes(pair)
		w.computesReady("a", "b")
		says(w.compute("a"), ready, novav1.PeerUnreachableReason, "on b (no answer), 2 more")
		w.quiet()
		Expect(w.times("a", "live-migration")).To(Equal(1))
		w.hosts.Note("a", "")
		annotate(w.compute("b"), common.RerunAnnotation, "fixed")
		w.condition(w.compute("a"), ready, "True/Ready/")
		w.quiet()
		w.resync()
		Expect(w.moves("a")).To(Equal([]int{1, 1, 1, 2}))
	})

	It("shows a step of its own that fails where it belongs, and is retried", func() {
		w.hosts.Decide(func(_, step string) fakekube.Outcome {
			if step == "live-migration" {
				return fakekube.Failed
			}
			return fakekube.OK
		})
		computes(map[string]string{"a": "192.0.2.1"})
		w.computesReady("a")
		says(w.compute("a"), ready, "Failed", "Step live-migration failed")
		w.condition(w.compute("a"), condition.DeploymentReadyCondition, "True/Ready/")
		w.hosts.Decide(func(string, string) fakekube.Outcome { return fakekube.OK })
		w.condition(w.compute("a"), ready, "True/Ready/")
	})
})
