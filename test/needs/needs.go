// Package needs says what a test needs of the machine.
package needs

import (
	"os"
	"os/exec"
)

// T is a *testing.T.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Ansible skips a test where a program of Ansible is not installed, and fails it in
// CI: a test that nobody runs proves nothing. hack/install-packages.sh installs it.
func Ansible(t T, program string) {
	t.Helper()
	_, err := exec.LookPath(program)
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("%s is not installed, and CI is set: install ansible-core", program)
	default:
		t.Skipf("%s is not installed", program)
	}
}
