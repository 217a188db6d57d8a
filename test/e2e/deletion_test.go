package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
)

// remains lists what is on a host of the services of phase 1.
const remains = `cd /etc/systemd/system; ls -d edpm_*.service 2>/dev/null
podman ps --all --format '{{.Names}}' | grep ^edpm_
ls -d /var/lib/openstack/nova /var/lib/openstack/libvirt 2>/dev/null
pgrep -a nova-compute
true`

// gone reports whether an object no longer exists.
func gone(ctx context.Context, obj client.Object) func() bool {
	return func() bool { return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj)) }
}

// deletionStories tell how a compute goes: first from its host, then from the cluster.
func deletionStories() {
	It("removes its services and secrets from the host, and then disappears", func(ctx SpecContext) {
		before := historyOf(ctx, compute0, compute1, storage0)
		Expect(sshOutput(ctx, compute1, remains)).To(ContainSubstring("edpm_nova_compute.service"))
		Expect(k8s.Delete(ctx, nodeNamed(samplesNS, compute1.Name))).To(Succeed())
		Eventually(gone(ctx, nodeNamed(samplesNS, compute1.Name))).WithTimeout(9 * time.Minute).Should(BeTrue())

		Expect(sshOutput(ctx, compute1, remains)).To(BeEmpty())
		Expect(gone(ctx, computeNamed(samplesNS, compute1.Name))()).To(BeTrue())
		Expect(gone(ctx, &corev1.ConfigMap{ObjectMeta: named(samplesNS, "dataplanenode-"+compute1.Name)})()).To(BeTrue())
		Expect(before.since(ctx, compute1)).To(Equal(startAndEnd("nova-cleanup")))
		before.untouched(ctx, compute0, storage0)
	}, SpecTimeout(15*time.Minute))

	It("disappears at once if it was no compute", func(ctx SpecContext) {
		before := historyOf(ctx, storage0)
		Expect(k8s.Delete(ctx, nodeNamed(samplesNS, storage0.Name))).To(Succeed())
		Eventually(gone(ctx, nodeNamed(samplesNS, storage0.Name))).WithTimeout(60 * time.Second).Should(BeTrue())
		before.untouched(ctx, storage0)
	}, SpecTimeout(3*time.Minute))

	It("reports what is left on a host that does not answer, and disappears when a user asks for it", tier.Long, func(ctx SpecContext) {
		_, err := compute0.Console(ctx, "systemctl stop ssh")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			_, err := compute0.Console(ctx, "systemctl start ssh")
			Expect(err).NotTo(HaveOccurred())
		})
		Expect(k8s.Delete(ctx, nodeNamed(samplesNS, compute0.Name))).To(Succeed())
		Eventually(current(ctx, computeNamed(samplesNS, compute0.Name))).WithTimeout(6 * time.Minute).Should(
			haveProblem(condition.DeploymentReadyCondition, novav1.CleanupFailedReason,
				compute0.IP, "edpm_nova_compute", "/var/lib/openstack/nova", common.SkipCleanupAnnotation, "refused"))
		Expect(current(ctx, nodeNamed(samplesNS, compute0.Name))()).To(
			haveProblem(condition.DeploymentReadyCondition, dataplanev1.ServicesRemainingReason, "nova", compute0.Name))

		mustChange(ctx, nodeNamed(samplesNS, compute0.Name), func(n *dataplanev1.OpenStackDataPlaneNode) {
			annotated(n, common.SkipCleanupAnnotation, "true")
		})
		Eventually(gone(ctx, nodeNamed(samplesNS, compute0.Name))).WithTimeout(3 * time.Minute).Should(BeTrue())
		Expect(gone(ctx, computeNamed(samplesNS, compute0.Name))()).To(BeTrue())
		Expect(compute0.Console(ctx, "systemctl is-active edpm_nova_compute.service")).To(Equal("active"), "no one was there to stop it")
	}, SpecTimeout(15*time.Minute))
}
