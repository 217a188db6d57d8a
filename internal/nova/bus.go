package nova

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// defaultBusPort is that of AMQP, which oslo.messaging takes for a host without one.
const defaultBusPort = "5672"

// busPorts returns the ports of the hosts of a transport_url, each once. It has none
// of a message bus that is not RabbitMQ.
//
// https://docs.openstack.org/oslo.messaging/latest/reference/transport.html
func busPorts(transportURL string) []uint16 {
	if !isRabbit(transportURL) {
		return nil
	}
	hosts, _ := hostsOf(transportURL)
	var ports []uint16
	for _, host := range hosts {
		_, port := splitPort(host)
		if n, err := strconv.ParseUint(cmp.Or(port, defaultBusPort), 10, 16); err == nil {
			ports = append(ports, uint16(n))
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// hostsOf returns the hosts of a transport_url with the ports that it has, and its path: what is
// secret in it is no part of them.
func hostsOf(transportURL string) (hosts []string, path string) {
	_, rest, _ := strings.Cut(transportURL, "://")
	rest, _, _ = strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	for host := range strings.SplitSeq(authority, ",") {
		hosts = append(hosts, host[strings.LastIndex(host, "@")+1:])
	}
	return hosts, path
}

// splitPort returns the name or address of a host, and its port, empty if it has none.
func splitPort(host string) (name, port string) {
	if name, port, err := net.SplitHostPort(host); err == nil {
		return name, port
	}
	return strings.Trim(host, "[]"), ""
}

// isRabbit reports whether a transport_url is of RabbitMQ.
func isRabbit(transportURL string) bool {
	return strings.HasPrefix(transportURL, "rabbit://") || strings.HasPrefix(transportURL, "kombu://")
}

// connected is a command that succeeds where a process of the pod has a connection to
// one of the ports. See proc_net_tcp in the documentation of Linux: state 01 is
// established.
func connected(ports []uint16) []string {
	hex := make([]string, 0, len(ports))
	for _, port := range ports {
		hex = append(hex, fmt.Sprintf("%04X", port))
	}
	pattern := "^ *[0-9]+: [0-9A-F]+:[0-9A-F]{4} [0-9A-F]+:(" + strings.Join(hex, "|") + ") 01 "
	return []string{"grep", "--quiet", "--no-messages", "--extended-regexp", "--regexp", pattern, "/proc/net/tcp", "/proc/net/tcp6"}
}
