package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// rule is one iptables rule without its table, verb and comment.
type rule struct {
	table string
	chain string
	spec  []string
}

// rules let pods reach the apiserver at its Service address, the machine, the
// EDPM hosts and the world, whatever the policy of FORWARD and INPUT is.
func (l Layout) rules() []rule {
	apiserver := nodeIP + ":" + strconv.Itoa(l.apiPort())
	toService := strings.Fields("-d " + apiServiceIP + "/32 -p tcp --dport 443 -j DNAT --to-destination " + apiserver)
	return []rule{
		{"filter", "FORWARD", strings.Fields("-i " + bridge + " -j ACCEPT")},
		{"filter", "FORWARD", strings.Fields("-o " + bridge + " -j ACCEPT")},
		{"filter", "INPUT", strings.Fields("-i " + bridge + " -j ACCEPT")},
		{"nat", "POSTROUTING", strings.Fields("-s " + podCIDR + " ! -d " + podCIDR + " -j MASQUERADE")},
		{"nat", "PREROUTING", toService}, // from pods
		{"nat", "OUTPUT", toService},     // from this machine and pods on its network
	}
}

func (r rule) args(verb, tag string) []string {
	args := append([]string{"-w", "-t", r.table, verb, r.chain}, r.spec...)
	return append(args, "-m", "comment", "--comment", tag)
}

// network makes the bridge before any pod exists: its address is the node's.
func (l *Lab) network(ctx context.Context) error {
	if err := l.bridgeUp(ctx); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("turning IP forwarding on: %w", err)
	}
	for _, r := range l.rules() {
		if _, err := command(ctx, "iptables", r.args("-C", l.tag())...); err == nil {
			continue
		}
		if _, err := command(ctx, "iptables", r.args("-I", l.tag())...); err != nil {
			return err
		}
	}
	return nil
}

// bridgeUp makes the bridge, whose alias says which lab owns it.
func (l *Lab) bridgeUp(ctx context.Context) error {
	switch owner := bridgeOwner(); owner {
	case l.tag():
		return nil
	case "":
	default:
		return fmt.Errorf("the bridge %s belongs to another lab (%s), and only one at a time can have a kubelet: %s", bridge, owner, otherDown(owner))
	}
	for _, args := range []string{
		// Without an address of its own it has the lowest one of its ports, and another
		// one whenever that pod goes: then connections through it stall until the
		// others have noticed.
		"link add " + bridge + " address " + bridgeMAC + " type bridge",
		"link set " + bridge + " alias " + l.tag(),
		"addr add " + nodeIP + "/24 dev " + bridge,
		"link set " + bridge + " up",
	} {
		if _, err := command(ctx, "ip", strings.Fields(args)...); err != nil {
			return err
		}
	}
	return nil
}

// otherDown says how the lab of a tag is taken down.
func otherDown(tag string) string {
	dir, ok := strings.CutPrefix(tag, tagPrefix)
	if !ok {
		return "remove it: ip link del " + bridge
	}
	return "take that one down first, EDPM_LAB_DIR=" + dir + " go run ./test/lab down, or use it"
}

// bridgeOwner returns the tag of the lab that made the bridge, "" without a
// bridge, and "nobody" for a bridge without a tag.
func bridgeOwner() string {
	alias, err := os.ReadFile("/sys/class/net/" + bridge + "/ifalias")
	if err != nil {
		return ""
	}
	if owner := strings.TrimSpace(string(alias)); owner != "" {
		return owner
	}
	return "nobody"
}

// removeNetwork deletes the lab's bridge and every rule that has its tag, also
// those of an earlier port base.
func (l *Lab) removeNetwork(ctx context.Context) error {
	if bridgeOwner() == l.tag() {
		if err := l.removeProxyTables(ctx); err != nil {
			return err
		}
		if _, err := command(ctx, "ip", "link", "del", bridge); err != nil {
			return err
		}
	}
	if _, err := exec.LookPath("iptables"); err != nil {
		return nil
	}
	for _, table := range []string{"filter", "nat"} {
		if err := l.removeRules(ctx, table); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) removeRules(ctx context.Context, table string) error {
	listing, err := command(ctx, "iptables", "-w", "-t", table, "-S")
	if err != nil {
		return err
	}
	for _, args := range deletions(listing, l.tag()) {
		if _, err := command(ctx, "iptables", append([]string{"-w", "-t", table}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

// deletions turns the tagged rules of an `iptables -S` listing into arguments
// that delete them. The lab's rules hold no spaces inside an argument.
func deletions(listing, tag string) [][]string {
	var all [][]string
	for line := range strings.Lines(listing) {
		fields := strings.Fields(strings.ReplaceAll(line, `"`, ""))
		if len(fields) == 0 || fields[0] != "-A" || !hasComment(fields, tag) {
			continue
		}
		fields[0] = "-D"
		all = append(all, fields)
	}
	return all
}

func hasComment(fields []string, tag string) bool {
	for i, field := range fields[:len(fields)-1] {
		if field == "--comment" && fields[i+1] == tag {
			return true
		}
	}
	return false
}

// removeLinks removes the network devices with a name that begins so and with the tag of the lab as their alias.
func (l *Lab) removeLinks(ctx context.Context, prefix string) error {
	if _, err := exec.LookPath("ip"); err != nil {
		return nil // none was made
	}
	listing, err := command(ctx, "ip", "-json", "link", "show")
	if err != nil {
		return err
	}
	var links []struct{ IfName, IfAlias string }
	if err := json.Unmarshal([]byte(listing), &links); err != nil {
		return fmt.Errorf("reading the network devices: %w", err)
	}
	var problems []error
	for _, link := range links {
		if link.IfAlias == l.tag() && strings.HasPrefix(link.IfName, prefix) {
			_, err := command(ctx, "ip", "link", "delete", link.IfName)
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}
