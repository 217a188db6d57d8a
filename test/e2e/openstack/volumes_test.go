package openstack

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

const (
	volumesNS     = "volumes"
	volumesConfig = `[DEFAULT]
transport_url = rabbit://cinder:lab-password@192.168.122.10:5672/cinder
[database]
connection = mysql+pymysql://cinder:lab-password@192.168.122.10/cinder?charset=utf8
`
	// nothing is a play for a host of which only cinder-volume is of interest.
	nothing = `- {name: Do nothing, hosts: all, gather_facts: false, tasks: [{name: Connect, ansible.builtin.ping: {}}]}`
	// volumesUp is what cinder says of a service that reports to it.
	volumesUp = `(?m)^cinder-volume +edpm-storage-0@lvm +nova +enabled +:-\) `
)

// The class of config/samples/classes for cinder-volume, with the database and the message
// bus of the fixture. It needs no nova, and can be run alone.
//
// A logical volume is an entry in the device mapper of the kernel, which machines of CI may
// not have. The stories therefore create none: the volume group, the loop device, the driver
// of cinder and what cinder knows of it are real, a volume is not shown. What clean-up does
// with volumes is shown by ansible/tests/test_classes.py.
var _ = Describe("The class cinder-volume", Ordered, func() {
	var host lab.Host
	var others string // loop devices of hosts that are gone, and were killed
	service := &edpmv1.EDPMService{ObjectMeta: metav1.ObjectMeta{Namespace: volumesNS, Name: "cinder-volume-edpm-storage-0"}}
	node := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: metav1.ObjectMeta{Namespace: volumesNS, Name: "edpm-storage-0"}}

	BeforeAll(func(ctx SpecContext) {
		host = cluster.Host("edpm-storage-0", "192.168.122.102")
		Expect(bringUp(ctx, compute, host)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			if lab.Keep() {
				return
			}
			// Loop devices are those of the machine.
			_, err := host.Console(ctx, "systemctl stop edpm_cinder-volume edpm_cinder-volume-tgtd edpm-cinder-volume-storage || true")
			Expect(err).NotTo(HaveOccurred())
			remove(ctx, host)
		}, NodeTimeout(2*time.Minute))
		Expect(host.LoadImage(ctx, "cinder-volume")).To(Succeed())
		var err error
		others, err = volumeDevices(ctx, host)
		Expect(err).NotTo(HaveOccurred())
		describeVolumes(ctx, host)
		prepareCinder(ctx, host)
		Eventually(expect.Read(ctx, k8s, node)).WithTimeout(3 * time.Minute).Should(expect.Ready())
	}, NodeTimeout(25*time.Minute))

	AfterEach(func(ctx SpecContext) {
		cluster.ReportFailure(ctx, func(ctx context.Context, r *lab.Report) {
			r.Kubectl(ctx, "get", "edpm", "-n", volumesNS)
			r.Console(ctx, host, "losetup --list; systemctl --no-pager --failed; journalctl --no-pager -n 100 -u 'edpm*cinder*'")
		})
	}, NodeTimeout(time.Minute))

	It("registers the volume service of an annotated node with cinder, which is up", func(ctx SpecContext) {
		annotateVolumes(ctx, node, "true")
		Eventually(expect.Read(ctx, k8s, service)).WithTimeout(5 * time.Minute).Should(expect.Ready())
		Eventually(volumeServices).WithArguments(ctx, host).WithTimeout(2 * time.Minute).Should(MatchRegexp(volumesUp))
		Expect(host.Console(ctx, "podman exec edpm_cinder-volume vgs --noheadings --options vg_name,lv_count")).To(MatchRegexp(`^ *cinder-volumes +0 *$`))
	}, SpecTimeout(9*time.Minute))

	It("restarts the service with what customServiceConfig changes", func(ctx SpecContext) {
		Expect(volumeLog(ctx, host)).NotTo(ContainSubstring(" DEBUG "))
		Expect(change(ctx, service, func(s *edpmv1.EDPMService) { s.Spec.CustomServiceConfig = "[DEFAULT]\ndebug = True\n" })).To(Succeed())
		Eventually(volumeLog).WithArguments(ctx, host).WithTimeout(3 * time.Minute).Should(ContainSubstring(" DEBUG cinder.volume.manager "))
		Eventually(expect.Read(ctx, k8s, service)).WithTimeout(2 * time.Minute).Should(expect.Ready())
		reportsAgain(ctx, host)
	}, SpecTimeout(9*time.Minute))

	It("attaches its volume group when the host starts it", func(ctx SpecContext) {
		_, err := host.Console(ctx, "systemctl stop edpm_cinder-volume edpm_cinder-volume-tgtd edpm-cinder-volume-storage")
		Expect(err).NotTo(HaveOccurred())
		Expect(volumeDevices(ctx, host)).To(Equal(others))
		_, err = host.Console(ctx, "systemctl start edpm_cinder-volume")
		Expect(err).NotTo(HaveOccurred())
		Expect(volumeDevices(ctx, host)).NotTo(Equal(others))
		reportsAgain(ctx, host)
	}, SpecTimeout(5*time.Minute))

	It("leaves nothing on the host of a node that opts out", func(ctx SpecContext) {
		annotateVolumes(ctx, node, "false")
		Eventually(missing).WithArguments(ctx, service).WithTimeout(4 * time.Minute).Should(BeTrue())
		Expect(volumeDevices(ctx, host)).To(Equal(others))
		Expect(host.Console(ctx, "ls -d /etc/systemd/system/*cinder* /var/lib/openstack/cinder-volume /var/lib/edpm/services/cinder-volume* "+
			"/run/edpm-cinder-volume /dev/edpm-cinder-volumes /dev/cinder-volumes 2>/dev/null; podman ps --all --format '{{.Names}}' | grep cinder; true")).To(BeEmpty())
		Expect(k8s.Delete(ctx, node)).To(Succeed())
		Eventually(missing).WithArguments(ctx, node).WithTimeout(2 * time.Minute).Should(BeTrue())
	}, SpecTimeout(7*time.Minute))
})

// describeVolumes has a host as a node whose phase 0 does nothing, and the class with its
// Secret.
func describeVolumes(ctx context.Context, host lab.Host) {
	GinkgoHelper()
	key, err := cluster.PrivateKey()
	Expect(err).NotTo(HaveOccurred())
	in := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: volumesNS, Name: name} }
	node := nodeOf(host)
	node.Namespace, node.Spec.Role, node.Spec.Node.AnsibleUser = volumesNS, "volumes", "cloud-admin"
	create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: volumesNS, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}},
		&corev1.Secret{ObjectMeta: in(keySecret), StringData: map[string]string{"ssh-privatekey": string(key)}},
		&corev1.Secret{ObjectMeta: in("cinder-volume"), StringData: map[string]string{"00-cinder.conf": volumesConfig}},
		&dataplanev1.OpenStackDataPlaneService{ObjectMeta: in("nothing"), Spec: dataplanev1.OpenStackDataPlaneServiceSpec{Play: nothing}},
		&dataplanev1.OpenStackDataPlaneRole{ObjectMeta: in("volumes"), Spec: dataplanev1.OpenStackDataPlaneRoleSpec{
			NodeTemplate: dataplanev1.NodeSection{AnsibleSSHPrivateKeySecret: keySecret}, Services: []string{"nothing"},
		}},
		node)
	class, err := cluster.SampleClass("cinder_volume")
	Expect(err).NotTo(HaveOccurred())
	Expect(cluster.Apply(ctx, class, "--namespace", volumesNS)).To(Succeed())
}

// prepareCinder makes what cinder-volume is given by others: its place on the message bus,
// and its database with tables.
func prepareCinder(ctx context.Context, host lab.Host) {
	GinkgoHelper()
	for _, script := range []string{
		`mariadb --execute "CREATE DATABASE cinder CHARACTER SET utf8; GRANT ALL ON cinder.* TO 'cinder'@'%' IDENTIFIED BY 'lab-password'"`,
		`rabbitmqctl await_startup && rabbitmqctl add_vhost cinder && rabbitmqctl add_user cinder lab-password && rabbitmqctl set_permissions --vhost cinder cinder '.*' '.*' '.*'`,
	} {
		_, err := controller.Console(ctx, script)
		Expect(err).NotTo(HaveOccurred())
	}
	_, err := host.Console(ctx, "cat >/run/cinder.conf <<'END'\n"+volumesConfig+"END\n"+
		"podman run --rm --network=host --volume=/run/cinder.conf:/run/cinder.conf:ro localhost/edpm-cinder-volume:latest cinder-manage --config-file /run/cinder.conf db sync")
	Expect(err).NotTo(HaveOccurred())
}

// annotateVolumes says whether the node has the service.
func annotateVolumes(ctx context.Context, node *dataplanev1.OpenStackDataPlaneNode, value string) {
	GinkgoHelper()
	Expect(change(ctx, node, func(n *dataplanev1.OpenStackDataPlaneNode) {
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, "cinder.example.org/volume", value)
	})).To(Succeed())
}

// volumeServices is the list of cinder's services, as cinder-manage prints it.
func volumeServices(ctx context.Context, host lab.Host) (string, error) {
	return host.Console(ctx, "podman exec edpm_cinder-volume cinder-manage --config-file /dev/null --config-dir /etc/cinder/cinder.conf.d service list 2>/dev/null")
}

// reportsAgain waits until the service that has just been started has reported to cinder.
func reportsAgain(ctx context.Context, host lab.Host) {
	GinkgoHelper()
	started, err := host.Console(ctx, "date --utc '+%F %T' --date \"$(systemctl show --property=ActiveEnterTimestamp --value edpm_cinder-volume)\"")
	Expect(err).NotTo(HaveOccurred())
	updated := func() (string, error) {
		list, err := volumeServices(ctx, host)
		_, rest, _ := strings.Cut(list, ":-)")
		return strings.TrimSpace(rest), err
	}
	Eventually(updated).WithTimeout(2*time.Minute).Should(Satisfy(func(at string) bool { return at > started }), "should have reported since %s", started)
	Expect(volumeServices(ctx, host)).To(MatchRegexp(volumesUp))
}

// volumeDevices are the loop devices of this machine for volume groups, whoever attached them.
func volumeDevices(ctx context.Context, host lab.Host) (string, error) {
	return host.Console(ctx, "losetup --noheadings --output NAME,BACK-FILE | grep cinder-volume/volumes.img || true")
}

// volumeLog is what cinder-volume has printed since it was started last.
func volumeLog(ctx context.Context, host lab.Host) (string, error) {
	return host.Console(ctx, "journalctl --quiet --output=cat --no-pager --identifier=edpm_cinder-volume --since \"$(systemctl show --property=ActiveEnterTimestamp --value edpm_cinder-volume)\"")
}

// create creates objects in their order.
func create(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, obj := range objects {
		Expect(k8s.Create(ctx, obj)).To(Succeed(), "creating %T %s", obj, obj.GetName())
	}
}
