package tempest

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	neutronv1 "github.com/edpm-operators/edpm-operators/apis/neutron/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

const (
	namespace = "openstack"
	keySecret = "dataplane-ansible-ssh-private-key-secret"
	role      = "edpm-compute"
	// nodePort is that of the console proxy at the address of the cluster's node.
	nodePort = 30680
	// filters are nova's own, and two that tests ask for.
	filters = "ComputeFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter,ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter,DifferentHostFilter,SameHostFilter"
)

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func secret(name string, values map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: named(name), StringData: values}
}

// describe asks for nova and two computes with OVN, with TLS between them and what they share.
func describe(ctx context.Context) {
	_, err := cluster.Kubectl(ctx, "apply", "-f", "test/demo/namespace.yaml")
	Expect(err).NotTo(HaveOccurred())
	Expect(cluster.Apply(ctx, inputs())).To(Succeed())
	key, err := cluster.PrivateKey()
	Expect(err).NotTo(HaveOccurred())
	virtType, err := cluster.VirtType(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, obj := range append(trusted(secure(ctx)),
		nova(), consoles(),
		secret(keySecret, map[string]string{"ssh-privatekey": string(key)}),
		secret("ovn", map[string]string{
			neutronv1.SouthboundKey:           "tcp:" + controller.IP + ":6642",
			neutronv1.MetadataSharedSecretKey: "lab-password",
			neutronv1.NovaMetadataHostKey:     controller.IP,
		}),
		&dataplanev1.OpenStackDataPlaneService{ObjectMeta: named("configure-ovs"), Spec: dataplanev1.OpenStackDataPlaneServiceSpec{
			Label: "Open vSwitch", Playbook: "edpm.operators.configure_ovs",
		}},
		roleOf(virtType), node(computes[0]), node(computes[1]),
	) {
		Expect(k8s.Create(ctx, obj)).To(Succeed(), "creating %T %s", obj, obj.GetName())
	}
}

// nova has one cell with computes, and its console proxy.
func nova() *novav1.Nova {
	one := novav1.NovaEndpointTemplate{NovaServiceTemplate: novav1.NovaServiceTemplate{Replicas: ptr.To[int32](1)}}
	cell0 := novav1.NovaCellTemplate{CellDatabaseInstance: controller.IP, CellDatabaseUser: "nova", HasAPIAccess: true}
	cell1 := cell0
	cell1.NoVNCProxyServiceTemplate = one
	cell1.NoVNCProxyBaseURL = fmt.Sprintf("http://10.244.0.1:%d/vnc_lite.html", nodePort)
	return &novav1.Nova{ObjectMeta: named("nova"), Spec: novav1.NovaSpec{
		Secret: "osp-secret", KeystoneAuthURL: keystoneURL(),
		SharedServices:      novav1.SharedServices{CABundleSecretName: caBundle, DatabaseTLS: true},
		APIDatabaseInstance: controller.IP, APIDatabaseUser: "nova", APIServiceTemplate: one,
		SchedulerServiceTemplate: novav1.NovaServiceTemplate{CustomServiceConfig: "[filter_scheduler]\nenabled_filters = " + filters + "\n"},
		CellTemplates:            map[string]novav1.NovaCellTemplate{"cell0": cell0, "cell1": cell1},
	}}
}

// consoles make the console proxy reachable at the address that users are given.
func consoles() *corev1.Service {
	return &corev1.Service{ObjectMeta: named("consoles"), Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"service": "nova-novncproxy"},
		Ports: []corev1.ServicePort{{Port: 6080, NodePort: nodePort}},
	}}
}

func roleOf(virtType string) *dataplanev1.OpenStackDataPlaneRole {
	// The kernel of the machine may have no datapath.
	vars := fmt.Sprintf(`{"edpm_ovs_datapath_type": "netdev", "edpm_nova_virt_type": %q}`, virtType)
	annotations := map[string]string{novav1.CellAnnotation: "nova-cell1", neutronv1.OVNAnnotation: "ovn"}
	return &dataplanev1.OpenStackDataPlaneRole{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role, Annotations: annotations},
		Spec: dataplanev1.OpenStackDataPlaneRoleSpec{
			Services: append(append([]string(nil), dataplanev1.DefaultServices...), "trust-certificates", "configure-ovs"),
			NodeTemplate: dataplanev1.NodeSection{
				AnsibleSSHPrivateKeySecret: keySecret, AnsibleVars: &apiextensionsv1.JSON{Raw: []byte(vars)},
			},
		},
	}
}

// node is a host as a node of the role, with the address for tunnels that it has in the lab.
func node(h lab.Host) *dataplanev1.OpenStackDataPlaneNode {
	return &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: named(h.Name), Spec: dataplanev1.OpenStackDataPlaneNodeSpec{
		Role: role, HostName: h.Name, AnsibleHost: h.IP,
		Node: dataplanev1.NodeSection{Networks: []dataplanev1.NetworkSection{{Network: "Tenant", FixedIP: tenantAddress(h)}}},
	}}
}

// tenantAddress is the address for tunnels that a host has in the lab.
func tenantAddress(h lab.Host) string {
	return "172.19.0." + h.IP[strings.LastIndex(h.IP, ".")+1:]
}
