package topology

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/edpm-operators/edpm-operators/test/docpage"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

// The pages about pods, as their reader would follow them.
var _ = Describe("The documentation", Ordered, func() {
	var terminal []string // its environment

	BeforeAll(func(ctx SpecContext) {
		boot(ctx, sevenNodes())
		enter(ctx)
		mustCreate(ctx, "001-control-plane.yaml")
		edit(ctx, seed("001-all-external.yaml"))
		Eventually(zonesOf("glance-")).WithContext(ctx).ShouldNot(BeEmpty())
		terminal = newTerminal(ctx)
	}, NodeTimeout(15*time.Minute))

	for _, page := range docpage.Suites["test/e2e/topology"] {
		It("can be followed: "+page, func(ctx SpecContext) {
			blocks, err := docpage.Commands(envtest.File(), page)
			Expect(err).NotTo(HaveOccurred())
			follow(ctx, terminal, blocks...)
		}, SpecTimeout(9*time.Minute))
	}
})

// newTerminal returns an environment in which kubectl has the plugin and works in the
// namespace of the seeds.
func newTerminal(ctx context.Context) []string {
	GinkgoHelper()
	lab := exec.CommandContext(ctx, filepath.Join(dir, "lab"), "binaries")
	lab.Dir = envtest.File()
	binaries, err := lab.Output()
	Expect(err).NotTo(HaveOccurred())
	path := strings.Join([]string{dir, strings.TrimSpace(string(binaries)), os.Getenv("PATH")}, ":")
	env := []string{"PATH=" + path, "KUBECONFIG=" + cluster.Kubeconfig()}
	follow(ctx, env, docpage.Block{Page: "terminal", Line: 1, Text: "kubectl config set-context --current --namespace=" + namespace})
	return env
}

// follow types the blocks into one terminal.
func follow(ctx context.Context, env []string, blocks ...docpage.Block) {
	GinkgoHelper()
	shell, err := docpage.NewShell(envtest.File(), env...)
	Expect(err).NotTo(HaveOccurred())
	defer shell.Close()
	for _, b := range blocks {
		output, err := shell.Run(ctx, b)
		Expect(err).NotTo(HaveOccurred())
		GinkgoWriter.Printf("%s\n%s", b, output)
	}
}
