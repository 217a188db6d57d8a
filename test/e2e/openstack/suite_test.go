package openstack

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

var (
	cluster             *lab.Lab
	k8s                 client.Client
	controller, compute lab.Host
)

func TestOpenStack(t *testing.T) {
	switch {
	case testing.Short():
		t.Skip("the end-to-end tests take long")
	case os.Getenv("E2E_OPENSTACK") != "1":
		t.Skip("E2E_OPENSTACK=1 is not set: the image of the controller would have to be built, see the package's comment")
	case os.Geteuid() != 0:
		t.Fatal("the stories need root: a kubelet and hosts with systemd are started")
	}
	lab.Hold(t)
	log.SetLogger(GinkgoLogr)
	RegisterFailHandler(Fail)
	SetDefaultEventuallyPollingInterval(2 * time.Second)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "nova in a real OpenStack")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	root, err := lab.FindRoot()
	Expect(err).NotTo(HaveOccurred())
	cluster, err = lab.New(ctx, root, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	Expect(cluster.Kubeconfig).NotTo(BeAnExistingFile(), "a lab is up: take it down first")
	controller = cluster.Host("edpm-controller-0", "192.168.122.10")
	compute = cluster.Host("edpm-compute-0", "192.168.122.100")

	By("bringing the lab up with OpenStack")
	DeferCleanup(takeDown)
	Expect(cluster.UpWith(ctx, GinkgoWriter, "--openstack", "--host", compute.Name+"="+compute.IP)).To(Succeed())
	k8s = cluster.Client

	By("deploying the manager")
	Expect(cluster.DeployManager(ctx)).To(Succeed())
}, NodeTimeout(30*time.Minute))

func takeDown(ctx SpecContext) {
	if os.Getenv("E2E_KEEP") == "1" {
		GinkgoWriter.Println("E2E_KEEP=1: the lab stays. export KUBECONFIG=" + cluster.Kubeconfig)
		return
	}
	Expect(cluster.Down(ctx)).To(Succeed())
}

var _ = AfterEach(func(ctx SpecContext) {
	if CurrentSpecReport().Failed() {
		AddReportEntry("state", state(ctx), ReportEntryVisibilityFailureOrVerbose)
	}
}, NodeTimeout(2*time.Minute))

// state is what a person would look at first.
func state(ctx context.Context) string {
	var out strings.Builder
	note := func(title, text string, err error) {
		out.WriteString("--- " + title + "\n" + text + "\n")
		if err != nil {
			out.WriteString(err.Error() + "\n")
		}
	}
	for _, args := range [][]string{
		{"get", "edpm,pods,jobs", "-n", namespace},
		{"get", "nova,novacell", "-n", namespace, "-o", `jsonpath={range .items[*]}{.metadata.name}{"\n"}{range .status.conditions[*]}  {.type} {.status} {.message}{"\n"}{end}{end}`},
		{"logs", "-n", namespace, "-l", "owner", "--prefix", "--tail=15"},
		{"logs", "-n", "edpm-operators-system", "deployment/edpm-operators-manager", "--tail=40"},
	} {
		text, err := cluster.Kubectl(ctx, args...)
		note("kubectl "+strings.Join(args, " "), text, err)
	}
	for _, args := range [][]string{{"compute", "service", "list"}, {"server", "show", guestName}} {
		text, err := cluster.OpenStack(ctx, args...)
		note("openstack "+strings.Join(args, " "), text, err)
	}
	text, err := controller.Console(ctx, "systemctl --no-pager --failed; journalctl --no-pager -p warning -n 40")
	note(controller.Name, text, err)
	text, err = compute.Console(ctx, "systemctl --no-legend --plain list-units 'edpm_*'; grep -E ' (ERROR|CRITICAL) ' "+novaLog+" | tail -n 60; journalctl --no-pager -u 'edpm_libvirt_*' -n 30")
	note(compute.Name, text, err)
	return out.String()
}
