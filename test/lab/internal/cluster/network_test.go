package cluster

import (
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// inNetworkOfItsOwn gives the test a network namespace without any device but lo.
func inNetworkOfItsOwn(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a network namespace needs root")
	}
	runtime.LockOSThread() // for good: the thread ends with the test
	if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
}

func ip(t *testing.T, args string) string {
	t.Helper()
	out, err := command(t.Context(), "ip", strings.Fields(args)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestANetworkThatIsUsedNamesTheInterface(t *testing.T) {
	inNetworkOfItsOwn(t)
	if err := networkIsFree(); err != nil {
		t.Errorf("without interfaces: %v", err)
	}
	ip(t, "link add virbr0 type bridge")
	ip(t, "addr add 192.168.122.1/24 dev virbr0")
	err := networkIsFree()
	if err == nil {
		t.Fatal("libvirt's default network was not found")
	}
	for _, part := range []string{"virbr0", "192.168.122.1/24", "virsh net-destroy default", "ip link delete virbr0"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in: %v", part, err)
		}
	}
}

// The bridge of a lab whose hosts are all virtual machines is no container's: podman does not remove it.
func TestDownRemovesTheDevicesOfTheLabAlone(t *testing.T) {
	inNetworkOfItsOwn(t)
	lab := testLab(t)
	ip(t, "link add podman7 type bridge")
	ip(t, "link set podman7 alias "+lab.tag())
	ip(t, "link add edpmvm150 type bridge")
	ip(t, "link set edpmvm150 alias "+lab.tag())
	ip(t, "link add podman8 type bridge")
	ip(t, "link set podman8 alias "+lab.tag()+"-other")
	for _, step := range []struct{ prefix, gone, left string }{{tapPrefix, "edpmvm150", "podman7"}, {"", "podman7", "podman8"}} {
		if err := lab.removeLinks(t.Context(), step.prefix); err != nil {
			t.Fatal(err)
		}
		if links := ip(t, "link show"); strings.Contains(links, step.gone) || !strings.Contains(links, step.left) {
			t.Errorf("%s should be gone, %s should be left:\n%s", step.gone, step.left, links)
		}
	}
}
