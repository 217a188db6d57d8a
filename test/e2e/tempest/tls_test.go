package tempest

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
)

// caBundle is the Secret, for pods, and the ConfigMap, for hosts, with the private authority
// that the bus, the database and keystone have their certificates of.
const caBundle = "combined-ca-bundle"

// keystoneURL is keystone with TLS.
func keystoneURL() string { return "https://" + controller.IP + ":5443" }

// secure has the database and keystone refuse nova, and whoever asks the catalog for keystone,
// without TLS, and returns the authority.
func secure(ctx context.Context) string {
	GinkgoHelper()
	authority, err := controller.SSH(ctx, `systemctl start lab-keystone-tls && mariadb -e "ALTER USER nova@'%' REQUIRE SSL" && cat /etc/lab/tls/ca.crt`)
	Expect(err).NotTo(HaveOccurred())
	endpoint, err := cluster.OpenStack(ctx, "endpoint", "list", "--service", "identity", "--interface", "internal", "--format", "value", "--column", "ID")
	Expect(err).NotTo(HaveOccurred())
	_, err = cluster.OpenStack(ctx, "endpoint", "set", "--url", keystoneURL()+"/v3", endpoint)
	Expect(err).NotTo(HaveOccurred())
	return authority
}

// inputs are those that the demo gives nova, with TLS of the bus.
func inputs() string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(cluster.Root, "test", "demo", "openstack", "inputs.yaml"))
	Expect(err).NotTo(HaveOccurred())
	return strings.NewReplacer(":5672/api", ":5671/api?ssl=1", ":5672/cell1", ":5671/cell1?ssl=1", ":5672/cell2", ":5671/cell2?ssl=1").Replace(string(text))
}

// trusted are the objects by which pods and hosts trust an authority.
func trusted(authority string) []client.Object {
	return []client.Object{
		secret(caBundle, map[string]string{"tls-ca-bundle.pem": authority}),
		&corev1.ConfigMap{ObjectMeta: named(caBundle), Data: map[string]string{"lab.crt": authority}},
		&dataplanev1.OpenStackDataPlaneService{ObjectMeta: named("trust-certificates"), Spec: dataplanev1.OpenStackDataPlaneServiceSpec{
			Label: "certificates of authorities", Playbook: "edpm.operators.trust_certificates", ConfigMaps: []string{caBundle},
		}},
	}
}

// inClear lists connections of others to the bus without TLS.
func inClear(ctx context.Context) (string, error) {
	return controller.SSH(ctx, "ss -Htn state established '( sport = :5672 )'")
}
