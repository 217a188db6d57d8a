package tempest

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

var (
	cluster    *lab.Lab
	k8s        client.Client
	controller lab.Host
	computes   [2]lab.Host
)

func TestTempest(t *testing.T) {
	lab.SkipUnless(t, "E2E_OPENSTACK", "images would have to be built, see the package's comment")
	lab.Reserve(t)
	lab.SetUpGinkgo()
	SetDefaultEventuallyPollingInterval(2 * time.Second)
	RunSpecs(t, "Tempest")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	cluster = lab.Fresh(ctx, GinkgoT().TempDir())
	controller = cluster.Controller()
	computes = [2]lab.Host{cluster.Compute(0), cluster.Compute(1)}

	By("bringing the lab up with OVN")
	DeferCleanup(cluster.TakeDown)
	Expect(cluster.UpWith(ctx, GinkgoWriter, append(lab.HostFlags(computes[:]...), "--ovn", "--images", "ansibleee,nova")...)).To(Succeed())
	k8s = cluster.Client

	By("deploying the manager")
	Expect(cluster.DeployManager(ctx)).To(Succeed())
}, NodeTimeout(30*time.Minute))

var _ = AfterEach(func(ctx SpecContext) { cluster.ReportFailure(ctx, dump) }, NodeTimeout(2*time.Minute))

// dump is what a person would look at first.
func dump(ctx context.Context, r *lab.Report) {
	for _, args := range [][]string{
		{"get", "edpm,pods,jobs", "-n", namespace},
		{"logs", "-n", namespace, "-l", "owner", "--prefix", "--tail=25"},
		{"logs", "-n", lab.ManagerNamespace, "deployment/edpm-operators-manager", "--tail=40"},
	} {
		r.Kubectl(ctx, args...)
	}
	r.OpenStack(ctx, "compute", "service", "list")
	r.OpenStack(ctx, "server", "list", "--all-projects")
	r.Console(ctx, controller, "systemctl --no-pager --failed; journalctl --no-pager -p warning -n 40")
	for _, h := range computes {
		r.Console(ctx, h, "ovs-vsctl show; grep -E ' (ERROR|CRITICAL) ' /var/log/containers/nova/nova-compute.log | tail -n 40")
	}
}
