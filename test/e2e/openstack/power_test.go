package openstack

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
)

// atItsEnd is a moment in which a step counts as done: it is not run again.
const atItsEnd time.Duration = -1

// variables are inputs of steps, which write the number to the host.
const variables = `{
	"edpm_network_sysctl": {"net.ipv4.neigh.default.gc_thresh1": %[1]d},
	"edpm_sysctl": {"net.ipv4.neigh.default.gc_thresh2": %[1]d},
	"edpm_sshd_settings": {"PermitRootLogin": "prohibit-password", "MaxAuthTries": %[1]d},
	"edpm_chrony_extra": ["maxupdateskew %[1]d"],
	"edpm_nftables_rules_extra": [{"protocol": "tcp", "ports": "%[1]d"}],
	"edpm_libvirt_qemu_settings": {"max_queued": %[1]d}
}`

// written fails unless the host has the number of all inputs.
const written = `set -e
grep -qx '# %[1]d' /etc/netplan/90-edpm.yaml
for file in /etc/sysctl.d/90-edpm-network.conf /etc/sysctl.d/90-edpm.conf /etc/ssh/sshd_config.d/10-edpm.conf /etc/nftables/edpm.nft /var/lib/openstack/nova/02-nova-override.conf
do grep -qw %[1]d $file; done
grep -rqw %[1]d /etc/chrony
grep -rqw --include qemu.conf %[1]d /var/lib/openstack
test "$(sysctl -n net.ipv4.neigh.default.gc_thresh1 net.ipv4.neigh.default.gc_thresh2 | sort -u)" = %[1]d
test -z "$(dpkg --audit)" && ping -V | grep -q iputils`

// lossesOfPower has every step of the node and of the compute lose the power of its host while it has files to write, at
// a moment that the seed of the run draws.
func lossesOfPower() {
	moments := []time.Duration{3 * time.Second, 15 * time.Second, atItsEnd}
	draw := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 0))
	for i, step := range []string{"configure-network", "install-os", "configure-os", "libvirt", "nova"} {
		after := moments[draw.IntN(len(moments))]
		when := fmt.Sprintf("%v after the start", after)
		if after == atItsEnd {
			when = "at the end"
		}
		It("completes a deployment that lost its power "+when+" of step "+step, func(ctx SpecContext) {
			losePower(ctx, step, after, 2001+i)
		}, SpecTimeout(40*time.Minute))
	}
}

func losePower(ctx context.Context, step string, after time.Duration, number int) {
	GinkgoHelper()
	empty := emptyFiles(ctx)
	token := fmt.Sprintf("power is lost for the %dth time", number)
	changeInputs(ctx, token, number)
	Eventually(runningStep).WithArguments(ctx).WithTimeout(10 * time.Minute).WithPolling(500 * time.Millisecond).Should(Equal(step))
	if after == atItsEnd {
		Eventually(runningStep).WithArguments(ctx).WithTimeout(10 * time.Minute).WithPolling(200 * time.Millisecond).ShouldNot(Equal(step))
	} else {
		time.Sleep(after)
	}
	Expect(compute.Power(ctx, "reset")).To(Succeed())
	Eventually(tokenOfNova).WithArguments(ctx).WithTimeout(20 * time.Minute).Should(Equal(token))
	Eventually(expect.Read(ctx, k8s, nodeOf(compute))).WithTimeout(10 * time.Minute).Should(expect.Ready())
	settled(ctx)
	Expect(compute.SSH(ctx, "systemctl --failed --plain --no-legend 'edpm*'")).To(BeEmpty())
	Expect(compute.SSH(ctx, "bash -xc "+quoted(fmt.Sprintf(written, number)))).Error().NotTo(HaveOccurred())
	Expect(networkOf(ctx)).To(Equal("kept " + compute.IP + "/24"))
	Expect(slices.DeleteFunc(emptyFiles(ctx), func(file string) bool { return slices.Contains(empty, file) })).To(BeEmpty(), "files that were half written")
	Expect(compute.SSH(ctx, "find /etc /var/lib/openstack /var/lib/edpm -xdev -name '.ansible_tmp*'")).To(BeEmpty(), "files that were not moved to their place")
	guestIsBack(ctx)
}

// changeInputs gives each step another file to write, and has all of them run.
func changeInputs(ctx context.Context, token string, number int) {
	GinkgoHelper()
	copyMirror(ctx)
	Expect(compute.SSH(ctx, "rm -rf /srv/mirror && /srv/mirror.sh iputils-ping")).Error().NotTo(HaveOccurred())
	configureNova(ctx, number)
	configureNetwork(ctx, "{{ ansible_host }}/24", number)
	Expect(change(ctx, &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: named(compute.Name)}, func(node *dataplanev1.OpenStackDataPlaneNode) {
		node.Spec.Node.AnsibleVars = &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, variables, number)}
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, common.RerunAnnotation, token)
	})).To(Succeed())
}

// emptyFiles are the empty files where steps write, which some are meant to be. Locks are new on some occasions.
func emptyFiles(ctx context.Context) []string {
	GinkgoHelper()
	files, err := compute.SSH(ctx, "find /etc /usr/local /var/lib/openstack /var/lib/edpm /var/lib/nova/compute_id -xdev -type f -size 0 ! -name '*lock*'")
	Expect(err).NotTo(HaveOccurred())
	return strings.Fields(files)
}

// quoted is a text as a word of a shell.
func quoted(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
