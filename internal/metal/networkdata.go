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
	// Bond takes the place of Interface; nil means none.
	Bond *Bond
	// Others are further networks.
	Others []Further
}

// Bond of NICs, by their names or MAC addresses.
type Bond struct {
	Interfaces []string
	Mode       string
}

// Further is a network next to the one that Ansible reaches the machine by.
type Further struct {
	Name string
	// Interface as for [Network]; empty means that of the Network.
	Interface string
	// VLAN on that NIC; 0 means untagged.
	VLAN int
	// Address of the machine; an invalid one means DHCP.
	Address netip.Addr
	Netmask string
}

// management is the name of the Network in network data.
const management = "ctlplane"

// Render returns network data in the format of OpenStack (network_data.json), which
// cloud-init reads from the configuration drive. The error says which NIC is
// missing, or what is wrong with an address.
func (n Network) Render(host *metal3v1.BareMetalHost) ([]byte, error) {
	l := layout{Network: n, host: host, networks: []map[string]any{}}
	first, err := subnet(management, n.Address, n.Netmask, "ctlplaneNetmask")
	if err != nil {
		return nil, err
	}
	n.route(first)
	if err := l.add(first, management, n.Interface, n.VLAN); err != nil {
		return nil, err
	}
	for _, f := range n.Others {
		further, err := subnet(f.Name, f.Address, f.Netmask, "bootNetworks["+f.Name+"].netmask")
		if err != nil {
			return nil, err
		}
		if err := l.add(further, f.Name, cmp.Or(f.Interface, n.Interface), f.VLAN); err != nil {
			return nil, err
		}
	}
	services := []map[string]any{}
	for _, address := range n.DNS {
		services = append(services, map[string]any{"type": "dns", "address": address})
	}
	return json.MarshalIndent(map[string]any{"links": l.links, "networks": l.networks, "services": services}, "", "  ")
}

// layout is network data in the making.
type layout struct {
	Network
	host            *metal3v1.BareMetalHost
	links, networks []map[string]any
}

// add adds a network, on a link of which there is one for each NIC and each VLAN.
func (l *layout) add(network map[string]any, name, nic string, vlan int) error {
	var link map[string]any
	var err error
	if l.Bond != nil && nic == "" {
		link, err = l.bond()
	} else {
		link, err = l.physical(name, nic)
	}
	if err != nil {
		return err
	}
	if vlan != 0 {
		link = l.link("vlan_link", map[string]any{
			"id": name + "-vlan", "type": "vlan", "vlan_link": link["id"], "vlan_id": vlan, "vlan_mac_address": link["ethernet_mac_address"],
		})
	}
	network["link"] = link["id"]
	l.networks = append(l.networks, network)
	return nil
}

// link returns the link that has what is wanted, which is added if there is none.
func (l *layout) link(key string, wanted map[string]any) map[string]any {
	for _, have := range l.links {
		if have["type"] == wanted["type"] && have[key] == wanted[key] && have["vlan_id"] == wanted["vlan_id"] {
			return have
		}
	}
	l.links = append(l.links, wanted)
	return wanted
}

// physical is the link of a NIC.
func (l *layout) physical(name, nic string) (map[string]any, error) {
	mac, err := l.mac(nic)
	if err != nil {
		return nil, err
	}
	link := l.link("ethernet_mac_address", map[string]any{"id": name + "-nic", "type": "phy", "ethernet_mac_address": mac})
	if l.Bond != nil && strings.HasPrefix(fmt.Sprint(link["id"]), member) {
		return nil, fmt.Errorf("network %s: NIC %s of BareMetalHost %s is part of baremetalSetTemplate.ctlplaneBond: name another interface, or none to have the network on the bond", name, nic, l.host.Name)
	}
	return link, nil
}

// member begins the names of links that are part of the bond.
const member = management + "-bond-"

// bond is the link of the bond, after those of its NICs.
func (l *layout) bond() (map[string]any, error) {
	var members []string
	var first string
	for i, nic := range l.Bond.Interfaces {
		mac, err := l.mac(nic)
		if err != nil {
			return nil, err
		}
		first = cmp.Or(first, mac)
		link := l.link("ethernet_mac_address", map[string]any{"id": member + strconv.Itoa(i), "type": "phy", "ethernet_mac_address": mac})
		members = append(members, fmt.Sprint(link["id"]))
	}
	if len(slices.Compact(slices.Sorted(slices.Values(members)))) < len(members) || len(members) == 0 {
		return nil, fmt.Errorf("baremetalSetTemplate.ctlplaneBond.interfaces: name each NIC of BareMetalHost %s once", l.host.Name)
	}
	const interval = 100 // milliseconds between looks at the link, the least that is recommended
	return l.link("id", map[string]any{
		"id": management + "-bond", "type": "bond", "bond_links": members, "ethernet_mac_address": first,
		"bond_mode": cmp.Or(l.Bond.Mode, "active-backup"), "bond_miimon": interval,
	}), nil
}

// mac of a NIC, by its name or address.
func (l *layout) mac(name string) (string, error) {
	if mac, err := net.ParseMAC(name); err == nil {
		return mac.String(), nil
	}
	nic, found := NIC(l.host, name), ""
	switch {
	case nic != nil:
		found = nic.MAC
	case name == "":
		found = l.host.Spec.BootMACAddress
	}
	if mac, err := net.ParseMAC(found); err == nil {
		return mac.String(), nil
	}
	if name == "" {
		return "", fmt.Errorf("BareMetalHost %s has neither spec.bootMACAddress nor a NIC that boots from the network: set baremetalSetTemplate.ctlplaneInterface", l.host.Name)
	}
	return "", fmt.Errorf("BareMetalHost %s has no NIC %s (it has %s): correct the name in baremetalSetTemplate, or give a MAC address", l.host.Name, name, nicNames(l.host))
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

// AddressOf returns the address that the NIC of a name, or without one that from
// which the host boots, had during inspection; an invalid one if it had none that a
// host can be reached at.
func AddressOf(host *metal3v1.BareMetalHost, name string) netip.Addr {
	nic := NIC(host, name)
	if nic == nil {
		return netip.Addr{}
	}
	address, err := netip.ParseAddr(nic.IP)
	if err != nil || address.Zone() != "" || address.IsUnspecified() || address.IsLoopback() || address.IsMulticast() || address.IsLinkLocalUnicast() {
		return netip.Addr{}
	}
	return address.Unmap()
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
	return escapeForeignText(cmp.Or(strings.Join(slices.Compact(names), ", "), "none"))
}

// subnet of a network; an invalid address means DHCP.
func subnet(name string, address netip.Addr, mask, field string) (map[string]any, error) {
	network := map[string]any{"id": name, "network_id": name, "type": "ipv4_dhcp"}
	if !address.IsValid() {
		return network, nil
	}
	text, err := netmask(mask, address)
	if err != nil {
		return nil, fmt.Errorf("baremetalSetTemplate.%s: %w", field, err)
	}
	network["type"], network["ip_address"], network["netmask"] = family(address), address.String(), text
	return network, nil
}

// route adds what only a network with a static address has: names, and the default route.
func (n Network) route(network map[string]any) {
	if !n.Address.IsValid() {
		return
	}
	if len(n.Search) > 0 {
		network["dns_search"] = n.Search
	}
	if n.Gateway == "" {
		return
	}
	none := "0.0.0.0"
	if n.Address.Is6() {
		none = "::"
	}
	network["routes"] = []any{map[string]any{"network": none, "netmask": none, "gateway": n.Gateway}}
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
	return "", fmt.Errorf("%q is not a valid netmask for address %s: use a mask (255.255.255.0) or a prefix length (24)", text, address)
}
