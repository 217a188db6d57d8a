package binaries

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const modules = "../../binaries"

// The constants name the cache entry, so they must not drift from the pins.
func TestVersionsAreThoseOfTheModules(t *testing.T) {
	for module, line := range map[string]string{
		"kube": "k8s.io/kubernetes v" + KubernetesVersion,
		"etcd": "go.etcd.io/etcd/server/v3 v" + EtcdVersion,
		"kwok": "sigs.k8s.io/kwok v" + KwokVersion,
		"olm":  "github.com/operator-framework/operator-lifecycle-manager v" + OLMVersion,
	} {
		gomod, err := os.ReadFile(filepath.Join(modules, module, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(gomod), line) {
			t.Errorf("go.mod of %s lacks %q", module, line)
		}
	}
}

func TestAnotherPinIsAnotherCacheEntry(t *testing.T) {
	source := t.TempDir()
	if err := os.CopyFS(source, os.DirFS(modules)); err != nil {
		t.Fatal(err)
	}
	builder := Builder{Source: source, Cache: "/cache"}
	dir := func(set Set) string {
		path, err := builder.dir(set)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	kubernetes, olm := dir(Kubernetes()), dir(OLM())
	if err := os.WriteFile(filepath.Join(source, "etcd", "go.sum"), []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if dir(Kubernetes()) == kubernetes {
		t.Errorf("%s is used for two sets of pins", kubernetes)
	}
	if dir(OLM()) != olm {
		t.Errorf("a pin of etcd has OLM built again")
	}
}

// tiny is a set of one program that is built in no time.
func tiny(t *testing.T) (*Builder, Set) {
	t.Helper()
	source := t.TempDir()
	for name, content := range map[string]string{"go.mod": "module tiny\n", "main.go": "package main\n\nfunc main() {}\n"} {
		path := filepath.Join(source, "tiny", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	finish := func(context.Context, *Builder, string) error { return nil }
	return &Builder{Source: source, Cache: t.TempDir(), Logf: t.Logf}, Set{name: "tiny", targets: []target{{"tiny", "tiny", ".", "", ""}}, finish: finish}
}

// entries are the names in the cache but for locks.
func entries(t *testing.T, b *Builder) []string {
	t.Helper()
	all, err := os.ReadDir(b.Cache)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range all {
		if !strings.HasSuffix(entry.Name(), ".lock") {
			names = append(names, entry.Name())
		}
	}
	return names
}

func TestABuildThatWasKilledIsDoneAgainAndLeavesNothing(t *testing.T) {
	b, set := tiny(t)
	dir, err := b.dir(set)
	if err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(dir+".building-1", "half")
	if err := errors.Join(os.MkdirAll(filepath.Dir(half), 0o755), os.WriteFile(half, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Ensure(t.Context(), set); err != nil || got != dir {
		t.Fatalf("Ensure returns %s, %v; want %s", got, err, dir)
	}
	if got := entries(t, b); !slices.Equal(got, []string{filepath.Base(dir)}) {
		t.Errorf("the cache has %q, want the finished set only", got)
	}
	if programs, err := os.ReadDir(dir); err != nil || len(programs) != 1 || programs[0].Name() != "tiny" {
		t.Errorf("%s has %v (%v), want the program alone", dir, programs, err)
	}
}

func TestABuildThatFailsLeavesNoEntry(t *testing.T) {
	b, set := tiny(t)
	set.finish = func(context.Context, *Builder, string) error { return syscall.ENOSPC }
	if _, err := b.Ensure(t.Context(), set); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Ensure returns %v, want why it failed", err)
	}
	if got := entries(t, b); len(got) > 0 {
		t.Errorf("the cache has %q of a build that failed", got)
	}
}
