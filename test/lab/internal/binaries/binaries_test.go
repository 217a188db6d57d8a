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

	"golang.org/x/mod/modfile"
)

const modules = "../../binaries"

// The constants name the cache entry, so they must not drift from the pins.
func TestVersionsAreThoseOfTheModules(t *testing.T) {
	kube, olm := requirements(t, "kube"), requirements(t, "olm")
	for _, tc := range []struct {
		module   map[string]string
		path     string
		constant string
	}{
		{kube, "k8s.io/kubernetes", KubernetesVersion},
		{kube, "go.etcd.io/etcd/server/v3", EtcdVersion},
		{kube, "sigs.k8s.io/kwok", KwokVersion},
		{olm, "github.com/operator-framework/operator-lifecycle-manager", OLMVersion},
		{olm, "github.com/operator-framework/operator-registry", OPMVersion},
	} {
		if got := tc.module[tc.path]; got != "v"+tc.constant {
			t.Errorf("go.mod has %s %s, and the constant is %s", tc.path, got, tc.constant)
		}
	}
}

// requirements returns the versions in the go.mod of a module, "../../.." for that of the
// project.
func requirements(t *testing.T, module string) map[string]string {
	t.Helper()
	file := filepath.Join(modules, module, "go.mod")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := modfile.Parse(file, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, r := range parsed.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	for _, r := range parsed.Replace {
		versions[r.Old.Path] = r.New.Version
	}
	return versions
}

// Go compiles a package again if any of its dependencies has another version.
func TestKubernetesSharesItsDependenciesWithTheProject(t *testing.T) {
	project, kube := requirements(t, "../../.."), requirements(t, "kube")
	shared := 0
	for path, version := range project {
		other, ok := kube[path]
		if !ok {
			continue
		}
		shared++
		if other != version {
			t.Errorf("%s is %s in go.mod, and %s in that of the lab's Kubernetes: both would be compiled. Raise the lower one: go get %[1]s@VERSION", path, version, other)
		}
	}
	if shared < 50 {
		t.Errorf("they share %d modules, which cannot be all", shared)
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
	if err := os.WriteFile(filepath.Join(source, "kube", "go.sum"), []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if dir(Kubernetes()) == kubernetes {
		t.Errorf("%s is used for two sets of pins", kubernetes)
	}
	if dir(OLM()) != olm {
		t.Errorf("a pin of Kubernetes has OLM built again")
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
	return &Builder{Source: source, Cache: t.TempDir()}, Set{name: "tiny", targets: []target{{module: "tiny", output: "tiny", pkg: "."}}, finish: finish}
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
