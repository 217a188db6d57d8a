package e2e

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
)

// changeStories tell which hosts are run on after a change: those whose
// configuration it decides, and only those.
func changeStories() {
	var before history

	BeforeEach(func(ctx SpecContext) {
		for _, host := range []string{compute0.Name, compute1.Name} {
			Expect(current(ctx, computeNamed(samplesNS, host))()).To(beReady(), "an earlier story has failed")
		}
		before = historyOf(ctx, compute0, compute1, storage0)
	}, NodeTimeout(3*time.Minute))

	It("updates the computes of a cell when it is of its message bus", func(ctx SpecContext) {
		url := transportURL("cell1, the second one")
		started0, started1 := startedAt(ctx, compute0, novaContainer), startedAt(ctx, compute1, novaContainer)
		mustChange(ctx, secretNamed(samplesNS, busSecret("cell1")), func(s *corev1.Secret) {
			s.Data["transport_url"] = []byte(url)
		})
		Eventually(before.since).WithArguments(ctx, compute0).WithTimeout(6 * time.Minute).Should(Equal(startAndEnd("nova")))
		Eventually(current(ctx, computeNamed(samplesNS, compute0.Name))).WithTimeout(3 * time.Minute).Should(beReady())
		before.untouched(ctx, compute1, storage0)
		Expect(startedAt(ctx, compute0, novaContainer)).NotTo(Equal(started0), "nova-compute still runs with the old configuration")
		Expect(startedAt(ctx, compute1, novaContainer)).To(Equal(started1))
		Expect(sshOutput(ctx, compute0, "grep ^transport_url "+configDir+"/01-nova.conf")).To(ContainSubstring(url[len(url)-30:]))
	}, SpecTimeout(12*time.Minute))

	It("updates one compute when it is of its customServiceConfig", tier.Long, func(ctx SpecContext) {
		Expect(setOverride(ctx, compute1, 8)).To(Succeed())
		Eventually(before.since).WithArguments(ctx, compute1).WithTimeout(6 * time.Minute).Should(Equal(startAndEnd("nova")))
		Eventually(current(ctx, computeNamed(samplesNS, compute1.Name))).WithTimeout(3 * time.Minute).Should(beReady())
		before.untouched(ctx, compute0, storage0)
		Expect(loggedOption(ctx, compute1, "max_concurrent_live_migrations")).To(Equal("8"))
	}, SpecTimeout(12*time.Minute))

	It("stops runs when it is of the key of a host, until the node confirms the key", tier.Long, func(ctx SpecContext) {
		key := func() string {
			text, err := compute1.Console(ctx, "cut -d' ' -f1,2 /etc/ssh/ssh_host_ed25519_key.pub")
			Expect(err).NotTo(HaveOccurred())
			return strings.TrimSpace(text)
		}
		known := func() string { return node(ctx, samplesNS, compute1.Name).Status.HostKey }
		Expect(known()).To(Equal(key()), "the key is recorded when the host is first met")
		_, err := compute1.Console(ctx, "rm /etc/ssh/ssh_host_* && ssh-keygen -q -A && systemctl restart ssh")
		Expect(err).NotTo(HaveOccurred())
		again := func(name, value string) {
			mustChange(ctx, nodeNamed(samplesNS, compute1.Name), func(n *dataplanev1.OpenStackDataPlaneNode) { annotated(n, name, value) })
		}
		again(common.RerunAnnotation, "host key")
		Eventually(current(ctx, nodeNamed(samplesNS, compute1.Name))).WithTimeout(3 * time.Minute).Should(
			haveProblem(dataplanev1.ProvisionReadyCondition, dataplanev1.HostUnreachableReason, "shows another key", "SHA256:", common.HostKeyAnnotation))
		before.untouched(ctx, compute1)

		again(common.HostKeyAnnotation, key()+" root@"+compute1.Name)
		Eventually(current(ctx, nodeNamed(samplesNS, compute1.Name))).WithTimeout(6 * time.Minute).Should(beReady())
		Eventually(current(ctx, computeNamed(samplesNS, compute1.Name))).WithTimeout(6 * time.Minute).Should(beReady())
		Expect(known()).To(Equal(key()))
		before.untouched(ctx, compute0, storage0)
	}, SpecTimeout(18*time.Minute))

	It("updates one compute when it is of an image", tier.Long, func(ctx SpecContext) {
		const image = "localhost/edpm-nova-libvirt:latest" // it has nova-compute, too
		started := startedAt(ctx, compute1, novaContainer)
		mustChange(ctx, computeNamed(samplesNS, compute0.Name), func(c *novav1.NovaExternalCompute) {
			c.Spec.NovaComputeContainerImage = image
		})
		Eventually(before.since).WithArguments(ctx, compute0).WithTimeout(6 * time.Minute).Should(Equal(startAndEnd("nova", "live-migration")))
		Eventually(current(ctx, computeNamed(samplesNS, compute0.Name))).WithTimeout(3 * time.Minute).Should(beReady())
		before.untouched(ctx, compute1, storage0)
		Expect(sshOutput(ctx, compute0, "podman inspect --format '{{.Config.Image}}' "+novaContainer)).To(Equal(image))
		Expect(startedAt(ctx, compute1, novaContainer)).To(Equal(started))
	}, SpecTimeout(12*time.Minute))

	It("waits, and says so, while deploy is false", tier.Long, func(ctx SpecContext) {
		deploy := func(value bool) {
			mustChange(ctx, nodeNamed(samplesNS, compute0.Name), func(n *dataplanev1.OpenStackDataPlaneNode) {
				n.Spec.DeployStrategy.Deploy = ptr.To(value)
			})
		}
		deploy(false)
		Eventually(func() *bool { return compute(ctx, samplesNS, compute0.Name).Spec.Deploy }).WithTimeout(60 * time.Second).Should(HaveValue(BeFalse()))
		Expect(setOverride(ctx, compute0, 5)).To(Succeed())
		Eventually(current(ctx, computeNamed(samplesNS, compute0.Name))).WithTimeout(60 * time.Second).Should(
			haveProblem(condition.DeploymentReadyCondition, "DeployDisabled", "nova", "deploy is false"))
		Consistently(before.since).WithArguments(ctx, compute0).WithTimeout(6 * time.Second).WithPolling(2 * time.Second).Should(BeEmpty())
		Expect(node(ctx, samplesNS, compute0.Name)).To(beReady(), "phase 0 has nothing to do")

		deploy(true)
		Eventually(before.since).WithArguments(ctx, compute0).WithTimeout(6 * time.Minute).Should(Equal(startAndEnd("nova")))
		Eventually(current(ctx, computeNamed(samplesNS, compute0.Name))).WithTimeout(3 * time.Minute).Should(beReady())
		Expect(loggedOption(ctx, compute0, "max_concurrent_live_migrations")).To(Equal("5"))
		before.untouched(ctx, compute1, storage0)
	}, SpecTimeout(15*time.Minute))

	It("starts no run when it decides nothing", func(ctx SpecContext) {
		mustChange(ctx, secretNamed(samplesNS, busSecret("cell1")), func(s *corev1.Secret) {
			annotated(s, "example.com/note", "the content is the same")
			s.Data["unused"] = []byte("no one reads this key")
		})
		mustChange(ctx, nodeNamed(samplesNS, compute1.Name), func(n *dataplanev1.OpenStackDataPlaneNode) {
			n.Spec.DeployStrategy.BatchSize = ptr.To[int32](7)
		})
		Consistently(before.since).WithArguments(ctx, compute0).WithTimeout(5 * time.Second).WithPolling(2 * time.Second).Should(BeEmpty())
		before.untouched(ctx, compute0, compute1, storage0)
	}, SpecTimeout(3*time.Minute))
}
