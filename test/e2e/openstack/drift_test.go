package openstack

import (
	"context"
	"fmt"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
)

// driftStories have someone change the host of a guest. A check comes within its interval, the shortest that is allowed.
func driftStories() {
	changes := []struct{ what, change, isBack string }{
		{"a file", "echo 'debug = True' >> /var/lib/openstack/nova/01-nova.conf", "! grep -q 'debug = True' /var/lib/openstack/nova/01-nova.conf"},
		{"a unit", "echo '# mine' >> /etc/systemd/system/edpm_nova_compute.service", "! grep -q mine /etc/systemd/system/edpm_nova_compute.service"},
		{"the firewall", "nft delete table inet edpm", "nft list table inet edpm"},
		{"a container", "systemctl stop edpm_nova_compute", "systemctl is-active edpm_nova_compute"},
		{"a package", "/srv/mirror.sh iputils-ping", "ping -V"},
	}
	driftOf := func(ctx context.Context) (string, error) {
		return cluster.Kubectl(ctx, "get", "-n", namespace, "novaexternalcompute/"+compute.Name, "openstackdataplanenode/"+compute.Name, "-o", "jsonpath={.items[*].status.drift}")
	}
	checked := func(ctx context.Context, repair common.RepairPolicy) {
		GinkgoHelper()
		role := &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: named("edpm-compute")}
		Expect(change(ctx, role, func(role *dataplanev1.OpenStackDataPlaneRole) {
			role.Spec.DeployStrategy.DriftCheck = nil
			if repair != "" {
				role.Spec.DeployStrategy.DriftCheck = &dataplanev1.DriftCheck{
					Interval: &metav1.Duration{Duration: 10 * time.Minute}, Steps: []string{"install-os", "configure-os", "nova"}, Repair: repair,
				}
			}
		})).To(Succeed())
	}

	It("is found to differ where someone has changed it", tier.Long, func(ctx SpecContext) {
		before := look(ctx)
		copyMirror(ctx)
		for _, c := range changes {
			By("changing " + c.what)
			Expect(compute.SSH(ctx, c.change)).Error().NotTo(HaveOccurred())
		}
		checked(ctx, common.RepairAsk)
		Eventually(expect.Read(ctx, k8s, external())).WithTimeout(25 * time.Minute).Should(expect.False(common.HostInSyncCondition, common.RepairAwaitedReason, "nova"))
		Eventually(expect.Read(ctx, k8s, nodeOf(compute))).WithTimeout(25 * time.Minute).Should(expect.False(common.HostInSyncCondition, common.RepairAwaitedReason, "configure-os"))
		for _, differs := range []string{"edpm_nova_compute.service", "01-nova.conf", "Load the firewall", "Install the packages that are missing"} {
			Expect(driftOf(ctx)).To(ContainSubstring(differs))
		}
		Expect(qemu(ctx)).To(Equal(before.processes), "nova-compute, which is stopped, cannot say what the guest prints")
	}, SpecTimeout(55*time.Minute))

	It("is repaired where that is asked for, while its guest runs", tier.Long, func(ctx SpecContext) {
		before := look(ctx)
		checked(ctx, common.RepairAlways)
		for _, c := range changes {
			Eventually(func() error {
				_, err := compute.SSH(ctx, c.isBack)
				return err
			}).WithTimeout(25*time.Minute).Should(Succeed(), c.what)
		}
		for _, obj := range []phase.Object{external(), nodeOf(compute)} {
			Eventually(expect.Read(ctx, k8s, obj)).WithTimeout(10 * time.Minute).Should(WithTransform(func(obj phase.Object) any {
				return obj.GetConditions().Get(common.HostInSyncCondition)
			}, BeNil()))
		}
		checked(ctx, "")
		settled(ctx)
		before.lives(ctx)
	}, SpecTimeout(50*time.Minute))
}

// copyMirror copies to the host what removes packages that steps install again, from a mirror on the host.
func copyMirror(ctx context.Context) {
	GinkgoHelper()
	mirror, err := os.ReadFile("../../../ansible/tests/mirror.sh")
	Expect(err).NotTo(HaveOccurred())
	Expect(compute.SSH(ctx, fmt.Sprintf("cat > /srv/mirror.sh <<'EOF'\n%s\nEOF\nchmod +x /srv/mirror.sh", mirror))).Error().NotTo(HaveOccurred())
}
