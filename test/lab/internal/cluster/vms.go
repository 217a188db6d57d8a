package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/edpm-operators/edpm-operators/test/lab/internal/proc"
)

// A virtual machine is a host with a kernel of its own: what it does with kernel arguments, devices and
// power is real. Its disk has the root file system of edpm-host, its serial console is its log.

// vmImage is what their disks are made of: edpm-host with a kernel and a boot loader.
const vmImage = "edpm-vm"

// tapPrefix begins the names of the network devices of virtual machines.
const tapPrefix = "edpmvm"

// vmPrefix begins the names of the processes of virtual machines.
const vmPrefix = "vm-"

// emulator runs them; without hardware virtualization it emulates their CPUs.
const emulator = "qemu-system-x86_64"

// VMs returns count hosts that are virtual machines.
func VMs(count int) []Host {
	var all []Host
	for i := range count {
		all = append(all, Host{Name: fmt.Sprintf("edpm-vm-%d", i), IP: fmt.Sprintf("192.168.122.%d", 150+i)})
	}
	return all
}

// disks of a virtual machine, in order of their names there: its own, that with the images that Ansible runs, and
// that of the boot loader.
type disks struct{ root, images, loader string }

// emptyDisks are those of test/lab/images/vm.sh, of a machine without a name.
func (l *Lab) emptyDisks(ctx context.Context, o Options) (disks, error) {
	out, err := l.imageScript(ctx, "vm.sh", o.storeImages()...)
	if err != nil {
		return disks{}, err
	}
	paths := strings.Fields(out)
	if len(paths) != 3 {
		return disks{}, fmt.Errorf("vm.sh printed %q, want three paths", out)
	}
	return disks{root: paths[0], loader: paths[1], images: paths[2]}, nil
}

// disksOf are those of a virtual machine of the lab.
func (l *Lab) disksOf(name string) disks {
	dir := l.vmDir(name)
	return disks{filepath.Join(dir, "root.raw"), filepath.Join(dir, "images.raw"), filepath.Join(dir, "loader.raw")}
}

// virtualMachines starts those that are asked for and waits until each takes Ansible's connections.
func (l *Lab) virtualMachines(ctx context.Context, o Options, publicKey string) error {
	if len(o.VMs) == 0 {
		return nil
	}
	empty, err := l.emptyDisks(ctx, o)
	if err != nil {
		return err
	}
	if err := l.hostsBridge(ctx); err != nil {
		return err
	}
	var starts []func() error
	for _, h := range o.VMs {
		starts = append(starts, func() error { return l.startVM(ctx, h, empty, publicKey) })
	}
	return parallel(starts...)
}

// startVM makes a virtual machine unless there is one of that name, and turns it on.
func (l *Lab) startVM(ctx context.Context, h Host, empty disks, publicKey string) error {
	if _, err := l.vmAddress(h.Name); err != nil { // there is none, or the command that made it was killed
		if err := l.makeVM(ctx, h, empty, publicKey); err != nil {
			return errors.Join(err, os.RemoveAll(l.vmDir(h.Name)))
		}
	}
	return l.powerOn(ctx, h.Name)
}

// makeVM writes all that a virtual machine is made of, last its address.
func (l *Lab) makeVM(ctx context.Context, h Host, empty disks, publicKey string) error {
	own := l.disksOf(h.Name)
	if err := errors.Join(os.RemoveAll(l.vmDir(h.Name)), os.MkdirAll(l.vmDir(h.Name), 0o700)); err != nil {
		return err
	}
	if _, err := command(ctx, "cp", "--sparse=always", empty.root, own.root); err != nil {
		return err
	}
	if err := writeToDisk(ctx, own.root, identityOf(h, publicKey)); err != nil {
		return err
	}
	return errors.Join(keep(empty.images, own.images), keep(empty.loader, own.loader),
		os.WriteFile(filepath.Join(l.vmDir(h.Name), "address"), []byte(h.IP), 0o600))
}

// keep gives a disk that is only read a second name: the cache forgets it when there is a newer one. On another file
// system the machine has to be made again then.
func keep(disk, name string) error {
	if os.Link(disk, name) == nil {
		return nil
	}
	return os.Symlink(disk, name)
}

// identityOf returns the files that make a disk the one of a host.
func identityOf(h Host, publicKey string) map[string]string {
	gateway := strings.TrimSuffix(hostsCIDR, "0/24") + "1"
	files := map[string]string{
		"/etc/hostname":    h.Name + "\n",
		"/etc/hosts":       "127.0.0.1 localhost\n" + h.IP + " " + h.Name + "\n",
		"/etc/resolv.conf": "nameserver " + gateway + "\n",
		// Behind what netplan writes for roles.
		"/etc/systemd/network/90-lab.network": "[Match]\nType=ether\n\n[Network]\nAddress=" + h.IP + "/24\n" +
			"Gateway=" + gateway + "\n",
		// sshd_config of edpm-host lets these keys into every account.
		"/etc/edpm-lab/authorized_keys": publicKey,
	}
	if VirtType() != "kvm" {
		// Emulated in emulation, libvirt's questions about it take minutes at each start.
		files["/etc/modprobe.d/edpm-lab.conf"] = "blacklist kvm_amd\nblacklist kvm_intel\n"
	}
	return files
}

// writeToDisk writes files to a disk with a file system of ext4 that is not mounted, in directories that it has.
func writeToDisk(ctx context.Context, disk string, files map[string]string) error {
	dir, err := os.MkdirTemp("", "edpm-lab-vm")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var script strings.Builder
	for path, content := range files {
		source := filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		if err := os.WriteFile(source, []byte(content), 0o644); err != nil {
			return err
		}
		// The mode of the source is that of a file of this process, whatever its umask is.
		fmt.Fprintf(&script, "rm %[2]s\nwrite %[1]s %[2]s\nset_inode_field %[2]s mode 0100644\n", source, path)
	}
	commands := filepath.Join(dir, "commands")
	if err := os.WriteFile(commands, []byte(script.String()), 0o600); err != nil {
		return err
	}
	_, err = command(ctx, "debugfs", "-w", "-f", commands, disk) // it reports no failure of a command
	return errors.Join(err, diskHas(ctx, disk, files))
}

func diskHas(ctx context.Context, disk string, files map[string]string) error {
	for path, content := range files {
		have, err := command(ctx, "debugfs", "-R", "cat "+path, disk)
		if err != nil || have != strings.TrimSpace(content) {
			return errors.Join(fmt.Errorf("%s could not be written to %s: it has %q", path, disk, have), err)
		}
	}
	return nil
}

// Power turns a virtual machine on or off, or off and on again: state is on, off or reset. Off is what the loss
// of power is: what the machine had not written to its disk is lost.
func (l *Lab) Power(ctx context.Context, name, state string) error {
	if _, err := os.Stat(filepath.Join(l.vmDir(name), "address")); err != nil {
		return fmt.Errorf("no virtual machine %s: lab up --vms makes them", name)
	}
	switch state {
	case "on":
		return l.powerOn(ctx, name)
	case "off":
		return l.powerOff(name)
	case "reset":
		return errors.Join(l.powerOff(name), l.powerOn(ctx, name))
	default:
		return fmt.Errorf("power is on, off or reset, not %q", state)
	}
}

func (l *Lab) powerOff(name string) error { return l.procs.Stop(vmPrefix+name, 5*time.Second) }

func (l *Lab) powerOn(ctx context.Context, name string) error {
	address, err := l.vmAddress(name)
	if err != nil {
		return err
	}
	if err := l.tap(ctx, Host{Name: name, IP: address}); err != nil {
		return err
	}
	return l.run(ctx, l.vm(Host{Name: name, IP: address}), func(ctx context.Context) error {
		argv := l.sshTo("cloud-admin", address, []string{"true"})
		_, err := command(ctx, argv[0], argv[1:]...)
		return err
	})
}

// vm is the process that a virtual machine is. The kernel and its arguments are those that the boot loader finds on
// the disk.
func (l *Lab) vm(h Host) proc.Component {
	accelerator, cpu := "tcg,thread=multi,tb-size=512", "max"
	if VirtType() == "kvm" {
		accelerator, cpu = "kvm", "host"
	}
	d := l.disksOf(h.Name)
	return proc.Component{Name: vmPrefix + h.Name, Argv: slices.Concat(
		[]string{emulator, "-name", h.Name, "-machine", "q35", "-accel", accelerator, "-cpu", cpu, "-smp", "2", "-m", "2048"},
		disk("root", d.root, "", ""), disk("images", d.images, ",readonly=on", ""), disk("loader", d.loader, ",readonly=on", ",bootindex=1"),
		[]string{"-netdev", "tap,id=nic,ifname=" + tapOf(h) + ",script=no,downscript=no", "-device", "virtio-net-pci,netdev=nic,mac=" + macOf(h),
			"-device", "virtio-rng-pci", "-display", "none", "-monitor", "none", "-serial", "stdio"},
	)}
}

// disk returns arguments of the emulator for a disk with further options of the file and of the device.
func disk(id, path, ofFile, ofDevice string) []string {
	return []string{"-drive", "if=none,format=raw,id=" + id + ",file=" + path + ofFile, "-device", "virtio-blk-pci,drive=" + id + ofDevice}
}

// tap makes the device that joins a virtual machine to the network of hosts.
func (l *Lab) tap(ctx context.Context, h Host) error {
	if _, err := os.Stat("/sys/class/net/" + tapOf(h)); err == nil {
		return nil
	}
	bridge, err := l.hostsInterface(ctx)
	if err != nil {
		return err
	}
	for _, args := range []string{"tuntap add dev " + tapOf(h) + " mode tap", "link set " + tapOf(h) + " alias " + l.tag() + " master " + bridge + " up"} {
		if _, err := command(ctx, "ip", strings.Fields(args)...); err != nil {
			return err
		}
	}
	return nil
}

// hostsInterface returns the name of the bridge of the network of hosts.
func (l *Lab) hostsInterface(ctx context.Context) (string, error) {
	return command(ctx, "podman", "network", "inspect", "--format", "{{.NetworkInterface}}", hostsNetwork)
}

// hostsBridge makes the bridge of the network of hosts as podman does for its first container.
func (l *Lab) hostsBridge(ctx context.Context) error {
	bridge, err := l.hostsInterface(ctx)
	if err != nil {
		return err
	}
	if _, err := os.Stat("/sys/class/net/" + bridge); err == nil {
		return nil
	}
	address := strings.Replace(hostsCIDR, ".0/", ".1/", 1)
	for _, args := range []string{"link add " + bridge + " type bridge", "addr add " + address + " dev " + bridge, "link set " + bridge + " alias " + l.tag() + " up"} {
		if _, err := command(ctx, "ip", strings.Fields(args)...); err != nil {
			return err
		}
	}
	return nil
}

// tapOf and macOf derive from the last number of the address, so that they stay.
func tapOf(h Host) string { return tapPrefix + lastNumber(h) }

func macOf(h Host) string {
	number, _ := strconv.Atoi(lastNumber(h)) // an address of hostsCIDR
	return fmt.Sprintf("52:54:00:65:70:%02x", number)
}

func lastNumber(h Host) string { return h.IP[strings.LastIndex(h.IP, ".")+1:] }

func (l *Lab) vmDir(name string) string { return l.path("vms", name) }

func (l *Lab) vmAddress(name string) (string, error) {
	address, err := os.ReadFile(filepath.Join(l.vmDir(name), "address"))
	return string(address), err
}

// vmHosts returns the virtual machines that the lab has, on or off.
func (l *Lab) vmHosts() []Host {
	dirs, _ := filepath.Glob(l.path("vms", "*"))
	var hosts []Host
	for _, dir := range dirs {
		if address, err := l.vmAddress(filepath.Base(dir)); err == nil {
			hosts = append(hosts, Host{Name: filepath.Base(dir), IP: address})
		}
	}
	return hosts
}
