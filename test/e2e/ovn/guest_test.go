package ovn

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

const (
	network = "story"
	subnet  = "192.168.7.0/24"
	// mtu is what a tunnel of 58 bytes leaves of 1500.
	mtu = "1442"
)

// guest is a network namespace on a host that has a port of neutron, as an instance has.
type guest struct {
	host           lab.Host
	name, instance string
	port           struct {
		ID       string `json:"id"`
		MAC      string `json:"mac_address"`
		FixedIPs []struct {
			Address string `json:"ip_address"`
		} `json:"fixed_ips"`
	}
}

// guests have one host each.
var guests [2]*guest

// openstack runs the program openstack as the administrator.
func openstack(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out, err := cluster.OpenStack(ctx, args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

func tenantAddress(h lab.Host) string {
	return "172.19.0." + h.IP[strings.LastIndex(h.IP, ".")+1:]
}

// createGuests makes a network, and a port in it for a guest of each host.
func createGuests(ctx context.Context) {
	GinkgoHelper()
	openstack(ctx, "network", "create", network)
	openstack(ctx, "subnet", "create", "--network", network, "--subnet-range", subnet, network)
	for i, h := range hosts {
		g := &guest{host: h, name: "guest-" + strconv.Itoa(i), instance: fmt.Sprintf("%d0000000-1111-4222-8333-444444444444", i+1)}
		out := openstack(ctx, "port", "create", "--network", network, "--host", h.Name, "--device", g.instance,
			"--device-owner", "compute:nova", "--format", "json", g.name)
		Expect(json.Unmarshal([]byte(out), &g.port)).To(Succeed())
		guests[i] = g
	}
}

func (g *guest) address() string { return g.port.FixedIPs[0].Address }

// run runs a command in the guest.
func (g *guest) run(ctx context.Context, command string) (string, error) {
	return g.host.Console(ctx, "ip netns exec "+g.name+" "+command)
}

// plugScript makes the namespace and connects it as os-vif does. Open vSwitch in userspace
// needs the checksums that a network card would add, and python3 takes the place of ethtool.
const plugScript = `set -e
ip netns add $NAME
ip link add tap-$NAME type veth peer name eth0 netns $NAME
ip -n $NAME link set eth0 address $MAC mtu $MTU
ip -n $NAME link set lo up
ip -n $NAME link set eth0 up
ip -n $NAME address add $ADDRESS/24 dev eth0
ip -n $NAME route add 169.254.169.254 via $METADATA
ip netns exec $NAME python3 -c '
import array, fcntl, socket, struct
off = array.array("B", struct.pack("II", 0x17, 0))
fcntl.ioctl(socket.socket(), 0x8946, struct.pack("16sP", b"eth0", off.buffer_info()[0]))'
echo 1 > /proc/sys/net/ipv6/conf/tap-$NAME/disable_ipv6
ip link set tap-$NAME up
ovs-vsctl add-port br-int tap-$NAME -- set Interface tap-$NAME external-ids:iface-id=$PORT external-ids:attached-mac=$MAC external-ids:iface-status=active`

// plug connects the guest to its port.
func (g *guest) plug(ctx context.Context) {
	GinkgoHelper()
	metadata := openstack(ctx, "port", "list", "--network", network, "--device-owner", "network:distributed", "--format", "json")
	var ports []struct {
		FixedIPs []struct {
			Address string `json:"ip_address"`
		} `json:"Fixed IP Addresses"`
	}
	Expect(json.Unmarshal([]byte(metadata), &ports)).To(Succeed())
	Expect(ports).To(HaveLen(1), "the port of the network from which the metadata agents answer")
	_, err := g.host.Console(ctx, fmt.Sprintf("NAME=%s MAC=%s MTU=%s ADDRESS=%s METADATA=%s PORT=%s\n%s",
		g.name, g.port.MAC, mtu, g.address(), ports[0].FixedIPs[0].Address, g.port.ID, plugScript))
	Expect(err).NotTo(HaveOccurred())
}

func (g *guest) unplug(ctx context.Context) {
	GinkgoHelper()
	_, err := g.host.Console(ctx, "ovs-vsctl del-port tap-"+g.name+" && ip netns delete "+g.name)
	Expect(err).NotTo(HaveOccurred())
}

// active returns the status of the port.
func (g *guest) active(ctx context.Context) (string, error) {
	return cluster.OpenStack(ctx, "port", "show", g.port.ID, "--format", "value", "--column", "status")
}

// ping sends one packet to another guest.
func (g *guest) ping(ctx context.Context, to *guest) error {
	_, err := g.run(ctx, "ping -q -c 1 -W 2 "+to.address())
	return err
}

// metadata is what a guest reads of itself.
func (g *guest) metadata(ctx context.Context) (string, error) {
	return g.run(ctx, `python3 -c 'import urllib.request as r; print(r.urlopen("http://169.254.169.254/openstack/latest/meta_data.json", timeout=10).read().decode())'`)
}

var pinged = regexp.MustCompile(`(\d+) packets transmitted, (\d+) received`)

// pings sends packets all the time until the function that it returns is called, which
// returns how many were sent and how many were lost.
func (g *guest) pings(ctx context.Context, to *guest) func() (sent, lost int) {
	var out string
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		out, err = g.run(ctx, "sh -c 'echo $$ >/run/pings.pid; exec ping -q -i 0.1 "+to.address()+"'")
	}()
	return func() (int, int) {
		GinkgoHelper()
		_, stopped := g.host.Console(ctx, "kill -INT $(cat /run/pings.pid)")
		Expect(stopped).NotTo(HaveOccurred())
		<-done
		Expect(err).NotTo(HaveOccurred())
		counts := pinged.FindStringSubmatch(out)
		Expect(counts).NotTo(BeNil(), out)
		sent, _ := strconv.Atoi(counts[1])
		received, _ := strconv.Atoi(counts[2])
		return sent, sent - received
	}
}
