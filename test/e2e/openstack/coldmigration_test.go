package openstack

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

// coldStories have the guest change its host and its size while it does not run.
func coldStories(other func() lab.Host) {
	It("copy the disk of a guest that is resized, and confirm it", func(ctx SpecContext) {
		openstack(ctx, "flavor", "create", "--vcpus", "1", "--ram", "160", "--disk", "1", "larger")
		onlyTo(ctx, other(), func() {
			openstack(ctx, "server", "resize", "--flavor", "larger", "--wait", guest)
		})
		Expect(statusOfGuest(ctx)).To(Equal("VERIFY_RESIZE"))
		Expect(hostOfGuest(ctx)).To(Equal(other().Name))
		openstack(ctx, "server", "resize", "confirm", guest)
		runsOn(ctx, other())
		Eventually(compute.SSH).WithArguments(ctx, "ls /var/lib/nova/instances").WithTimeout(2*time.Minute).ShouldNot(ContainSubstring(guest), "what it had on the host before")
	}, SpecTimeout(15*time.Minute))

	It("put a guest back whose resize is reverted", func(ctx SpecContext) {
		onlyTo(ctx, compute, func() {
			openstack(ctx, "server", "resize", "--flavor", "guest", "--wait", guest)
		})
		Expect(hostOfGuest(ctx)).To(Equal(compute.Name))
		openstack(ctx, "server", "resize", "revert", guest)
		runsOn(ctx, other())
		Eventually(compute.SSH).WithArguments(ctx, "ls /var/lib/nova/instances").WithTimeout(2 * time.Minute).ShouldNot(ContainSubstring(guest))
	}, SpecTimeout(15*time.Minute))

	It("get another key without a restart, and move the guest back with it", func(ctx SpecContext) {
		const key = "cat /var/lib/nova/.ssh/edpm-migration"
		const services = "systemctl show --property=Id,ActiveEnterTimestampMonotonic 'edpm_*.service'; pgrep -f 'qemu-system.*guest='"
		before, err := other().SSH(ctx, services)
		Expect(err).NotTo(HaveOccurred())
		old, err := other().SSH(ctx, key)
		Expect(err).NotTo(HaveOccurred())
		cell := &novav1.NovaCell{ObjectMeta: named(novav1.CellName(nova().Name, "cell1"))}
		Expect(change(ctx, cell, func(c *novav1.NovaCell) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, novav1.RotateMigrationKeyAnnotation, "story")
		})).To(Succeed())
		Eventually(other().SSH).WithArguments(ctx, "ls /var/lib/nova/.ssh; "+key).WithTimeout(8 * time.Minute).ShouldNot(Or(ContainSubstring(old), ContainSubstring("previous")))
		Expect(other().SSH(ctx, services)).To(Equal(before), "units and the process of the guest")
		for _, host := range []lab.Host{compute, other()} {
			reaches(ctx, host)
		}
		openstack(ctx, "--os-compute-api-version", "2.56", "server", "migrate", "--host", compute.Name, "--wait", guest)
		Expect(statusOfGuest(ctx)).To(Equal("VERIFY_RESIZE"))
		openstack(ctx, "server", "migration", "confirm", guest)
		runsOn(ctx, compute)
	}, SpecTimeout(20*time.Minute))
}

// onlyTo runs an action while the scheduler has no other host to choose.
func onlyTo(ctx context.Context, host lab.Host, action func()) {
	GinkgoHelper()
	services, err := hostsOfServices(ctx, "nova-compute")
	Expect(err).NotTo(HaveOccurred())
	for name := range services {
		if name != host.Name {
			openstack(ctx, "compute", "service", "set", "--disable", name, "nova-compute")
			defer openstack(ctx, "compute", "service", "set", "--enable", name, "nova-compute")
		}
	}
	action()
}

// runsOn waits until the guest runs on a host and prints its uptime again.
func runsOn(ctx context.Context, host lab.Host) {
	GinkgoHelper()
	Eventually(statusOfGuest).WithArguments(ctx).WithTimeout(4 * time.Minute).Should(Equal("ACTIVE"))
	Expect(hostOfGuest(ctx)).To(Equal(host.Name))
	Eventually(uptime).WithArguments(ctx).WithTimeout(3 * time.Minute).Should(BeNumerically(">", 0))
}
