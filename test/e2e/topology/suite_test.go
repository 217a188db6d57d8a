package topology

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crenvtest "sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
	"github.com/edpm-operators/edpm-operators/test/envtest"
	"github.com/edpm-operators/edpm-operators/test/standalone"
)

// port is the first of the ten ports of the cluster.
const port = 27443

var (
	cluster  *standalone.Cluster
	manager  *standalone.Manager
	webhooks crenvtest.WebhookInstallOptions
	k8s      client.Client
	raw      kubernetes.Interface
	// dir has the programs, the cluster and the logs.
	dir string
)

func TestTopology(t *testing.T) {
	if testing.Short() {
		t.Skip("the end-to-end tests take long")
	}
	log.SetLogger(GinkgoLogr)
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(3 * time.Minute)
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	SetDefaultConsistentlyDuration(4 * time.Second)
	SetDefaultConsistentlyPollingInterval(200 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	suite, reporter := tier.Config()
	RunSpecs(t, "the seeds on the real kube-scheduler", suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	dir, err = os.MkdirTemp("", "edpm-topology-")
	Expect(err).NotTo(HaveOccurred())

	By("building the lab, the manager and the plugin")
	Expect(standalone.Build(ctx, dir, "./cmd/manager", "./cmd/kubectl-edpm")).To(Succeed())

	By("starting a control plane that gives up on nodes sooner, but not because other suites keep it from working")
	cluster = standalone.New(dir, filepath.Join(dir, "cluster"), port)
	DeferCleanup(takeDown)
	config, err := cluster.Up(ctx, "--node-grace=24s", "--eviction-grace=5s")
	Expect(err).NotTo(HaveOccurred())
	Expect(connect(config)).To(Succeed())

	By("installing what Rook would install")
	_, err = crenvtest.InstallCRDs(config, crenvtest.CRDInstallOptions{Paths: []string{envtest.CephClusterCRD()}, ErrorIfPathMissing: true})
	Expect(err).NotTo(HaveOccurred())

	By("starting the manager with its webhooks")
	webhooks.Paths = envtest.WebhookConfigurations()
	Expect(webhooks.Install(config)).To(Succeed())
	startManager(ctx, cluster, "manager.log")
	runProvisioner()
}, NodeTimeout(60*time.Minute))

func connect(config *rest.Config) error {
	config.WarningHandler = rest.NoWarnings{}
	scheme, err := envtest.NewScheme()
	if err != nil {
		return err
	}
	if k8s, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	raw, err = kubernetes.NewForConfig(config)
	return err
}

// startManager returns once the manager works and serves its webhooks.
func startManager(ctx context.Context, cluster *standalone.Cluster, logName string) {
	GinkgoHelper()
	var err error
	manager, err = cluster.StartManager(ctx, filepath.Join(dir, logName), "--operators=core,glance,ocs,topology",
		fmt.Sprintf("--webhook-port=%d", webhooks.LocalServingPort), "--webhook-cert-dir="+webhooks.LocalServingCertDir)
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() error {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", webhooks.LocalServingPort))
		if err == nil {
			err = conn.Close()
		}
		return err
	}).Should(Succeed(), "the webhooks are not served: see %s", manager.LogFile())
}

func takeDown() {
	if os.Getenv("E2E_KEEP") == "1" {
		GinkgoWriter.Println("E2E_KEEP=1: the cluster stays. export KUBECONFIG=" + cluster.Kubeconfig())
		return
	}
	if manager != nil {
		manager.Stop()
	}
	cluster.Down()
	Expect(webhooks.Cleanup()).To(Succeed())
	Expect(os.RemoveAll(dir)).To(Succeed())
}

var _ = AfterEach(func(ctx SpecContext) {
	if CurrentSpecReport().Failed() {
		dump(ctx)
	}
}, NodeTimeout(3*time.Minute))
