package controllers_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"math/big"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/edpm-operators/edpm-operators/apis/common"
	hostedv1 "github.com/edpm-operators/edpm-operators/apis/common/hosted"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	neutronv1 "github.com/edpm-operators/edpm-operators/apis/neutron/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakekube"
)

// networks is a world with an OVN configuration, and a role whose nodes follow it.
type networks struct{ *world }

// ovnConfig is the least that both services need.
var ovnConfig = map[string]string{
	neutronv1.SouthboundKey: "tcp:192.0.2.1:6642", neutronv1.MetadataSharedSecretKey: "hunter2", neutronv1.NovaMetadataHostKey: "nova.example",
}

func newNetworks(change ...func(*controllers.Options)) networks {
	GinkgoHelper()
	w := networks{newWorld(change...)}
	w.make(MakeSecret("ssh-key", w.ns, "ssh-privatekey", "key-1"), w.secret("ovn", ovnConfig),
		w.role("compute").Annotation(neutronv1.OVNAnnotation, "ovn").Obj())
	return w
}

func (w networks) secret(name string, data map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}, StringData: data}
}

// set changes keys of a Secret; an empty value removes one.
func (w networks) set(name string, pairs ...string) {
	GinkgoHelper()
	change(w.secret(name, nil), func(s *corev1.Secret) {
		for pair := range slices.Chunk(pairs, 2) {
			s.Data[pair[0]] = []byte(pair[1])
		}
		maps.DeleteFunc(s.Data, func(_ string, value []byte) bool { return len(value) == 0 })
	})
}

func (w networks) controller(node string) *neutronv1.OVNController {
	return MakeOVNController(node, w.ns, "")
}

func (w networks) agent(node string) *neutronv1.OVNMetadataAgent {
	return MakeOVNMetadataAgent(node, w.ns, "")
}

// up waits until both services of the nodes are Ready.
func (w networks) up(nodes ...string) {
	GinkgoHelper()
	for _, n := range nodes {
		w.ready(w.controller(n), w.agent(n))
	}
}

// connected makes the node n and waits until both its services are Ready.
func (w networks) connected() {
	GinkgoHelper()
	w.make(MakeNode("n", w.ns).Role("compute").Obj())
	w.up("n")
}

// services are those that a node shows, and whether they are ready.
func (w networks) services(g Gomega, node string) map[string]bool {
	out := map[string]bool{}
	for _, s := range get(g, w.node(node)).Status.Services {
		out[s.Kind+"/"+s.ObjectName+" as "+s.Name] = s.Ready
	}
	return out
}

// certificate returns what a Secret with a certificate has.
func certificate() map[string]string {
	GinkgoHelper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	Expect(err).NotTo(HaveOccurred())
	der, err := x509.MarshalPKCS8PrivateKey(private)
	Expect(err).NotTo(HaveOccurred())
	text := func(kind string, bytes []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}))
	}
	return map[string]string{"tls.crt": text("CERTIFICATE", signed), "tls.key": text("PRIVATE KEY", der), "ca.crt": text("CERTIFICATE", signed)}
}

const (
	ovnCleanup      = "ovn-controller-cleanup"
	metadataCleanup = "ovn-metadata-cleanup"
)

var _ = Describe("A node that is annotated with an OVN configuration", func() {
	var w networks
	BeforeEach(func() { w = newNetworks() })

	It("runs ovn-controller and then the metadata agent, and shows both", func() {
		w.connected()
		Expect(w.steps("n")).To(Equal([]string{"install-os", "ovn-controller", "ovn-metadata"}))
		w.exactlyOnce()
		controller, agent := w.did("n", "ovn-controller")[0], w.did("n", "ovn-metadata")[0]
		Expect(controller.Vars).To(And(HaveKeyWithValue("edpm_ovn_controller_image", "ovn:1"), HaveKeyWithValue("edpm_ovn_southbound", "tcp:192.0.2.1:6642")))
		Expect(controller.Files).To(BeEmpty())
		Expect(agent.Vars).To(And(HaveKeyWithValue("edpm_ovn_metadata_image", "metadata:1"), Not(HaveKey("edpm_ovn_southbound"))))
		Expect(agent.Files).To(HaveLen(2))
		Expect(agent.Files["01-ovn-metadata.conf"]).To(And(
			ContainSubstring("\nmetadata_proxy_shared_secret = hunter2\n"), ContainSubstring("\novn_sb_connection = tcp:192.0.2.1:6642\n")))
		Expect(agent.Files).To(HaveKeyWithValue("02-ovn-metadata-override.conf", ""))
		Eventually(w.services).WithArguments("n").Should(Equal(map[string]bool{"OVNController/n as ovn-controller": true, "OVNMetadataAgent/n as ovn-metadata": true}))
		w.nodesReady("n")
		w.quiet()
	})

	It("runs them by the annotation of its role or its own, or not at all", func() {
		w = newNetworks(patient)
		other := maps.Clone(ovnConfig)
		other[neutronv1.SouthboundKey] = "tcp:192.0.2.2:6642"
		w.make(w.secret("other", other),
			MakeNode("a", w.ns).Role("compute").Obj(), MakeNode("b", w.ns).Role("compute").Obj(),
			MakeNode("overriding", w.ns).Role("compute").Annotation(neutronv1.OVNAnnotation, "other").Obj(),
			MakeNode("opting-out", w.ns).Role("compute").Annotation(neutronv1.OVNAnnotation, "").Obj())
		w.up("a", "b", "overriding")
		w.nodesReady("opting-out")
		Expect(w.did("a", "ovn-controller")[0].Job).To(Equal(w.did("b", "ovn-controller")[0].Job), "they share a run")
		Expect(w.did("overriding", "ovn-controller")[0].Vars).To(HaveKeyWithValue("edpm_ovn_southbound", "tcp:192.0.2.2:6642"))
		Expect(w.steps("opting-out")).To(Equal([]string{"install-os"}))

		By("naming another one afterwards")
		annotate(w.node("a"), neutronv1.OVNAnnotation, "other")
		Eventually(func() []int { return []int{w.times("a", "ovn-controller"), w.times("a", "ovn-metadata")} }).Should(Equal([]int{2, 2}))
		w.up("a", "b")
		Expect(w.times("b", "ovn-controller")).To(Equal(1))
		w.exactlyOnce()

		By("removing the annotation")
		annotate(w.node("b"), neutronv1.OVNAnnotation, "")
		for _, o := range []judged{w.controller("b"), w.agent("b")} {
			w.halted(o, condition.InputReadyCondition, hostedv1.AnnotationMissingReason, "set annotation neutron.openstack.org/ovn")
		}
		w.nothingRuns()
		Expect(w.services(Default, "b")).To(HaveLen(2), "they are still on the host")
	})

	It("runs the agent only after ovn-controller is Ready", func() {
		ill := w.sick(map[string]fakekube.Outcome{"n/ovn-controller": fakekube.Failed})
		DeferCleanup(func() { ill.heal("n/ovn-controller") })
		resume := w.wire.hold(func(r *http.Request) bool {
			return r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/ovncontrollers/n")
		})
		DeferCleanup(resume)
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		w.halted(w.agent("n"), neutronv1.OVNControllerReadyCondition, neutronv1.OVNControllerMissingReason,
			"OVNController n does not exist", "annotation neutron.openstack.org/ovn")
		resume()
		w.condition(w.controller("n"), condition.DeploymentReadyCondition, "False/Failed/Warning")
		w.halted(w.agent("n"), neutronv1.OVNControllerReadyCondition, neutronv1.OVNControllerNotReadyReason, "Waiting for OVNController n to become Ready")
		Expect(w.times("n", "ovn-metadata")).To(BeZero())
		ill.heal("n/ovn-controller")
		w.up("n")
		Expect(w.times("n", "ovn-metadata")).To(Equal(1))
	})

	It("runs an agent that a user created before with its configuration from the first run", func() {
		early := w.agent("n")
		early.Spec.OVNConfigSecretName, early.Spec.CustomServiceConfig = "ovn", "[DEFAULT]\ndebug = True\n"
		w.make(early)
		w.connected()
		Expect(w.did("n", "ovn-metadata")).To(HaveLen(1))
		Expect(w.did("n", "ovn-metadata")[0].Files).To(HaveKeyWithValue("02-ovn-metadata-override.conf", "[DEFAULT]\ndebug = True\n"))
	})
})

var _ = Describe("An OVN configuration", func() {
	var w networks
	BeforeEach(func() { w = newNetworks() })

	It("runs what a change of it concerns again, once", func() {
		w.connected()
		runs := func() []int { return []int{w.times("n", "ovn-controller"), w.times("n", "ovn-metadata")} }
		expect := func(controller, agent int) {
			GinkgoHelper()
			Eventually(runs).Should(Equal([]int{controller, agent}))
			w.up("n")
			w.nothingRuns()
			Expect(runs()).To(Equal([]int{controller, agent}))
		}
		expect(1, 1)
		By("another south bound database")
		w.set("ovn", neutronv1.SouthboundKey, "tcp:192.0.2.2:6642")
		expect(2, 2)
		By("another shared secret")
		w.set("ovn", neutronv1.MetadataSharedSecretKey, "hunter3")
		expect(2, 3)
		By("the same in other words")
		w.set("ovn", neutronv1.SouthboundKey, "tcp:192.0.2.2:6642\n", neutronv1.NovaMetadataPortKey, "8775")
		expect(2, 3)
		By("a key that no one reads")
		w.set("ovn", "comment", "by hand")
		expect(2, 3)
		By("customServiceConfig of the agent")
		change(w.agent("n"), func(a *neutronv1.OVNMetadataAgent) { a.Spec.CustomServiceConfig = "[DEFAULT]\ndebug = True\n" })
		expect(2, 4)
		By("the image of ovn-controller")
		change(w.controller("n"), func(c *neutronv1.OVNController) { c.Spec.ContainerImage = "ovn:2" })
		expect(3, 4)
		w.exactlyOnce()
	})

	It("does not run the agent of another OVN", func() {
		w.connected()
		agent := w.times("n", neutronv1.MetadataStep)
		change(w.agent("n"), func(a *neutronv1.OVNMetadataAgent) {
			a.Spec.CustomServiceConfig = "[ovn]\novn_sb_connection = tcp:192.0.2.9:6642\n"
		})
		w.halted(w.agent("n"), condition.ServiceConfigReadyCondition, hostedv1.InvalidConfigReason, "spec.customServiceConfig: line 2: [ovn] ovn_sb_connection", "spec.ovnConfigSecretName")
		w.calm()
		Expect(w.times("n", neutronv1.MetadataStep)).To(Equal(agent))
	})

	It("puts the certificate for TLS on the host, and a new one as well", func() {
		w.make(w.secret("ovn-tls", certificate()))
		w.set("ovn", neutronv1.SouthboundKey, "ssl:192.0.2.1:6642", neutronv1.TLSSecretKey, "ovn-tls")
		w.connected()
		Expect(get(Default, w.agent("n")).Status.TLSSecretName).To(Equal("ovn-tls"))
		Expect(w.did("n", "ovn-metadata")[0].Files["01-ovn-metadata.conf"]).To(ContainSubstring("\novn_sb_ca_cert = /etc/pki/ovn/ovn-ca.pem\n"))
		renewed := certificate()
		w.set("ovn-tls", "tls.crt", renewed["tls.crt"], "tls.key", renewed["tls.key"], "ca.crt", renewed["ca.crt"])
		for _, step := range []string{"ovn-controller", "ovn-metadata"} {
			Eventually(func() int { return w.times("n", step) }).Should(Equal(2))
			Expect(w.did("n", step)[1].Files).To(And(HaveKeyWithValue("ovn-cert.pem", renewed["tls.crt"]),
				HaveKeyWithValue("ovn-key.pem", renewed["tls.key"]), HaveKeyWithValue("ovn-ca.pem", renewed["ca.crt"])))
		}
		w.up("n")
		w.exactlyOnce()

		By("without TLS again")
		w.set("ovn", neutronv1.SouthboundKey, "tcp:192.0.2.1:6642")
		Eventually(func() int { return w.times("n", "ovn-controller") }).Should(Equal(3))
		Expect(w.did("n", "ovn-controller")[2].Files).To(BeEmpty())
		Eventually(func(g Gomega) string { return get(g, w.controller("n")).Status.TLSSecretName }).Should(BeEmpty())
	})

	It("runs nothing while it is missing or wrong, which is reported, and heals", func() {
		remove(w.secret("ovn", nil))
		w.make(MakeNode("n", w.ns).Role("compute").Obj())
		both := func(reason condition.Reason, parts ...string) {
			GinkgoHelper()
			w.halted(w.controller("n"), neutronv1.OVNConfigReadyCondition, reason, parts...)
			w.halted(w.agent("n"), neutronv1.OVNConfigReadyCondition, reason, parts...)
		}
		both(common.SecretMissingReason, `Secret "ovn" does not exist: create it`)
		w.make(w.secret("ovn", map[string]string{neutronv1.SouthboundKey: "192.0.2.1"}))
		both(neutronv1.InvalidOVNConfigReason, `Secret "ovn", key "southbound": remote 1 of 1 must be tcp:<IP>:<port>`)
		w.set("ovn", neutronv1.SouthboundKey, "ssl:192.0.2.1:6642")
		both(common.SecretKeyMissingReason, `Secret "ovn" has no key "tls-secret"`)
		w.set("ovn", neutronv1.TLSSecretKey, "ovn-tls")
		both(common.SecretMissingReason, `Secret "ovn-tls" does not exist`)
		broken := certificate()
		broken["ca.crt"] = "none"
		w.make(w.secret("ovn-tls", broken))
		both(neutronv1.InvalidOVNConfigReason, `Secret "ovn-tls", key "ca.crt"`)
		w.nodesReady("n")
		Expect(w.steps("n")).To(Equal([]string{"install-os"}))
		w.set("ovn-tls", "ca.crt", broken["tls.crt"])
		w.ready(w.controller("n"))
		w.halted(w.agent("n"), neutronv1.OVNConfigReadyCondition, common.SecretKeyMissingReason, `Secret "ovn" has no key "nova-metadata-host"`)
		w.set("ovn", neutronv1.NovaMetadataHostKey, "nova.example", neutronv1.MetadataSharedSecretKey, "hunter2")
		w.up("n")
		w.exactlyOnce()
	})
})

var _ = Describe("The services of OVN on a host", func() {
	var w networks
	BeforeEach(func() {
		w = newNetworks()
		w.connected()
	})

	It("leave with the node: the agent before ovn-controller", func() {
		release := w.hosts.Hold()
		DeferCleanup(release)
		remove(w.node("n"))
		Eventually(func() int { return w.times("n", metadataCleanup) }).Should(Equal(1))
		w.condition(w.controller("n"), condition.DeploymentReadyCondition, "False/OVNMetadataAgentPresent/Info",
			"Deleting: waiting until OVNMetadataAgent n is removed from the host")
		w.condition(w.agent("n"), condition.DeploymentReadyCondition, "False/CleaningUp/Info")
		w.halted(w.node("n"), condition.DeploymentReadyCondition, dataplanev1.ServicesRemainingReason, "ovn-controller (OVNController/n", "ovn-metadata (OVNMetadataAgent/n")
		Consistently(func() int { return w.times("n", ovnCleanup) }).Should(BeZero())
		release()
		gone(w.node("n"))
		gone(w.agent("n"))
		gone(w.controller("n"))
		Expect(w.steps("n")[3:]).To(Equal([]string{metadataCleanup, ovnCleanup}))
		w.exactlyOnce()

		By("creating the node again")
		w.make(w.node("n"))
		change(w.node("n"), func(n *dataplanev1.OpenStackDataPlaneNode) { n.Spec.Role = "compute" })
		w.up("n")
		Expect(w.steps("n")[5:]).To(Equal([]string{"install-os", "ovn-controller", "ovn-metadata"}))
	})

	It("wait for each other also when a user deletes them, and come back", func() {
		remove(w.controller("n"))
		w.condition(w.controller("n"), condition.DeploymentReadyCondition, "False/OVNMetadataAgentPresent/Info", "delete it if you delete only this object")
		w.halted(w.agent("n"), neutronv1.OVNControllerReadyCondition, neutronv1.OVNControllerNotReadyReason)
		w.nothingRuns()
		old := get(Default, w.controller("n")).UID
		remove(w.agent("n"))
		Eventually(func(g Gomega) bool { return get(g, w.controller("n")).UID != old }).Should(BeTrue())
		w.up("n")
		Expect(w.steps("n")[3:]).To(Equal([]string{metadataCleanup, ovnCleanup, "ovn-controller", "ovn-metadata"}))
	})

	It("leave in this order also after a restore from a backup without their status", func() {
		remove(w.node("n"))
		gone(w.node("n"))
		change(w.role("compute").Obj(), func(r *dataplanev1.OpenStackDataPlaneRole) { r.Spec.DeployStrategy.Deploy = ptr.To(false) })
		controller, agent := MakeOVNController("n", w.ns, "ovn"), MakeOVNMetadataAgent("n", w.ns, "ovn")
		controller.Finalizers, agent.Finalizers = []string{neutronv1.OVNControllerFinalizer}, []string{neutronv1.OVNMetadataAgentFinalizer}
		before := len(w.steps("n"))
		w.make(controller, agent, MakeNode("n", w.ns).Role("compute").Obj())
		for _, o := range []judged{controller, agent} {
			Eventually(func(g Gomega) *metav1.OwnerReference { return metav1.GetControllerOf(get(g, o)) }).ShouldNot(BeNil())
		}
		// The API server deletes a node without a finalizer at once.
		Eventually(func(g Gomega) []string { return get(g, w.node("n")).Finalizers }).ShouldNot(BeEmpty())
		remove(w.node("n"))
		gone(w.node("n"))
		Expect(w.steps("n")[before:]).To(Equal([]string{metadataCleanup, ovnCleanup}))
	})

	It("leave without clean-up when a user asks for it", func() {
		annotate(w.node("n"), common.SkipCleanupAnnotation, "true")
		remove(w.node("n"))
		gone(w.node("n"))
		gone(w.agent("n"))
		gone(w.controller("n"))
		Expect(w.times("n", metadataCleanup) + w.times("n", ovnCleanup)).To(BeZero())
	})
})
