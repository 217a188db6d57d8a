package podified_test

import (
	"crypto/tls"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	k8scorev1 "k8s.io/api/core/v1"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

var _ = Describe("The console proxy of a cell", func() {
	const proxy, publicAddress = "nova-cell1-novncproxy", "\n  noVNCProxyBaseURL: http://console/vnc_lite.html"
	var w world
	authority := func() *k8scorev1.Secret { return &k8scorev1.Secret{ObjectMeta: w.meta("nova-cell1-console-ca")} }
	BeforeEach(func() {
		w = newWorld()
		w.apply(cellSecrets)
	})

	It("has what hosts know it by, and no key of an authority", func() {
		w.apply(cell(database + publicAddress + "\n  noVNCProxyServiceTemplate: {replicas: 1}"))
		ready(w.cell())
		Expect(w.config(proxy, "program.ini")).To(ContainSubstring(`auth_schemes = vencrypt,none
vencrypt_client_cert = /etc/nova/nova.conf.d/console.crt
vencrypt_client_key = /etc/nova/nova.conf.d/console.key
vencrypt_ca_certs = /etc/nova/nova.conf.d/console-ca.crt
`))
		_, err := tls.X509KeyPair([]byte(w.config(proxy, "console.crt")), []byte(w.config(proxy, "console.key")))
		Expect(err).NotTo(HaveOccurred())
		key := string(get(Default, authority()).Data["tls.key"])
		for name, content := range get(Default, &k8scorev1.Secret{ObjectMeta: w.meta(proxy + "-config-data")}).Data {
			Expect(string(content)).NotTo(ContainSubstring(key), name)
		}
		Expect(w.config("nova-cell1-conductor", "console.key")).To(BeEmpty())
		quiet()

		By("keeping it while its authority cannot be used")
		before := w.births()
		change(authority(), func(s *k8scorev1.Secret) { s.Data["tls.key"] = []byte("x") })
		shows(w.cell(), condition.ServiceConfigReadyCondition, "False/"+string(novav1.ConsoleCANotReadyReason)+"/Info", "see condition ConsoleCAReady")
		quiet()
		Expect(w.births()).To(Equal(before))

		By("replacing it with the authority")
		Expect(api.Delete(ctx, authority())).To(Succeed())
		Eventually(func() string { return w.births()[proxy+"-0"] }).ShouldNot(Equal(before[proxy+"-0"]))
		ready(w.cell())
		Expect(w.births()).To(HaveKeyWithValue("nova-cell1-conductor-0", before["nova-cell1-conductor-0"]))
	})

	It("has none of it where computes offer no console", func() {
		w.apply(cell(database + "\n  noVNCProxyServiceTemplate: {replicas: 1}"))
		ready(w.cell())
		Expect(w.config(proxy, "program.ini")).NotTo(ContainSubstring("vencrypt"))
		Expect(get(Default, w.cell()).Status.ConsoleCA).To(BeNil())
	})
})
