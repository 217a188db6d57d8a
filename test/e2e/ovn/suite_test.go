package ovn

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
	hosts      [2]lab.Host
)

func TestOVN(t *testing.T) {
	lab.SkipUnless(t, "E2E_OVN", "images would have to be built, see the package's comment")
	lab.Reserve(t)
	lab.SetUpGinkgo()
	SetDefaultEventuallyPollingInterval(2 * time.Second)
	RunSpecs(t, "networks of guests with a real OVN")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	cluster = lab.Fresh(ctx, GinkgoT().TempDir())
	controller = cluster.Controller()
	hosts = [2]lab.Host{cluster.Compute(0), cluster.Compute(1)}
	if lab.OnVMs() {
		hosts = [2]lab.Host{cluster.VM(0), cluster.VM(1)}
	}

	By("bringing the lab up with OVN")
	DeferCleanup(cluster.TakeDown)
	Expect(cluster.UpWith(ctx, GinkgoWriter, append(lab.HostFlags(hosts[:]...), "--ovn")...)).To(Succeed())
	k8s = cluster.Client

	By("deploying the manager")
	Expect(cluster.DeployManager(ctx)).To(Succeed())
}, NodeTimeout(30*time.Minute))

var _ = AfterEach(func(ctx SpecContext) { cluster.ReportFailure(ctx, dump) }, NodeTimeout(2*time.Minute))

// dump is what a person would look at first.
func dump(ctx context.Context, r *lab.Report) {
	for _, args := range [][]string{
		{"get", "edpm,pods,jobs", "-n", namespace},
		{"get", "osdpnode,ovnctl,ovnmeta", "-n", namespace, "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name}{"\n"}{range .status.conditions[*]}  {.type} {.status} {.message}{"\n"}{end}{end}`},
		{"logs", "-n", namespace, "-l", "owner", "--prefix", "--tail=25"},
		{"logs", "-n", lab.ManagerNamespace, "deployment/edpm-operators-manager", "--tail=40"},
	} {
		r.Kubectl(ctx, args...)
	}
	r.Console(ctx, controller, "systemctl --no-pager --failed; ovn-sbctl show; ovn-nbctl show; journalctl --no-pager -u lab-neutron -p warning -n 40")
	for _, h := range hosts {
		r.Console(ctx, h, "ovs-vsctl show; ip netns; systemctl --no-legend --plain list-units 'edpm_*' lab-tenant; journalctl --no-pager -t edpm_ovn_metadata_agent -n 40; journalctl --no-pager -t edpm_ovn_controller -n 20")
	}
}
