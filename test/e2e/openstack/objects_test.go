package openstack

import (
	"context"
	"fmt"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

const (
	namespace = "openstack"
	keySecret = "dataplane-ansible-ssh-private-key-secret"
	// apiURL is where the catalog of the fixture has nova's API.
	apiURL = "http://10.244.0.1:30774"
)

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func secret(name string, values map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: named(name), StringData: values}
}

// describeNova asks for nova's services, with what the demo too gives them of the fixture.
func describeNova(ctx context.Context) {
	for _, file := range []string{"namespace.yaml", "openstack/inputs.yaml"} {
		_, err := cluster.Kubectl(ctx, "apply", "-f", "test/demo/"+file)
		Expect(err).NotTo(HaveOccurred())
	}
	for _, obj := range []client.Object{
		certificate(),
		nova(),
	} {
		Expect(k8s.Create(ctx, obj)).To(Succeed(), "creating %T %s", obj, obj.GetName())
	}
}

// nova has two cells, of which the second reaches no API database.
func nova() *novav1.Nova {
	one := novav1.NovaEndpointTemplate{NovaServiceTemplate: novav1.NovaServiceTemplate{Replicas: ptr.To[int32](1)}}
	api := *one.DeepCopy()
	api.Replicas = ptr.To[int32](2)
	cell := novav1.NovaCellTemplate{CellDatabaseInstance: controller.IP, CellDatabaseUser: "nova"}
	cell0, cell1 := cell, cell
	cell0.HasAPIAccess, cell1.HasAPIAccess = true, true
	one.TLS = &novav1.NovaEndpointTLS{SecretName: "certificate"}
	cell1.MetadataServiceTemplate, cell1.NoVNCProxyServiceTemplate = one, one
	return &novav1.Nova{ObjectMeta: named("nova"), Spec: novav1.NovaSpec{
		Secret: "osp-secret", KeystoneAuthURL: "http://" + controller.IP + ":5000",
		APIDatabaseInstance: controller.IP, APIDatabaseUser: "nova", APIServiceTemplate: api,
		CellTemplates: map[string]novav1.NovaCellTemplate{"cell0": cell0, "cell1": cell1, "cell2": cell},
	}}
}

// describeCompute makes the host a compute of cell1.
func describeCompute(ctx context.Context) {
	key, err := cluster.PrivateKey()
	Expect(err).NotTo(HaveOccurred())
	virtType, err := cluster.VirtType(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, obj := range []client.Object{
		secret(keySecret, map[string]string{"ssh-privatekey": string(key)}),
		&dataplanev1.OpenStackDataPlaneRole{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "edpm-compute", Annotations: map[string]string{novav1.CellAnnotation: "nova-cell1"}},
			Spec: dataplanev1.OpenStackDataPlaneRoleSpec{NodeTemplate: dataplanev1.NodeSection{
				AnsibleSSHPrivateKeySecret: keySecret,
				AnsibleVars:                &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `{"edpm_nova_virt_type": %q}`, virtType)},
			}},
		},
		nodeOf(compute),
	} {
		Expect(k8s.Create(ctx, obj)).To(Succeed(), "creating %T %s", obj, obj.GetName())
	}
}

// nodeOf is a host as a node of the role.
func nodeOf(host lab.Host) *dataplanev1.OpenStackDataPlaneNode {
	return &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: named(host.Name), Spec: dataplanev1.OpenStackDataPlaneNodeSpec{
		Role: "edpm-compute", HostName: host.Name, AnsibleHost: host.IP,
	}}
}
