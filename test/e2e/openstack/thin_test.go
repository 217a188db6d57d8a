package openstack

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/expect"
)

const (
	// cinderAPI is where the catalogue has it: a NodePort.
	cinderAPI    = "http://10.244.0.1:30776/v3/%(project_id)s"
	cinderImage  = "localhost/edpm-cinder-volume:latest"
	cinderPort   = 8776
	cinderConfig = volumesConfig + `[keystone_authtoken]
auth_type = password
auth_url = http://192.168.122.10:5000
username = cinder
password = lab-password
project_name = service
user_domain_name = Default
project_domain_name = Default
[oslo_concurrency]
lock_path = /tmp
`
)

// thinVolumeStories have a volume of the class cinder-volume: the kernel of the host has a device mapper. The API and
// the scheduler of cinder are in a pod.
func thinVolumeStories() {
	volume := "" // its id
	status := func(ctx context.Context) (string, error) {
		return cluster.OpenStack(ctx, "volume", "show", volume, "--format", "value", "--column", "status")
	}

	It("attaches a thin volume of cinder to a guest", func(ctx SpecContext) {
		resumeGuests(ctx)
		runCinder(ctx)
		runCinderVolume(ctx)
		volume = openstack(ctx, "volume", "create", "--size", "1", "--format", "value", "--column", "id", "story")
		Eventually(status).WithArguments(ctx).WithTimeout(4 * time.Minute).Should(Equal("available"))
		Expect(compute.SSH(ctx, "podman exec edpm_cinder-volume lvs --noheadings --options segtype cinder-volumes")).To(ContainSubstring("thin-pool"))
		openstack(ctx, "server", "add", "volume", guest, volume)
		Eventually(status).WithArguments(ctx).WithTimeout(4 * time.Minute).Should(Equal("in-use"))
		Expect(onVolume(ctx, "write -P 90 0 64k", "flush")).To(ContainSubstring("wrote 65536/65536"))
	}, SpecTimeout(35*time.Minute))

	It("has the guest with its volume again after a loss of power", func(ctx SpecContext) {
		Expect(compute.Power(ctx, "reset")).To(Succeed())
		guestIsBack(ctx)
		Expect(onVolume(ctx, "read -P 90 0 64k")).To(And(ContainSubstring("read 65536/65536"), Not(ContainSubstring("failed"))))
	}, SpecTimeout(15*time.Minute))

	It("leaves nothing of the volume on the host when it is detached and deleted", func(ctx SpecContext) {
		openstack(ctx, "server", "remove", "volume", guest, volume)
		Eventually(status).WithArguments(ctx).WithTimeout(4 * time.Minute).Should(Equal("available"))
		Expect(compute.SSH(ctx, "ls /sys/class/iscsi_session")).To(BeEmpty())
		openstack(ctx, "volume", "delete", volume)
		Eventually(compute.SSH).WithArguments(ctx, "podman exec edpm_cinder-volume lvs --noheadings --options lv_name,segtype cinder-volumes | grep -v -w thin-pool || true").
			WithTimeout(4 * time.Minute).Should(BeEmpty())
		annotateVolumes(ctx, nodeOf(compute), "false")
		service := &edpmv1.EDPMService{ObjectMeta: named("cinder-volume-" + compute.Name)}
		Eventually(missing).WithArguments(ctx, service).WithTimeout(8 * time.Minute).Should(BeTrue())
	}, SpecTimeout(20*time.Minute))
}

// runCinder has the API and the scheduler of cinder in a pod, and in the catalogue.
func runCinder(ctx context.Context) {
	GinkgoHelper()
	Expect(compute.LoadImage(ctx, "cinder-volume")).To(Succeed())
	archive, err := cluster.Run(ctx, "test/lab/images/build.sh", "cinder-volume")
	Expect(err).NotTo(HaveOccurred())
	Expect(cluster.Load(ctx, archive)).To(Succeed())
	prepareCinder(ctx, compute)
	openstack(ctx, "user", "create", "--domain", "default", "--password", "lab-password", "cinder")
	openstack(ctx, "role", "add", "--project", "service", "--user", "cinder", "admin")
	openstack(ctx, "service", "create", "--name", "cinderv3", "volumev3")
	for _, kind := range []string{"public", "internal"} {
		openstack(ctx, "endpoint", "create", "--region", "regionOne", "volumev3", kind, cinderAPI)
	}
	labels := map[string]string{"app": "cinder"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cinder", Labels: labels}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{cinderContainer("api"), cinderContainer("scheduler")},
		Volumes:    []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "cinder"}}}},
	}}
	create(ctx, secret("cinder", map[string]string{"cinder.conf": cinderConfig}), pod,
		&corev1.Service{ObjectMeta: named("cinder"), Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Selector: labels,
			Ports: []corev1.ServicePort{{Port: cinderPort, TargetPort: intstr.FromInt32(cinderPort), NodePort: 30776}},
		}})
	Eventually(cluster.OpenStack).WithArguments(ctx, "volume", "list").WithTimeout(3 * time.Minute).Should(BeEmpty())
}

// cinderContainer runs a service of cinder, of which the image has no program.
func cinderContainer(service string) corev1.Container {
	return corev1.Container{
		Name: service, Image: cinderImage, ImagePullPolicy: corev1.PullNever,
		Command: []string{
			"python3", "-c", "import sys; from cinder.cmd." + service + " import main; sys.argv = ['cinder-" + service + "', '--config-file', '/run/cinder/cinder.conf']; main()",
		},
		Env:          []corev1.EnvVar{{Name: "USER", Value: "cinder"}},
		VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/run/cinder"}},
	}
}

// runCinderVolume has the host of the guest attach volumes by iSCSI, and provide thin ones.
func runCinderVolume(ctx context.Context) {
	GinkgoHelper()
	const step = "configure-storage"
	create(ctx,
		&dataplanev1.OpenStackDataPlaneService{ObjectMeta: named(step), Spec: dataplanev1.OpenStackDataPlaneServiceSpec{Playbook: "edpm.operators.configure_storage"}},
		secret("cinder-volume", map[string]string{"00-cinder.conf": volumesConfig}))
	Expect(change(ctx, &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: named("edpm-compute")}, func(role *dataplanev1.OpenStackDataPlaneRole) {
		if len(role.Spec.Services) == 0 {
			role.Spec.Services = slices.Clone(dataplanev1.DefaultServices)
		}
		role.Spec.Services = append(role.Spec.Services, step)
		addVariables(role, map[string]any{"edpm_storage_multipath": false, "edpm_storage_nvme": false, "edpm_storage_modules": []string{"iscsi_tcp"}})
	})).To(Succeed())
	class, err := cluster.SampleClass("cinder_volume")
	Expect(err).NotTo(HaveOccurred())
	Expect(cluster.Apply(ctx, strings.Replace(class, "lvm_type = default", "lvm_type = thin", 1), "--namespace", namespace)).To(Succeed())
	annotateVolumes(ctx, nodeOf(compute), "true")
	service := &edpmv1.EDPMService{ObjectMeta: named("cinder-volume-" + compute.Name)}
	Eventually(expect.Read(ctx, k8s, service)).WithTimeout(15 * time.Minute).Should(expect.Ready())
	Eventually(expect.Read(ctx, k8s, nodeOf(compute))).WithTimeout(5 * time.Minute).Should(expect.Ready())
}

// addVariables adds some to the ansibleVars of a role.
func addVariables(role *dataplanev1.OpenStackDataPlaneRole, more map[string]any) {
	GinkgoHelper()
	all := map[string]any{}
	if vars := role.Spec.NodeTemplate.AnsibleVars; vars != nil {
		Expect(json.Unmarshal(vars.Raw, &all)).To(Succeed())
	}
	for name, value := range more {
		all[name] = value
	}
	raw, err := json.Marshal(all)
	Expect(err).NotTo(HaveOccurred())
	role.Spec.NodeTemplate.AnsibleVars = &apiextensionsv1.JSON{Raw: raw}
}

// onVolume has QEMU do commands of qemu-io on the second disk of the guest, as the guest would.
func onVolume(ctx context.Context, commands ...string) (string, error) {
	var out []string
	for _, command := range commands {
		text, err := compute.SSH(ctx, "virsh='podman exec edpm_libvirt_libvirtd virsh --quiet'; $virsh qemu-monitor-command $($virsh list --name | head -n 1) --hmp "+
			quoted(`qemu-io -d /machine/peripheral/virtio-disk1/virtio-backend "`+command+`"`))
		if err != nil {
			return text, err
		}
		out = append(out, text)
	}
	return strings.Join(out, "\n"), nil
}
