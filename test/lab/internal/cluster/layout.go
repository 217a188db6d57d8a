// Package cluster brings the lab's cluster up and takes it down: control plane,
// a real node, pretend nodes and EDPM hosts.
package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Addresses of the cluster. Nothing here depends on the machine's own network:
// the node's address is the bridge's, which up makes before anything else.
const (
	NodeName     = "lab-worker-0"
	bridge       = "edpmlab0"
	bridgeMAC    = "02:65:64:70:6d:01"
	podCIDR      = "10.244.0.0/24"
	nodeIP       = "10.244.0.1"
	serviceCIDR  = "10.96.0.0/16"
	apiServiceIP = "10.96.0.1"
	kwokPodCIDR  = "10.246.0.1/16"
	hostsCIDR    = "192.168.122.0/24"
	hostsNetwork = "edpm"
	cniNetwork   = "edpm-lab"
)

// Layout says where one lab keeps its files and which ports it uses.
type Layout struct {
	// Dir is the state directory; PortBase the first of the lab's eleven ports.
	Dir      string
	PortBase int
}

// marker is the file that makes a directory a lab's own, to be emptied by down.
const marker = ".edpm-lab"

func (l Layout) path(elem ...string) string {
	return filepath.Join(append([]string{l.Dir}, elem...)...)
}

func (l Layout) apiPort() int             { return l.PortBase }
func (l Layout) etcdPort() int            { return l.PortBase + 1 }
func (l Layout) etcdPeerPort() int        { return l.PortBase + 2 }
func (l Layout) controllersPort() int     { return l.PortBase + 3 }
func (l Layout) schedulerPort() int       { return l.PortBase + 4 }
func (l Layout) kubeletPort() int         { return l.PortBase + 5 }
func (l Layout) kubeletHealthzPort() int  { return l.PortBase + 6 }
func (l Layout) kwokPort() int            { return l.PortBase + 7 }
func (l Layout) catalogPort() int         { return l.PortBase + 8 }
func (l Layout) proxyHealthzPort() int    { return l.PortBase + 9 }
func (l Layout) proxyMetricsPort() int    { return l.PortBase + 10 }
func (l Layout) apiURL() string           { return fmt.Sprintf("https://127.0.0.1:%d", l.apiPort()) }
func (l Layout) Kubeconfig() string       { return l.path("kubeconfig") }
func (l Layout) pkiDir() string           { return l.path("pki") }
func (l Layout) sshKey() string           { return l.path("ssh", "id_ed25519") }
func (l Layout) containerdSocket() string { return l.path("containerd", "containerd.sock") }
func (l Layout) containerdState() string  { return l.path("containerd", "state") }
func (l Layout) containerdRoot() string   { return l.path("images", "containerd") }

// tag marks everything that this lab makes outside its directory.
func (l Layout) tag() string { return tagPrefix + l.Dir }

const tagPrefix = "edpm-lab:"

// perishable are the directories that down removes. What stays: logs, for a
// look afterwards, and images, because importing them takes longer than the rest.
var perishable = []string{"run", "conf", "pki", "etcd", "kubelet", "containerd", "cni", "pod-logs", "machines", "vms", "ssh", "catalog", "kubeconfig"}

// Validate refuses directories whose names would need quoting in iptables rules
// and mount tables.
func (l Layout) Validate() error {
	if !filepath.IsAbs(l.Dir) || strings.ContainsAny(l.Dir, " \t\n\\\"'%,:") {
		return fmt.Errorf("lab directory %q must be absolute and without spaces, quotes, commas or colons", l.Dir)
	}
	if l.PortBase < 1024 || l.PortBase > 65000 {
		return fmt.Errorf("port base %d is not within 1024-65000", l.PortBase)
	}
	return nil
}

// adopt makes Dir a lab's directory. It refuses one that holds other things.
func (l Layout) adopt() error {
	if err := os.MkdirAll(l.Dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(l.Dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 && !l.adopted() {
		return fmt.Errorf("%s is not empty and not a lab's directory; if it is what remains of one, remove it", l.Dir)
	}
	for _, dir := range []string{"run", "conf", "logs", "images"} {
		if err := os.MkdirAll(l.path(dir), 0o755); err != nil {
			return err
		}
	}
	return os.WriteFile(l.path(marker), nil, 0o644)
}

func (l Layout) adopted() bool {
	_, err := os.Stat(l.path(marker))
	return err == nil
}

var errNotRunning = errors.New("the lab is not up")
