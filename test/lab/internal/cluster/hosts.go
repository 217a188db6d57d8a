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

const (
	hostImage     = "localhost/edpm-host:latest"
	hostImageName = "edpm-host"
	hostLabel     = "edpm-lab"
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

// hosts starts the EDPM hosts and waits until each takes Ansible's connections.
func (l *Lab) hosts(ctx context.Context, hosts []Host) error {
	if len(hosts) == 0 {
		return nil
	}
	publicKey, err := l.sshKeyPair(ctx)
	if err != nil {
		return err
	}
	if err := l.hostPrerequisites(ctx); err != nil {
		return err
	}
	store, err := l.imageScript(ctx, "store.sh")
	if err != nil {
		return err
	}
	var starts []func() error
	for _, h := range hosts {
		started, err := l.startHost(ctx, h, store) // one at a time: podman locks its store
		if err != nil {
			return err
		}
		starts = append(starts, func() error { return l.hostReady(ctx, h, publicKey, started) })
	}
	return parallel(starts...)
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

func (l *Lab) hostPrerequisites(ctx context.Context) error {
	if err := l.loadHostImage(ctx); err != nil {
		return err
	}
	if _, err := command(ctx, "podman", "network", "exists", hostsNetwork); err == nil {
		return nil
	}
	_, err := command(ctx, "podman", "network", "create", "--label", hostLabel+"="+l.Dir, "--subnet", hostsCIDR, hostsNetwork)
	return err
}

func (l *Lab) loadHostImage(ctx context.Context) error {
	archives, err := l.archives(ctx, []string{hostImageName})
	if err != nil {
		return err
	}
	if _, err := command(ctx, "podman", "image", "exists", hostImage); err != nil { // someone pruned it
		_ = os.Remove(l.importStamp("podman", []string{hostImage}))
	}
	return l.once("podman", archives[0], func() error {
		_, err := command(ctx, "podman", "load", "--quiet", "--input", archives[0])
		return err
	})
}

// startHost creates the host, or starts it if it stopped. It returns whether it
// did either.
func (l *Lab) startHost(ctx context.Context, h Host, store string) (bool, error) {
	state, err := command(ctx, "podman", "container", "inspect", "--format",
		`{{.State.Status}} {{index .Config.Labels "`+hostLabel+`"}}`, h.Name)
	if err != nil {
		return true, l.createHost(ctx, h, store)
	}
	status, owner, _ := strings.Cut(state, " ")
	switch {
	case owner != l.Dir:
		return false, fmt.Errorf("podman has a container %s that is not this lab's", h.Name)
	case status == "running":
		return false, nil
	}
	_, err = command(ctx, "podman", "--runtime", "runc", "start", h.Name)
	return true, err
}

func (l *Lab) createHost(ctx context.Context, h Host, store string) error {
	volume := "edpm-lab-" + h.Name
	label := hostLabel + "=" + l.Dir
	if _, err := command(ctx, "podman", "volume", "exists", volume); err != nil {
		if _, err := command(ctx, "podman", "volume", "create", "--label", label, volume); err != nil {
			return err
		}
	}
	args := []string{"--runtime", "runc", "run", "--detach", "--name", h.Name, "--hostname", h.Name, "--label", label,
		"--privileged", "--cgroupns=private",
		"--network", hostsNetwork, "--ip", h.IP,
		// podman inside the host keeps its layers here: overlay on overlay is refused.
		"--volume", volume + ":/var/lib/containers",
		"--volume", store + ":" + imageStore + ":ro",
	}
	args = append(args, systemdMode()...)
	args = append(args, ulimits()...)
	args = append(args, hostImage, "/sbin/init")
	_, err := command(ctx, "podman", args...)
	return err
}

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

// hostReady waits for systemd, lets the lab's key in, and waits for sshd.
func (l *Lab) hostReady(ctx context.Context, h Host, publicKey string, started bool) error {
	begin := time.Now()
	err := waitFor(ctx, "systemd on "+h.Name, 2*time.Minute, func(ctx context.Context) error {
		// A degraded system is up, and makes is-system-running exit with 1.
		state, err := command(ctx, "podman", "exec", h.Name, "sh", "-c", "systemctl is-system-running || true")
		if err == nil && state != "running" && state != "degraded" {
			err = fmt.Errorf("systemd is %s", state)
		}
		return err
	})
	if err != nil {
		return err
	}
	if _, err := commandWithInput(ctx, publicKey, "podman", "exec", "-i", h.Name, "sh", "-c", authorizeScript); err != nil {
		return err
	}
	if err := waitFor(ctx, "sshd on "+h.Name, time.Minute, func(ctx context.Context) error { return sshAnswers(ctx, h.IP) }); err != nil {
		return err
	}
	if started {
		l.logf("%s is ready at %s (%.1fs)", h.Name, h.IP, time.Since(begin).Seconds())
	}
	return nil
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
	filter := "label=" + hostLabel + "=" + l.Dir
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
			if _, err := command(ctx, "podman", append(kind.remove, id)...); err != nil {
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
	ip, err := command(ctx, "podman", "container", "inspect", "--format",
		`{{(index .NetworkSettings.Networks "`+hostsNetwork+`").IPAddress}}`, name)
	if err != nil || ip == "" {
		return nil, errors.Join(fmt.Errorf("no running host %s", name), err)
	}
	ssh := []string{"/usr/bin/ssh", "-i", l.sshKey(), "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=no",
		"-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", user + "@" + ip}
	return append(ssh, args...), nil
}
