package recovery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/edpm-operators/edpm-operators/test/e2e/internal/tier"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

// port is the first of those of the lab, next to those of the other suites.
const port = 29443

// lab is one that has a directory and no node.
type lab struct {
	*testing.T
	program, dir string
}

func newLab(t *testing.T, program string) lab {
	l := lab{t, program, filepath.Join(t.TempDir(), "lab")}
	t.Cleanup(func() {
		if out, err := l.run("down"); err != nil {
			t.Errorf("taking the lab down: %v: %s", err, out)
		}
	})
	return l
}

func (l lab) run(args ...string) (string, error) {
	return l.output(l.program, args...)
}

func (l lab) output(program string, args ...string) (string, error) {
	// Not that of the test, which has ended when the lab is taken down.
	cmd := exec.Command(program, args...)
	cmd.Dir = envtest.File()
	cmd.Env = append(os.Environ(), "EDPM_LAB_DIR="+l.dir, fmt.Sprintf("EDPM_LAB_PORT_BASE=%d", port), "KUBECONFIG="+filepath.Join(l.dir, "kubeconfig"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// up brings the lab up and returns what that said.
func (l lab) up() string {
	l.Helper()
	out, err := l.run("up", "--no-kubelet", "--kwok-nodes=1")
	if err != nil {
		l.Fatalf("bringing the lab up: %v: %s", err, out)
	}
	return out
}

func (l lab) kubectl(args ...string) (string, error) {
	l.Helper()
	binaries, err := exec.CommandContext(l.Context(), l.program, "binaries").Output()
	if err != nil {
		l.Fatal(err)
	}
	return l.output(filepath.Join(string(bytes.TrimSpace(binaries)), "kubectl"), args...)
}

// reboot kills what runs of the lab, and dates it back to an earlier boot.
func (l lab) reboot() {
	l.Helper()
	records, err := filepath.Glob(filepath.Join(l.dir, "run", "*.json"))
	if err != nil || len(records) == 0 {
		l.Fatalf("the records of processes are %v (%v)", records, err)
	}
	for _, path := range records {
		record := map[string]any{}
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, &record)
		}
		if err == nil {
			err = syscall.Kill(int(record["pid"].(float64)), syscall.SIGKILL)
		}
		record["bootID"] = "an earlier boot"
		if text, _ = json.Marshal(record); err == nil { // it was read from JSON
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			l.Fatalf("playing a reboot, %s: %v", path, err)
		}
	}
}

func TestALab(t *testing.T) {
	if testing.Short() || !tier.All() {
		t.Skip("a control plane is started twice: set E2E_LONG=1")
	}
	program := filepath.Join(t.TempDir(), "lab")
	if out, err := (lab{T: t}).output("go", "build", "-o", program, "./test/lab"); err != nil {
		t.Fatalf("building the lab: %v: %s", err, out)
	}
	one := newLab(t, program)
	one.up()
	if out, err := one.kubectl("create", "configmap", "before"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	t.Run("is not disturbed by another one that wants its ports", func(t *testing.T) {
		out, err := newLab(t, program).run("up", "--no-kubelet")
		if err == nil || !strings.Contains(out, "EDPM_LAB_PORT_BASE") {
			t.Errorf("up of the second lab says (%v): %s", err, out)
		}
		if out, err := one.run("status"); err != nil {
			t.Errorf("the first one is disturbed: %v: %s", err, out)
		}
	})

	t.Run("starts again from scratch when the machine was rebooted", func(t *testing.T) {
		one.reboot()
		if out := one.up(); !strings.Contains(out, "rebooted") {
			t.Errorf("up does not say what has happened: %s", out)
		}
		if out, err := one.kubectl("get", "configmap", "before"); err == nil || !strings.Contains(out, "NotFound") {
			t.Errorf("the cluster is not a new one (%v): %s", err, out)
		}
		if out := one.up(); strings.Contains(out, "rebooted") {
			t.Errorf("one more up removes the new lab: %s", out)
		}
	})
}
