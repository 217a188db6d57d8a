package lab

import (
	"context"
	"os"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// SkipShort skips a suite with -short.
func SkipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("the end-to-end tests take long")
	}
}

// SkipUnless skips a suite with -short, and where the environment variable is not 1: it
// says what running the suite would take.
func SkipUnless(t *testing.T, variable, takes string) {
	t.Helper()
	SkipShort(t)
	if os.Getenv(variable) != "1" {
		t.Skipf("%s=1 is not set: %s", variable, takes)
	}
}

// Reserve fails without root, and holds the lab for the test.
func Reserve(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("the end-to-end tests need root: a kubelet and hosts with systemd are started; -short skips them")
	}
	Hold(t)
}

// SetUpGinkgo sets what all suites of Ginkgo have set.
func SetUpGinkgo() {
	log.SetLogger(ginkgo.GinkgoLogr)
	gomega.RegisterFailHandler(ginkgo.Fail)
	gomega.EnforceDefaultTimeoutsWhenUsingContexts()
}

// ForSuite returns the lab of the repository, with its program in dir. It starts nothing.
func ForSuite(ctx context.Context, dir string) *Lab {
	ginkgo.GinkgoHelper()
	root, err := FindRoot()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	l, err := New(ctx, root, dir)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return l
}

// Fresh is ForSuite for a suite that needs a lab of its own: it fails if one is up.
func Fresh(ctx context.Context, dir string) *Lab {
	ginkgo.GinkgoHelper()
	l := ForSuite(ctx, dir)
	gomega.Expect(l.Kubeconfig).NotTo(gomega.BeAnExistingFile(), "a lab is up: take it down first")
	return l
}

// Keep reports whether the lab stays at the end of the suite.
func Keep() bool { return os.Getenv("E2E_KEEP") == "1" }

// TakeDown takes the lab down at the end of the suite, unless it is to be kept.
func (l *Lab) TakeDown(ctx context.Context) error {
	if Keep() {
		ginkgo.GinkgoWriter.Println("E2E_KEEP=1: the lab stays. export KUBECONFIG=" + l.Kubeconfig)
		return nil
	}
	return l.Down(ctx)
}
