package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/edpm-operators/edpm-operators/test/lab/internal/proc"
)

// Down removes what the lab made, from whatever state it is in: processes by
// recorded identity and by command line, containers by cgroup, mounts by path,
// network and hosts by tag. It keeps logs and images, and everything it can
// remove it does remove, even when something else resists.
func (l *Lab) Down(ctx context.Context) error {
	if err := l.Validate(); err != nil {
		return err
	}
	if l.adopted() {
		unlock, err := l.lock()
		if err != nil {
			return err
		}
		defer unlock()
	} else {
		l.logf("There is no lab in %s; looking for what one left behind", l.Dir)
	}
	if err := l.remove(ctx); err != nil {
		return err
	}
	l.logf("The lab in %s is down; its logs and images stay", l.Dir)
	return nil
}

// remove takes every step, even when an earlier one has failed.
func (l *Lab) remove(ctx context.Context) error {
	var problems []error
	for _, step := range l.downSteps(ctx) {
		problems = append(problems, step())
	}
	return errors.Join(problems...)
}

// downSteps are in order: nothing is removed while something may still use it.
func (l *Lab) downSteps(ctx context.Context) []func() error {
	steps := []func() error{l.stopComponents}
	if os.Geteuid() == 0 { // without root nothing of this was made
		steps = append(steps,
			l.killPods,
			l.unmountAll,
			func() error { return l.removeNetwork(ctx) },
			func() error { return l.removeLinks(ctx, tapPrefix) }, // podman keeps a bridge that has members
			func() error { return l.removeHosts(ctx) },
			func() error { return l.removeLinks(ctx, "") },
			l.removeStrays,
		)
	}
	return append(steps, l.removeState)
}

// stopComponents ends users before what they use: the kubelet must not restart
// what is being stopped, and etcd goes last. Pods are killed afterwards.
func (l *Lab) stopComponents() error {
	var problems []error
	order := l.processNames()
	slices.Reverse(order)
	for _, name := range order {
		problems = append(problems, l.procs.Stop(name, 5*time.Second))
	}
	for _, id := range proc.Find(proc.Mentions(l.Dir+"/", append(componentNames(), emulator)...)) {
		l.logf("Killing %d, a component without a record", id.PID)
		problems = append(problems, proc.Kill(id))
	}
	return errors.Join(problems...)
}

// killPods ends containers without asking containerd, which may be dead: first
// the shims, which would report, then every process in the containers' cgroups.
func (l *Lab) killPods() error {
	var problems []error
	for _, id := range proc.Find(proc.Mentions(l.containerdSocket(), "containerd-shim-runc-v2")) {
		problems = append(problems, proc.Kill(id))
	}
	tasks, _ := filepath.Glob(filepath.Join(l.containerdState(), "io.containerd.runtime.v2.task", "k8s.io", "*"))
	for _, task := range tasks {
		for _, cgroup := range containerCgroups(filepath.Base(task)) {
			problems = append(problems, removeCgroup(cgroup))
		}
		removeShimSocket(task)
		removeAll("/var/lib/cni/results/*-" + filepath.Base(task) + "-*") // no CNI DEL will
	}
	return errors.Join(problems...)
}

// containerCgroups returns the cgroups of a container: one on cgroup v2, one for
// each controller on v1, both on a hybrid.
func containerCgroups(id string) []string {
	v1, _ := filepath.Glob("/sys/fs/cgroup/*/k8s.io/" + id)
	v2, _ := filepath.Glob("/sys/fs/cgroup/k8s.io/" + id)
	return append(v1, v2...)
}

// removeCgroup kills what runs in a cgroup and removes it and those below it.
func removeCgroup(root string) error {
	var dirs []string
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	slices.Reverse(dirs) // the deepest first
	for _, dir := range dirs {
		if err := emptyCgroup(dir); err != nil {
			return err
		}
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func emptyCgroup(dir string) error {
	for range 200 {
		procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		pids := strings.Fields(string(procs))
		if err != nil || len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			if n, err := strconv.Atoi(pid); err == nil && n > 1 {
				_ = syscall.Kill(n, syscall.SIGKILL)
			}
		}
		time.Sleep(25 * time.Millisecond)
	}
	return fmt.Errorf("processes in %s survive SIGKILL", dir)
}

// removeShimSocket removes the socket that a killed shim leaves in /run.
func removeShimSocket(task string) {
	address, err := os.ReadFile(filepath.Join(task, "address"))
	if path, ok := strings.CutPrefix(strings.TrimSpace(string(address)), "unix://"); err == nil && ok {
		_ = os.Remove(path)
	}
}

// unmountAll unmounts everything under the lab's directory: root filesystems and
// network namespaces of pods, volumes of the kubelet.
func (l *Lab) unmountAll() error {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var problems []error
	for _, point := range mountsUnder(string(table), l.Dir) {
		if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
			problems = append(problems, fmt.Errorf("unmounting %s: %w", point, err))
		}
	}
	return errors.Join(problems...)
}

// mountsUnder returns the mount points below dir, the latest first, from a table
// in the format of /proc/<pid>/mountinfo (proc(5)).
func mountsUnder(mountinfo, dir string) []string {
	const mountPoint = 4
	var points []string
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) > mountPoint && strings.HasPrefix(fields[mountPoint], dir+"/") {
			points = append(points, fields[mountPoint])
		}
	}
	slices.Reverse(points)
	return points
}

// removeStrays removes the few things that the kubelet and containerd put at
// fixed places, whatever their configuration says.
func (l *Lab) removeStrays() error {
	links, _ := filepath.Glob("/var/log/containers/*.log")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, l.Dir+"/") {
			_ = os.Remove(link)
		}
	}
	if _, err := os.Stat(l.path("kubelet")); err == nil {
		removeAll("/var/lib/kubelet/device-plugins/kubelet.sock", "/var/lib/kubelet/device-plugins", "/var/lib/kubelet")
	}
	// The parents of the containers' cgroups.
	removeAll("/sys/fs/cgroup/*/k8s.io", "/sys/fs/cgroup/k8s.io")
	return nil
}

// removeAll removes what the patterns match, but no directory that holds
// something: that has another owner.
func removeAll(patterns ...string) {
	for _, pattern := range patterns {
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			_ = os.Remove(path)
		}
	}
}

func (l *Lab) removeState() error {
	if !l.adopted() {
		return nil // whatever is there is not the lab's
	}
	var problems []error
	for _, name := range perishable {
		problems = append(problems, os.RemoveAll(l.path(name)))
	}
	return errors.Join(problems...)
}
