package openstack

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

// scaleStories have further hosts come and go while a guest runs on the first one.
func scaleStories() {
	var second string // the id of a guest on the host that dies
	further := &dataplanev1.OpenStackDataPlaneNode{}
	host := func() lab.Host { return cluster.Host("edpm-compute-1", "192.168.122.101") }
	other := func() lab.Host { return cluster.Host("edpm-compute-2", "192.168.122.102") }

	It("join, two at once, and run guests, while one runs on another", func(ctx SpecContext) {
		before := look(ctx)
		*further = *nodeOf(host())
		Expect(bringUp(ctx, compute, host(), other())).To(Succeed())
		Expect(k8s.Create(ctx, further)).To(Succeed())
		Expect(k8s.Create(ctx, nodeOf(other()))).To(Succeed())
		becomesReady(ctx, further.Name)
		becomesReady(ctx, other().Name)
		Expect(hostsOfServices(ctx, "nova-compute")).To(Equal(map[string]string{compute.Name: "up", further.Name: "up", other().Name: "up"}))
		second = createGuest(ctx, "further", further.Name)
		before.lives(ctx)
	}, SpecTimeout(20*time.Minute))

	It("leave without guests while others have theirs", func(ctx SpecContext) {
		before := look(ctx)
		node := nodeOf(other())
		Expect(k8s.Delete(ctx, node)).To(Succeed())
		Eventually(missing).WithArguments(ctx, node).WithTimeout(6 * time.Minute).Should(BeTrue())
		Expect(hostsOfServices(ctx, "nova-compute")).To(Equal(map[string]string{compute.Name: "up", further.Name: "up"}))
		before.lives(ctx)
		remove(ctx, other())
	}, SpecTimeout(8*time.Minute))

	moveStories(host)
	drainStories(host, &second)
	evacuationStories(host, &second)
	coldStories(host)
	updateStories(host, other)

	It("stay in nova, which no one is told to evacuate, when they die with a guest and are removed without clean-up", func(ctx SpecContext) {
		before := look(ctx)
		remove(ctx, host())
		Expect(change(ctx, further, func(node *dataplanev1.OpenStackDataPlaneNode) {
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, common.SkipCleanupAnnotation, "true")
		})).To(Succeed())
		Expect(k8s.Delete(ctx, further)).To(Succeed())
		Eventually(missing).WithArguments(ctx, further).WithTimeout(4 * time.Minute).Should(BeTrue())
		Eventually(cluster.OpenStack).WithArguments(ctx, "compute", "service", "list", "--os-compute-api-version", "2.69", "--service", "nova-compute", "--host", further.Name, "--long", "--format", "value",
			"--column", "Status", "--column", "State", "--column", "Forced Down").WithTimeout(2 * time.Minute).Should(Equal("disabled down False"))
		Expect(events(ctx, "ComputeServiceLeft")).To(ContainElement(ContainSubstring("1 instances")))

		By("having the rest done by a person")
		openstack(ctx, "server", "delete", "--wait", second)
		id := openstack(ctx, "compute", "service", "list", "--service", "nova-compute", "--host", further.Name, "--format", "value", "--column", "ID")
		openstack(ctx, "compute", "service", "delete", id)
		Expect(novaManage(ctx, "cell_v2", "list_hosts")).NotTo(ContainSubstring(further.Name))
		before.lives(ctx)
	}, SpecTimeout(12*time.Minute))

	It("come back under their name in the other cell", func(ctx SpecContext) {
		before := look(ctx)
		*further = *nodeOf(host())
		further.Annotations = map[string]string{novav1.CellAnnotation: "nova-cell2"}
		Expect(bringUp(ctx, compute, host())).To(Succeed())
		Expect(k8s.Create(ctx, further)).To(Succeed())
		becomesReady(ctx, further.Name)
		Expect(novaManage(ctx, "cell_v2", "list_hosts")).To(MatchRegexp(`(?m)^\| +cell2 +\| \S+ +\| +` + further.Name + ` +\|$`))
		second = createGuest(ctx, "other-cell", further.Name)
		before.lives(ctx)
	}, SpecTimeout(20*time.Minute))

	It("leave with their last guest", func(ctx SpecContext) {
		before := look(ctx)
		openstack(ctx, "server", "delete", "--wait", second)
		Expect(k8s.Delete(ctx, further)).To(Succeed())
		Eventually(missing).WithArguments(ctx, further).WithTimeout(8 * time.Minute).Should(BeTrue())
		Expect(hostsOfServices(ctx, "nova-compute")).To(Equal(map[string]string{compute.Name: "up"}))
		Expect(openstack(ctx, "resource", "provider", "list", "--format", "value")).NotTo(ContainSubstring(further.Name))
		before.lives(ctx)
		remove(ctx, host())
	}, SpecTimeout(12*time.Minute))
}

// bringUp has the lab run these hosts.
func bringUp(ctx context.Context, hosts ...lab.Host) error {
	return cluster.UpWith(ctx, GinkgoWriter, append(lab.HostFlags(hosts...), "--openstack")...)
}

// remove takes a host away at once, with its disk.
func remove(ctx context.Context, host lab.Host) {
	GinkgoHelper()
	for _, args := range [][]string{{"rm", "--force", "--time", "0", host.Name}, {"volume", "rm", "edpm-lab-" + host.Name}} {
		_, err := cluster.Run(ctx, "podman", args...)
		Expect(err).NotTo(HaveOccurred())
	}
}

// becomesReady waits until a node and its compute are Ready.
func becomesReady(ctx context.Context, name string) {
	GinkgoHelper()
	obj := &novav1.NovaExternalCompute{ObjectMeta: named(name)}
	Eventually(expect.Read(ctx, k8s, obj)).WithTimeout(12 * time.Minute).Should(expect.Ready())
	node := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: named(name)}
	Eventually(expect.Read(ctx, k8s, node)).WithTimeout(time.Minute).Should(expect.Ready())
}

// events are the messages of events with a reason.
func events(ctx context.Context, reason string) ([]string, error) {
	out, err := cluster.Kubectl(ctx, "-n", namespace, "get", "events.v1.events.k8s.io", "--field-selector", "reason="+reason,
		"-o", `jsonpath={range .items[*]}{.note}{"\n"}{end}`)
	return strings.Split(out, "\n"), err
}
