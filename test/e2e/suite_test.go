package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
)

var (
	cluster *lab.Lab
	k8s     client.Client
	manager runningManager
	// tmp is for what the suite builds and collects.
	tmp string

	compute0, compute1, storage0 lab.Host
	// spare hosts, for the stories that break things.
	spare []lab.Host
)

func TestE2E(t *testing.T) {
	lab.SkipShort(t)
	lab.Reserve(t)
	lab.SetUpGinkgo()
	SetDefaultEventuallyPollingInterval(500 * time.Millisecond)
	suite, reporter := tier.Config()
	RunSpecs(t, "edpm-operators end to end", suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	tmp = GinkgoT().TempDir()
	cluster = lab.ForSuite(ctx, tmp)
	nameHosts()
	manager = chooseManager()

	By("bringing the lab up and building the manager")
	DeferCleanup(takeDown)
	Expect(parallel(
		func() error { return cluster.Up(ctx, GinkgoWriter, spare...) },
		func() error { return manager.Build(ctx) },
	)).To(Succeed())
	k8s = cluster.Client

	By("clearing what an earlier run left")
	Expect(clearCluster(ctx)).To(Succeed())
	Expect(resetHosts(ctx)).To(Succeed())

	By("deploying the manager")
	Expect(manager.Deploy(ctx)).To(Succeed())
	Expect(makeNamespaces(ctx)).To(Succeed())
}, NodeTimeout(75*time.Minute))

func nameHosts() {
	compute0 = cluster.Compute(0)
	compute1 = cluster.Compute(1)
	storage0 = cluster.Host("edpm-storage-0", "192.168.122.102")
	for i := range 4 {
		spare = append(spare, cluster.Host(fmt.Sprintf("e2e-host-%d", i), fmt.Sprintf("192.168.122.%d", 110+i)))
	}
}

func allHosts() []lab.Host { return append([]lab.Host{compute0, compute1, storage0}, spare...) }

func takeDown(ctx SpecContext) error {
	if !lab.Keep() {
		manager.Stop()
	}
	return cluster.TakeDown(ctx)
}

// artifact is the path of a file that the suite keeps until its end.
func artifact(name string) string { return filepath.Join(tmp, name) }
