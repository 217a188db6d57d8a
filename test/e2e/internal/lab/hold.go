package lab

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Hold waits until no other test on the machine has the lab, and keeps it until the
// test has ended. There is one lab, and go test runs packages side by side.
func Hold(t *testing.T) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(os.TempDir(), "edpm-e2e-lab.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() }) // which lets go of it
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatalf("waiting for the lab: %v", err)
	}
}
