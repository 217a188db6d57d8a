package metal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
)

// Network is how a machine is on the network that Ansible reaches it by.
type Network struct {
	// Interface is the NIC by the name that inspection gave it, or its MAC address;
	// empty means the one that the machine boots from.
	Interface string
	// VLAN of the network on that NIC; 0 means untagged.
	VLAN int
	// Address of the machine; an invalid one means DHCP.
	Address netip.Addr
	// Netmask such as 255.255.255.0, or the length of the prefix.
	Netmask string
	// Gateway of the default route; it can be empty.
	Gateway string
	DNS     []string
	// Search domains.
	Search []string
}

// The names that links and networks have in network data.
const (
	linkID, vlanID, networkID = "ctlplane-nic", "ctlplane-vlan", "ctlplane"
)

// Render returns network data in the format of OpenStack (network_data.json), which
// cloud-init reads from the configuration drive. The error says which NIC is
// missing, or what is wrong with an address.
func (n Network) Render(host *metal3v1.BareMetalHost) ([]byte, error) {
	mac, err := n.mac(host)
	if err != nil {
		return nil, err
	}
	subnet, err := n.subnet()
	if err != nil {
		return nil, err
	}
	links := []map[string]any{{"id": linkID, "type": "phy", "ethernet_mac_address": mac}}
	subnet["link"] = linkID
	if n.VLAN != 0 {
		links = append(links, map[string]any{"id": vlanID, "type": "vlan", "vlan_link": linkID, "vlan_id": n.VLAN, "vlan_mac_address": mac})
		subnet["link"] = vlanID
	}
	services := []map[string]any{}
	for _, address := range n.DNS {
		services = append(services, map[string]any{"type": "dns", "address": address})
	}
	return json.MarshalIndent(map[string]any{"links": links, "networks": []any{subnet}, "services": services}, "", "  ")
}

// mac of the NIC.
func (n Network) mac(host *metal3v1.BareMetalHost) (string, error) {
	if mac, err := net.ParseMAC(n.Interface); err == nil {
		return mac.String(), nil
	}
	nic := NIC(host, n.Interface)
	switch {
	case nic != nil && nic.MAC != "":
		return strings.ToLower(nic.MAC), nil
	case n.Interface == "" && host.Spec.BootMACAddress != "":
		return strings.ToLower(host.Spec.BootMACAddress), nil
	case n.Interface == "":
		return "", fmt.Errorf("BareMetalHost %s has neither spec.bootMACAddress nor a NIC that boots from the network: set baremetalSetTemplate.ctlplaneInterface", host.Name)
	}
	return "", fmt.Errorf("BareMetalHost %s has no NIC %s (it has %s): correct baremetalSetTemplate.ctlplaneInterface, or give a MAC address", host.Name, n.Interface, nicNames(host))
}

// NIC returns the NIC of a name, or without a name the one that the host boots
// from; nil if there is none.
func NIC(host *metal3v1.BareMetalHost, name string) *metal3v1.NIC {
	if host.Status.Hardware == nil {
		return nil
	}
	for i := range host.Status.Hardware.NICs {
		nic := &host.Status.Hardware.NICs[i]
		boots := strings.EqualFold(nic.MAC, host.Spec.BootMACAddress) || host.Spec.BootMACAddress == "" && nic.PXE
		if name != "" && (nic.Name == name || strings.EqualFold(nic.MAC, name)) || name == "" && boots {
			return nic
		}
	}
	return nil
}

func nicNames(host *metal3v1.BareMetalHost) string {
	if host.Status.Hardware == nil {
		return "no hardware data"
	}
	var names []string
	for _, nic := range host.Status.Hardware.NICs {
		names = append(names, nic.Name)
	}
	slices.Sort(names)
	return cmp.Or(strings.Join(slices.Compact(names), ", "), "none")
}

func (n Network) subnet() (map[string]any, error) {
	subnet := map[string]any{"id": networkID, "network_id": networkID, "type": "ipv4_dhcp"}
	if !n.Address.IsValid() {
		return subnet, nil
	}
	mask, err := netmask(n.Netmask, n.Address)
	if err != nil {
		return nil, err
	}
	subnet["type"], subnet["ip_address"], subnet["netmask"] = family(n.Address), n.Address.String(), mask
	if len(n.Search) > 0 {
		subnet["dns_search"] = n.Search
	}
	if n.Gateway != "" {
		none := "0.0.0.0"
		if n.Address.Is6() {
			none = "::"
		}
		subnet["routes"] = []any{map[string]any{"network": none, "netmask": none, "gateway": n.Gateway}}
	}
	return subnet, nil
}

func family(address netip.Addr) string {
	if address.Is4() {
		return "ipv4"
	}
	return "ipv6"
}

// netmask checks a mask for the family of an address, and writes the length of a
// prefix as a mask. Without one it is /24, as in upstream's OpenStackBaremetalSet,
// or /64.
func netmask(text string, address netip.Addr) (string, error) {
	bits := address.BitLen()
	if text == "" {
		text = map[bool]string{true: "24", false: "64"}[address.Is4()]
	}
	if length, err := strconv.Atoi(text); err == nil && length > 0 && length <= bits {
		return net.IP(net.CIDRMask(length, bits)).String(), nil
	}
	mask, err := netip.ParseAddr(text)
	if err == nil && mask.BitLen() == bits {
		if ones, size := net.IPMask(mask.AsSlice()).Size(); size == bits && ones > 0 {
			return mask.String(), nil
		}
	}
	return "", fmt.Errorf("baremetalSetTemplate.ctlplaneNetmask: %q is no netmask for address %s: set one such as 255.255.255.0, or the length of the prefix such as 24", text, address)
}
