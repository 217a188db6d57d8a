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
	lab.SkipUnless(t, "E2E_OLM", "OLM would have to be compiled, see the package's comment")
	lab.Reserve(t)
	lab.SetUpGinkgo()
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(500 * time.Millisecond)
	RunSpecs(t, "from nothing to two computes, and back")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	cluster = lab.Fresh(ctx, GinkgoT().TempDir())
	compute0 = cluster.Compute(0)
	compute1 = cluster.Compute(1)

	blocks, err := docpage.Read(filepath.Join(cluster.Root, "docs", "walkthrough.md"))
	Expect(err).NotTo(HaveOccurred())
	for _, b := range blocks {
		if b.Runs() {
			ahead = append(ahead, b)
		}
	}
	Expect(os.RemoveAll(filepath.Join(cluster.Root, "bin", archive))).To(Succeed()) // must-gather writes over nothing
	shell, err = docpage.NewShell(cluster.Root)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return shell.Close() })
	DeferCleanup(cluster.TakeDown)
}, NodeTimeout(25*time.Minute))

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

var _ = AfterEach(func(ctx SpecContext) { cluster.ReportFailure(ctx, dump) }, NodeTimeout(time.Minute))

// dump is what a person would look at first.
func dump(ctx context.Context, r *lab.Report) {
	for _, args := range [][]string{
		{"get", "edpm,pods,jobs", "-n", namespace},
		{"get", "osdpnode,nec", "-n", namespace, "-o", "yaml"},
		{"get", "catalogsources,subscriptions,clusterserviceversions,pods", "--all-namespaces"},
		{"logs", "-n", systemNS, "deployment/edpm-operators-manager", "--tail=60"},
	} {
		r.Kubectl(ctx, args...)
	}
}
