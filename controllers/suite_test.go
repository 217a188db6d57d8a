package controllers_test

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/test/envtest"
	"github.com/edpm-operators/edpm-operators/test/fakekube"
	"github.com/edpm-operators/edpm-operators/test/fakemetal"
	"github.com/edpm-operators/edpm-operators/test/story"
)

const (
	// soon is for what takes a few reconciliations, on a busy machine.
	soon = 3 * time.Minute
	// later is for what takes many runs.
	later = 6 * time.Minute
	// still is for what must not happen.
	still = 700 * time.Millisecond
)

// inFull is set with E2E_LONG=1, which runs what takes too long where every change is tested.
var inFull = os.Getenv("E2E_LONG") == "1"

// long is a story that is begun before others, so that no process is left with it at the end.
const long = SpecPriority(1)

var (
	env *envtest.Env
	api client.Client
	// managerConfig has the rights of the managers of this suite.
	managerConfig *rest.Config
	ctx           = context.Background()
)

func TestControllers(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(soon)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	SetDefaultConsistentlyDuration(still)
	SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "Controllers")
}

// The processes of the suite share one API server, which the first of them starts.
var _ = SynchronizedBeforeSuite(func() []byte {
	started := envtest.Start(GinkgoT(), envtest.Options{CRDPaths: []string{envtest.File("controllers", "testdata"), envtest.BareMetalHostCRD()}})
	Expect(fakemetal.InstallRules(context.Background(), started.Client)).To(Succeed())
	background, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	Expect(fakekube.Collect(background, started.Config, started.Scheme)).To(Succeed())
	kubeconfig, err := started.Kubeconfig()
	Expect(err).NotTo(HaveOccurred())
	return kubeconfig
}, func(kubeconfig []byte) {
	env = envtest.Join(GinkgoT(), kubeconfig, envtest.Options{})
	api = story.Connect(env)
	managerConfig = env.AsManager(GinkgoT())
})
