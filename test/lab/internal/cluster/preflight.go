package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
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
	vmNeeds = []need{{emulator, "qemu-system-x86"}, {"mkfs.ext4", "e2fsprogs"}, {"debugfs", "e2fsprogs"}, {"cpio", "cpio"}}
)

// preflight tells everything that is missing at once, before anything is made.
func (l *Lab) preflight(o Options) error {
	problems := []error{requireRoom(l.Dir, o.room())}
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
	if len(o.VMs) > 0 {
		needs = append(needs, vmNeeds...)
	}
	for _, n := range needs {
		if _, err := exec.LookPath(n.program); err != nil {
			problems = append(problems, missing(n))
		}
	}
	return errors.Join(problems...)
}

// room is how many bytes must be free for what the lab writes: with a node or hosts
// images and containers, without them what etcd keeps and logs.
func (o Options) room() uint64 {
	if o.needsRoot() {
		return 2 << 30
	}
	return 256 << 20
}

// requireRoom fails if the file system of a directory, which need not exist yet, has
// fewer bytes left.
func requireRoom(dir string, need uint64) error {
	var fs syscall.Statfs_t
	err := syscall.Statfs(dir, &fs)
	for ; errors.Is(err, syscall.ENOENT) && dir != "/"; err = syscall.Statfs(dir, &fs) {
		dir = filepath.Dir(dir)
	}
	if err != nil {
		return fmt.Errorf("looking for room in %s: %w", dir, err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < need {
		return fmt.Errorf("%s has %d MB free, and the lab needs %d MB: remove something, or set EDPM_LAB_DIR to a directory elsewhere", dir, free>>20, need>>20)
	}
	return nil
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
