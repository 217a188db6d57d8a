// Package binaries builds the Kubernetes executables of the lab from pinned Go
// modules, once per set of pins. No ready-made binaries are downloaded, so the
// module proxy is the only thing a machine must reach.
package binaries

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The versions are those of the modules beside this package; a test holds them equal.
const (
	KubernetesVersion = "1.37.1"
	EtcdVersion       = "3.6.8"
	KwokVersion       = "0.8.0"
)

// StagesFile, in the directory that Ensure returns, holds KWOK's own default
// stages of the same version: nodes turn Ready, pods run, pods of Jobs complete.
const StagesFile = "kwok-stages.yaml"

// kubeComponents are the names that the multi-call executable answers to.
var kubeComponents = []string{
	"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl",
}

var stageSources = []string{
	"node/fast/node-initialize.yaml",
	"node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
	"pod/fast/pod-ready.yaml",
	"pod/fast/pod-complete.yaml",
	"pod/fast/pod-delete.yaml",
}

type target struct {
	module, output, pkg, ldflags string
}

var targets = []target{
	{"etcd", "etcd", "go.etcd.io/etcd/server/v3", ""},
	{"kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", ""},
	{"kube", "kube", ".", "-X k8s.io/component-base/version.gitVersion=v" + KubernetesVersion},
}

// Builder finds or makes the executables.
type Builder struct {
	// Source is the directory of the modules (test/lab/binaries).
	Source string
	// Cache is the directory under which each set of pins gets its own.
	Cache string
	Logf  func(format string, args ...any)
}

// Ensure returns the directory that holds the executables, building them first
// if this set of pins was never built: some ten minutes on two cores. It needs
// no privilege, and may run in several processes at once.
func (b *Builder) Ensure(ctx context.Context) (string, error) {
	dir, err := b.dir()
	if err != nil {
		return "", err
	}
	if isDir(dir) {
		return dir, nil
	}
	unlock, err := lock(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if isDir(dir) { // another process built it while this one waited
		return dir, nil
	}
	return dir, b.buildInto(ctx, dir)
}

// dir names the cache entry after the versions, and after a hash of what pins
// everything else.
func (b *Builder) dir() (string, error) {
	h := sha256.New()
	for _, t := range targets {
		for _, file := range []string{"go.mod", "go.sum", "main.go"} {
			content, err := os.ReadFile(filepath.Join(b.Source, t.module, file))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", err
			}
			fmt.Fprintf(h, "%s/%s %d\n%s", t.module, file, len(content), content)
		}
	}
	name := fmt.Sprintf("k8s%s-etcd%s-kwok%s-%s", KubernetesVersion, EtcdVersion, KwokVersion,
		hex.EncodeToString(h.Sum(nil))[:12])
	return filepath.Join(b.Cache, name), nil
}

// buildInto builds beside dir and renames, so that dir is whole or absent.
func (b *Builder) buildInto(ctx context.Context, dir string) error {
	tmp, err := os.MkdirTemp(b.Cache, ".building-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	b.Logf("Building Kubernetes executables into %s (about 10 min the first time)", dir)
	for _, t := range targets {
		if err := b.build(ctx, t, tmp); err != nil {
			return err
		}
	}
	for _, name := range kubeComponents {
		if err := os.Symlink("kube", filepath.Join(tmp, name)); err != nil {
			return err
		}
	}
	if err := b.copyStages(ctx, filepath.Join(tmp, StagesFile)); err != nil {
		return err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}

func (b *Builder) build(ctx context.Context, t target, outDir string) error {
	start := time.Now()
	ldflags := strings.TrimSpace("-s -w " + t.ldflags)
	_, err := b.goCommand(ctx, t.module, "build", "-ldflags", ldflags, "-o", filepath.Join(outDir, t.output), t.pkg)
	if err != nil {
		return fmt.Errorf("building %s: %w", t.output, err)
	}
	b.Logf("Built %s in %s", t.output, time.Since(start).Round(time.Second))
	return nil
}

// copyStages takes the stages out of the module itself: they match the executable.
func (b *Builder) copyStages(ctx context.Context, path string) error {
	out, err := b.goCommand(ctx, "kwok", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok")
	if err != nil {
		return fmt.Errorf("finding the source of kwok: %w", err)
	}
	var all bytes.Buffer
	for _, source := range stageSources {
		stage, err := os.ReadFile(filepath.Join(strings.TrimSpace(out), "kustomize/stage", source))
		if err != nil {
			return err
		}
		fmt.Fprintf(&all, "---\n%s\n", bytes.TrimSpace(stage))
	}
	return os.WriteFile(path, all.Bytes(), 0o644)
}

func (b *Builder) goCommand(ctx context.Context, module string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(b.Source, module)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s in %s: %w\n%s", args[0], module, err, stderr.String())
	}
	return string(out), nil
}

// lock takes an exclusive lock that the kernel drops when the process ends.
func lock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
