package controllers_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakekube"
)

// authorized are the fingerprints of keys in a file of authorized keys.
func authorized(text string) []string {
	GinkgoHelper()
	var found []string
	for rest := []byte(text); len(rest) > 0; {
		key, _, _, more, err := ssh.ParseAuthorizedKey(rest)
		Expect(err).NotTo(HaveOccurred())
		found, rest = append(found, ssh.FingerprintSHA256(key)), more
	}
	return found
}

// publicKeys are the fingerprints of private keys, of which some are empty.
func publicKeys(texts ...string) []string {
	GinkgoHelper()
	var found []string
	for _, text := range texts {
		if text != "" {
			signer, err := ssh.ParsePrivateKey([]byte(text))
			Expect(err).NotTo(HaveOccurred())
			found = append(found, ssh.FingerprintSHA256(signer.PublicKey()))
		}
	}
	return found
}

var _ = Describe("Cold migration", func() {
	const (
		keyOfA   = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
		keyOfB   = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAcNHqIYJrB8OtlhnG2w1bDeHDgPDVgPPIoqxDyRIKy8"
		ready    = novav1.LiveMigrationReadyCondition
		keyReady = novav1.MigrationKeyReadyCondition
		step     = "live-migration"
	)
	var w *world
	var cell *novav1.NovaCell

	// pair makes two computes of cell1 that are annotated at once.
	pair := func() {
		GinkgoHelper()
		w.make(w.role("compute").Cell("cell1").Obj(),
			MakeNode("a", w.ns).Role("compute").Host("192.0.2.1").Obj(), MakeNode("b", w.ns).Role("compute").Host("2001:db8::2").Obj())
		w.computesReady("a", "b")
		for _, name := range []string{"a", "b"} {
			w.condition(w.compute(name), ready, "True/Ready/", "2 computes")
		}
	}
	secret := func() *corev1.Secret { return MakeSecret(novav1.MigrationKeySecretName("cell1"), w.ns, "", "") }
	// accepted are the keys that a host lets in, and used is the one that it has.
	accepted := func(host string) []string { return authorized(w.last(host, step).Files["authorized_keys"]) }
	used := func(host string) string { return publicKeys(w.last(host, step).Files["ssh-privatekey"])[0] }
	// alwaysLetIn checks that each host always had a key that the other one accepted.
	alwaysLetIn := func() {
		GinkgoHelper()
		now := map[string]fakekube.Execution{}
		for _, e := range w.hosts.Book() {
			if e.Step != step || e.Outcome != fakekube.OK {
				continue
			}
			now[e.Host] = e
			for from := range now {
				for to := range now {
					Expect(publicKeys(now[from].Files["ssh-privatekey"], now[from].Files["previous"])).To(ContainElement(BeElementOf(authorized(now[to].Files["authorized_keys"]))), "%s to %s", from, to)
				}
			}
		}
	}
	// fails has a step fail on a host.
	fails := func(failing, at string) {
		w.hosts.Decide(func(host, name string) fakekube.Outcome {
			if host == failing && name == at {
				return fakekube.Failed
			}
			return fakekube.OK
		})
	}
	BeforeEach(func() {
		w = newCloud(patient)
		cell = MakeCell("cell1", w.ns).Obj()
		w.hosts.Show("a", keyOfA)
		w.hosts.Show("b", keyOfB)
	})

	It("gives each compute of a cell its key, and the host keys and addresses of the others, once", func() {
		pair()
		key := string(get(Default, secret()).Data["ssh-privatekey"])
		for _, name := range []string{"a", "b"} {
			done := w.last(name, step)
			Expect(done.Files).To(And(HaveLen(3), HaveKeyWithValue("ssh-privatekey", key),
				HaveKeyWithValue("known_hosts", "[192.0.2.1]:2022 "+keyOfA+"\n[2001:db8::2]:2022 "+keyOfB+"\n"),
				HaveKeyWithValue("authorized_keys", HavePrefix(`restrict,command="/etc/ssh/copy_disks",from="192.0.2.1,2001:db8::2" ssh-ed25519 `))))
			Expect(done.Vars).To(And(HaveKeyWithValue("edpm_migration_ssh_port", BeEquivalentTo(2022)), HaveKeyWithValue("edpm_nova_compute_image", "compute:1")))
			Expect(w.last(name, "nova").Vars).To(HaveKeyWithValue("edpm_migration_ssh_port", BeEquivalentTo(2022)))
			Expect(shown(Default, w.compute(name), ready)).NotTo(ContainSubstring("Cold migration"))
		}
		for _, e := range w.hosts.Book() {
			for _, content := range e.Files {
				Expect(e.Step == step || !strings.Contains(content, key)).To(BeTrue(), "%s has the key", e.Step)
			}
		}
		By("restarting the manager, which writes nothing")
		w.quiet()
		w.resync()
		Expect(w.wire.Since(0)).To(BeEmpty())
		w.exactlyOnce()
	})

	It("knows a host whose key is known though its node is not ready, and runs on the others once", func() {
		fails("b", "install-os")
		w.make(w.role("compute").Services("install-os", "configure-os").Cell("cell1").Obj(),
			MakeNode("a", w.ns).Role("compute").Host("192.0.2.1").Obj(), MakeNode("b", w.ns).Role("compute").Host("2001:db8::2").Obj())
		w.computesReady("a")
		Expect(w.last("a", step).Files["known_hosts"]).To(And(ContainSubstring(keyOfA), ContainSubstring(keyOfB)))
		By("correcting the host")
		fails("", "")
		annotate(w.node("b"), common.RerunAnnotation, "corrected")
		w.computesReady("b")
		w.condition(w.compute("b"), ready, "True/Ready/", "2 computes")
		w.quiet()
		Expect(w.times("a", step)).To(Equal(1))
	})

	It("gives each cell another key", func() {
		w.makeCell("cell2")
		Expect(get(Default, secret()).Data["ssh-privatekey"]).NotTo(Equal(get(Default, MakeSecret(novav1.MigrationKeySecretName("cell2"), w.ns, "", "")).Data["ssh-privatekey"]))
	})

	It("changes the key when asked, and accepts the one before until every host has the new one", func() {
		pair()
		before := used("a")
		fails("b", step)
		annotate(cell, novav1.RotateMigrationKeyAnnotation, "1")
		w.condition(cell, keyReady, "True/Ready/", "the one before, "+before+", is accepted until all have it, and 1 of them do not")
		after := used("a")
		Expect(after).NotTo(Equal(before))
		Expect(accepted("a")).To(Equal([]string{after, before}))
		Expect(w.last("a", step).Files).To(HaveKey("previous"), "b may not accept the new one yet")
		w.ready(cell, w.compute("a"), w.compute("b"))

		By("asking for another one meanwhile, which waits")
		annotate(cell, novav1.RotateMigrationKeyAnnotation, "2")

		By("letting b have it")
		fails("", step)
		for _, name := range []string{"a", "b"} {
			Eventually(func(g Gomega) {
				g.Expect(used(name)).NotTo(BeElementOf(before, after))
				g.Expect(accepted(name)).To(Equal([]string{used(name)}))
				g.Expect(w.last(name, step).Files).NotTo(HaveKey("previous"))
			}).Should(Succeed())
			w.condition(w.compute(name), ready, "True/Ready/")
			Expect(w.times(name, "libvirt")+w.times(name, "nova")).To(Equal(2), "a key should run neither libvirt nor nova again")
		}
		w.quiet()
		Expect(shown(Default, cell, keyReady)).NotTo(ContainSubstring("the one before"))
		alwaysLetIn()

		By("taking the token back, which changes nothing")
		runs := len(w.hosts.Book())
		change(cell, func(c *novav1.NovaCell) { delete(c.Annotations, novav1.RotateMigrationKeyAnnotation) })
		w.quiet()
		Expect(w.hosts.Book()).To(HaveLen(runs))
	})

	It("makes a key that is lost or cannot be read again, and gives it to every host", func() {
		pair()
		before := used("a")
		remove(secret())
		Eventually(func() string { return used("a") }).ShouldNot(Equal(before))
		Eventually(func() string { return used("b") }).Should(Equal(used("a")))
		before = used("a")
		change(secret(), func(s *corev1.Secret) { s.Data = map[string][]byte{"ssh-privatekey": []byte("x")} })
		Eventually(func() string { return used("a") }).ShouldNot(Equal(before))
		Eventually(func() string { return used("b") }).Should(Equal(used("a")))
		w.quiet()
		for _, name := range []string{"a", "b"} {
			Expect(w.did(name, step)).To(HaveLen(3), "runs on %s, one for each key", name)
			Expect(w.did(name, step)).To(HaveEach(HaveField("Files", HaveKey("ssh-privatekey"))), "none takes the key from %s", name)
		}
	})

	It("tells all computes of another host key, and of a compute that left", func() {
		pair()
		another := strings.Replace(keyOfA, "OMqq", "OMqr", 1)
		w.hosts.Show("b", another)
		annotate(w.node("b"), common.HostKeyAnnotation, another)
		Eventually(func() string { return w.last("a", step).Files["known_hosts"] }).ShouldNot(ContainSubstring(keyOfB))
		remove(w.node("b"))
		gone(w.node("b"))
		Eventually(func() string { return w.last("a", step).Files["known_hosts"] }).Should(Equal("[192.0.2.1]:2022 " + keyOfA + "\n"))
		Expect(w.last("a", step).Files["authorized_keys"]).To(ContainSubstring(`from="192.0.2.1" `))
		Expect(w.times("a", "libvirt") + w.times("a", "nova")).To(Equal(2))
	})

	It("is not configured on a host that an earlier version has deployed before a person runs its steps again", func() {
		w.hosts.Show("a", "")
		w.make(w.role("compute").Cell("cell1").Obj(), MakeNode("a", w.ns).Role("compute").Host("192.0.2.1").Obj())
		w.condition(w.compute("a"), ready, "True/Ready/", "Set annotation edpm.openstack.org/host-key on OpenStackDataPlaneNode a")
		w.running.end()
		Expect(api.Status().Patch(ctx, w.compute("a"), jsonPatch(`{"status":{"coldMigration":null}}`))).To(Succeed())
		w.running = startManager(w.ns, w.opts)
		annotate(w.node("a"), common.HostKeyAnnotation, keyOfA)
		w.condition(w.compute("a"), ready, "True/Ready/", "kubectl edpm rerun a")
		w.quiet()
		Expect(w.last("a", step).Files).To(BeEmpty())

		annotate(w.node("a"), common.RerunAnnotation, "now")
		Eventually(func() map[string]string { return w.last("a", step).Files }).Should(HaveKeyWithValue("known_hosts", "[192.0.2.1]:2022 "+keyOfA+"\n"))
		Eventually(func(g Gomega) { g.Expect(shown(g, w.compute("a"), ready)).NotTo(ContainSubstring("Cold migration")) }).Should(Succeed())
	})
})
