package binaries

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const modules = "../../binaries"

// The constants name the cache entry, so they must not drift from the pins.
func TestVersionsAreThoseOfTheModules(t *testing.T) {
	for module, line := range map[string]string{
		"kube": "k8s.io/kubernetes v" + KubernetesVersion,
		"etcd": "go.etcd.io/etcd/server/v3 v" + EtcdVersion,
		"kwok": "sigs.k8s.io/kwok v" + KwokVersion,
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
	before, err := builder.dir()
	if err != nil {
		t.Fatal(err)
	}
	sum := filepath.Join(source, "etcd", "go.sum")
	if err := os.WriteFile(sum, []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	after, err := builder.dir()
	if err != nil {
		t.Fatal(err)
	}
	if after == before {
		t.Errorf("%s is used for two sets of pins", before)
	}
}
