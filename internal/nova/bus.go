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
	_, rest, _ := strings.Cut(transportURL, "://")
	hosts, _, _ := strings.Cut(rest, "/")
	var ports []uint16
	for host := range strings.SplitSeq(hosts, ",") {
		host = host[strings.LastIndex(host, "@")+1:]
		_, port, err := net.SplitHostPort(host)
		if err != nil {
			port = ""
		}
		if n, err := strconv.ParseUint(cmp.Or(port, defaultBusPort), 10, 16); err == nil {
			ports = append(ports, uint16(n))
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
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
