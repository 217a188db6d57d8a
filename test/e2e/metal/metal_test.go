package metal

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
)

var _ = Describe("Machines that are registered", Ordered, tier.Long, func() {
	It("serve two nodes, even if the manager dies meanwhile", func(ctx SpecContext) {
		for _, obj := range everything() {
			Expect(k8s.Create(ctx, obj)).To(Succeed(), "creating %T %s", obj, obj.GetName())
		}
		Eventually(claims).WithArguments(ctx).WithTimeout(2 * time.Minute).ShouldNot(BeEmpty())
		killManager(ctx)
		Eventually(claims).WithArguments(ctx).WithTimeout(2 * time.Minute).Should(HaveLen(2))
	}, SpecTimeout(5*time.Minute))

	It("include one that cannot be provisioned, which another one replaces when a user asks for it", func(ctx SpecContext) {
		broken := holder(ctx, "machine-1")
		n := node(broken)
		Eventually(expect.Read(ctx, k8s, n)).WithTimeout(2 * time.Minute).Should(
			expect.Problem(dataplanev1.ProvisionReadyCondition, dataplanev1.MetalErrorReason, "provisioning error: the disk is broken", common.ReplaceHostAnnotation))
		followPages(ctx)
		change(ctx, n, func() { n.Annotations = map[string]string{common.ReplaceHostAnnotation: "1"} })
		killManager(ctx)
		Eventually(claims).WithArguments(ctx).WithTimeout(2 * time.Minute).Should(HaveKeyWithValue("machine-2", nodeName(broken)))
		Expect(claims(ctx)).To(HaveLen(2))
		Eventually(state).WithArguments(ctx, "machine-1").WithTimeout(time.Minute).Should(Equal(metal3v1.StateAvailable))
	}, SpecTimeout(5*time.Minute))

	It("become computes that have their user, name, address and host key from cloud-init", func(ctx SpecContext) {
		for i := range 2 {
			Eventually(expect.Read(ctx, k8s, compute(i))).WithTimeout(10 * time.Minute).Should(expect.Ready())
			Eventually(expect.Read(ctx, k8s, node(i))).WithTimeout(time.Minute).Should(expect.Ready())
			Expect(login(ctx, i, "hostname --fqdn; cloud-init status")).To(Equal(nodeName(i) + ".example.org\nstatus: done"))
			found := steps(ctx, i)
			delete(found, "live-migration") // runs again when a compute joins the cell
			Expect(found).To(Equal(map[string]int{
				"configure-network": 1, "validate-network": 1, "install-os": 1, "configure-os": 1, "run-os": 1, "libvirt-tls": 1, "libvirt": 1, "nova": 1,
			}), "each step should have run once on the machine of %s", nodeName(i))
		}
	}, SpecTimeout(12*time.Minute))

	It("come back clean, even if the manager dies meanwhile", func(ctx SpecContext) {
		left := holderOf(ctx, 0)
		Expect(k8s.Delete(ctx, node(0))).To(Succeed())
		Eventually(state).WithArguments(ctx, left).WithTimeout(5 * time.Minute).ShouldNot(Equal(metal3v1.StateProvisioned))
		killManager(ctx)
		Eventually(func() bool {
			return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(node(0)), node(0)))
		}).WithTimeout(3 * time.Minute).Should(BeTrue())
		Expect(claims(ctx)).To(HaveLen(1))
		host := &metal3v1.BareMetalHost{ObjectMeta: named(left)}
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(host), host)).To(Succeed())
		Expect(host.Spec.Image).To(BeNil())
		Expect(host.Status.Provisioning.State).To(Equal(metal3v1.StateAvailable))
		_, err := cluster.Run(ctx, "podman", "container", "exists", left)
		Expect(err).To(HaveOccurred(), "nothing should be left of what ran on %s", left)
		_, err = cluster.Run(ctx, "podman", "volume", "exists", "edpm-lab-"+left)
		Expect(err).To(HaveOccurred(), "the disk of %s should be empty", left)
		Expect(expect.Read(ctx, k8s, node(1))()).To(expect.Ready())
	}, SpecTimeout(10*time.Minute))
})

// killManager ends the manager without a warning.
func killManager(ctx context.Context) {
	GinkgoHelper()
	_, err := cluster.Kubectl(ctx, "-n", lab.ManagerNamespace, "delete", "pods", "--all", "--grace-period=0", "--force", "--wait=false")
	Expect(err).NotTo(HaveOccurred())
}

// claims are the consumers of BareMetalHosts, by their names.
func claims(ctx context.Context) (map[string]string, error) {
	list := &metal3v1.BareMetalHostList{}
	claimed := map[string]string{}
	err := k8s.List(ctx, list, client.InNamespace(namespace))
	for i := range list.Items {
		if ref := list.Items[i].Spec.ConsumerRef; ref != nil {
			claimed[list.Items[i].Name] = ref.Name
		}
	}
	return claimed, err
}

// holder is the number of the node that has a machine.
func holder(ctx context.Context, machine string) int {
	GinkgoHelper()
	claimed, err := claims(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(claimed[machine]).To(Or(Equal(nodeName(0)), Equal(nodeName(1))))
	if claimed[machine] == nodeName(0) {
		return 0
	}
	return 1
}

// holderOf is the machine of a node.
func holderOf(ctx context.Context, i int) string {
	GinkgoHelper()
	n := node(i)
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(n), n)).To(Succeed())
	Expect(n.Status.BareMetalHost).NotTo(BeNil())
	return n.Status.BareMetalHost.Name
}

func state(ctx context.Context, machine string) (metal3v1.ProvisioningState, error) {
	host := &metal3v1.BareMetalHost{ObjectMeta: named(machine)}
	err := k8s.Get(ctx, client.ObjectKeyFromObject(host), host)
	return host.Status.Provisioning.State, err
}

func change(ctx context.Context, obj client.Object, mutate func()) {
	GinkgoHelper()
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	before := obj.DeepCopyObject().(client.Object)
	mutate()
	Expect(k8s.Patch(ctx, obj, client.MergeFrom(before))).To(Succeed())
}

// steps are how often each step has run on the machine of a node.
func steps(ctx context.Context, i int) map[string]int {
	GinkgoHelper()
	runs, err := cluster.Host(holderOf(ctx, i), nodeAddress(i)).Runs(ctx)
	Expect(err).NotTo(HaveOccurred())
	times := map[string]int{}
	for _, run := range runs {
		if run.Event == "end" {
			times[run.Step]++
		}
	}
	return times
}
