package edpm

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/edpm-operators/edpm-operators/apis/common"
)

// Machine returns the address and port by which the variables reach a host, in
// one form for all ways to write them: lower case, no final dot, IPv6 as in RFC
// 5952. Two hosts with the same machine are one computer, whatever their names
// are. A name without a domain is preceded by the namespace, whose Services have
// such names. The networks behind two jump hosts can have the same addresses, so that
// of a host is followed by its jump host. The result is empty when the address is a
// template: only Ansible knows it then.
func Machine(namespace string, vars map[string]any, name string, jump *common.JumpHost) string {
	address := Address(vars, name)
	port := variable(vars, "ansible_ssh_port", "ansible_port")
	if address == "" || strings.Contains(port, "{{") {
		return ""
	}
	machine := net.JoinHostPort(address, cmp.Or(port, "22"))
	if !strings.ContainsAny(address, ".:") {
		machine = namespace + "/" + machine
	}
	if jump != nil {
		machine += " through " + jumpAddress(jump)
	}
	return machine
}

// jumpAddress is the address of a jump host in the form of Machine.
func jumpAddress(jump *common.JumpHost) string {
	address := canonical(jump.Address)
	return net.JoinHostPort(address, strconv.Itoa(int(cmp.Or(jump.Port, 22))))
}

// Address returns the address of Machine without its port.
func Address(vars map[string]any, name string) string {
	address := cmp.Or(variable(vars, "ansible_ssh_host", "ansible_host"), name)
	if strings.Contains(address, "{{") {
		return ""
	}
	return canonical(address)
}

// canonical is the one form of an address for all ways to write it.
func canonical(address string) string {
	address = strings.TrimSuffix(strings.ToLower(address), ".")
	if ip, err := netip.ParseAddr(strings.Trim(address, "[]")); err == nil {
		return ip.Unmap().String()
	}
	return address
}

// variable returns the text of the first variable that is set. Ansible prefers
// the older name of each.
func variable(vars map[string]any, names ...string) string {
	for _, name := range names {
		if value, ok := vars[name]; ok && value != nil {
			return strings.TrimSpace(fmt.Sprint(value))
		}
	}
	return ""
}
