package metal

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/edpm-operators/edpm-operators/test/docpage"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

var (
	cluster *lab.Lab
	k8s     client.Client
	tmp     string
)

func TestMetal(t *testing.T) {
	if testing.Short() {
		t.Skip("the end-to-end tests take long")
	}
	if os.Geteuid() != 0 {
		t.Fatal("the end-to-end tests need root: a kubelet and machines with systemd are started; -short skips them")
	}
	lab.Hold(t)
	log.SetLogger(GinkgoLogr)
	RegisterFailHandler(Fail)
	SetDefaultEventuallyPollingInterval(500 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "from bare metal to computes")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	tmp = GinkgoT().TempDir()
	root, err := lab.FindRoot()
	Expect(err).NotTo(HaveOccurred())
	cluster, err = lab.New(ctx, root, tmp)
	Expect(err).NotTo(HaveOccurred())
	Expect(cluster.Kubeconfig).NotTo(BeAnExistingFile(), "a lab is up: take it down first")

	By("bringing the lab up, and what plays baremetal-operator")
	DeferCleanup(takeDown)
	Expect(cluster.UpWith(ctx, GinkgoWriter, "--machines")).To(Succeed())
	k8s = cluster.Client
	definition, err := os.ReadFile(envtest.BareMetalHostCRD())
	Expect(err).NotTo(HaveOccurred())
	Expect(cluster.Apply(ctx, string(definition))).To(Succeed())
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

func takeDown(ctx SpecContext) {
	if os.Getenv("E2E_KEEP") == "1" {
		GinkgoWriter.Println("E2E_KEEP=1: the lab stays. export KUBECONFIG=" + cluster.Kubeconfig)
		return
	}
	Expect(cluster.Down(ctx)).To(Succeed())
}

var _ = AfterEach(func(ctx SpecContext) {
	if !CurrentSpecReport().Failed() {
		return
	}
	var out strings.Builder
	for _, args := range [][]string{
		{"get", "edpm,bmh,pods,jobs", "-n", namespace},
		{"get", "osdpnode,bmh", "-n", namespace, "-o", "yaml"},
		{"logs", "-n", lab.ManagerNamespace, "deployment/edpm-operators-manager", "--tail=60"},
	} {
		text, err := cluster.Kubectl(ctx, args...)
		out.WriteString("--- kubectl " + strings.Join(args, " ") + "\n" + text + "\n")
		if err != nil {
			out.WriteString(err.Error() + "\n")
		}
	}
	for _, machine := range machines {
		text, err := machine.Console(ctx, "cloud-init status --long; ip -brief address; tail -n 30 /var/log/cloud-init.log")
		out.WriteString("--- " + machine.Name + "\n" + text + "\n")
		if err != nil {
			out.WriteString(err.Error() + "\n")
		}
	}
	AddReportEntry("state", out.String(), ReportEntryVisibilityFailureOrVerbose)
}, NodeTimeout(time.Minute))
