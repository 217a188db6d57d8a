package openstack

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

// evacuationStories have a host fail with a guest, and come back.
func evacuationStories(host func() lab.Host, guestThere *string) {
	named := func() metav1.ObjectMeta { return named(host().Name) }
	there := func() *novav1.NovaExternalCompute { return &novav1.NovaExternalCompute{ObjectMeta: named()} }
	fence := func(ctx context.Context, by string) {
		GinkgoHelper()
		Expect(change(ctx, &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: named()}, func(node *dataplanev1.OpenStackDataPlaneNode) {
			if delete(node.Annotations, common.FenceAnnotation); by != "" {
				metav1.SetMetaDataAnnotation(&node.ObjectMeta, common.FenceAnnotation, by)
			}
		})).To(Succeed())
	}
	hostOf := func(ctx context.Context) (string, error) {
		return cluster.OpenStack(ctx, "server", "show", *guestThere, "--format", "value", "--column", "OS-EXT-SRV-ATTR:host")
	}
	// processes are those of the guest on a host.
	processes := func(ctx context.Context, on lab.Host) int {
		GinkgoHelper()
		out, err := on.SSH(ctx, "pgrep -f '[u]uid "+*guestThere+"' || true")
		Expect(err).NotTo(HaveOccurred())
		return len(strings.Fields(out))
	}

	It("are evacuated when they fail, once someone says that they are off", func(ctx SpecContext) {
		before := look(ctx)
		_, err := cluster.Run(ctx, "podman", "kill", host().Name)
		Expect(err).NotTo(HaveOccurred())
		Eventually(expect.Read(ctx, k8s, there())).WithTimeout(3 * time.Minute).Should(
			expect.Problem(novav1.ComputeServiceReadyCondition, novav1.ServiceDownReason, "has not reported to nova since"))
		Expect(hostOf(ctx)).To(Equal(host().Name))

		fence(ctx, "the story: it was killed")
		Eventually(hostOf).WithArguments(ctx).WithTimeout(5 * time.Minute).Should(Equal(compute.Name))
		Eventually(func() (string, error) {
			obj := there()
			err := k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj)
			if c := obj.Status.Conditions.Get(novav1.EvacuatedCondition); c != nil {
				return string(c.Reason) + " " + c.Message, err
			}
			return "", err
		}).WithTimeout(2 * time.Minute).Should(And(HavePrefix(string(novav1.HostEvacuatedReason)), ContainSubstring("1 guests were evacuated")))
		Eventually(processes).WithArguments(ctx, compute).WithTimeout(2 * time.Minute).Should(Equal(1))
		Expect(openstack(ctx, "compute", "service", "list", "--os-compute-api-version", "2.69", "--service", "nova-compute", "--host", host().Name, "--long", "--format", "value",
			"--column", "Status", "--column", "Forced Down")).To(Equal("disabled True"))
		Expect(qemu(ctx)).To(ContainElements(before.processes), "the process of the guest that was there before")
		before.speaks(ctx)
	}, SpecTimeout(15*time.Minute))

	It("come back by themselves, and are not used", func(ctx SpecContext) {
		Expect(bringUp(ctx, compute, host())).To(Succeed())
		Eventually(host().SSH).WithArguments(ctx, "systemctl is-active edpm_nova_compute").WithTimeout(3 * time.Minute).Should(Equal("active"))
		Eventually(host().SSH).WithArguments(ctx, "podman exec edpm_libvirt_libvirtd virsh --quiet list --all --uuid").WithTimeout(4 * time.Minute).ShouldNot(ContainSubstring(*guestThere))
		Consistently(processes).WithArguments(ctx, host()).WithTimeout(time.Minute).WithPolling(5 * time.Second).Should(BeZero())
		Expect(processes(ctx, compute)).To(Equal(1))
		Expect(hostsOfServices(ctx, "nova-compute")).To(HaveKeyWithValue(host().Name, "down"))
	}, SpecTimeout(15*time.Minute))

	It("are used again once they were deployed again and nova has finished", func(ctx SpecContext) {
		fence(ctx, "")
		becomesReady(ctx, host().Name)
		obj := there()
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
		Expect(obj.Status.Runs).To(HaveKey("evacuated"))
		Expect(obj.Status.Fence).To(BeNil())
		Expect(hostsOfServices(ctx, "nova-compute")).To(HaveKeyWithValue(host().Name, "up"))
		Expect([]int{processes(ctx, compute), processes(ctx, host())}).To(Equal([]int{1, 0}))
		openstack(ctx, "server", "delete", "--wait", *guestThere)
		*guestThere = createGuest(ctx, "further", host().Name)
	}, SpecTimeout(15*time.Minute))

	It("are the computes that they were when their machines are replaced", func(ctx SpecContext) {
		obj := there()
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
		known := obj.Status.ComputeService
		Expect(known.ComputeID).NotTo(BeEmpty())
		openstack(ctx, "server", "delete", "--wait", *guestThere)
		remove(ctx, host())
		Expect(bringUp(ctx, compute, host())).To(Succeed())
		key, err := cluster.Run(ctx, "podman", "exec", host().Name, "cut", "-d", " ", "-f1,2", "/etc/ssh/ssh_host_ed25519_key.pub")
		Expect(err).NotTo(HaveOccurred())
		Expect(change(ctx, &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: named()}, func(node *dataplanev1.OpenStackDataPlaneNode) {
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, common.HostKeyAnnotation, strings.TrimSpace(key))
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, common.RerunAnnotation, "another machine")
		})).To(Succeed())
		Eventually(host().SSH).WithArguments(ctx, "cat /var/lib/nova/compute_id").WithTimeout(10 * time.Minute).Should(Equal(known.ComputeID))
		becomesReady(ctx, host().Name)
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
		Expect([]string{obj.Status.ComputeService.ID, obj.Status.ComputeService.ComputeID}).To(Equal([]string{known.ID, known.ComputeID}))
		Expect(openstack(ctx, "resource", "provider", "list", "--format", "value", "--column", "uuid")).To(ContainSubstring(known.ComputeID))
		*guestThere = createGuest(ctx, "further", host().Name)
	}, SpecTimeout(20*time.Minute))
}
