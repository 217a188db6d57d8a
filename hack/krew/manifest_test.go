package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// plugin has all fields of the manifest.
type plugin struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       spec     `json:"spec"`
}

type metadata struct {
	Name string `json:"name"`
}

type spec struct {
	Version          string     `json:"version"`
	Homepage         string     `json:"homepage"`
	ShortDescription string     `json:"shortDescription"`
	Description      string     `json:"description"`
	Platforms        []platform `json:"platforms"`
}

type platform struct {
	Selector selector `json:"selector"`
	URI      string   `json:"uri"`
	Sha256   string   `json:"sha256"`
	Bin      string   `json:"bin"`
	Files    []file   `json:"files"`
}

type selector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

type file struct {
	From string `json:"from"`
	To   string `json:"to"`
}

func sums() map[target]string {
	all := map[target]string{}
	for i, t := range targets {
		all[t] = strings.Repeat(string(rune('a'+i)), 64)
	}
	return all
}

// What krew checks before it takes a manifest:
// https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
func TestManifestIsWhatKrewTakes(t *testing.T) {
	text, err := newManifest("v1.2.3", "https://example.org/releases/v1.2.3/", sums())
	if err != nil {
		t.Fatal(err)
	}
	var m plugin
	if err := yaml.UnmarshalStrict(text, &m); err != nil {
		t.Fatalf("it does not parse: %v\n%s", err, text)
	}
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" || m.Metadata.Name != "edpm" || m.Spec.Version != "v1.2.3" {
		t.Errorf("it is of another kind or plugin:\n%s", text)
	}
	if short := m.Spec.ShortDescription; short == "" || len(short) > 50 || strings.ContainsAny(short, "\r\n") || strings.HasSuffix(short, ".") {
		t.Errorf("the short description %q is not one line of at most 50 characters without a period", short)
	}
	if len(m.Spec.Platforms) != len(targets) {
		t.Fatalf("it has %d platforms, not %d", len(m.Spec.Platforms), len(targets))
	}
	for i, p := range m.Spec.Platforms {
		want := map[string]string{"os": targets[i].OS, "arch": targets[i].Arch}
		if !maps.Equal(p.Selector.MatchLabels, want) || p.URI != "https://example.org/releases/v1.2.3/"+targets[i].Archive() || p.Sha256 != sums()[targets[i]] || p.Bin != p.Files[0].From {
			t.Errorf("platform %d is %+v", i, p)
		}
	}
}

func TestManifestRefusesAnArchiveWithoutItsSum(t *testing.T) {
	missing := sums()
	delete(missing, targets[1])
	if _, err := newManifest("v1.2.3", "https://example.org", missing); err == nil || !strings.Contains(err.Error(), "kubectl-edpm_linux_arm64.tar.gz") {
		t.Errorf("the error is %v", err)
	}
}

// fake builds a program in no time.
func fake(t target, version string) ([]byte, error) {
	return []byte(version + " for " + t.OS + "/" + t.Arch), nil
}

func TestPackMakesWhatTheManifestSays(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	dir := t.TempDir()
	if err := pack("v1.2.3", "https://example.org", dir, fake); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "edpm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var m plugin
	if err := yaml.UnmarshalStrict(text, &m); err != nil {
		t.Fatal(err)
	}
	for i, p := range m.Spec.Platforms {
		archive, err := os.ReadFile(filepath.Join(dir, filepath.Base(p.URI)))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(archive); hex.EncodeToString(sum[:]) != p.Sha256 {
			t.Errorf("%s has another sum than the manifest says", p.URI)
		}
		if names, binary := unpacked(t, archive); !slices.Equal(names, []string{p.Files[0].From, p.Files[1].From}) || binary != "v1.2.3 for "+targets[i].OS+"/"+targets[i].Arch {
			t.Errorf("%s has %v with %q", p.URI, names, binary)
		}
	}
}

// unpacked returns the names of the files and the content of the first, which
// has to be a program.
func unpacked(t *testing.T, archive []byte) (names []string, binary string) {
	t.Helper()
	packed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(packed); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names, binary
		}
		if err != nil {
			t.Fatal(err)
		}
		if names = append(names, header.Name); len(names) > 1 {
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil || header.Mode != 0o755 {
			t.Fatalf("%s has mode %o (%v)", header.Name, header.Mode, err)
		}
		binary = string(text)
	}
}

func TestPackRefusesBeforeItBuilds(t *testing.T) {
	for name, c := range map[string]struct{ version, url, says string }{
		"a version without a v":   {"1.2.3", "https://example.org", "write it like v1.2.3"},
		"no version":              {"latest", "https://example.org", "write it like v1.2.3"},
		"a download in the clear": {"v1.2.3", "http://example.org", "https://"},
	} {
		t.Run(name, func(t *testing.T) {
			err := pack(c.version, c.url, t.TempDir(), func(target, string) ([]byte, error) {
				t.Error("it builds")
				return nil, nil
			})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v; want %q", err, c.says)
			}
		})
	}
}
