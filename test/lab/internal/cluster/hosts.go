package cluster

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Host is an EDPM host: a container with systemd and sshd, outside Kubernetes.
type Host struct{ Name, IP string }

// machine is a host with what makes it one.
type machine struct {
	Host
	// image is the name of one in test/lab/images.
	image string
	// store is the directory with images for podman on the host, "" without podman.
	store string
	// mac address, and the directory with the configuration drive, of one that cloud-init
	// sets up; "" without.
	mac, drive string
	// ready, if it is set, waits for what else must run.
	ready func(context.Context) error
}

const (
	hostImage = "edpm-host"
	hostLabel = "edpm-lab"
	// imageStore is where hosts find the images that Ansible runs on them.
	imageStore = "/var/lib/edpm-images"
)

// DefaultHosts are the hosts that --hosts brings up.
func DefaultHosts() []Host {
	return []Host{
		{"edpm-compute-0", "192.168.122.100"},
		{"edpm-compute-1", "192.168.122.101"},
		{"edpm-storage-0", "192.168.122.102"},
	}
}

// ParseHost reads name=ip.
func ParseHost(s string) (Host, error) {
	name, address, ok := strings.Cut(s, "=")
	ip := net.ParseIP(address)
	_, network, _ := net.ParseCIDR(hostsCIDR)
	if !ok || name == "" || ip == nil || !network.Contains(ip) {
		return Host{}, fmt.Errorf("%q is not name=ip with an address in %s", s, hostsCIDR)
	}
	return Host{Name: name, IP: ip.String()}, nil
}

//go:embed authorize.sh
var authorizeScript string

// hosts starts the hosts and waits until each takes Ansible's connections.
func (l *Lab) hosts(ctx context.Context, o Options) error {
	publicKey, err := l.sshKeyPair(ctx)
	if err != nil {
		return err
	}
	machines, err := l.machines(ctx, o)
	if err != nil {
		return err
	}
	if err := l.hostsNetwork(ctx); err != nil {
		return err
	}
	if err := l.machinesIfWanted(ctx, o); err != nil {
		return err
	}
	var starts []func() error
	for _, m := range machines {
		started, err := l.startHost(ctx, m) // one at a time: podman locks its store
		if err != nil {
			return err
		}
		starts = append(starts, func() error { return l.hostReady(ctx, m, publicKey, started) })
	}
	return parallel(append(starts, func() error { return l.virtualMachines(ctx, o, publicKey) })...)
}

// machines returns what to start, the slowest first, with all images in place.
func (l *Lab) machines(ctx context.Context, o Options) ([]machine, error) {
	var all []machine
	if o.OpenStack || o.OVN {
		all = append(all, controllerMachine(o.OVN))
	}
	if len(o.Hosts) > 0 {
		store, err := l.imageScript(ctx, "store.sh", o.storeImages()...)
		if err != nil {
			return nil, err
		}
		for _, h := range o.Hosts {
			all = append(all, machine{Host: h, image: hostImage, store: store})
		}
	}
	return all, l.loadHostImages(ctx, all)
}

// sshKeyPair returns the public half of the lab's SSH key, made once.
func (l *Lab) sshKeyPair(ctx context.Context) (string, error) {
	if err := os.MkdirAll(filepath.Dir(l.sshKey()), 0o700); err != nil {
		return "", err
	}
	if _, err := os.Stat(l.sshKey() + ".pub"); err != nil {
		if _, err := command(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "edpm-lab", "-f", l.sshKey()); err != nil {
			return "", err
		}
	}
	public, err := os.ReadFile(l.sshKey() + ".pub")
	return string(public), err
}

func (l *Lab) hostsNetwork(ctx context.Context) error {
	if _, err := command(ctx, "podman", "network", "exists", hostsNetwork); err == nil {
		return nil
	}
	if err := networkIsFree(); err != nil {
		return err
	}
	_, err := command(ctx, "podman", "network", "create", "--label", l.label(), "--subnet", hostsCIDR, hostsNetwork)
	return err
}

// networkIsFree returns an error that names the interface with an address in the network of the hosts, if there is one:
// libvirt's own default network is the same.
func networkIsFree() error {
	_, network, _ := net.ParseCIDR(hostsCIDR)
	interfaces, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, i := range interfaces {
		addresses, _ := i.Addrs() // an interface can disappear meanwhile
		for _, a := range addresses {
			if ip, _, err := net.ParseCIDR(a.String()); err == nil && network.Contains(ip) {
				return fmt.Errorf("interface %s has the address %s, but %s is the network of the lab's hosts: "+
					"remove the interface (virsh net-destroy default, if it is libvirt's; otherwise ip link delete %s) and try again", i.Name, a, hostsCIDR, i.Name)
			}
		}
	}
	return nil
}

// loadHostImages makes the images of machines known to podman, each once.
func (l *Lab) loadHostImages(ctx context.Context, machines []machine) error {
	loaded := map[string]bool{}
	for _, m := range machines {
		if loaded[m.image] {
			continue
		}
		loaded[m.image] = true
		if err := l.loadHostImage(ctx, m.image); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) loadHostImage(ctx context.Context, name string) error {
	archives, err := l.archives(ctx, []string{name})
	if err != nil {
		return err
	}
	if _, err := command(ctx, "podman", "image", "exists", imageTag(name)); err != nil { // someone pruned it
		_ = os.Remove(l.importStamp("podman", []string{imageTag(name)}))
	}
	return l.once("podman", archives[0], func() error {
		_, err := command(ctx, "podman", "load", "--quiet", "--input", archives[0])
		return err
	})
}

// startHost creates the host, or starts it if it stopped. It returns whether it
// did either. A host that ended together with the process of podman that watches it
// runs forever in the eyes of podman, which can only remove it.
func (l *Lab) startHost(ctx context.Context, m machine) (bool, error) {
	state, err := command(ctx, "podman", "container", "inspect", "--format",
		`{{.State.Status}} {{.State.Pid}} {{.Id}} {{index .Config.Labels "`+hostLabel+`"}}`, m.Name)
	if err != nil {
		return true, l.createHost(ctx, m)
	}
	var status, pid, id, owner string
	if _, err := fmt.Sscan(state, &status, &pid, &id, &owner); err != nil || owner != l.Dir {
		return false, foreignHost(m.Name, owner)
	}
	if runs(pid, id) {
		return false, nil
	}
	if status == "created" || status == "exited" {
		_, err = l.podman(ctx, "--runtime", "runc", "start", m.Name)
		return true, err
	}
	if _, err := l.podman(ctx, "--runtime", "runc", "rm", "--force", "--time", "0", m.Name); err != nil {
		return false, err
	}
	return true, l.createHost(ctx, m)
}

// foreignHost says that a host has the name of a container of another lab, or of
// no one's.
func foreignHost(name, owner string) error {
	if owner == "" {
		return fmt.Errorf("podman has a container %s that no lab made: remove it, podman rm --force %s", name, name)
	}
	return fmt.Errorf("host %s belongs to the lab in %s: %s", name, owner, otherDown(tagPrefix+owner))
}

// runs returns whether the process is there and is the container's.
func runs(pid, container string) bool {
	groups, err := os.ReadFile(filepath.Join("/proc", pid, "cgroup"))
	return err == nil && strings.Contains(string(groups), container)
}

func (l *Lab) createHost(ctx context.Context, m machine) error {
	args := []string{"--runtime", "runc", "create", "--name", m.Name, "--hostname", m.Name, "--label", l.label(),
		"--privileged", "--cgroupns=private",
		"--network", hostsNetwork,
	}
	if m.IP != "" {
		args = append(args, "--ip", m.IP)
	}
	if m.drive != "" {
		args = append(args, "--mac-address", m.mac, "--volume", m.drive+":/var/lib/cloud/seed/config_drive:ro")
	}
	if m.store != "" {
		volume, err := l.hostVolume(ctx, m.Host)
		if err != nil {
			return err
		}
		// podman inside the host keeps its layers in the volume: overlay on overlay is refused.
		args = append(args, "--volume", volume+":/var/lib/containers", "--volume", m.store+":"+imageStore+":ro")
	}
	args = append(args, systemdMode()...)
	args = append(args, ulimits()...)
	args = append(args, imageTag(m.image), "/sbin/init")
	if _, err := command(ctx, "podman", args...); err != nil {
		return err
	}
	_, err := l.podman(ctx, "--runtime", "runc", "start", m.Name)
	return err
}

// label marks what podman makes for this lab.
func (l *Lab) label() string { return hostLabel + "=" + l.Dir }

// hostVolume returns the volume of a host, made once.
func (l *Lab) hostVolume(ctx context.Context, h Host) (string, error) {
	volume := volumeOf(h.Name)
	if _, err := command(ctx, "podman", "volume", "exists", volume); err == nil {
		return volume, nil
	}
	_, err := command(ctx, "podman", "volume", "create", "--label", l.label(), volume)
	return volume, err
}

func volumeOf(host string) string { return "edpm-lab-" + host }

// systemdMode is what --systemd=always does, but for one thing: on cgroup v1
// podman would give every host the name=systemd hierarchy of this machine, where
// the units of all hosts, and of the machine itself, would get in each other's way.
func systemdMode() []string {
	return []string{
		"--systemd=false", "--env", "container=podman", "--stop-signal", "SIGRTMIN+3",
		"--tmpfs", "/run:rw,mode=755", "--tmpfs", "/run/lock", "--tmpfs", "/tmp",
	}
}

// ulimits keeps the host's limits at or under this process's hard limits:
// podman's own defaults are higher and fail without CAP_SYS_RESOURCE. The caps
// are enough for a host, and under kernel.pid_max, to which podman lowers its own.
func ulimits() []string {
	const rlimitNproc = 6 // on Linux; absent from package syscall
	return []string{
		"--ulimit", ulimit("nofile", syscall.RLIMIT_NOFILE, 65536),
		"--ulimit", ulimit("nproc", rlimitNproc, 16384),
	}
}

func ulimit(name string, resource int, ceiling uint64) string {
	var hard syscall.Rlimit
	if syscall.Getrlimit(resource, &hard) == nil {
		ceiling = min(ceiling, hard.Max)
	}
	return fmt.Sprintf("%s=%d:%d", name, ceiling, ceiling)
}

// hostReady waits for systemd, lets the lab's key in, and waits for sshd and what
// else makes the host ready.
func (l *Lab) hostReady(ctx context.Context, m machine, publicKey string, started bool) error {
	begin := time.Now()
	err := waitFor(ctx, "systemd on "+m.Name, func(ctx context.Context) error {
		// A degraded system is up, and makes is-system-running exit with 1.
		state, err := command(ctx, "podman", "exec", m.Name, "sh", "-c", "systemctl is-system-running || true")
		if err == nil && state != "running" && state != "degraded" {
			err = fmt.Errorf("systemd is %s", state)
		}
		return err
	})
	if err != nil {
		return err
	}
	if _, err := commandWithInput(ctx, publicKey, "podman", "exec", "-i", m.Name, "sh", "-c", authorizeScript); err != nil {
		return err
	}
	if err := hideDevice(ctx, m.Name); err != nil {
		return err
	}
	if err := waitFor(ctx, "sshd on "+m.Name, func(ctx context.Context) error { return sshAnswers(ctx, m.IP) }); err != nil {
		return err
	}
	if m.ready != nil {
		if err := m.ready(ctx); err != nil {
			return err
		}
	}
	if started {
		l.logf("%s is ready at %s (%.1fs)", m.Name, m.IP, time.Since(begin).Seconds())
	}
	return nil
}

// hideDevice removes the device of KVM where the machine has it without virtualization: what
// libvirt remembers of QEMU would never be valid, and each start of a guest would ask it again.
func hideDevice(ctx context.Context, host string) error {
	if VirtType() == "kvm" {
		return nil
	}
	_, err := command(ctx, "podman", "exec", host, "rm", "-f", "/dev/kvm")
	return err
}

func sshAnswers(ctx context.Context, ip string) error {
	dialer := net.Dialer{Timeout: 2 * time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(ip, "22"))
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	banner, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && !strings.HasPrefix(banner, "SSH-") {
		err = fmt.Errorf("%s:22 says %q", ip, banner)
	}
	return err
}

// removeHosts removes the lab's hosts, their volumes and their network.
func (l *Lab) removeHosts(ctx context.Context) error {
	if _, err := exec.LookPath("podman"); err != nil {
		return nil
	}
	filter := "label=" + l.label()
	for _, kind := range []struct{ list, remove []string }{
		{[]string{"ps", "--all", "--quiet"}, []string{"rm", "--force", "--time", "0"}},
		{[]string{"volume", "ls", "--quiet"}, []string{"volume", "rm"}},
		{[]string{"network", "ls", "--quiet"}, []string{"network", "rm"}},
	} {
		ids, err := command(ctx, "podman", append(kind.list, "--filter", filter)...)
		if err != nil {
			return err
		}
		for _, id := range strings.Fields(ids) {
			if _, err := l.podman(ctx, append(kind.remove, id)...); err != nil {
				return err
			}
		}
	}
	return nil
}

// SSHCommand returns the command line that reaches [user@]host as Ansible would,
// by default as cloud-admin.
func (l *Lab) SSHCommand(ctx context.Context, target string, args []string) ([]string, error) {
	user, name, ok := strings.Cut(target, "@")
	if !ok {
		user, name = "cloud-admin", target
	}
	ip, err := l.hostAddress(ctx, name)
	if err != nil || ip == "" {
		return nil, errors.Join(fmt.Errorf("no running host %s", name), err)
	}
	return l.sshTo(user, ip, args), nil
}

func (l *Lab) hostAddress(ctx context.Context, name string) (string, error) {
	if address, err := l.vmAddress(name); err == nil {
		return address, nil
	}
	return command(ctx, "podman", "container", "inspect", "--format",
		`{{(index .NetworkSettings.Networks "`+hostsNetwork+`").IPAddress}}`, name)
}

func (l *Lab) sshTo(user, ip string, args []string) []string {
	ssh := []string{"/usr/bin/ssh", "-i", l.sshKey(), "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=no",
		"-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "ConnectTimeout=5", user + "@" + ip}
	return append(ssh, args...)
}
