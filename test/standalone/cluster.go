// Package standalone runs a control plane of its own, on loopback and without
// root, and the real manager next to it: test/lab without a kubelet, so that
// KWOK plays the nodes, while API server, scheduler and controllers are the
// real ones. The benchmark and the stories about topologies use it.
package standalone

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	crenvtest "sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/edpm-operators/edpm-operators/test/envtest"
)

// Build compiles the lab and other programs into the directory, for example
// ./cmd/manager, which StartManager needs.
func Build(ctx context.Context, dir string, others ...string) error {
	return build(ctx, append([]string{"-o", dir + "/", "./test/lab"}, others...)...)
}

// build compiles as go test does, whose cache then has all but the linking. Profiles do
// without what -s and -w leave out.
func build(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-ldflags", "-s -w"}, args...)...)
	cmd.Dir, cmd.Stderr = envtest.File(), os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// Edit replaces text in a source file, given by its path in the module.
type Edit struct{ File, Old, New string }

// BuildOther compiles another release of the manager into the directory: this one
// with the edits.
func BuildOther(ctx context.Context, dir string, edits ...Edit) error {
	overlay := map[string]string{}
	for i, e := range edits {
		source := envtest.File(e.File)
		text, err := os.ReadFile(cmp.Or(overlay[source], source))
		if err != nil {
			return err
		}
		if !bytes.Contains(text, []byte(e.Old)) {
			return fmt.Errorf("%s no longer has %q", e.File, e.Old)
		}
		edited := filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(edited, bytes.ReplaceAll(text, []byte(e.Old), []byte(e.New)), 0o600); err != nil {
			return err
		}
		overlay[source] = edited
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "overlay.json")
	return errors.Join(os.WriteFile(file, text, 0o600), build(ctx, "-overlay", file, "-o", dir+"/", "./cmd/manager"))
}

// Cluster is one control plane.
type Cluster struct {
	programs, dir string
	port          int
}

// New returns the control plane that keeps its files in dir and uses the ten
// ports from port on. The programs are those that Build made. It starts nothing.
func New(programs, dir string, port int) *Cluster {
	return &Cluster{programs: programs, dir: dir, port: port}
}

// With returns the same control plane with the manager of another directory.
func (c *Cluster) With(programs string) *Cluster {
	other := *c
	other.programs = programs
	return &other
}

// Up starts the control plane with the suite's kinds and returns how to reach
// it, without a limit on requests. The flags are those of "lab up", next to
// --no-kubelet.
func (c *Cluster) Up(ctx context.Context, flags ...string) (*rest.Config, error) {
	if err := c.command(ctx, append([]string{"up", "--no-kubelet"}, flags...)...).Run(); err != nil {
		return nil, fmt.Errorf("starting the lab: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	// A busy machine needs more than the ten seconds that are the default.
	crds := crenvtest.CRDInstallOptions{Paths: []string{envtest.File("config", "crd", "bases")}, ErrorIfPathMissing: true, MaxTime: time.Minute}
	if _, err := crenvtest.InstallCRDs(config, crds); err != nil {
		return nil, fmt.Errorf("installing the CRDs: %w", err)
	}
	return config, nil
}

// Down stops everything, whatever has become of the caller: it is tried again
// when whoever interrupted the caller interrupts it too.
func (c *Cluster) Down() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var err error
	for range 3 {
		if err = c.command(ctx, "down").Run(); err == nil {
			return
		}
		time.Sleep(time.Second)
	}
	log.Printf("Failed to take the lab down: run EDPM_LAB_DIR=%s go run ./test/lab down: %v", c.dir, err)
}

func (c *Cluster) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(c.programs, "lab"), args...)
	cmd.Env = append(os.Environ(), "EDPM_LAB_DIR="+c.dir, "EDPM_LAB_PORT_BASE="+strconv.Itoa(c.port))
	cmd.Dir, cmd.Stderr = envtest.File(), os.Stderr
	// A signal to the caller must not end it half-way: the caller does.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

// PIDs returns the processes of the control plane, by name.
func (c *Cluster) PIDs() map[string]int {
	pids := map[string]int{}
	records, _ := filepath.Glob(filepath.Join(c.dir, "run", "*.json")) // the pattern is well formed
	for _, file := range records {
		var record struct {
			PID int `json:"pid"`
		}
		text, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(text, &record) != nil {
			continue
		}
		name := filepath.Base(file)
		pids[name[:len(name)-len(".json")]] = record.PID
	}
	return pids
}
