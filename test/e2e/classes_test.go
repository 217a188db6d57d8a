package e2e

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
)

// classStories tell of services without Go: the classes of config/samples/classes on a
// real host.
func classStories() {
	const (
		role     = "e2e-classes"
		exporter = "node-exporter"
		agent    = "sriov-nic-agent"
	)
	service := func(class string) *edpmv1.EDPMService {
		return &edpmv1.EDPMService{ObjectMeta: named(classesNS, class+"-"+compute1.Name)}
	}
	annotateRole := func(ctx context.Context, key, value string) {
		mustChange(ctx, roleNamed(classesNS, role), func(r *dataplanev1.OpenStackDataPlaneRole) { annotated(r, key, value) })
	}
	left := func(ctx context.Context, class string) string {
		return sshOutput(ctx, compute1, "ls -d /etc/systemd/system/edpm_"+class+".service /var/lib/edpm/services/"+class+" /var/lib/openstack/"+class+" 2>/dev/null; "+
			"podman --runtime runc ps --all --format '{{.Names}}' | grep edpm_"+class+"; true")
	}

	BeforeAll(func(ctx SpecContext) {
		create(ctx, sshKey(classesNS), quickService(classesNS, quick))
		node := newNode(classesNS, role, compute1)
		node.Spec.Node.AnsibleUser = "cloud-admin"
		create(ctx, newRole(classesNS, role, quick), node)
		Eventually(current(ctx, nodeNamed(classesNS, compute1.Name))).WithTimeout(6 * time.Minute).Should(beReady())
	}, NodeTimeout(9*time.Minute))

	AfterAll(func(ctx SpecContext) {
		Expect(k8s.Delete(ctx, nodeNamed(classesNS, compute1.Name))).To(Succeed())
		Eventually(gone(ctx, nodeNamed(classesNS, compute1.Name))).WithTimeout(9 * time.Minute).Should(BeTrue())
	}, NodeTimeout(12*time.Minute))

	It("run the node exporter of Prometheus on the host", func(ctx SpecContext) {
		Expect(compute1.LoadImage(ctx, "node-exporter")).To(Succeed())
		applyClass(ctx, "node_exporter")
		before := historyOf(ctx, compute1, storage0)
		annotateRole(ctx, "monitoring.example.org/node-exporter", "true")
		Eventually(current(ctx, service(exporter))).WithTimeout(9 * time.Minute).Should(beReady())
		Expect(metricsOn(ctx, compute1, "9100")).To(ContainSubstring(`nodename="` + compute1.Name + `"`))
		Expect(node(ctx, classesNS, compute1.Name).Status.Services).To(ContainElement(
			dataplanev1.NodeServiceStatus{Name: exporter, Ready: true, Kind: "EDPMService", ObjectName: exporter + "-" + compute1.Name}))
		before.untouched(ctx, storage0)
	}, SpecTimeout(24*time.Minute))

	It("run once for a change of the class, and the service is what it says", tier.Long, func(ctx SpecContext) {
		class := &edpmv1.EDPMServiceClass{ObjectMeta: named(classesNS, exporter)}
		runs := func() int { return len(runsOfService(ctx, classesNS, exporter)) }
		was := runs()
		mustChange(ctx, class, func(c *edpmv1.EDPMServiceClass) {
			c.Spec.Vars = jsonVars(map[string]any{"node_exporter_address": ":9109"})
		})
		Eventually(func() string { return metricsOn(ctx, compute1, "9109") }).WithTimeout(6 * time.Minute).Should(ContainSubstring("node_uname_info{"))
		Eventually(current(ctx, service(exporter))).WithTimeout(3 * time.Minute).Should(beReady())
		Expect(metricsOn(ctx, compute1, "9100")).To(BeEmpty(), "the exporter should have moved")
		Consistently(runs).WithTimeout(5 * time.Second).Should(Equal(was + 1))
	}, SpecTimeout(12*time.Minute))

	It("leave the host of a node that opts out", func(ctx SpecContext) {
		annotateRole(ctx, "monitoring.example.org/node-exporter", "false")
		Eventually(gone(ctx, service(exporter))).WithTimeout(6 * time.Minute).Should(BeTrue())
		Expect(metricsOn(ctx, compute1, "9100")).To(BeEmpty())
		Expect(metricsOn(ctx, compute1, "9109")).To(BeEmpty(), "where the long stories have moved it")
		Expect(left(ctx, exporter)).To(BeEmpty())
		class := &edpmv1.EDPMServiceClass{ObjectMeta: named(classesNS, exporter)}
		Expect(k8s.Delete(ctx, class)).To(Succeed())
		Eventually(gone(ctx, class)).WithTimeout(3 * time.Minute).Should(BeTrue())
	}, SpecTimeout(12*time.Minute))

	It("start neutron's agent for SR-IOV with both configurations", tier.Long, func(ctx SpecContext) {
		Expect(compute1.LoadImage(ctx, "sriov-agent")).To(Succeed())
		create(ctx, newSecretObject(classesNS, agent, map[string]string{
			// oslo.config substitutes $t.
			"00-bus.conf": "[DEFAULT]\ntransport_url = rabbit://neutron:" + strings.ReplaceAll(newSecret("the password of neutron"), "$", "$$") + "@127.0.0.1:5672/\n",
		}))
		applyClass(ctx, "sriov_nic_agent")
		mine := service(agent)
		mine.Spec.ClassName, mine.Spec.DataplaneNodeName = agent, compute1.Name
		mine.Spec.CustomServiceConfig = "[DEFAULT]\ndebug = true\n"
		create(ctx, mine)
		annotateRole(ctx, "neutron.example.org/sriov", "true")
		Eventually(current(ctx, service(agent))).WithTimeout(12 * time.Minute).Should(beReady())
		log := func() string {
			return sshOutput(ctx, compute1, "journalctl --quiet --identifier=edpm_"+agent+" --output=cat --no-pager")
		}
		Eventually(log).WithTimeout(6 * time.Minute).Should(And(
			ContainSubstring("RPC agent_id: nic-switch-agent."), ContainSubstring(" DEBUG neutron")))
		annotateRole(ctx, "neutron.example.org/sriov", "false")
		Eventually(gone(ctx, service(agent))).WithTimeout(6 * time.Minute).Should(BeTrue())
		Expect(left(ctx, agent)).To(BeEmpty())
	}, SpecTimeout(45*time.Minute))
}

// applyClass applies a class of config/samples/classes.
func applyClass(ctx context.Context, name string) {
	GinkgoHelper()
	text, err := cluster.SampleClass(name)
	Expect(err).NotTo(HaveOccurred())
	Expect(cluster.Apply(ctx, text, "--namespace", classesNS)).To(Succeed())
}

// metricsOn is what answers on a port of a host, empty if nothing does.
func metricsOn(ctx context.Context, host lab.Host, port string) string {
	return sshOutput(ctx, host, `python3 -c 'import urllib.request as r; print(r.urlopen("http://localhost:`+port+`/metrics", timeout=10).read().decode())' 2>/dev/null; true`)
}

// runsOfService are the names of the runs that brought the service of a class to hosts.
func runsOfService(ctx context.Context, ns, class string) []types.NamespacedName {
	var names []types.NamespacedName
	for _, r := range allRuns(ctx, ns) {
		if r.Spec.Service == class && !r.Spec.Removal {
			names = append(names, types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
		}
	}
	return names
}
