// Package needs says what a test needs of the machine.
package needs

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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

// CloudInit returns the directory with the Python modules of the distribution's
// cloud-init, which hack/cloud-init.sh unpacks. Without it the test is skipped, and
// fails in CI.
func CloudInit(t T) string {
	t.Helper()
	_, source, _, _ := runtime.Caller(0)
	return modules(t, filepath.Join(filepath.Dir(source), "..", "..", "bin", "cloud-init", "usr", "lib", "python3", "dist-packages"))
}

func modules(t T, dir string) string {
	t.Helper()
	_, err := os.Stat(filepath.Join(dir, "cloudinit"))
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("cloud-init is not unpacked, and CI is set: run hack/cloud-init.sh")
	default:
		t.Skipf("cloud-init is not unpacked: run hack/cloud-init.sh")
	}
	return dir
}
