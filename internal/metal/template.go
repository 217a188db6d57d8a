package metal

import (
	"cmp"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// Asked reports whether the nodes of a role, which can be nil, are provisioned from
// bare metal.
func Asked(role *dataplanev1.OpenStackDataPlaneRole) bool {
	return role != nil && role.Spec.BaremetalSetTemplate != nil && !ptr.Deref(role.Spec.PreProvisioned, false)
}

const useImage = "not supported, there is no OpenStackProvisionServer: set image.url and image.checksum instead"

// TemplateErrors checks the template of a role of the namespace, whose nodes have
// the section. What upstream's OpenStackBaremetalSet has and no one here follows is
// an error that says what to write instead.
func TemplateErrors(at *field.Path, namespace string, t *dataplanev1.BaremetalSetTemplate, section dataplanev1.NodeSection) field.ErrorList {
	var errs field.ErrorList
	refuse := func(name, value, why string) {
		if value != "" {
			errs = append(errs, field.Invalid(at.Child(name), value, why))
		}
	}
	refuse("osImage", t.OSImage, useImage)
	refuse("rhelImageUrl", t.RHELImageURL, useImage)
	refuse("provisionServerName", t.ProvisionServerName, useImage)
	refuse("provisioningInterface", t.ProvisioningInterface, "not supported: baremetal-operator knows its provisioning network; remove it")
	if t.PasswordSecret != nil {
		refuse("passwordSecret", t.PasswordSecret.Name, "not supported: logging in is by key; for the console, set a password with chpasswd in userData")
	}
	other := func(name, value, same, why string) {
		if value != same {
			refuse(name, value, why)
		}
	}
	other("bmhNamespace", t.BmhNamespace, namespace, "must be the namespace of the role: register the machines in "+namespace+", or create the role in the namespace of the BareMetalHosts")
	other("cloudUserName", t.CloudUserName, section.AnsibleUser, "must be nodeTemplate.ansibleUser, the user that cloud-init creates and Ansible logs in as: set that, and remove this")
	other("deploymentSSHSecret", t.DeploymentSSHSecret, section.AnsibleSSHPrivateKeySecret, "must be nodeTemplate.ansibleSSHPrivateKeySecret: set that, and remove this. authorized_keys is not needed, the public key is computed")
	errs = append(errs, imageErrors(at.Child("image"), t)...)
	errs = append(errs, hintErrors(at.Child("rootDeviceHints"), t.RootDeviceHints)...)
	errs = append(errs, addressErrors(at, t)...)
	return append(errs, referenceErrors(at, namespace, t)...)
}

func imageErrors(at *field.Path, t *dataplanev1.BaremetalSetTemplate) field.ErrorList {
	if t.Image == nil {
		return nil
	}
	var errs field.ErrorList
	image := t.Image
	switch parsed, err := url.ParseRequestURI(image.URL); {
	case err != nil || !slices.Contains([]string{"http", "https", "oci"}, parsed.Scheme):
		errs = append(errs, field.Invalid(at.Child("url"), image.URL, "must be a http, https or oci URL that baremetal-operator can reach"))
	case parsed.Scheme == "oci" && image.Checksum != "":
		errs = append(errs, field.Invalid(at.Child("checksum"), image.Checksum, "must be empty: an image of a registry has one"))
	case parsed.Scheme != "oci" && image.Checksum == "":
		errs = append(errs, field.Required(at.Child("checksum"), "set the checksum of the image, or the URL of a file that has it"))
	}
	return errs
}

// hintErrors are names of disks that baremetal-operator's webhook does not take.
func hintErrors(at *field.Path, hints *metal3v1.RootDeviceHints) field.ErrorList {
	if hints == nil || hints.DeviceName == "" {
		return nil
	}
	name, isDevice := strings.CutPrefix(hints.DeviceName, "/dev/")
	name = strings.TrimPrefix(name, "disk/by-path/")
	if isDevice && name != "" && !strings.Contains(name, "/") {
		return nil
	}
	return field.ErrorList{field.Invalid(at.Child("deviceName"), hints.DeviceName, "must be one such as /dev/sda, or a link below /dev/disk/by-path: for other links use wwn or serialNumber")}
}

func addressErrors(at *field.Path, t *dataplanev1.BaremetalSetTemplate) field.ErrorList {
	errs := validate.IP(at.Child("ctlplaneGateway"), t.CtlplaneGateway)
	for i, address := range t.BootstrapDNS {
		errs = append(errs, validate.IP(at.Child("bootstrapDns").Index(i), address)...)
	}
	for _, name := range slices.Sorted(maps.Keys(t.BaremetalHosts)) {
		host := t.BaremetalHosts[name]
		errs = append(errs, validate.IP(at.Child("baremetalHosts").Key(name).Child("ctlPlaneIP"), withoutPrefix(host.CtlPlaneIP))...)
	}
	errs = append(errs, netmaskErrors(at.Child("ctlplaneNetmask"), t.CtlplaneNetmask)...)
	for i, network := range t.BootNetworks {
		errs = append(errs, netmaskErrors(at.Child("bootNetworks").Index(i).Child("netmask"), network.Netmask)...)
	}
	if t.CtlplaneBond != nil && t.CtlplaneInterface != "" {
		errs = append(errs, field.Invalid(at.Child("ctlplaneInterface"), t.CtlplaneInterface, "must be empty with ctlplaneBond: name the NIC there"))
	}
	return errs
}

func netmaskErrors(at *field.Path, mask string) field.ErrorList {
	if mask == "" {
		return nil
	}
	_, err4 := netmask(mask, netip.IPv4Unspecified())
	_, err6 := netmask(mask, netip.IPv6Unspecified())
	if err4 == nil || err6 == nil {
		return nil
	}
	return field.ErrorList{field.Invalid(at, mask, "is not a valid netmask: use a mask (255.255.255.0) or a prefix length (24)")}
}

func referenceErrors(at *field.Path, namespace string, t *dataplanev1.BaremetalSetTemplate) field.ErrorList {
	errs := validate.ObjectName(at.Child("caBundleSecretName"), t.CABundleSecretName)
	check := func(at *field.Path, ref *corev1.SecretReference) {
		if ref == nil {
			return
		}
		errs = append(errs, validate.RequiredName(at.Child("name"), ref.Name)...)
		if ref.Namespace != "" && ref.Namespace != namespace {
			errs = append(errs, field.Invalid(at.Child("namespace"), ref.Namespace, "must be the namespace of the role, "+namespace+": copy the Secret, and remove this"))
		}
	}
	check(at.Child("userData"), t.UserData)
	check(at.Child("networkData"), t.NetworkData)
	for _, name := range slices.Sorted(maps.Keys(t.BaremetalHosts)) {
		host := t.BaremetalHosts[name]
		check(at.Child("baremetalHosts").Key(name).Child("userData"), host.UserData)
		check(at.Child("baremetalHosts").Key(name).Child("networkData"), host.NetworkData)
	}
	return errs
}

// withoutPrefix is an address that may be followed by the length of a prefix, as
// upstream writes it.
func withoutPrefix(address string) string {
	address, _, _ = strings.Cut(address, "/")
	return address
}

// Sources are the Secrets that a node takes its user data and network data from;
// a nil one means that there is none.
type Sources struct{ UserData, NetworkData *corev1.SecretReference }

// SourcesOf returns the nearest Secrets: of the node, of its entry in the template
// of its role, of the template, of the section of the role.
func SourcesOf(node *dataplanev1.OpenStackDataPlaneNode, role *dataplanev1.OpenStackDataPlaneRole, hostName string) Sources {
	t := role.Spec.BaremetalSetTemplate
	entry := t.BaremetalHosts[hostName]
	return Sources{
		UserData:    cmp.Or(node.Spec.Node.UserData, entry.UserData, t.UserData, role.Spec.NodeTemplate.UserData),
		NetworkData: cmp.Or(node.Spec.Node.NetworkData, entry.NetworkData, t.NetworkData, role.Spec.NodeTemplate.NetworkData),
	}
}

// fixedIP is the address of a node on a network, empty if it has none.
func fixedIP(eff inherit.Effective, network string) string {
	for _, n := range eff.Networks {
		if strings.EqualFold(n.Network, network) {
			return n.FixedIP
		}
	}
	return ""
}

// NetworkOf returns how the node is on the network that Ansible reaches it by. A
// static address is its ansibleHost, that of its entry in the template, or its
// fixedIP on the management network.
func NetworkOf(node *dataplanev1.OpenStackDataPlaneNode, eff inherit.Effective, t *dataplanev1.BaremetalSetTemplate) Network {
	n := Network{
		Interface: t.CtlplaneInterface, VLAN: int(t.CtlplaneVLAN), Netmask: t.CtlplaneNetmask, Gateway: t.CtlplaneGateway, DNS: t.BootstrapDNS, Search: t.DNSSearchDomains,
	}
	if t.CtlplaneBond != nil {
		n.Bond = &Bond{Interfaces: t.CtlplaneBond.Interfaces, Mode: t.CtlplaneBond.Mode}
	}
	for _, further := range t.BootNetworks {
		address, _ := netip.ParseAddr(fixedIP(eff, further.Network)) // none means DHCP
		n.Others = append(n.Others, Further{
			Name: further.Network, Interface: further.Interface, VLAN: int(further.VLAN), Netmask: further.Netmask, Address: address.Unmap(),
		})
	}
	for _, text := range []string{node.Spec.AnsibleHost, withoutPrefix(t.BaremetalHosts[eff.HostName].CtlPlaneIP), fixedIP(eff, eff.ManagementNetwork)} {
		if address, err := netip.ParseAddr(text); err == nil {
			n.Address = address.Unmap()
			break
		}
	}
	return n
}
