package metal

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/test/docpage"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

var (
	cluster *lab.Lab
	k8s     client.Client
	tmp     string
)

func TestMetal(t *testing.T) {
	lab.SkipShort(t)
	lab.Reserve(t)
	lab.SetUpGinkgo()
	SetDefaultEventuallyPollingInterval(500 * time.Millisecond)
	suite, reporter := tier.Config()
	RunSpecs(t, "from bare metal to computes", suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	tmp = GinkgoT().TempDir()
	cluster = lab.Fresh(ctx, tmp)

	By("bringing the lab up, and what plays baremetal-operator")
	DeferCleanup(cluster.TakeDown)
	Expect(cluster.UpWith(ctx, GinkgoWriter, "--machines")).To(Succeed())
	k8s = cluster.Client
	for _, file := range []string{envtest.BareMetalHostCRD(), envtest.File("test", "fakemetal", "rules.yaml")} {
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(cluster.Apply(ctx, string(text))).To(Succeed())
	}
	Expect(startMetal(ctx)).To(Succeed())

	By("deploying the manager")
	Expect(cluster.DeployManager(ctx)).To(Succeed())
}, NodeTimeout(25*time.Minute))

// startMetal starts test/lab/metal, and ends it with the suite.
func startMetal(ctx context.Context) error {
	program := filepath.Join(tmp, "metal")
	if _, err := cluster.Run(ctx, "go", "build", "-o", tmp+"/", "./test/lab/metal", "./cmd/kubectl-edpm"); err != nil {
		return err
	}
	cmd := exec.Command(program, "-namespace", namespace)
	cmd.Dir, cmd.Stdout, cmd.Stderr = cluster.Root, GinkgoWriter, GinkgoWriter
	if err := cmd.Start(); err != nil {
		return err
	}
	DeferCleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	return nil
}

// followPages types the commands of the pages of this suite into a terminal.
func followPages(ctx context.Context) {
	GinkgoHelper()
	shell, err := docpage.NewShell(cluster.Root, "KUBECONFIG="+cluster.Kubeconfig, "PATH="+tmp+":"+cluster.Binaries()+":"+os.Getenv("PATH"))
	Expect(err).NotTo(HaveOccurred())
	defer shell.Close()
	for _, page := range docpage.Suites["test/e2e/metal"] {
		blocks, err := docpage.Commands(cluster.Root, page)
		Expect(err).NotTo(HaveOccurred())
		for _, b := range blocks {
			output, err := shell.Run(ctx, b)
			Expect(err).NotTo(HaveOccurred())
			GinkgoWriter.Printf("%s\n%s", b, output)
		}
	}
}

var _ = AfterEach(func(ctx SpecContext) { cluster.ReportFailure(ctx, dump) }, NodeTimeout(time.Minute))

// dump is what a person would look at first.
func dump(ctx context.Context, r *lab.Report) {
	for _, args := range [][]string{
		{"get", "edpm,bmh,pods,jobs", "-n", namespace},
		{"get", "osdpnode,bmh", "-n", namespace, "-o", "yaml"},
		{"logs", "-n", lab.ManagerNamespace, "deployment/edpm-operators-manager", "--tail=60"},
	} {
		r.Kubectl(ctx, args...)
	}
	for _, machine := range machines {
		r.Console(ctx, machine, "cloud-init status --long; ip -brief address; tail -n 30 /var/log/cloud-init.log")
	}
}
