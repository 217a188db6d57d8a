package openstack

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

const (
	guestName = "story"
	// guestLine is what the guest is to print.
	guestLine = "a line of the config drive of " + guestName
	novaLog   = "/var/log/containers/nova/nova-compute.log"
)

var guest string // its id

var _ = Describe("Nova in a real OpenStack", Ordered, func() {
	Describe("services", Label(vm), controlStories)
	Describe("databases", purgeStories)
	Describe("a compute", Label(vm), computeStories)
	for _, tool := range tools {
		Describe("a host of "+tool.name, func() { takeOverStories(tool) })
	}
	Describe("while a guest runs", rolloutStories)
	Describe("the guest", guestStories)
	Describe("the host of a guest", driftStories)
	if lab.OnVMs() {
		Describe("a host that is a virtual machine", Label(vm), vmStories)
	}
	Describe("computes", faultStories)
	Describe("further hosts", scaleStories)
	Describe("credentials", rotationStories)
	Describe("the compute until its removal", lifeStories)
	Describe("a compute that is added again", deathStories)
	Describe("a cell without computes", cellStories)
})

// computeStories have a host that becomes a compute, and runs a guest.
func computeStories() {
	It("becomes Ready", func(ctx SpecContext) {
		describeCompute(ctx)
		node := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: named(compute.Name)}
		obj := &novav1.NovaExternalCompute{ObjectMeta: named(compute.Name)}
		Eventually(expect.Read(ctx, k8s, obj)).WithTimeout(25 * time.Minute).Should(expect.Ready())
		Eventually(expect.Read(ctx, k8s, node)).WithTimeout(time.Minute).Should(expect.Ready())
	}, SpecTimeout(27*time.Minute))

	It("registers in its cell", func(ctx SpecContext) {
		By("reporting to the conductor of the cell")
		Expect(hostsOfServices(ctx, "nova-compute")).To(HaveKeyWithValue(compute.Name, "up"))

		By("having been mapped")
		Expect(novaManage(ctx, "cell_v2", "list_hosts")).To(MatchRegexp(`(?m)^\| +cell1 +\| \S+ +\| +` + compute.Name + ` +\|$`))
	}, SpecTimeout(5*time.Minute))

	It("passes kubectl edpm preflight", func(ctx SpecContext) {
		Expect(edpm(ctx, "preflight", compute.Name)).To(And(
			MatchRegexp(`message bus +ok +reached: `), MatchRegexp(`keystone +ok +reached: `), Not(ContainSubstring("FAILED"))))
	}, SpecTimeout(4*time.Minute))

	It("runs a guest whose console shows what its config drive has", func(ctx SpecContext) {
		openstack(ctx, "flavor", "create", "--vcpus", "1", "--ram", "128", "--disk", "1", "guest")
		guest = createGuest(ctx, guestName, compute.Name)
		Eventually(console).WithArguments(ctx).WithTimeout(4 * time.Minute).Should(And(
			ContainSubstring("guest: instance "+guest), ContainSubstring("guest: "+guestLine)))
	}, SpecTimeout(10*time.Minute))
}

// edpm runs kubectl edpm as the administrator.
func edpm(ctx context.Context, args ...string) (string, error) {
	return cluster.Run(ctx, "go", append([]string{"run", "./cmd/kubectl-edpm", "--kubeconfig", cluster.Kubeconfig, "--namespace", namespace}, args...)...)
}

// openstack runs the program openstack as the administrator.
func openstack(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out, err := cluster.OpenStack(ctx, args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// hostsOfServices returns whether the services of a binary are up, by host.
func hostsOfServices(ctx context.Context, binary string) (map[string]string, error) {
	out, err := cluster.OpenStack(ctx, "compute", "service", "list", "--service", binary, "--format", "json")
	if err != nil {
		return nil, err
	}
	var services []struct{ Host, State string }
	err = json.Unmarshal([]byte(out), &services)
	states := map[string]string{}
	for _, s := range services {
		states[s.Host] = s.State
	}
	return states, err
}

// createGuest returns the id of a server that runs on a host.
func createGuest(ctx context.Context, name, host string) string {
	GinkgoHelper()
	data := filepath.Join(GinkgoT().TempDir(), "user-data")
	Expect(os.WriteFile(data, []byte(guestLine+"\n"), 0o600)).To(Succeed())
	id := openstack(ctx, "server", "create", "--os-compute-api-version", "2.74", "--image", "guest", "--flavor", "guest",
		"--nic", "none", "--host", host, "--user-data", data, "--format", "value", "--column", "id", name)
	Eventually(func() (string, error) {
		return cluster.OpenStack(ctx, "server", "show", id, "--format", "value", "--column", "status")
	}).WithTimeout(5 * time.Minute).Should(Or(Equal("ACTIVE"), Equal("ERROR")))
	Expect(openstack(ctx, "server", "show", id, "--format", "value", "--column", "status", "--column", "fault")).To(HavePrefix("ACTIVE"))
	return id
}
