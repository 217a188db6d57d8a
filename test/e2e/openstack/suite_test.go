package openstack

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
)

var (
	cluster             *lab.Lab
	k8s                 client.Client
	controller, compute lab.Host
)

func TestOpenStack(t *testing.T) {
	lab.SkipUnless(t, "E2E_OPENSTACK", "the image of the controller would have to be built, see the package's comment")
	lab.Reserve(t)
	lab.SetUpGinkgo()
	SetDefaultEventuallyPollingInterval(2 * time.Second)
	suite, reporter := tier.Config()
	if lab.OnVMs() {
		suite.LabelFilter = vm
	}
	RunSpecs(t, "nova in a real OpenStack", suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	cluster = lab.Fresh(ctx, GinkgoT().TempDir())
	controller = cluster.Controller()
	compute = cluster.Compute(0)
	if lab.OnVMs() {
		compute = cluster.VM(0)
	}

	By("bringing the lab up with OpenStack")
	DeferCleanup(cluster.TakeDown)
	Expect(bringUp(ctx, compute)).To(Succeed())
	k8s = cluster.Client

	By("deploying the manager")
	Expect(cluster.DeployManager(ctx)).To(Succeed())
}, NodeTimeout(30*time.Minute))

var _ = AfterEach(func(ctx SpecContext) { cluster.ReportFailure(ctx, dump) }, NodeTimeout(2*time.Minute))

// dump is what a person would look at first.
func dump(ctx context.Context, r *lab.Report) {
	for _, args := range [][]string{
		{"get", "edpm,pods,jobs", "-n", namespace},
		{"get", "nova,novacell", "-n", namespace, "-o", `jsonpath={range .items[*]}{.metadata.name}{"\n"}{range .status.conditions[*]}  {.type} {.status} {.message}{"\n"}{end}{end}`},
		{"logs", "-n", namespace, "-l", "owner", "--prefix", "--tail=15"},
		{"logs", "-n", "edpm-operators-system", "deployment/edpm-operators-manager", "--tail=40"},
	} {
		r.Kubectl(ctx, args...)
	}
	r.OpenStack(ctx, "compute", "service", "list")
	r.OpenStack(ctx, "server", "show", guestName)
	r.Console(ctx, controller, "systemctl --no-pager --failed; journalctl --no-pager -p warning -n 40")
	r.Console(ctx, compute, "systemctl --no-legend --plain list-units 'edpm_*'; grep -E ' (ERROR|CRITICAL) ' "+novaLog+" | tail -n 60; journalctl --no-pager -u 'edpm_libvirt_*' -n 30")
}
