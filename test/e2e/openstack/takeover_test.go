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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

// takeOverStories have a host whose nova-compute and libvirt kolla-ansible runs, with a guest.
func takeOverStories() {
	var theirs string // the id of the guest
	host := func() lab.Host { return cluster.Host("edpm-compute-1", "192.168.122.101") }

	It("is left as it is until a person names the tool", func(ctx SpecContext) {
		Expect(bringUp(ctx, compute, host())).To(Succeed())
		becomeKolla(ctx, host())
		Eventually(hostsOfServices).WithArguments(ctx, "nova-compute").WithTimeout(4 * time.Minute).Should(HaveKeyWithValue(host().Name, "up"))
		Eventually(func() string {
			novaManage(ctx, "cell_v2", "discover_hosts")
			return novaManage(ctx, "cell_v2", "list_hosts")
		}).WithTimeout(2 * time.Minute).Should(ContainSubstring(host().Name))
		theirs = createGuest(ctx, "of-kolla", host().Name)
		before := looksLike(ctx, host(), theirs)
		Expect(k8s.Create(ctx, nodeOf(host()))).To(Succeed())
		Eventually(expect.Read(ctx, k8s, nodeOf(host()))).WithTimeout(5 * time.Minute).Should(
			expect.Problem(condition.DeploymentReadyCondition, "Refused", "nova-compute of kolla-ansible is on this host"))
		Expect(looksLike(ctx, host(), theirs)).To(Equal(before))
	}, SpecTimeout(20*time.Minute))

	It("is the same compute afterwards, with the same process of its guest", func(ctx SpecContext) {
		before, others := looksLike(ctx, host(), theirs), look(ctx)
		Expect(change(ctx, nodeOf(host()), func(node *dataplanev1.OpenStackDataPlaneNode) {
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, common.TakeOverAnnotation, "kolla-ansible")
		})).To(Succeed())
		becomesReady(ctx, host().Name)
		Expect(looksLike(ctx, host(), theirs)).To(Equal(before))
		Expect(host().SSH(ctx, "podman ps --format '{{.Names}}' | sort")).To(And(
			ContainSubstring("edpm_nova_compute"), Not(MatchRegexp(`(?m)^nova_`))))
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

// becomeKolla starts nova-compute and libvirt as kolla-ansible does, with the configuration of the other compute.
func becomeKolla(ctx context.Context, host lab.Host) {
	GinkgoHelper()
	conf, err := compute.SSH(ctx, "cat /var/lib/openstack/nova/*.conf | grep -v ^log_file")
	Expect(err).NotTo(HaveOccurred())
	conf = strings.NewReplacer(compute.Name, host.Name, compute.IP, host.IP).Replace(conf)
	const volumes = "--network host --privileged --volume /run:/run --volume /dev:/dev --volume nova_compute:/var/lib/nova --volume libvirtd:/var/lib/libvirt"
	containers := []struct{ name, options, image, command string }{
		{"nova_libvirt", "--pid host --cgroupns host --volume /sys/fs/cgroup:/sys/fs/cgroup --volume nova_libvirt_qemu:/etc/libvirt/qemu", "localhost/edpm-nova-libvirt:latest",
			`sh -c 'printf "unix_sock_group = \"libvirt\"\nunix_sock_rw_perms = \"0770\"\nauth_unix_rw = \"none\"\n" > /etc/libvirt/libvirtd.conf; virtlogd --daemon; exec libvirtd'`},
		{"nova_compute", "--init --user nova --volume /etc/kolla/nova-compute/nova.conf:/etc/nova/nova.conf:ro", "localhost/edpm-nova-compute:latest", "nova-compute"},
	}
	script := "set -e; mkdir -p /etc/kolla/nova-compute; echo " + base64.StdEncoding.EncodeToString([]byte(conf)) + " | base64 -d > /etc/kolla/nova-compute/nova.conf\n"
	for _, c := range containers {
		script += fmt.Sprintf("podman create --name %s %s %s %s %s\n", c.name, volumes, c.options, c.image, c.command)
		script += fmt.Sprintf(`printf '[Unit]\nDescription=podman kolla-%[1]s-container.service\nPartOf=kolla.target\n[Service]\nExecStart=/usr/bin/podman start -a %[1]s\n`+
			`ExecStop=/usr/bin/podman stop %[1]s -t 60\nRestart=always\nRestartSec=11\nSuccessExitStatus=143\n[Install]\nWantedBy=multi-user.target\n' > /etc/systemd/system/kolla-%[1]s-container.service`+"\n", c.name)
		script += fmt.Sprintf("systemctl daemon-reload; systemctl enable --now kolla-%s-container.service\n", c.name)
		if c.name == "nova_libvirt" { // as the image of kolla does; nova-compute has no resources without
			script += "until podman exec nova_libvirt install -d -o nova -g nova /var/lib/nova/instances; do sleep 1; done\n"
		}
	}
	Expect(host.SSH(ctx, script)).Error().NotTo(HaveOccurred())
}
