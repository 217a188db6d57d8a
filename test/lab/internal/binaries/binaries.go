// Package binaries builds the executables of the lab from pinned Go modules, once
// per set of pins: those of Kubernetes, and on demand those of OLM. No ready-made
// binaries are downloaded, so the module proxy is the only thing a machine must
// reach.
//
// Those of Kubernetes have the dependencies of this project in the same versions, and
// are compiled with the flags that make test uses: what both have in common is compiled
// once.
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
)

// The versions are those of the modules next to this package; a test holds them equal.
const (
	KubernetesVersion = "1.37.1"
	EtcdVersion       = "3.7.0" // the one that this Kubernetes is released with
	KwokVersion       = "0.8.0"
	OLMVersion        = "0.46.0"
	OPMVersion        = "1.73.0"
)

// StagesFile, in the directory that Ensure returns, holds KWOK's own default
// stages of the same version: nodes turn Ready, pods run, pods of Jobs complete.
const StagesFile = "kwok-stages.yaml"

// OLMDefinitions is the directory, in that of OLM's executables, with the
// definitions of OLM's kinds.
const OLMDefinitions = "crds"

// kubeComponents are the names that the multi-call executable answers to.
var kubeComponents = []string{
	"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl",
}

var stageSources = []string{
	"node/fast/node-initialize.yaml",
	"node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
	"pod/fast/pod-ready.yaml",
	"pod/fast/pod-complete.yaml",
	"pod/fast/pod-delete.yaml",
}

type target struct {
	module, output, pkg, ldflags, tags string
	cgo                                bool
}

// Set is executables that are built and cached together.
type Set struct {
	// Title is what people call it.
	Title   string
	name    string
	targets []target
	// finish adds what is not built.
	finish func(ctx context.Context, b *Builder, dir string) error
}

// Kubernetes returns etcd, the components of Kubernetes with kubectl, and KWOK.
func Kubernetes() Set {
	return Set{
		Title: "executables",
		name:  fmt.Sprintf("k8s%s-etcd%s-kwok%s", KubernetesVersion, EtcdVersion, KwokVersion),
		targets: []target{
			{module: "kube", output: "kube", pkg: ".", ldflags: "-X k8s.io/component-base/version.gitVersion=v" + KubernetesVersion},
			{module: "kube", output: "etcd", pkg: "go.etcd.io/etcd/server/v3"},
			{module: "kube", output: "kwok", pkg: "sigs.k8s.io/kwok/cmd/kwok"},
		},
		finish: finishKubernetes,
	}
}

// OLM returns the operators of the Operator Lifecycle Manager, catalog and olm,
// opm, which needs a C compiler, and in OLMDefinitions the definitions of its kinds.
func OLM() Set {
	const manager = "github.com/operator-framework/operator-lifecycle-manager"
	return Set{
		Title: "executables of OLM",
		name:  fmt.Sprintf("olm%s-opm%s", OLMVersion, OPMVersion),
		targets: []target{
			{module: "olm", output: "catalog", pkg: manager + "/cmd/catalog", tags: "json1", cgo: true},
			{module: "olm", output: "olm", pkg: manager + "/cmd/olm", tags: "json1", cgo: true},
			{module: "olm", output: "opm", pkg: "github.com/operator-framework/operator-registry/cmd/opm", tags: "json1,containers_image_openpgp", cgo: true},
		},
		finish: func(ctx context.Context, b *Builder, dir string) error {
			return b.copyDefinitions(ctx, filepath.Join(dir, OLMDefinitions))
		},
	}
}

// Builder finds or makes the executables.
type Builder struct {
	// Source is the directory of the modules (test/lab/binaries).
	Source string
	// Cache is the directory under which each set of pins gets its own.
	Cache string
}

// Find returns the directory of the executables of the set, and whether they are built.
func (b *Builder) Find(set Set) (string, bool, error) {
	dir, err := b.dir(set)
	return dir, err == nil && isDir(dir), err
}

// Ensure returns the directory that holds the executables of the set, building
// them first if this set of pins was never built: some minutes on two cores. It
// needs no privilege, and may run in several processes at once.
func (b *Builder) Ensure(ctx context.Context, set Set) (string, error) {
	dir, built, err := b.Find(set)
	if err != nil || built {
		return dir, err
	}
	unlock, err := lock(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if isDir(dir) { // another process built it while this one waited
		return dir, nil
	}
	return dir, b.buildInto(ctx, set, dir)
}

// dir names the cache entry after the versions, and after a hash of what pins
// everything else.
func (b *Builder) dir(set Set) (string, error) {
	h := sha256.New()
	hashed := map[string]bool{}
	for _, t := range set.targets {
		if hashed[t.module] {
			continue
		}
		hashed[t.module] = true
		for _, file := range []string{"go.mod", "go.sum", "main.go"} {
			content, err := os.ReadFile(filepath.Join(b.Source, t.module, file))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", err
			}
			fmt.Fprintf(h, "%s/%s %d\n%s", t.module, file, len(content), content)
		}
	}
	return filepath.Join(b.Cache, set.name+"-"+hex.EncodeToString(h.Sum(nil))[:12]), nil
}

// buildInto builds next to dir and renames, so that dir is whole or absent.
func (b *Builder) buildInto(ctx context.Context, set Set, dir string) error {
	if err := removeUnfinished(dir); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(b.Cache, filepath.Base(dir)+unfinished)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	for _, t := range set.targets {
		if err := b.build(ctx, t, tmp); err != nil {
			return err
		}
	}
	if err := set.finish(ctx, b, tmp); err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(tmp, 0o755), flush(tmp)); err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}

// unfinished ends the name of the directory in which an entry is built.
const unfinished = ".building-*"

// removeUnfinished removes what builds of the entry have left that were killed. The
// caller has the lock of dir, so none of them runs.
func removeUnfinished(dir string) error {
	left, err := filepath.Glob(dir + unfinished)
	for _, path := range left {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

// flush writes the files of a directory to the disk: without that, a machine that loses
// its power may have the name of a file and not what is in it.
func flush(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Sync()
	})
}

func finishKubernetes(ctx context.Context, b *Builder, dir string) error {
	for _, name := range kubeComponents {
		if err := os.Symlink("kube", filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return b.copyStages(ctx, filepath.Join(dir, StagesFile))
}

func (b *Builder) build(ctx context.Context, t target, outDir string) error {
	ldflags := strings.TrimSpace("-s -w " + t.ldflags)
	_, err := b.goCommand(ctx, t.module, t.cgo, "build", "-tags", t.tags, "-ldflags", ldflags, "-o", filepath.Join(outDir, t.output), t.pkg)
	if err != nil {
		return fmt.Errorf("building %s: %w", t.output, err)
	}
	return nil
}

// copyDefinitions takes the resource definitions out of the module that the
// executables were built with.
func (b *Builder) copyDefinitions(ctx context.Context, dir string) error {
	source, err := b.moduleDir(ctx, "olm", "github.com/operator-framework/api")
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(source, "crds", "*.yaml"))
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// moduleDir returns where the source of a dependency is.
func (b *Builder) moduleDir(ctx context.Context, module, dependency string) (string, error) {
	out, err := b.goCommand(ctx, module, false, "list", "-m", "-f", "{{.Dir}}", dependency)
	if err != nil {
		return "", fmt.Errorf("finding the source of %s: %w", dependency, err)
	}
	return strings.TrimSpace(out), nil
}

// copyStages takes the stages out of the module itself: they match the executable.
func (b *Builder) copyStages(ctx context.Context, path string) error {
	dir, err := b.moduleDir(ctx, "kube", "sigs.k8s.io/kwok")
	if err != nil {
		return err
	}
	var all bytes.Buffer
	for _, source := range stageSources {
		stage, err := os.ReadFile(filepath.Join(dir, "kustomize/stage", source))
		if err != nil {
			return err
		}
		fmt.Fprintf(&all, "---\n%s\n", bytes.TrimSpace(stage))
	}
	return os.WriteFile(path, all.Bytes(), 0o644)
}

// goCommand runs Go without C where C is not needed, as make does: with it, Go compiles
// all that uses its package net another time. It takes memory rather than the time to
// collect garbage.
func (b *Builder) goCommand(ctx context.Context, module string, cgo bool, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(b.Source, module)
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOGC=400")
	if cgo {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	}
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
