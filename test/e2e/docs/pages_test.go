package docs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/edpm-operators/edpm-operators/test/docpage"
	e2elab "github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

// pageTimeout is how long one block may take. The slowest compiles Kubernetes.
const pageTimeout = 25 * time.Minute

var root = envtest.File()

// lastSection of the quickstart takes the lab away.
const lastSection = "Clean up"

func TestPages(t *testing.T) {
	e2elab.SkipUnless(t, "E2E_DOCS", "make e2e-docs takes a quarter of an hour more")
	e2elab.Reserve(t)
	pages := docpage.Suites["test/e2e/docs"]
	first := commands(t, pages[0])
	end := slices.IndexFunc(first, func(b docpage.Block) bool { return b.Section == lastSection })
	if end < 0 {
		t.Fatalf("%s has no section %q, which would take the lab away before the other pages", pages[0], lastSection)
	}
	only := os.Getenv("DOCS_ONLY")
	if only == "" {
		startAfresh(t)
		if !t.Run(pages[0], func(t *testing.T) { follow(t, first[:end]) }) {
			t.Fatal("without the quickstart there is nothing to continue from")
		}
	}
	there := environment(t)
	for _, page := range pages[1:] {
		if regexp.MustCompile(only).MatchString(page) {
			t.Run(page, func(t *testing.T) { follow(t, commands(t, page), there...) })
		}
	}
	if only == "" && !keep() {
		t.Run(pages[0]+" to the end", func(t *testing.T) { follow(t, first[end:], there...) })
	}
}

func keep() bool { return os.Getenv("DOCS_KEEP") == "1" }

// startAfresh sees to it that the reader's machine has no lab yet, and has none
// afterwards whatever happens.
func startAfresh(t *testing.T) {
	t.Helper()
	kubeconfig := lab(t, "kubeconfig")
	if _, err := os.Stat(kubeconfig); err == nil {
		t.Fatalf("the lab is in use: %s is there; take it down first (make lab-down)", kubeconfig)
	}
	t.Cleanup(func() {
		if !keep() {
			lab(t, "down")
		}
	})
}

// environment is what a reader's terminal has after the quickstart.
func environment(t *testing.T) []string {
	t.Helper()
	path := strings.Join([]string{filepath.Join(root, "bin"), lab(t, "binaries"), os.Getenv("PATH")}, ":")
	return []string{"KUBECONFIG=" + lab(t, "kubeconfig"), "PATH=" + path}
}

// lab runs the program of the lab and returns the last line that it prints.
func lab(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"run", "./test/lab"}, args...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("lab %s: %v", strings.Join(args, " "), err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

func commands(t *testing.T, page string) []docpage.Block {
	t.Helper()
	blocks, err := docpage.Commands(root, page)
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

// follow types the blocks into one terminal.
func follow(t *testing.T, blocks []docpage.Block, env ...string) {
	t.Helper()
	shell, err := docpage.NewShell(root, env...)
	if err != nil {
		t.Fatal(err)
	}
	defer shell.Close()
	ctx, cancel := context.WithTimeout(t.Context(), pageTimeout)
	defer cancel()
	for _, b := range blocks {
		begin := time.Now()
		out, err := shell.Run(ctx, b)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s (%.1fs)\n%s", b, time.Since(begin).Seconds(), out)
	}
}
