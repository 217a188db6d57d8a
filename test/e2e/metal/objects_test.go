package metal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	metalrules "github.com/edpm-operators/edpm-operators/internal/metal"
	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

const (
	namespace = "openstack"
	keySecret = "dataplane-ansible-ssh-private-key-secret"
	// user exists in no image: cloud-init makes it.
	user = "metal-admin"
	// fault is the annotation that makes test/lab/metal fail.
	fault = "lab.edpm-operators.io/fault"
)

// machines are hosts of the lab as soon as they boot, with the names of their
// BareMetalHosts and the addresses of what becomes of them.
var machines []lab.Host

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func nodeName(i int) string { return fmt.Sprintf("metal-compute-%d", i) }

// nodeAddress is an address that no machine has until cloud-init gives it one.
func nodeAddress(i int) string { return fmt.Sprintf("192.168.122.%d", 130+i) }

func node(i int) *dataplanev1.OpenStackDataPlaneNode {
	return &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: named(nodeName(i)), Spec: dataplanev1.OpenStackDataPlaneNodeSpec{
		Role: "edpm-metal", AnsibleHost: nodeAddress(i),
	}}
}

func compute(i int) *novav1.NovaExternalCompute {
	return &novav1.NovaExternalCompute{ObjectMeta: named(nodeName(i))}
}

func bareMetalHost(i int) *metal3v1.BareMetalHost {
	return &metal3v1.BareMetalHost{ObjectMeta: named(fmt.Sprintf("machine-%d", i)), Spec: metal3v1.BareMetalHostSpec{
		Online: true, BootMACAddress: fmt.Sprintf("52:54:00:ed:b0:%02x", i),
	}}
}

func secret(name, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: named(name), StringData: map[string]string{key: value}}
}

// everything is what a person writes: three machines, a cell, a role and two nodes.
// The second machine cannot be provisioned.
func everything() []client.Object {
	GinkgoHelper()
	key, err := cluster.PrivateKey()
	Expect(err).NotTo(HaveOccurred())
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		secret(keySecret, "ssh-privatekey", string(key)),
		secret("osp-secret", "NovaPassword", "password"),
		secret("rabbitmq-transport-url-nova-cell1-transport", "transport_url", "rabbit://nova:password@127.0.0.1:5672/"),
		&novav1.Nova{ObjectMeta: named("nova"), Spec: novav1.NovaSpec{
			Secret: "osp-secret", KeystoneAuthURL: "http://127.0.0.1:5000", CellTemplates: map[string]novav1.NovaCellTemplate{"cell1": {HasAPIAccess: true}},
		}},
	}
	for i := range 3 {
		host := bareMetalHost(i)
		if i == 1 {
			host.Annotations = map[string]string{fault: "provisioning error: the disk is broken"}
		}
		objects = append(objects, host)
		machines = append(machines, cluster.Host(host.Name, nodeAddress(i)))
	}
	role := &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: named("edpm-metal"), Spec: dataplanev1.OpenStackDataPlaneRoleSpec{
		PreProvisioned: ptr.To(false),
		NodeTemplate:   dataplanev1.NodeSection{AnsibleUser: user, AnsibleSSHPrivateKeySecret: keySecret},
		BaremetalSetTemplate: &dataplanev1.BaremetalSetTemplate{
			Image: &metal3v1.Image{URL: "http://images.example/edpm.qcow2", Checksum: "abc"}, CtlplaneInterface: "eth0",
			HardwareReqs: &dataplanev1.HardwareReqs{MemReqs: dataplanev1.MemReqs{GbReq: dataplanev1.MemGbReq{Gb: 16}}}, DomainName: "example.org",
		},
	}}
	role.Annotations = map[string]string{novav1.CellAnnotation: "nova-cell1"}
	return append(objects, role, node(0), node(1))
}

// login logs in to a node as Ansible does, and trusts nothing but the host key that
// was generated for its machine.
func login(ctx context.Context, i int, script string) (string, error) {
	boot := &corev1.Secret{ObjectMeta: named(metalrules.SecretName(nodeName(i)))}
	if err := k8s.Get(ctx, client.ObjectKeyFromObject(boot), boot); err != nil {
		return "", err
	}
	known, key := filepath.Join(tmp, "known_hosts"), filepath.Join(tmp, "key")
	if err := os.WriteFile(known, fmt.Appendf(nil, "%s %s\n", nodeAddress(i), boot.Data[metalrules.PublicHostKeyKey]), 0o600); err != nil {
		return "", err
	}
	private, err := cluster.PrivateKey()
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(key, private, 0o600); err != nil {
		return "", err
	}
	return cluster.Run(ctx, "ssh", "-i", key, "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=yes", "-o", "UserKnownHostsFile="+known,
		"-o", "GlobalKnownHostsFile=/dev/null", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", user+"@"+nodeAddress(i), script)
}
