package openstack

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"

	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

// otherTool is another tool that runs nova-compute and libvirt on a host.
type otherTool struct {
	name  string
	units string
	// configuration of nova-compute on the host.
	configuration string
	// start is a script that starts both as the tool does, once the configuration is there.
	start func() string
}

var tools = []otherTool{
	{"kolla-ansible", "kolla-nova_compute-container.service kolla-nova_libvirt-container.service", "/etc/kolla/nova-compute/nova.conf", startContainers},
	{"packages", "nova-compute.service libvirtd.service", "/etc/nova/nova.conf", func() string { return startPackages }},
}

// takeOverStories have a host whose nova-compute and libvirt another tool runs, with a guest.
func takeOverStories(tool otherTool) {
	var theirs string // the id of the guest
	host := func() lab.Host { return cluster.Host("edpm-compute-1", "192.168.122.101") }

	It("is left as it is until a person names the tool", func(ctx SpecContext) {
		Expect(bringUp(ctx, compute, host())).To(Succeed())
		become(ctx, host(), tool)
		Eventually(hostsOfServices).WithArguments(ctx, "nova-compute").WithTimeout(4 * time.Minute).Should(HaveKeyWithValue(host().Name, "up"))
		Eventually(func() string {
			novaManage(ctx, "cell_v2", "discover_hosts")
			return novaManage(ctx, "cell_v2", "list_hosts")
		}).WithTimeout(2 * time.Minute).Should(ContainSubstring(host().Name))
		theirs = createGuest(ctx, "of-"+tool.name, host().Name)
		before := looksLike(ctx, host(), theirs)
		Expect(k8s.Create(ctx, nodeOf(host()))).To(Succeed())
		Eventually(expect.Read(ctx, k8s, nodeOf(host()))).WithTimeout(5 * time.Minute).Should(
			expect.Problem(condition.DeploymentReadyCondition, "Refused", "nova-compute and libvirt of "+tool.name+" are on this host"))
		Expect(looksLike(ctx, host(), theirs)).To(Equal(before))

		By("showing what would be done")
		Expect(edpm(ctx, "take-over", host().Name, "--from", tool.name, "--dry-run")).To(And(
			ContainSubstring("host %s in nova", host().Name), ContainSubstring("1 directories of guests, 1 guests that run"),
			ContainSubstring("systemctl disable --now "+strings.Fields(tool.units)[0])))
		_, err := edpm(ctx, "take-over", host().Name, "--from", "edpm-ansible", "--dry-run")
		Expect(err).To(MatchError(ContainSubstring("Cannot be taken over from edpm-ansible")))
		Expect(looksLike(ctx, host(), theirs)).To(Equal(before))
	}, SpecTimeout(20*time.Minute))

	It("is the same compute afterwards, with the same process of its guest", func(ctx SpecContext) {
		before, others := looksLike(ctx, host(), theirs), look(ctx)
		Expect(edpm(ctx, "take-over", host().Name, "--from", tool.name)).To(ContainSubstring("is taken over from " + tool.name))
		becomesReady(ctx, host().Name)
		Expect(looksLike(ctx, host(), theirs)).To(Equal(before))
		Expect(host().SSH(ctx, "systemctl is-active edpm_nova_compute; systemctl is-active "+tool.units+" | sort --unique")).To(Equal("active\ninactive"))
		others.lives(ctx)
	}, SpecTimeout(15*time.Minute))

	It("stops and starts the guest that it took over, and leaves when the guest has", func(ctx SpecContext) {
		status := func() string {
			return openstack(ctx, "server", "show", theirs, "--format", "value", "--column", "status")
		}
		openstack(ctx, "server", "stop", theirs)
		Eventually(status).WithTimeout(4 * time.Minute).Should(Equal("SHUTOFF"))
		openstack(ctx, "server", "start", theirs)
		Eventually(status).WithTimeout(4 * time.Minute).Should(Equal("ACTIVE"))
		Eventually(cluster.OpenStack).WithArguments(ctx, "console", "log", "show", theirs).WithTimeout(4 * time.Minute).Should(ContainSubstring("guest: instance " + theirs))
		openstack(ctx, "server", "delete", "--wait", theirs)
		Expect(k8s.Delete(ctx, nodeOf(host()))).To(Succeed())
		Eventually(missing).WithArguments(ctx, nodeOf(host())).WithTimeout(8 * time.Minute).Should(BeTrue())
		Expect(hostsOfServices(ctx, "nova-compute")).NotTo(HaveKey(host().Name))
		remove(ctx, host())
	}, SpecTimeout(20*time.Minute))
}

// looksLike returns what stays when a compute is taken over: the process of its guest and when that was started, the ID of
// the compute, the status of the guest, and what nova and placement know the compute by.
func looksLike(ctx context.Context, host lab.Host, guest string) []string {
	GinkgoHelper()
	onHost, err := host.SSH(ctx, "for pid in $(pgrep -f '[q]emu-system.*guest='); do echo $pid $(cut -d ' ' -f 22 /proc/$pid/stat); done; "+
		"cat /var/lib/nova/compute_id 2>/dev/null || cat $(podman volume inspect --format '{{.Mountpoint}}' nova_compute)/compute_id")
	Expect(err).NotTo(HaveOccurred())
	return []string{
		onHost, openstack(ctx, "server", "show", guest, "--format", "value", "--column", "status"),
		openstack(ctx, "compute", "service", "list", "--service", "nova-compute", "--host", host.Name, "--format", "value", "--column", "ID", "--column", "Status", "--column", "State"),
		openstack(ctx, "resource", "provider", "list", "--name", host.Name, "--format", "value", "--column", "uuid"),
	}
}

// become has another tool run nova-compute and libvirt on a host, with the configuration of the other compute.
func become(ctx context.Context, host lab.Host, tool otherTool) {
	GinkgoHelper()
	conf, err := compute.SSH(ctx, "cat /var/lib/openstack/nova/*.conf | grep -v ^log_file")
	Expect(err).NotTo(HaveOccurred())
	conf = strings.NewReplacer(compute.Name, host.Name, compute.IP, host.IP).Replace(conf)
	write := fmt.Sprintf("set -e; mkdir -p $(dirname %[1]s); echo %[2]s | base64 -d > %[1]s\n", tool.configuration, base64.StdEncoding.EncodeToString([]byte(conf)))
	Expect(host.SSH(ctx, write+tool.start())).Error().NotTo(HaveOccurred())
}

// startContainers runs them as kolla-ansible does.
func startContainers() string {
	const volumes = "--network host --privileged --volume /run:/run --volume /dev:/dev --volume nova_compute:/var/lib/nova --volume libvirtd:/var/lib/libvirt"
	containers := []struct{ name, options, image, command string }{
		{"nova_libvirt", "--pid host --cgroupns host --volume /sys/fs/cgroup:/sys/fs/cgroup --volume nova_libvirt_qemu:/etc/libvirt/qemu", "localhost/edpm-nova-libvirt:latest",
			`sh -c 'printf "unix_sock_group = \"libvirt\"\nunix_sock_rw_perms = \"0770\"\nauth_unix_rw = \"none\"\n" > /etc/libvirt/libvirtd.conf; virtlogd --daemon; exec libvirtd'`},
		{"nova_compute", "--init --user nova --volume /etc/kolla/nova-compute/nova.conf:/etc/nova/nova.conf:ro", "localhost/edpm-nova-compute:latest", "nova-compute"},
	}
	script := ""
	for _, c := range containers {
		script += fmt.Sprintf("podman create --name %s %s %s %s %s\n", c.name, volumes, c.options, c.image, c.command)
		script += fmt.Sprintf(`printf '[Unit]\nDescription=podman kolla-%[1]s-container.service\nPartOf=kolla.target\n[Service]\nExecStart=/usr/bin/podman start -a %[1]s\n`+
			`ExecStop=/usr/bin/podman stop %[1]s -t 60\nRestart=always\nRestartSec=11\nSuccessExitStatus=143\n[Install]\nWantedBy=multi-user.target\n' > /etc/systemd/system/kolla-%[1]s-container.service`+"\n", c.name)
		script += fmt.Sprintf("systemctl daemon-reload; systemctl enable --now kolla-%s-container.service\n", c.name)
		if c.name == "nova_libvirt" { // as the image of kolla does; nova-compute has no resources without
			script += "until podman exec nova_libvirt install -d -o nova -g nova /var/lib/nova/instances; do sleep 1; done\n"
		}
	}
	return script
}

// startPackages runs those of Debian's packages, which are in the image of nova: their units are
// on the host, and see the files of the image but for those that belong to the host.
const startPackages = `
root=$(podman mount $(podman create localhost/edpm-nova-compute:latest))
own() { stat --format "$1" $root/var/lib/nova; }
groupadd --non-unique --gid $(own %g) nova
useradd --non-unique --uid $(own %u) --gid nova --home-dir /var/lib/nova nova
for name in nova libvirt; do
  mkdir -p /var/lib/$name /etc/$name
  cp -a -T $root/var/lib/$name /var/lib/$name
  cp -a -T --no-clobber $root/etc/$name /etc/$name
done
install --directory --owner nova --group nova /var/lib/nova/instances  # as the package does
: > /etc/nova/nova-compute.conf  # of the package: KVM
chown nova /etc/nova/nova.conf
echo 'auth_unix_rw = "none"' > /etc/libvirt/libvirtd.conf
cp -a $root/usr/lib/systemd/system/nova-compute.service $root/usr/lib/systemd/system/libvirtd*.* $root/usr/lib/systemd/system/virtlogd*.* /usr/lib/systemd/system/
for unit in nova-compute libvirtd virtlogd; do
  mkdir -p /etc/systemd/system/$unit.service.d
  printf '[Service]\nType=notify\nRootDirectory=%s\nMountAPIVFS=yes\nBindPaths=/run /etc/nova /etc/libvirt /var/lib/nova /var/lib/libvirt\n' "$root" > /etc/systemd/system/$unit.service.d/root.conf
done
gids=$(sed -n -E 's/^(kvm|libvirt):[^:]*:([0-9]+):.*/\2/p' $root/etc/group | tr '\n' ' ')
for gid in $gids; do groupadd --non-unique --gid $gid nova-$gid; done
printf 'SupplementaryGroups=%s\nLogsDirectory=nova\n' "$gids" >> /etc/systemd/system/nova-compute.service.d/root.conf
systemctl daemon-reload
systemctl enable --now libvirtd.socket libvirtd.service nova-compute.service
`
