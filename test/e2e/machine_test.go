package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

// machineStories tell what becomes of a host whose node is deleted while the host
// is down, and which is then added again under another name.
func machineStories() {
	const role = "e2e-machine"
	newNamed := func(name string) *dataplanev1.OpenStackDataPlaneNode {
		n := newNode(machineNS, role, compute1)
		n.Name = name
		return n
	}
	active := func(ctx context.Context) func() (string, error) {
		return func() (string, error) {
			return compute1.Console(ctx, "systemctl is-active edpm_nova_compute.service; true")
		}
	}

	BeforeAll(func(ctx SpecContext) {
		create(ctx, control(machineNS)...)
		create(ctx, quickService(machineNS, quick))
		create(ctx, inCell(newRole(machineNS, role, quick), "nova-cell1"), newNamed("before"))
		Eventually(current(ctx, computeNamed(machineNS, "before"))).WithTimeout(9 * time.Minute).Should(beReady())
	}, NodeTimeout(12*time.Minute))

	AfterAll(func(ctx SpecContext) {
		Expect(k8s.Delete(ctx, nodeNamed(machineNS, "after"))).To(Succeed())
		Eventually(gone(ctx, nodeNamed(machineNS, "after"))).WithTimeout(9 * time.Minute).Should(BeTrue())
		Expect(sshOutput(ctx, compute1, remains)).To(BeEmpty())
	}, NodeTimeout(12*time.Minute))

	It("keeps its services when the node that had its host before is cleaned up late", func(ctx SpecContext) {
		_, err := compute1.Console(ctx, "systemctl stop ssh")
		Expect(err).NotTo(HaveOccurred())
		Expect(k8s.Delete(ctx, nodeNamed(machineNS, "before"))).To(Succeed())
		Eventually(current(ctx, computeNamed(machineNS, "before"))).WithTimeout(6 * time.Minute).Should(
			haveProblem(condition.DeploymentReadyCondition, novav1.CleanupFailedReason, common.SkipCleanupAnnotation))

		By("adding it again: its node waits for the one of before")
		create(ctx, newNamed("after"))
		Eventually(current(ctx, nodeNamed(machineNS, "after"))).WithTimeout(3 * time.Minute).Should(
			haveProblem(condition.InputReadyCondition, dataplanev1.MachineConflictReason, "OpenStackDataPlaneNode before, which is being deleted", compute1.IP))

		By("starting it: it is cleaned up, and only then deployed")
		_, err = compute1.Console(ctx, "systemctl start ssh")
		Expect(err).NotTo(HaveOccurred())
		before := historyOf(ctx, compute1)
		mustChange(ctx, nodeNamed(machineNS, "before"), func(n *dataplanev1.OpenStackDataPlaneNode) {
			annotated(n, common.RerunAnnotation, "the host is up")
		})
		Eventually(gone(ctx, nodeNamed(machineNS, "before"))).WithTimeout(6 * time.Minute).Should(BeTrue())
		Eventually(current(ctx, computeNamed(machineNS, "after"))).WithTimeout(9 * time.Minute).Should(beReady())
		Expect(before.since(ctx, compute1)).To(Equal(startAndEnd("nova-cleanup", quick, "libvirt-tls", "libvirt", "nova", "live-migration")))
		Expect(active(ctx)()).To(HavePrefix("active"))
	}, SpecTimeout(24*time.Minute))

	It("keeps its services when it is of another node under another address, as its host key shows", func(ctx SpecContext) {
		const second = "192.168.122.201"
		_, err := compute1.Console(ctx, `ip address add `+second+`/24 dev "$(ip -o address show to `+compute1.IP+` | cut -d' ' -f2)"`)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			_, err := compute1.Console(ctx, `ip address del `+second+`/24 dev "$(ip -o address show to `+second+` | cut -d' ' -f2)"`)
			Expect(err).NotTo(HaveOccurred())
		})
		other := newNamed("other")
		other.Spec.AnsibleHost = second
		create(ctx, other)
		for _, name := range []string{"after", "other"} {
			Eventually(current(ctx, nodeNamed(machineNS, name))).WithTimeout(6*time.Minute).Should(
				haveProblem(condition.InputReadyCondition, dataplanev1.MachineConflictReason, "is the same machine", "host key SHA256:"), name)
		}
		Expect(k8s.Delete(ctx, other)).To(Succeed())
		Eventually(gone(ctx, nodeNamed(machineNS, "other"))).WithTimeout(6 * time.Minute).Should(BeTrue())
		Eventually(current(ctx, computeNamed(machineNS, "after"))).WithTimeout(6 * time.Minute).Should(beReady())
		Consistently(active(ctx)).WithTimeout(5 * time.Second).WithPolling(time.Second).Should(HavePrefix("active"))
	}, SpecTimeout(18*time.Minute))
}
