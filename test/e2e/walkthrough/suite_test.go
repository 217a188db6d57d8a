package walkthrough

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/edpm-operators/edpm-operators/test/docpage"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

var (
	cluster            *lab.Lab
	compute0, compute1 lab.Host

	shell *docpage.Shell
	// ahead are the blocks that were not yet run.
	ahead []docpage.Block
)

func TestWalkthrough(t *testing.T) {
	switch {
	case testing.Short():
		t.Skip("the end-to-end tests take long")
	case os.Getenv("E2E_OLM") != "1":
		t.Skip("E2E_OLM=1 is not set: OLM would have to be compiled, see the package's comment")
	case os.Geteuid() != 0:
		t.Fatal("the walk needs root: a kubelet and hosts with systemd are started")
	}
	lab.Hold(t)
	log.SetLogger(GinkgoLogr)
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(500 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "from nothing to two computes, and back")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	root, err := lab.FindRoot()
	Expect(err).NotTo(HaveOccurred())
	cluster, err = lab.New(ctx, root, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	Expect(cluster.Kubeconfig).NotTo(BeAnExistingFile(), "a lab is up: take it down first")
	compute0 = cluster.Host("edpm-compute-0", "192.168.122.100")
	compute1 = cluster.Host("edpm-compute-1", "192.168.122.101")

	blocks, err := docpage.Read(filepath.Join(root, "docs", "walkthrough.md"))
	Expect(err).NotTo(HaveOccurred())
	for _, b := range blocks {
		if b.Runs() {
			ahead = append(ahead, b)
		}
	}
	Expect(os.RemoveAll(filepath.Join(root, "bin", archive))).To(Succeed()) // must-gather writes over nothing
	shell, err = docpage.NewShell(root)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return shell.Close() })
	DeferCleanup(takeDown)
}, NodeTimeout(25*time.Minute))

func takeDown(ctx SpecContext) {
	if os.Getenv("E2E_KEEP") == "1" {
		GinkgoWriter.Println("E2E_KEEP=1: the lab stays. export KUBECONFIG=" + cluster.Kubeconfig)
		return
	}
	Expect(cluster.Down(ctx)).To(Succeed())
}

// follow runs the next section of the page, and returns what its commands print.
func follow(ctx context.Context, section string) string {
	GinkgoHelper()
	var printed strings.Builder
	for len(ahead) > 0 && ahead[0].Section == section {
		begin := time.Now()
		out, err := shell.Run(ctx, ahead[0])
		Expect(err).NotTo(HaveOccurred())
		GinkgoWriter.Printf("--- %s, in %s\n%s\n", ahead[0], time.Since(begin).Round(time.Second), out)
		printed.WriteString(out)
		ahead = ahead[1:]
	}
	Expect(printed.String()).NotTo(BeEmpty(), "the page has no section %q here, but %v", section, ahead)
	return printed.String()
}

var _ = AfterEach(func(ctx SpecContext) {
	if !CurrentSpecReport().Failed() {
		return
	}
	var out strings.Builder
	for _, args := range [][]string{
		{"get", "edpm,pods,jobs", "-n", namespace},
		{"get", "osdpnode,nec", "-n", namespace, "-o", "yaml"},
		{"get", "catalogsources,subscriptions,clusterserviceversions,pods", "--all-namespaces"},
		{"logs", "-n", systemNS, "deployment/edpm-operators-manager", "--tail=60"},
	} {
		text, err := cluster.Kubectl(ctx, args...)
		out.WriteString("--- kubectl " + strings.Join(args, " ") + "\n" + text + "\n")
		if err != nil {
			out.WriteString(err.Error() + "\n")
		}
	}
	AddReportEntry("state", out.String(), ReportEntryVisibilityFailureOrVerbose)
}, NodeTimeout(time.Minute))
