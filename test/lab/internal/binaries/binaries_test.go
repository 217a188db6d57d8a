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
