package roles

import (
	"os"
	"os/exec"
	"testing"

	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
)

func TestRolesOnARealHost(t *testing.T) { run(t, "test_roles.py") }

func TestHostsOfOtherTools(t *testing.T) { run(t, "test_other_tools.py") }
func TestRolesOnARealHostOfTheNextRelease(t *testing.T) {
	if !tier.All() {
		t.Skip("E2E_LONG=1 is not set: the image of the host would have to be built, and the tests run twice")
	}
	run(t, "test_roles.py", "EDPM_HOST_SUITE=trixie")
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

// run runs tests of roles on a host of their own, with more in their environment.
func run(t *testing.T, file string, environment ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("a host with systemd is started")
	}
	if os.Geteuid() != 0 {
		t.Fatal("the tests of the roles need root: a host with systemd is started; -short skips them")
	}
	cmd := exec.CommandContext(t.Context(), "python3", "-B", "../../../ansible/tests/"+file, "-v")
	cmd.Env = append(append(os.Environ(), "EDPM_HOSTS_TEST=1"), environment...)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatalf("running %s: %v", file, err)
	}
}
