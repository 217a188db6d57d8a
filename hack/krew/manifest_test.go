package main

import (
	"maps"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

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
	var m manifest
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
		if !maps.Equal(p.Selector.MatchLabels, want) || p.URI != "https://example.org/releases/v1.2.3/"+targets[i].archive() || p.Sha256 != sums()[targets[i]] || p.Bin != p.Files[0].From {
			t.Errorf("platform %d is %+v", i, p)
		}
	}
}

func TestManifestRefuses(t *testing.T) {
	missing := sums()
	delete(missing, targets[1])
	for name, c := range map[string]struct {
		version, url string
		sums         map[target]string
		says         string
	}{
		"a version without a v":      {"1.2.3", "https://example.org", sums(), "write it like v1.2.3"},
		"no version":                 {"latest", "https://example.org", sums(), "write it like v1.2.3"},
		"a download in the clear":    {"v1.2.3", "http://example.org", sums(), "https://"},
		"an archive without its sum": {"v1.2.3", "https://example.org", missing, "kubectl-edpm_linux_arm64.tar.gz"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := newManifest(c.version, c.url, c.sums); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v; want %q", err, c.says)
			}
		})
	}
}
