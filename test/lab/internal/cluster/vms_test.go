package cluster

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/edpm-operators/edpm-operators/test/lab/internal/proc"
)

func TestADiskGetsTheIdentityOfItsHost(t *testing.T) {
	for _, program := range []string{"mkfs.ext4", "debugfs"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is missing: apt-get install e2fsprogs", program)
		}
	}
	root, disk := t.TempDir(), filepath.Join(t.TempDir(), "root.raw")
	for _, dir := range []string{"etc/systemd/network", "etc/edpm-lab", "etc/modprobe.d"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "etc", "hostname"), []byte("another\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := command(t.Context(), "mkfs.ext4", "-q", "-F", "-d", root, disk, "8M"); err != nil {
		t.Fatal(err)
	}
	files := identityOf(Host{Name: "edpm-vm-0", IP: "192.168.122.150"}, "ssh-ed25519 AAAA\n")
	if err := writeToDisk(t.Context(), disk, files); err != nil {
		t.Fatal(err)
	}
	listing, err := command(t.Context(), "debugfs", "-R", "stat /etc/systemd/network/90-lab.network", disk)
	if err != nil || !strings.Contains(listing, "Mode:  0644") {
		t.Errorf("services cannot read the file: %s (%v)", listing, err)
	}
}

func TestWritingToADiskWithoutTheDirectoryFails(t *testing.T) {
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		t.Skip("mkfs.ext4 is missing: apt-get install e2fsprogs")
	}
	disk := filepath.Join(t.TempDir(), "root.raw")
	if _, err := command(t.Context(), "mkfs.ext4", "-q", "-F", disk, "8M"); err != nil {
		t.Fatal(err)
	}
	err := writeToDisk(t.Context(), disk, map[string]string{"/etc/hostname": "edpm-vm-0\n"})
	if err == nil || !strings.Contains(err.Error(), "/etc/hostname") {
		t.Errorf("error is %v, want one that names the file", err)
	}
}

func TestAVirtualMachineTellsWhoseItIs(t *testing.T) {
	lab := testLab(t)
	c := lab.vm(VMs(2)[1])
	if !proc.Mentions(lab.Dir+"/", emulator)(append([]string{"/usr/bin/" + emulator}, c.Argv[1:]...)) {
		t.Errorf("nothing in %q is in %s", c.Argv, lab.Dir)
	}
	if !slices.Contains(c.Argv, "tap,id=nic,ifname=edpmvm151,script=no,downscript=no") {
		t.Errorf("%q does not have the tap of its address", c.Argv)
	}
}

// The cache has one disk of each kind: that of a machine stays when there is a newer one.
func TestADiskThatIsReadOutlivesTheOneOfTheCache(t *testing.T) {
	dir := t.TempDir()
	disk, own := filepath.Join(dir, "images.raw"), filepath.Join(dir, "own.raw")
	if err := os.WriteFile(disk, []byte("images"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(keep(disk, own), os.Remove(disk)); err != nil {
		t.Fatal(err)
	}
	if have, err := os.ReadFile(own); err != nil || string(have) != "images" {
		t.Errorf("the machine has %q, %v", have, err)
	}
}

func TestPowerNamesWhatIsWrong(t *testing.T) {
	lab := testLab(t)
	if err := lab.Power(t.Context(), "edpm-vm-0", "off"); err == nil || !strings.Contains(err.Error(), "lab up --vms") {
		t.Errorf("error is %v, want one that says how there would be one", err)
	}
	if err := os.MkdirAll(lab.vmDir("edpm-vm-0"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(lab.vmDir("edpm-vm-0"), "address"), []byte("192.168.122.150"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := lab.Power(t.Context(), "edpm-vm-0", "sleep"); err == nil || !strings.Contains(err.Error(), `not "sleep"`) {
		t.Errorf("error is %v, want one that names the state", err)
	}
	if !slices.Contains(lab.processNames(), "vm-edpm-vm-0") {
		t.Errorf("down would leave it: %q", lab.processNames())
	}
}
