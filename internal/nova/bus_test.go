package nova

import (
	"net"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPortsOfAMessageBus(t *testing.T) {
	for name, c := range map[string]struct {
		url  string
		want []uint16
	}{
		"one that is named":           {"rabbit://nova:p@bus:5671/cell1?ssl=1", []uint16{5671}},
		"the default":                 {"rabbit://nova:p@bus/", []uint16{5672}},
		"without a virtual host":      {"rabbit://nova:p@bus:5673", []uint16{5673}},
		"options and no path":         {"rabbit://nova:p@bus:5671?ssl=1", []uint16{5671}},
		"several hosts":               {"rabbit://u:p@a:5673,u:p@b,u:p@c:5673/v", []uint16{5672, 5673}},
		"addresses of IPv6":           {"rabbit://u:p@[fd00::1]:5671,u:p@[fd00::2]/", []uint16{5671, 5672}},
		"a password with a colon":     {"rabbit://u:p%3A1@bus/", []uint16{5672}},
		"one that is no number":       {"rabbit://u:p@bus:amqp/", nil},
		"another kind of message bus": {"fake://", nil},
		"no URL":                      {"bus", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, busPorts(c.url)); diff != "" {
				t.Errorf("the ports differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAConnectionIsFoundByItsPort(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	port := uint16(server.Addr().(*net.TCPAddr).Port)
	found := func(ports ...uint16) bool {
		command := connected(ports)
		return exec.Command(command[0], command[1:]...).Run() == nil
	}
	if found(port) {
		t.Errorf("port %d has no connection, only a listener", port)
	}
	client, err := net.Dial("tcp", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if !found(1, port) {
		t.Errorf("the connection to port %d is not found", port)
	}
	if found(1) {
		t.Error("a connection to port 1 is found")
	}
}
