package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// need is a program and the Debian package that has it.
type need struct{ program, pkg string }

var (
	nodeNeeds = []need{
		{"containerd", "containerd"}, {"containerd-shim-runc-v2", "containerd"}, {"ctr", "containerd"},
		{"runc", "runc"}, {"iptables", "iptables"}, {"nft", "nftables"}, {"ip", "iproute2"}, {"mount", "mount"},
	}
	hostNeeds = []need{
		{"podman", "podman"}, {"runc", "runc"}, {"ssh", "openssh-client"}, {"ssh-keygen", "openssh-client"},
	}
)

// preflight tells everything that is missing at once, before anything is made.
func preflight(o Options) error {
	var problems []error
	if o.needsRoot() && os.Geteuid() != 0 {
		problems = append(problems, errors.New("a kubelet and EDPM hosts need root; without it, use --no-kubelet"))
	}
	var needs []need
	if o.Kubelet {
		needs = append(needs, nodeNeeds...)
		if cniBinDir() == "" {
			problems = append(problems, missing(need{"the CNI plugin bridge", "containernetworking-plugins"}))
		}
	}
	if o.needsPodman() {
		needs = append(needs, hostNeeds...)
	}
	for _, n := range needs {
		if _, err := exec.LookPath(n.program); err != nil {
			problems = append(problems, missing(n))
		}
	}
	return errors.Join(problems...)
}

func missing(n need) error {
	return fmt.Errorf("missing %s: apt-get install %s", n.program, n.pkg)
}

// cniBinDir returns where the CNI plugins are: Debian's place, or upstream's.
func cniBinDir() string {
	for _, dir := range []string{"/usr/lib/cni", "/opt/cni/bin"} {
		if _, err := os.Stat(filepath.Join(dir, "bridge")); err == nil {
			return dir
		}
	}
	return ""
}
