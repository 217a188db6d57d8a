package edpm

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// Machine returns the address and port by which the variables reach a host, in
// one form for all ways to write them: lower case, no final dot, IPv6 as in RFC
// 5952. Two hosts with the same machine are one computer, whatever their names
// are. A name without a domain is preceded by the namespace, whose Services have
// such names. The result is empty when the address is a template: only Ansible
// knows it then.
func Machine(namespace string, vars map[string]any, name string) string {
	address := Address(vars, name)
	port := variable(vars, "ansible_ssh_port", "ansible_port")
	if address == "" || strings.Contains(port, "{{") {
		return ""
	}
	machine := net.JoinHostPort(address, cmp.Or(port, "22"))
	if !strings.ContainsAny(address, ".:") {
		return namespace + "/" + machine
	}
	return machine
}

// Address returns the address of Machine without its port.
func Address(vars map[string]any, name string) string {
	address := cmp.Or(variable(vars, "ansible_ssh_host", "ansible_host"), name)
	if strings.Contains(address, "{{") {
		return ""
	}
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
