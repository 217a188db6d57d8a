package roles

import (
	"os"
	"os/exec"
	"testing"

	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
)

func TestRolesOnARealHost(t *testing.T) { run(t, "test_roles.py") }

func TestHostsOfOtherTools(t *testing.T) { run(t, "test_other_tools.py") }

func TestDisksOfGuestsBetweenRealHosts(t *testing.T) { run(t, "test_cold_migration.py") }

// What depends on podman more than on the roles: libvirt and its guests.
func TestLibvirtOnARealHostOfTheNextRelease(t *testing.T) {
	if !tier.All() {
		t.Skip("E2E_LONG=1 is not set: the image of the host would have to be built, and the tests run twice")
	}
	t.Setenv("EDPM_HOST_SUITE", "trixie")
	run(t, "test_roles.py", "LibvirtGuestsTest", "LibvirtConfigurationTest")
}

func TestRolesOfOVNOnARealHost(t *testing.T) {
	if !tier.All() {
		t.Skip("E2E_LONG=1 is not set: the images of OVN would have to be built")
	}
	run(t, "test_ovn.py")
}

func TestPlaysOfClassesOnARealHost(t *testing.T) {
	if !tier.All() {
		t.Skip("E2E_LONG=1 is not set: the image of cinder-volume would have to be built")
	}
	run(t, "test_classes.py")
}

// run runs tests of roles on a host of their own: all of the file, or those cases.
func run(t *testing.T, file string, cases ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("a host with systemd is started")
	}
	if os.Geteuid() != 0 {
		t.Fatal("the tests of the roles need root: a host with systemd is started; -short skips them")
	}
	cmd := exec.CommandContext(t.Context(), "python3", append([]string{"-B", "../../../ansible/tests/" + file, "-v"}, cases...)...)
	cmd.Env = append(os.Environ(), "EDPM_HOSTS_TEST=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatalf("running %s: %v", file, err)
	}
}
