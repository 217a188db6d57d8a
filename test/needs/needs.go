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
// CI: a test that no one runs proves nothing. hack/install-packages.sh installs it.
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

// Oslo skips a test where a Python interpreter has no oslo.config, and fails it in CI.
func Oslo(t T, python string) {
	t.Helper()
	out, err := exec.Command(python, "-c", "import oslo_config.cfg").CombinedOutput()
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("%s has no oslo.config, and CI is set: install python3-oslo.config: %v\n%s", python, err, out)
	default:
		t.Skipf("%s has no oslo.config (set EDPM_PYTHON to one that has): %v\n%s", python, err, out)
	}
}

// CloudInit returns the directory with the Python modules of the distribution's
// cloud-init, which hack/cloud-init.sh unpacks. Without it the test is skipped, and
// fails in CI.
func CloudInit(t T) string {
	t.Helper()
	return modules(t, unpacked("cloud-init"), "cloud-init", "cloudinit")
}

// IronicLib is CloudInit for ironic-lib, which hack/ironic-lib.sh unpacks.
func IronicLib(t T) string {
	t.Helper()
	return modules(t, unpacked("ironic-lib"), "ironic-lib", "ironic_lib")
}

// unpacked is where hack/unpack.sh puts modules.
func unpacked(name string) string {
	_, source, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(source), "..", "..", "bin", name, "usr", "lib", "python3", "dist-packages")
}

func modules(t T, dir, name, module string) string {
	t.Helper()
	_, err := os.Stat(filepath.Join(dir, module))
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("%s is not unpacked, and CI is set: run hack/%s.sh", name, name)
	default:
		t.Skipf("%s is not unpacked: run hack/%s.sh", name, name)
	}
	return dir
}
