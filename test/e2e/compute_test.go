package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
)

// override is a customServiceConfig that sets the option twice: 01-nova.conf has
// 1 for it.
func override(value int) string {
	return fmt.Sprintf("[DEFAULT]\n# as many as the disks bear\nmax_concurrent_live_migrations = %d\n", value)
}

const (
	phase0Steps   = 5
	configDir     = "/var/lib/openstack/nova"
	novaContainer = "edpm_nova_compute"
	novaLog       = "/var/log/containers/nova/nova-compute.log"
)

// computeStories tell how the examples of the founding specification become
// computes on two hosts, one in the cell of its role and one in another.
func computeStories() {
	BeforeAll(func(ctx SpecContext) {
		create(ctx, control(samplesNS)...)
		storage := newRole(samplesNS, "edpm-storage")
		create(ctx, storage, newNode(samplesNS, storage.Name, storage0))
		_, err := cluster.Kubectl(ctx, "apply", "--validate=strict", "-n", samplesNS, "-k", "config/samples")
		Expect(err).NotTo(HaveOccurred())
		Expect(setOverride(ctx, compute0, 4)).To(Succeed())
		Eventually(setOverride).WithArguments(ctx, compute1, 7).WithTimeout(3 * time.Minute).Should(Succeed())
	}, NodeTimeout(6*time.Minute))

	It("comes from each node of an annotated role, in the cell of the nearest annotation", func(ctx SpecContext) {
		for _, want := range []struct{ host, cell string }{{compute0.Name, "nova-cell1"}, {compute1.Name, "nova-cell2"}} {
			Eventually(func(g Gomega) {
				obj := &novav1.NovaExternalCompute{}
				g.Expect(k8s.Get(ctx, types.NamespacedName{Namespace: samplesNS, Name: want.host}, obj)).To(Succeed())
				g.Expect(obj.Spec.CellName).To(Equal(want.cell))
				g.Expect(obj.OwnerReferences).To(HaveLen(1))
				g.Expect(obj.OwnerReferences[0].Name).To(Equal(want.host))
				g.Expect(obj.Spec.InventoryConfigMapName).To(Equal("dataplanenode-" + want.host))
			}).WithTimeout(90 * time.Second).Should(Succeed())
		}
	}, SpecTimeout(3*time.Minute))

	It("becomes Ready, and so does a node without annotation", func(ctx SpecContext) {
		for _, host := range []lab.Host{compute0, compute1} {
			Eventually(current(ctx, computeNamed(samplesNS, host.Name))).WithTimeout(24 * time.Minute).Should(beReady())
			// A node shows what its services show a moment later.
			Eventually(current(ctx, nodeNamed(samplesNS, host.Name))).WithTimeout(3 * time.Minute).Should(And(beReady(),
				HaveField("Status.Services", ConsistOf(And(HaveField("Name", "nova"), HaveField("Ready", true))))))
		}
		Eventually(current(ctx, nodeNamed(samplesNS, storage0.Name))).WithTimeout(3 * time.Minute).Should(beReady())
	}, SpecTimeout(30*time.Minute))

	It("runs nova-compute and libvirt on its host", func(ctx SpecContext) {
		for _, host := range []lab.Host{compute0, compute1} {
			units := sshOutput(ctx, host, "systemctl is-active edpm_nova_compute.service; systemctl list-units --no-legend --plain --state=active 'edpm_libvirt_*.service' | cut -d' ' -f1")
			Expect(units).To(HavePrefix("active\n"), host.Name)
			Expect(units).To(MatchRegexp(`edpm_libvirt_(virtqemud|libvirtd)\.service`), host.Name)
			Expect(sshOutput(ctx, host, virsh+" list --all")).To(ContainSubstring("Id   Name   State"), host.Name)
		}
	}, SpecTimeout(3*time.Minute))

	It("keeps its configuration valid, and readable for nova-compute only", func(ctx SpecContext) {
		for _, host := range []lab.Host{compute0, compute1} {
			seen := sshOutput(ctx, host, "podman exec "+novaContainer+" sh -c 'cd /etc/nova/nova.conf.d && stat -c \"%n %a %U %G\" *'")
			Expect(strings.Split(seen, "\n")).To(HaveExactElements(
				"01-nova-host.conf 640 root nova", "01-nova.conf 640 root nova", "02-nova-override.conf 640 root nova"), host.Name)
			Expect(sshOutput(ctx, host, "stat -c '%a %U' "+configDir)).To(Equal("750 root"), host.Name)
			Expect(sshOutput(ctx, host, "cat "+configDir+"/01-nova.conf")).To(And(
				ContainSubstring("max_concurrent_live_migrations = 1\n"), ContainSubstring("transport_url = rabbit://nova:s3cr$$t-w0rd")), host.Name)
		}
	}, SpecTimeout(3*time.Minute))

	It("runs with what customServiceConfig says, not with the default", func(ctx SpecContext) {
		Expect(loggedOption(ctx, compute0, "max_concurrent_live_migrations")).To(Equal("4"))
		Expect(loggedOption(ctx, compute1, "max_concurrent_live_migrations")).To(Equal("7"))
		Expect(loggedOption(ctx, compute0, "allow_resize_to_same_host")).To(Equal("True"), "what it does not mention stays")
	}, SpecTimeout(3*time.Minute))

	It("runs phase 0, then libvirt, then nova, each once", func(ctx SpecContext) {
		phase0 := dataplanev1.DefaultServices
		Expect(phase0).To(HaveLen(phase0Steps))
		for _, host := range []lab.Host{compute0, compute1} {
			Expect(trail(ctx, host)).To(HaveExactElements(startAndEnd(append(append([]string{}, phase0...), "libvirt-tls", "libvirt", "nova", "live-migration")...)), host.Name)
		}
		Expect(trail(ctx, storage0)).To(HaveExactElements(startAndEnd(phase0...)))
		Expect(apierrors.IsNotFound(k8s.Get(ctx, types.NamespacedName{Namespace: samplesNS, Name: storage0.Name}, &novav1.NovaExternalCompute{}))).To(BeTrue(),
			"a node without annotation must not become a compute")
	}, SpecTimeout(3*time.Minute))

	It("needs one run for phase 0 and one for phase 1, the second after the end of the first", func(ctx SpecContext) {
		for _, host := range []lab.Host{compute0, compute1} {
			steps := runsByStep(ctx, samplesNS, host.Name)
			before, after := steps[dataplanev1.DefaultServices[0]], steps["nova"]
			Expect(before.StepNames()).To(Equal(dataplanev1.DefaultServices), host.Name)
			Expect(after.StepNames()).To(Equal([]string{"libvirt-tls", "libvirt", "nova", "live-migration"}), host.Name)
			Expect(after.CreationTimestamp.Time).NotTo(BeTemporally("<", before.Status.CompletionTime.Time),
				"%s: phase 1 started before phase 0 had ended", host.Name)
		}
	}, SpecTimeout(3*time.Minute))

	It("stays unchanged by one more run", tier.Long, func(ctx SpecContext) {
		const token = "once-more"
		before := startedAt(ctx, compute1, novaContainer)
		runs := trail(ctx, compute1)
		others := map[string][]string{compute0.Name: trail(ctx, compute0), storage0.Name: trail(ctx, storage0)}
		rerun(ctx, nodeNamed(samplesNS, compute1.Name), token)

		steps := append(append([]string{}, dataplanev1.DefaultServices...), "libvirt-tls", "libvirt", "nova", "live-migration")
		Eventually(trail).WithArguments(ctx, compute1).WithTimeout(12 * time.Minute).Should(HaveLen(len(runs) + 2*len(steps)))
		Eventually(current(ctx, computeNamed(samplesNS, compute1.Name))).WithTimeout(3 * time.Minute).Should(beReady())
		Expect(trail(ctx, compute1)[len(runs):]).To(HaveExactElements(startAndEnd(steps...)))
		for _, step := range steps {
			Expect(resultOfRerun(ctx, compute1.Name, step, token).Changed).To(BeZero(), "step %s changed something", step)
		}
		Expect(startedAt(ctx, compute1, novaContainer)).To(Equal(before), "nova-compute was restarted")
		Expect(trail(ctx, compute0)).To(Equal(others[compute0.Name]))
		Expect(trail(ctx, storage0)).To(Equal(others[storage0.Name]))
	}, SpecTimeout(18*time.Minute))
}

// setOverride writes the customServiceConfig of a compute, as a person does.
func setOverride(ctx context.Context, host lab.Host, value int) error {
	return change(ctx, computeNamed(samplesNS, host.Name), func(c *novav1.NovaExternalCompute) {
		c.Spec.CustomServiceConfig = override(value)
	})
}

// virsh of whatever libvirt daemon runs on the host.
const virsh = `podman exec "$(podman ps --format '{{.Names}}' | grep -E '^edpm_libvirt_(virtqemud|libvirtd)$' | head -n 1)" virsh -c qemu:///system`

func sshOutput(ctx context.Context, host lab.Host, script string) string {
	GinkgoHelper()
	out, err := host.SSH(ctx, script)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// report asks the running nova-compute for a report (oslo.reports, SIGUSR2), and prints
// what it then logs of an option of the section DEFAULT, as soon as it does.
const report = `cursor=$(journalctl --lines=0 --show-cursor --no-pager | sed -n 's/^-- cursor: //p')
podman exec edpm_nova_compute pkill -USR2 -x nova-compute || exit
for i in $(seq 100); do
  line=$(journalctl --after-cursor="$cursor" -o cat --no-pager | awk '/^[a-z_]+: *$/ { section = $1 } section == "default:" && /^ +OPTION +=/' | tail -n 1)
  [ -z "$line" ] || break
  sleep 0.2
done
echo "$line"`

// loggedOption returns the value of an option that the running nova-compute logs when
// it is asked for a report. It logs its options without being asked only once its message
// bus answers, and none does here.
func loggedOption(ctx context.Context, host lab.Host, option string) string {
	GinkgoHelper()
	line := sshOutput(ctx, host, strings.ReplaceAll(report, "OPTION", option))
	_, value, ok := strings.Cut(line, option)
	Expect(ok).To(BeTrue(), "%s: nova-compute has not logged %s", host.Name, option)
	fields := strings.Fields(strings.TrimLeft(value, " ="))
	Expect(fields).NotTo(BeEmpty(), line)
	return fields[0]
}

func startedAt(ctx context.Context, host lab.Host, container string) string {
	GinkgoHelper()
	return sshOutput(ctx, host, "podman inspect --format '{{.Id}} {{.State.StartedAt}}' "+container)
}

// trail returns the audit trail of a host as "<event> <step>".
func trail(ctx context.Context, host lab.Host) []string {
	GinkgoHelper()
	runs, err := host.Runs(ctx)
	Expect(err).NotTo(HaveOccurred())
	lines := []string{}
	for _, r := range runs {
		lines = append(lines, r.Event+" "+r.Step)
	}
	return lines
}

// trailWithRuns is the end of the trail in one line, each entry with its run and its hash. It
// describes assertions.
func trailWithRuns(ctx context.Context, host lab.Host) string {
	runs, err := host.Runs(ctx)
	lines := []string{}
	for _, r := range runs[max(0, len(runs)-8):] {
		lines = append(lines, fmt.Sprintf("%s %s (%s, %.8s)", r.Event, r.Step, r.Run, r.Hash))
	}
	return fmt.Sprint(host.Name, ": ", strings.Join(lines, ", "), err)
}

// startAndEnd is the trail of steps that went well one after the other.
func startAndEnd(steps ...string) []string {
	lines := []string{}
	for _, s := range steps {
		lines = append(lines, "start "+s, "end "+s)
	}
	return lines
}

// allRuns returns the runs of a namespace.
func allRuns(ctx context.Context, ns string) []ansibleeev1.OpenStackAnsibleEE {
	GinkgoHelper()
	list := &ansibleeev1.OpenStackAnsibleEEList{}
	Expect(k8s.List(ctx, list, client.InNamespace(ns))).To(Succeed())
	return list.Items
}

// runsByStep returns for each step the first run that has the host.
func runsByStep(ctx context.Context, ns, host string) map[string]ansibleeev1.OpenStackAnsibleEE {
	GinkgoHelper()
	runs := map[string]ansibleeev1.OpenStackAnsibleEE{}
	for _, run := range allRuns(ctx, ns) {
		if _, ok := run.Target(host); !ok {
			continue
		}
		for _, step := range run.StepNames() {
			if first, ok := runs[step]; !ok || run.CreationTimestamp.Before(&first.CreationTimestamp) {
				runs[step] = run
			}
		}
	}
	return runs
}

// resultOfRerun returns Ansible's recap for a host in the run that a token asked for.
func resultOfRerun(ctx context.Context, host, step, token string) ansibleeev1.HostStatus {
	GinkgoHelper()
	for _, run := range allRuns(ctx, samplesNS) {
		if target, ok := run.Target(host); ok && slices.Contains(run.StepNames(), step) && target.Rerun == token {
			result, known := run.Host(host)
			Expect(known).To(BeTrue(), "run %s has no result for %s", run.Name, host)
			return result
		}
	}
	Fail(fmt.Sprintf("no run of step %s on %s has the token", step, host))
	return ansibleeev1.HostStatus{}
}
