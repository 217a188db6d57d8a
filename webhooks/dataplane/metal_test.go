package dataplane

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
)

// upstreamTemplates are the values of baremetalSetTemplate in samples of
// dataplane-operator, July to September 2023.
var upstreamTemplates = map[string]struct {
	text string
	// says are parts of the refusal; none means that it is accepted.
	says []string
}{
	"with an image of RHEL": {`
rhelImageUrl: https://images.example/overcloud-hardened-uefi-full.qcow2
deploymentSSHSecret: dataplane-ansible-ssh-private-key-secret
bmhLabelSelector: {app: openstack}
ctlplaneInterface: enp2s0
ctlplaneGateway: 192.168.111.1
ctlplaneNetmask: 255.255.255.0
domainName: osptest.openstack.org
bootstrapDns: [192.168.111.1]
dnsSearchDomains: [osptest.openstack.org]
`, []string{"spec.baremetalSetTemplate.rhelImageUrl", "set image.url and image.checksum instead"}},
	"with IPAM": {`
deploymentSSHSecret: dataplane-ansible-ssh-private-key-secret
bmhLabelSelector: {app: openstack}
ctlplaneInterface: enp1s0
dnsSearchDomains: [osptest.openstack.org]
`, nil},
	"with a user": {`
deploymentSSHSecret: dataplane-ansible-ssh-private-key-secret
bmhLabelSelector: {app: openstack}
ctlplaneInterface: enp1s0
cloudUserName: cloud-admin
bmhNamespace: openstack
`, nil},
	"in the namespace of OpenShift's own machines": {`
bmhNamespace: openshift-machine-api
deploymentSSHSecret: other
cloudUserName: core
`, []string{"bmhNamespace", "register the machines in openstack", "set that, and remove this. authorized_keys is not needed", "must be nodeTemplate.ansibleUser"}},
	"with what a provision server needs": {`
osImage: edpm-hardened-uefi.qcow2
provisionServerName: openstackprovisionserver
provisioningInterface: enp1s0
passwordSecret: {name: baremetalset-password-secret, namespace: openstack}
`, []string{"osImage", "provisionServerName", "there is no OpenStackProvisionServer", "provisioningInterface", "baremetal-operator knows", "chpasswd in userData"}},
}

func TestTemplatesOfUpstreamAreAcceptedOrRefusedWithARemedy(t *testing.T) {
	for name, c := range upstreamTemplates {
		t.Run(name, func(t *testing.T) {
			role := &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: "edpm-compute"}}
			role.Spec.NodeTemplate.AnsibleUser, role.Spec.NodeTemplate.AnsibleSSHPrivateKeySecret = "cloud-admin", "dataplane-ansible-ssh-private-key-secret"
			role.Spec.BaremetalSetTemplate = &dataplanev1.BaremetalSetTemplate{}
			if err := yaml.UnmarshalStrict([]byte(c.text), role.Spec.BaremetalSetTemplate); err != nil {
				t.Fatal(err)
			}
			err := roleErrors(role).ToAggregate()
			if (err != nil) != (len(c.says) > 0) {
				t.Fatalf("the error is %v", err)
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error is %v; want %q in it", err, part)
				}
			}
			role.Spec.PreProvisioned = ptr.To(true)
			if errs := roleErrors(role); len(errs) > 0 {
				t.Errorf("with hosts that run already it is refused: %v", errs)
			}
		})
	}
}

func TestTemplatesThatBaremetalOperatorTakesAreTaken(t *testing.T) {
	for _, text := range []string{
		"image: {url: 'oci://registry.example/edpm:1'}",
		"image: {url: 'https://images.example/edpm.raw', checksum: 'https://images.example/SHA256SUMS', format: raw}",
		"rootDeviceHints: {deviceName: /dev/nvme0n1}",
		"rootDeviceHints: {deviceName: '/dev/disk/by-path/pci-0000:00:1f.0-nvme-1', minSizeGigabytes: 447}",
	} {
		role := &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}, Spec: dataplanev1.OpenStackDataPlaneRoleSpec{BaremetalSetTemplate: &dataplanev1.BaremetalSetTemplate{}}}
		if err := yaml.UnmarshalStrict([]byte(text), role.Spec.BaremetalSetTemplate); err != nil {
			t.Fatal(err)
		}
		if errs := roleErrors(role); len(errs) > 0 {
			t.Errorf("%q is refused: %v", text, errs)
		}
	}
}

func TestEveryWrongFieldOfATemplateIsNamed(t *testing.T) {
	for text, says := range map[string]string{
		"image: {url: 'ftp://x', checksum: a}":                                "spec.baremetalSetTemplate.image.url",
		"image: {url: 'http://x'}":                                            "spec.baremetalSetTemplate.image.checksum: Required value",
		"image: {url: 'http://a b/x', checksum: a}":                           "must be a http, https or oci URL",
		"image: {url: 'oci://x/y:1', checksum: a}":                            "spec.baremetalSetTemplate.image.checksum: Invalid value",
		"rootDeviceHints: {deviceName: sda}":                                  "spec.baremetalSetTemplate.rootDeviceHints.deviceName",
		"rootDeviceHints: {deviceName: /dev/disk/by-id/wwn-0x5000c500}":       "for other links use wwn or serialNumber",
		"rootDeviceHints: {deviceName: /dev/}":                                "must be one such as /dev/sda",
		"ctlplaneGateway: x":                                                  "spec.baremetalSetTemplate.ctlplaneGateway",
		"ctlplaneNetmask: 255.0.255.0":                                        "spec.baremetalSetTemplate.ctlplaneNetmask",
		"bootstrapDns: [x]":                                                   "spec.baremetalSetTemplate.bootstrapDns[0]",
		"baremetalHosts: {n1: {ctlPlaneIP: x}}":                               "spec.baremetalSetTemplate.baremetalHosts[n1].ctlPlaneIP",
		"userData: {name: ''}":                                                "spec.baremetalSetTemplate.userData.name",
		"networkData: {name: a, namespace: other}":                            "spec.baremetalSetTemplate.networkData.namespace",
		"baremetalHosts: {n1: {userData: {name: a, namespace: kube-system}}}": "copy the Secret, and remove this",
		"bootNetworks: [{network: a}, {network: b, netmask: 255.0.255.0}]":    "spec.baremetalSetTemplate.bootNetworks[1].netmask",
		"{ctlplaneInterface: eno1, ctlplaneBond: {interfaces: [eno1]}}":       "must be empty with ctlplaneBond",
		"caBundleSecretName: A":                                               "spec.baremetalSetTemplate.caBundleSecretName",
	} {
		role := &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}, Spec: dataplanev1.OpenStackDataPlaneRoleSpec{BaremetalSetTemplate: &dataplanev1.BaremetalSetTemplate{}}}
		if err := yaml.UnmarshalStrict([]byte(text), role.Spec.BaremetalSetTemplate); err != nil {
			t.Fatal(err)
		}
		if err := roleErrors(role).ToAggregate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("of %q it says %v; want %q", text, err, says)
		}
	}
	node := &dataplanev1.OpenStackDataPlaneNode{Spec: dataplanev1.OpenStackDataPlaneNodeSpec{BareMetalHost: "A"}}
	if fields := fieldsOf(nodeErrors(node)); len(fields) != 1 || fields[0] != "spec.bareMetalHost" {
		t.Errorf("of a wrong name of a host it names %v", fields)
	}
}
