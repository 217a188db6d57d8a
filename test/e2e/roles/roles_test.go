package roles

import (
	"os"
	"os/exec"
	"testing"
)

func TestRolesOnARealHost(t *testing.T) {
	if testing.Short() {
		t.Skip("a host with systemd is started")
	}
	if os.Geteuid() != 0 {
		t.Fatal("the tests of the roles need root: a host with systemd is started; -short skips them")
	}
	cmd := exec.CommandContext(t.Context(), "python3", "-B", "../../../ansible/tests/test_roles.py", "-v")
	cmd.Env = append(os.Environ(), "EDPM_HOSTS_TEST=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatalf("running the tests of the roles: %v", err)
	}
}
