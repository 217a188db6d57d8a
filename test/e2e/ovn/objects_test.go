package ovn

import (
	"context"
	"fmt"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	neutronv1 "github.com/edpm-operators/edpm-operators/apis/neutron/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

const (
	namespace = "openstack"
	keySecret = "dataplane-ansible-ssh-private-key-secret"
	ovnConfig = "ovn"
	role      = "edpm-ovn"
)

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func secret(name string, values map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: named(name), StringData: values}
}

// describeHosts asks for both hosts with OVN.
func describeHosts(ctx context.Context) {
	key, err := cluster.PrivateKey()
	Expect(err).NotTo(HaveOccurred())
	for _, obj := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		secret(keySecret, map[string]string{"ssh-privatekey": string(key)}),
		secret(ovnConfig, map[string]string{
			neutronv1.SouthboundKey:           "tcp:" + controller.IP + ":6642",
			neutronv1.MetadataSharedSecretKey: "lab-password",
			neutronv1.NovaMetadataHostKey:     controller.IP,
		}),
		&dataplanev1.OpenStackDataPlaneService{ObjectMeta: named("configure-ovs"), Spec: dataplanev1.OpenStackDataPlaneServiceSpec{
			Label: "Open vSwitch", Playbook: "edpm.operators.configure_ovs",
		}},
		&dataplanev1.OpenStackDataPlaneRole{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role, Annotations: map[string]string{neutronv1.OVNAnnotation: ovnConfig}},
			Spec: dataplanev1.OpenStackDataPlaneRoleSpec{
				Services: append(append([]string(nil), dataplanev1.DefaultServices...), "configure-ovs"),
				NodeTemplate: dataplanev1.NodeSection{
					AnsibleUser: "cloud-admin", AnsibleSSHPrivateKeySecret: keySecret,
					AnsibleVars: &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `{"edpm_ovs_datapath_type": %q}`, datapath())},
				},
			},
		},
		node(hosts[0]), node(hosts[1]),
	} {
		Expect(k8s.Create(ctx, obj)).To(Succeed(), "creating %T %s", obj, obj.GetName())
	}
}

// datapath is that of Open vSwitch: the kernel of a virtual machine has one, that of the machine may have none.
func datapath() string {
	if lab.OnVMs() {
		return "system"
	}
	return "netdev"
}

// node is a host as a node of the role. lab-tenant on the host gives Open vSwitch the
// address for tunnels.
func node(h lab.Host) *dataplanev1.OpenStackDataPlaneNode {
	return &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: named(h.Name), Spec: dataplanev1.OpenStackDataPlaneNodeSpec{
		Role: role, HostName: h.Name, AnsibleHost: h.IP,
		Node: dataplanev1.NodeSection{Networks: []dataplanev1.NetworkSection{{Network: "Tenant", FixedIP: tenantAddress(h)}}},
	}}
}

func agent(h lab.Host) *neutronv1.OVNMetadataAgent {
	return &neutronv1.OVNMetadataAgent{ObjectMeta: named(h.Name)}
}

func ovnController(h lab.Host) *neutronv1.OVNController {
	return &neutronv1.OVNController{ObjectMeta: named(h.Name)}
}

// change patches an object.
func change[T client.Object](ctx context.Context, obj T, edit func(T)) error {
	if err := k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return err
	}
	before := obj.DeepCopyObject().(client.Object)
	edit(obj)
	return k8s.Patch(ctx, obj, client.MergeFrom(before))
}

// missing reports whether an object does not exist.
func missing(ctx context.Context, obj client.Object) bool {
	return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(obj), obj))
}
