package openstack

import (
	"context"
	"os"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
)

const (
	namespace = "openstack"
	keySecret = "dataplane-ansible-ssh-private-key-secret"
	// password of all users of the fixture.
	password = "lab-password"
)

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func secret(name, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: named(name), StringData: map[string]string{key: value}}
}

// describeCompute makes the host a compute of cell1 of the fixture.
func describeCompute(ctx context.Context) {
	key, err := cluster.PrivateKey()
	Expect(err).NotTo(HaveOccurred())
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.ConfigMap{ObjectMeta: named("openstack-aee-default-env"), Data: map[string]string{"ANSIBLE_REMOTE_USER": "cloud-admin"}},
		secret(keySecret, "ssh-privatekey", string(key)),
		secret("osp-secret", "NovaPassword", password),
		secret("rabbitmq-transport-url-nova-cell1-transport", "transport_url", "rabbit://nova:"+password+"@"+controller.IP+":5672/cell1"),
		&novav1.Nova{ObjectMeta: named("nova"), Spec: novav1.NovaSpec{
			Secret: "osp-secret", KeystoneAuthURL: "http://" + controller.IP + ":5000",
			CellTemplates: map[string]novav1.NovaCellTemplate{"cell1": {HasAPIAccess: true}},
		}},
		&dataplanev1.OpenStackDataPlaneRole{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "edpm-compute", Annotations: map[string]string{novav1.CellAnnotation: "nova-cell1"}},
			Spec:       dataplanev1.OpenStackDataPlaneRoleSpec{NodeTemplate: dataplanev1.NodeSection{AnsibleSSHPrivateKeySecret: keySecret}},
		},
		&dataplanev1.OpenStackDataPlaneNode{ObjectMeta: named(compute.Name), Spec: dataplanev1.OpenStackDataPlaneNodeSpec{
			Role: "edpm-compute", HostName: compute.Name, AnsibleHost: compute.IP,
		}},
	} {
		Expect(k8s.Create(ctx, obj)).To(Succeed(), "creating %T %s", obj, obj.GetName())
	}
	if !hasKVM() {
		Eventually(emulate).WithArguments(ctx).WithTimeout(time.Minute).Should(Succeed())
	}
}

// hasKVM reports whether this machine runs guests of its own. The device alone is
// no proof of it: a guest without nested virtualization may have it too.
func hasKVM() bool {
	_, err := os.Stat("/dev/kvm")
	cpu, _ := os.ReadFile("/proc/cpuinfo")
	flags := string(cpu)
	return err == nil && (strings.Contains(flags, " vmx ") || strings.Contains(flags, " svm "))
}

// emulate makes the compute run its guests without KVM.
func emulate(ctx context.Context) error {
	obj := &novav1.NovaExternalCompute{ObjectMeta: named(compute.Name)}
	if err := k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return err
	}
	before := obj.DeepCopy()
	obj.Spec.CustomServiceConfig = "[libvirt]\nvirt_type = qemu\n"
	return k8s.Patch(ctx, obj, client.MergeFrom(before))
}
