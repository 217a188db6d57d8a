package openstack

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
)

// vm marks the stories that are told on virtual machines.
const vm = "vm"

// vmStories have what happens to a host that has a kernel and power of its own. A guest runs.
func vmStories() {
	It("is not rebooted for kernel arguments while its guest runs", func(ctx SpecContext) {
		resumeGuests(ctx)
		before := look(ctx)
		configureKernel(ctx)
		Eventually(expect.Read(ctx, k8s, nodeOf(compute))).WithTimeout(6 * time.Minute).Should(
			expect.Problem(condition.DeploymentReadyCondition, "HostNotEmpty", "1 guests run", "kubectl edpm drain "+compute.Name))
		before.lives(ctx)
	}, SpecTimeout(10*time.Minute))

	It("is rebooted once for them when no guest runs, and has huge pages", func(ctx SpecContext) {
		openstack(ctx, "server", "stop", guest)
		Eventually(statusOfGuest).WithArguments(ctx).WithTimeout(4 * time.Minute).Should(Equal("SHUTOFF"))
		before := bootOfHost(ctx)
		annotateRerun(ctx, "no guest runs")
		Eventually(kernelArguments).WithArguments(ctx).WithTimeout(12 * time.Minute).Should(ContainElement("nosmt"))
		Eventually(expect.Read(ctx, k8s, nodeOf(compute))).WithTimeout(8 * time.Minute).Should(expect.Ready())
		settled(ctx)
		Expect(bootOfHost(ctx)).NotTo(Equal(before))
		Expect(compute.SSH(ctx, "cat /proc/sys/vm/nr_hugepages")).To(Equal("16"))
		openstack(ctx, "server", "start", guest)
		Eventually(uptime).WithArguments(ctx).WithTimeout(6 * time.Minute).Should(BeNumerically(">", 0))
	}, SpecTimeout(30*time.Minute))

	It("runs everything after it lost its power, without a run of ours", func(ctx SpecContext) {
		runs, err := compute.Runs(ctx)
		Expect(err).NotTo(HaveOccurred())
		units, err := unitsOf(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(units).NotTo(BeEmpty())
		Expect(compute.Power(ctx, "reset")).To(Succeed())
		Eventually(unitsOf).WithArguments(ctx).WithTimeout(6 * time.Minute).Should(Equal(units))
		settled(ctx)
		Expect(compute.Runs(ctx)).To(Equal(runs))
		Expect(kernelArguments(ctx)).To(ContainElement("nosmt"))
		guestIsBack(ctx)
	}, SpecTimeout(15*time.Minute))

	It("keeps the emulated TPM of a guest while libvirt is restarted", func(ctx SpecContext) {
		const virsh = "podman exec --interactive edpm_libvirt_libvirtd virsh --quiet "
		processes := func() string {
			GinkgoHelper()
			out, err := compute.SSH(ctx, "pgrep -f '[s]wtpm socket'; pgrep -f '[q]emu-system.*guest=tpm'")
			Expect(err).NotTo(HaveOccurred())
			return out
		}
		Expect(compute.SSH(ctx, virsh+"create /dev/stdin <<'EOF'\n"+domainWithTPM+"\nEOF")).Error().NotTo(HaveOccurred())
		before := processes()
		Expect(compute.SSH(ctx, "systemctl restart edpm_libvirt_libvirtd")).Error().NotTo(HaveOccurred())
		Eventually(compute.SSH).WithArguments(ctx, virsh+"uri").WithTimeout(2 * time.Minute).Should(ContainSubstring("qemu:///system"))
		Expect(processes()).To(Equal(before))
		Expect(compute.SSH(ctx, virsh+"reset tpm")).Error().NotTo(HaveOccurred(), "QEMU ends when it resets a TPM that is gone")
		Expect(processes()).To(Equal(before))
		Expect(compute.SSH(ctx, virsh+"destroy tpm")).Error().NotTo(HaveOccurred())
	}, SpecTimeout(8*time.Minute))

	lossesOfPower()
	thinVolumeStories()

	It("rolls back a network template that cuts it off, and takes one that does not", func(ctx SpecContext) {
		before := look(ctx)
		configureNetwork(ctx, "{{ ansible_host }}/24", 0)
		Eventually(networkOf).WithArguments(ctx).WithTimeout(10 * time.Minute).Should(Equal("kept " + compute.IP + "/24"))
		Eventually(expect.Read(ctx, k8s, nodeOf(compute))).WithTimeout(8 * time.Minute).Should(expect.Ready())
		configureNetwork(ctx, "192.0.2.1/24", 0)
		Eventually(expect.Read(ctx, k8s, nodeOf(compute))).WithTimeout(12 * time.Minute).Should(
			expect.Problem(condition.DeploymentReadyCondition, "Refused", "rolled it back", "correct networkConfig.template"))
		Expect(networkOf(ctx)).To(Equal("kept " + compute.IP + "/24"))
		configureNetwork(ctx, "{{ ansible_host }}/24", 0)
		Eventually(expect.Read(ctx, k8s, nodeOf(compute))).WithTimeout(8 * time.Minute).Should(expect.Ready())
		settled(ctx)
		before.lives(ctx)
	}, SpecTimeout(35*time.Minute))

	It("names a disk that is full, and completes when there is room", func(ctx SpecContext) {
		Expect(compute.SSH(ctx, "fallocate --length $(df --output=avail --block-size=1 / | tail -n 1) /var/tmp/fill || true; dd if=/dev/zero of=/var/tmp/rest bs=4k 2>/dev/null || true")).
			Error().NotTo(HaveOccurred())
		configureNova(ctx, 2101)
		Eventually(expect.Read(ctx, k8s, external())).WithTimeout(5 * time.Minute).Should(Or(
			expect.Problem(condition.DeploymentReadyCondition, "Failed", "full or read-only"), expect.Problem(condition.DeploymentReadyCondition, "Failed", "No space left")))
		Expect(compute.SSH(ctx, "rm /var/tmp/fill /var/tmp/rest")).Error().NotTo(HaveOccurred())
		novaHas(ctx, 2101)
	}, SpecTimeout(15*time.Minute))

	// The kernel makes it writable again only at the next boot: files that were removed are still open.
	It("names a root file system that is read-only, and completes after a reboot", func(ctx SpecContext) {
		Expect(compute.SSH(ctx, "echo u > /proc/sysrq-trigger; sleep 2; ! touch /etc/x")).Error().NotTo(HaveOccurred())
		configureNova(ctx, 2102)
		Eventually(expect.Read(ctx, k8s, external())).WithTimeout(5 * time.Minute).Should(
			expect.Problem(condition.DeploymentReadyCondition, "Failed", "ead-only"))
		Expect(compute.Power(ctx, "reset")).To(Succeed())
		novaHas(ctx, 2102)
		guestIsBack(ctx)
	}, SpecTimeout(20*time.Minute))

	for i, day := range []string{"a day ahead", "a day behind"} {
		It("is deployed and reports to nova with a clock that is "+day, func(ctx SpecContext) {
			before := look(ctx)
			shift := map[string]string{"a day ahead": "1 day", "a day behind": "2 days ago"}[day]
			_, err := compute.SSH(ctx, "date --set \"$(date --date '"+shift+"')\"")
			Expect(err).NotTo(HaveOccurred())
			configureNova(ctx, 2103+i)
			novaHas(ctx, 2103+i)
			Expect(statusOfGuest(ctx)).To(Equal("ACTIVE"))
			Expect(qemu(ctx)).To(Equal(before.processes))
		}, SpecTimeout(12*time.Minute))
	}
}

// configureNova has nova-compute on the host configured with a number, and novaHas waits until it runs with it.
func configureNova(ctx context.Context, number int) {
	GinkgoHelper()
	Expect(change(ctx, external(), func(obj *novav1.NovaExternalCompute) {
		obj.Spec.CustomServiceConfig = fmt.Sprintf("[DEFAULT]\nresume_guests_state_on_host_boot = True\nshutdown_retry_interval = %d\n", number)
	})).To(Succeed())
}

func novaHas(ctx context.Context, number int) {
	GinkgoHelper()
	Eventually(compute.SSH).WithArguments(ctx, "podman exec edpm_nova_compute cat /etc/nova/nova.conf.d/02-nova-override.conf").WithTimeout(8 * time.Minute).Should(
		ContainSubstring("= " + strconv.Itoa(number)))
	settled(ctx)
}

// domainWithTPM is a guest of libvirt alone: nova has its TPMs encrypted with keys of barbican.
const domainWithTPM = `<domain type="qemu"><name>tpm</name><memory unit="MiB">64</memory><os><type arch="x86_64" machine="q35">hvm</type></os>
<devices><tpm model="tpm-crb"><backend type="emulator" version="2.0"/></tpm></devices></domain>`

// configureKernel adds the step of kernel arguments and huge pages to those of the role.
func configureKernel(ctx context.Context) {
	GinkgoHelper()
	const step = "configure-kernel"
	service := &dataplanev1.OpenStackDataPlaneService{ObjectMeta: named(step)}
	service.Spec.Playbook = "edpm.operators.configure_kernel"
	Expect(k8s.Create(ctx, service)).To(Succeed())
	role := &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: named("edpm-compute")}
	Expect(change(ctx, role, func(role *dataplanev1.OpenStackDataPlaneRole) {
		role.Spec.Services = []string{"configure-network", "validate-network", "install-os", "configure-os", "run-os", step}
		role.Spec.NodeTemplate.AnsibleVars = &apiextensionsv1.JSON{Raw: []byte(`{"edpm_nova_virt_type": "qemu", "edpm_kernel_args": "nosmt",
			"edpm_reboot_strategy": "auto", "edpm_kernel_hugepages": [{"size": "2M", "count": 16}]}`)}
	})).To(Succeed())
}

// configureNetwork has the role give its hosts an address, by netplan. The file has the number.
func configureNetwork(ctx context.Context, address string, number int) {
	GinkgoHelper()
	role := &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: named("edpm-compute")}
	Expect(change(ctx, role, func(role *dataplanev1.OpenStackDataPlaneRole) {
		role.Spec.NodeTemplate.NetworkConfig = &dataplanev1.NetworkConfigSection{Template: `network:
  version: 2
  ethernets:
    eth0:
      addresses: ["` + address + `"]
      routes: [{to: default, via: 192.168.122.1}]
# ` + strconv.Itoa(number) + "\n"}
	})).To(Succeed())
}

// networkOf says whether the host keeps the network that netplan has given it, and its address.
func networkOf(ctx context.Context) (string, error) {
	return compute.SSH(ctx, "test -e /etc/netplan/90-edpm.yaml && ! test -e /var/lib/edpm/network/before.tar && echo kept $(ip -o -4 address show eth0 | tr -s ' ' | cut -d ' ' -f 4)")
}

// bootOfHost identifies the boot of the host.
func bootOfHost(ctx context.Context) string {
	GinkgoHelper()
	id, err := compute.SSH(ctx, "cat /proc/sys/kernel/random/boot_id")
	Expect(err).NotTo(HaveOccurred())
	return id
}

func kernelArguments(ctx context.Context) ([]string, error) {
	text, err := compute.SSH(ctx, "cat /proc/cmdline")
	return strings.Fields(text), err
}

// unitsOf are the units of the suite that run on the host.
func unitsOf(ctx context.Context) (string, error) {
	return compute.SSH(ctx, "systemctl list-units --plain --no-legend --state=running 'edpm_*' | cut -d ' ' -f 1")
}

// runningStep is the step that has begun on the host and has not ended, if there is one.
func runningStep(ctx context.Context) (string, error) {
	runs, err := compute.Runs(ctx)
	if err != nil || len(runs) == 0 {
		return "", err
	}
	if last := runs[len(runs)-1]; last.Event == "start" {
		return last.Step, nil
	}
	return "", nil
}

// guestIsBack expects nova-compute to have started the guest again, which says so on its console.
func guestIsBack(ctx context.Context) {
	GinkgoHelper()
	Eventually(statusOfGuest).WithArguments(ctx).WithTimeout(5 * time.Minute).Should(Equal("ACTIVE"))
	Eventually(qemu).WithArguments(ctx).WithTimeout(5 * time.Minute).Should(HaveLen(1))
	Eventually(uptime).WithArguments(ctx).WithTimeout(6 * time.Minute).Should(BeNumerically(">", 0))
}
