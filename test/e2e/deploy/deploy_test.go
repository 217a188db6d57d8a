package deploy

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/edpm-operators/edpm-operators/test/envtest"
	"github.com/edpm-operators/edpm-operators/test/standalone"
)

// port is the first of those of the cluster, next to those of the other suites.
const port = 28443

var (
	cluster *standalone.Cluster
	kubectl string
)

func TestDeploy(t *testing.T) {
	if testing.Short() {
		t.Skip("the end-to-end tests take long")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "deploying edpm-operators")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	dir, err := os.MkdirTemp("", "edpm-deploy-")
	Expect(err).NotTo(HaveOccurred())
	Expect(standalone.Build(ctx, dir)).To(Succeed())
	cluster = standalone.New(dir, filepath.Join(dir, "cluster"), port)
	DeferCleanup(func() {
		cluster.Down()
		Expect(os.RemoveAll(dir)).To(Succeed())
	})
	_, err = cluster.Up(ctx, "--kwok-nodes=1")
	Expect(err).NotTo(HaveOccurred())
	binaries, err := exec.CommandContext(ctx, filepath.Join(dir, "lab"), "binaries").Output()
	Expect(err).NotTo(HaveOccurred())
	kubectl = filepath.Join(strings.TrimSpace(string(binaries)), "kubectl")
}, NodeTimeout(45*time.Minute))

// run runs a program in the root of the repository and returns what it says.
func run(ctx context.Context, variables []string, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = envtest.File()
	cmd.Env = append(append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(), "KUBECTL="+kubectl, "IMG=example/manager:1"), variables...)
	out, err := cmd.CombinedOutput()
	GinkgoWriter.Println(program, args, variables, string(out))
	return string(out), err
}

// kube returns the words that kubectl prints.
func kube(ctx context.Context, args ...string) []string {
	GinkgoHelper()
	out, err := run(ctx, nil, kubectl, args...)
	Expect(err).NotTo(HaveOccurred())
	return strings.Fields(out)
}

func managers(ctx context.Context) []string {
	GinkgoHelper()
	return kube(ctx, "get", "deployments", "--all-namespaces", "--ignore-not-found", "--output", `jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}`)
}

var _ = Describe("An administrator", Ordered, func() {
	const label = "app.kubernetes.io/part-of"
	deploy := func(ctx context.Context, what string, variables ...string) (string, error) {
		return run(ctx, variables, "hack/deploy.sh", what)
	}

	It("cannot deploy the operators over the kinds of another operator, which are named", func(ctx SpecContext) {
		kube(ctx, "label", "crd", "glances.glance.openstack.org", label+"-")
		out, err := deploy(ctx, "apply")
		Expect(err).To(HaveOccurred())
		Expect(out).To(And(ContainSubstring("nothing was applied"), ContainSubstring("  glances.glance.openstack.org"), ContainSubstring("OPERATORS=")))
		Expect(out).NotTo(ContainSubstring("glanceapis"))
		Expect(managers(ctx)).To(BeEmpty())
	}, SpecTimeout(9*time.Minute))

	It("deploys some operators next to another one: with their managers, webhooks and permissions", func(ctx SpecContext) {
		_, err := deploy(ctx, "apply", "OPERATORS=ansibleee,nova,dataplane,topology")
		Expect(err).NotTo(HaveOccurred())
		Expect(managers(ctx)).To(ConsistOf("edpm-operators-ansibleee-manager", "edpm-operators-dataplane-manager", "edpm-operators-nova-manager", "edpm-operators-topology-manager"))
		Expect(kube(ctx, "get", "validatingwebhookconfigurations", "--output", "jsonpath={.items[*].webhooks[*].name}")).
			NotTo(ContainElement(Or(HavePrefix("vglance"), HavePrefix("vopenstackcontrolplane"))))
		Expect(kube(ctx, "get", "clusterroles", "--output", "name")).NotTo(ContainElement(ContainSubstring("edpm-operators-glance")))
		Expect(kube(ctx, "get", "crd", "glances.glance.openstack.org", "--output", "jsonpath={.metadata.labels}")).NotTo(ContainElement(ContainSubstring("part-of")))

		out, err := deploy(ctx, "apply", "OPERATORS=nova,nonsense")
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("nonsense is not an operator"))
	}, SpecTimeout(9*time.Minute))

	It("cannot deploy them a second time in another way", func(ctx SpecContext) {
		kube(ctx, "label", "crd", "glances.glance.openstack.org", label+"=edpm-operators")
		out, err := deploy(ctx, "apply")
		Expect(err).To(HaveOccurred())
		Expect(out).To(And(ContainSubstring("nothing was applied"), ContainSubstring("Deployment edpm-operators-system/edpm-operators-nova-manager")))
		Expect(managers(ctx)).To(HaveLen(4))
	}, SpecTimeout(9*time.Minute))

	It("adds the rest later, and removes them in part and as a whole", func(ctx SpecContext) {
		_, err := deploy(ctx, "apply", "BASE=overlays/split", "RUNNER_IMG=example/runner:2")
		Expect(err).NotTo(HaveOccurred())
		Expect(managers(ctx)).To(HaveLen(8))
		Expect(kube(ctx, "--namespace", "edpm-operators-system", "get", "deployments", "--output",
			`jsonpath={.items[*].spec.template.spec.containers[0].env[?(@.name=="RELATED_IMAGE_ANSIBLEEE_IMAGE_URL_DEFAULT")].value}`)).To(HaveLen(8))
		definitions := kube(ctx, "get", "crd", "--output", "name")

		_, err = deploy(ctx, "delete", "OPERATORS=nova,glance")
		Expect(err).NotTo(HaveOccurred())
		Expect(managers(ctx)).To(ConsistOf("edpm-operators-ansibleee-manager", "edpm-operators-core-manager", "edpm-operators-dataplane-manager", "edpm-operators-edpm-manager", "edpm-operators-neutron-manager", "edpm-operators-topology-manager"))

		_, err = deploy(ctx, "delete", "BASE=overlays/split")
		Expect(err).NotTo(HaveOccurred())
		Expect(managers(ctx)).To(BeEmpty())
		Expect(kube(ctx, "get", "crd", "--output", "name")).To(Equal(definitions), "the objects stay")
		Expect(kube(ctx, "get", "clusterroles,clusterrolebindings,validatingwebhookconfigurations,mutatingwebhookconfigurations", "--output", "name")).
			NotTo(ContainElement(ContainSubstring("edpm-operators")))
	}, SpecTimeout(12*time.Minute))

	It("deploys them as one manager, and again", func(ctx SpecContext) {
		for range 2 {
			_, err := deploy(ctx, "apply")
			Expect(err).NotTo(HaveOccurred())
			Expect(managers(ctx)).To(Equal([]string{"edpm-operators-manager"}))
		}
	}, SpecTimeout(9*time.Minute))
})
