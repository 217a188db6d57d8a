package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	crenvtest "sigs.k8s.io/controller-runtime/pkg/envtest"
)

//go:embed stage.yaml
var stage []byte

// kwokNodes is how many pretend nodes the Pods of runs are spread over.
const kwokNodes = 8

// lab is a control plane of the bench's own.
type lab struct {
	program, dir string
	port         int
}

// build compiles the lab and the manager.
func (b *bench) build(ctx context.Context) error {
	for _, program := range []string{"test/lab", "cmd/manager"} {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", b.dir+"/", "./"+program)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("building %s (run this from the root of the repository): %w", program, err)
		}
	}
	return os.WriteFile(filepath.Join(b.dir, "stage.yaml"), stage, 0o644)
}

func (b *bench) newLab(n int) *lab {
	return &lab{program: filepath.Join(b.dir, "lab"), dir: filepath.Join(b.dir, "lab-"+strconv.Itoa(n)), port: b.port}
}

func (l *lab) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, l.program, args...)
	cmd.Env = append(os.Environ(), "EDPM_LAB_DIR="+l.dir, "EDPM_LAB_PORT_BASE="+strconv.Itoa(l.port))
	cmd.Stderr = os.Stderr
	// A signal to the bench must not end it half-way: the bench does.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// up starts the control plane with the suite's kinds and returns how to reach
// it, without a limit on requests.
func (l *lab) up(ctx context.Context, stages string) (*rest.Config, error) {
	if err := l.command(ctx, "up", "--no-kubelet", "--kwok-nodes", strconv.Itoa(kwokNodes), "--stages", stages).Run(); err != nil {
		return nil, fmt.Errorf("starting the lab: %w", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", l.kubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	crds := crenvtest.CRDInstallOptions{Paths: []string{filepath.Join("config", "crd", "bases")}, ErrorIfPathMissing: true}
	if _, err := crenvtest.InstallCRDs(config, crds); err != nil {
		return nil, fmt.Errorf("installing the CRDs: %w", err)
	}
	return config, nil
}

// down stops everything, whatever has become of the bench: it is tried again
// when whoever interrupted the bench interrupts it too.
func (l *lab) down() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var err error
	for range 3 {
		if err = l.command(ctx, "down").Run(); err == nil {
			return
		}
		time.Sleep(time.Second)
	}
	log.Printf("Failed to take the lab down: run EDPM_LAB_DIR=%s go run ./test/lab down: %v", l.dir, err)
}

func (l *lab) kubeconfig() string { return filepath.Join(l.dir, "kubeconfig") }

// cpu returns the processor time of each process of the control plane.
func (l *lab) cpu() map[string]time.Duration {
	used := map[string]time.Duration{}
	records, _ := filepath.Glob(filepath.Join(l.dir, "run", "*.json")) // the pattern is well formed
	for _, file := range records {
		var record struct {
			PID int `json:"pid"`
		}
		text, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(text, &record) != nil {
			continue
		}
		name := filepath.Base(file)
		used[name[:len(name)-len(".json")]] = cpuTime(record.PID)
	}
	return used
}
