package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestInventory(t *testing.T) {
	built, err := os.Executable() // it is made of the modules of this one
	if err != nil {
		t.Fatal(err)
	}
	one, two := t.TempDir(), t.TempDir()
	for _, dir := range []string{one, two} {
		if err := run([]string{"inventory", dir, "v1.2.3", built}); err != nil {
			t.Fatal(err)
		}
	}
	for name, parts := range map[string][]string{
		"sbom.cdx.json": {`"bomFormat": "CycloneDX"`, `"pkg:golang/github.com/edpm-operators/edpm-operators@v1.2.3"`, `"pkg:golang/github.com/CycloneDX/cyclonedx-go@v0.12.0"`, `"SHA-256"`, `"pkg:golang/std@1.`},
		"licences.csv":  {"github.com/CycloneDX/cyclonedx-go,v0.12.0,Apache-2.0\n", "std,1."},
		"licences.txt":  {"==== github.com/google/licenseclassifier/v2 v2.0.0: LICENSE", "Apache License"},
	} {
		first, second := content(t, one, name), content(t, two, name)
		for _, part := range parts {
			if !strings.Contains(first, part) {
				t.Errorf("%s lacks %q", name, part)
			}
		}
		if first != second {
			t.Errorf("%s is another one the second time", name)
		}
	}
}

func content(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestALicenceThatIsNotAllowedIsRefused(t *testing.T) {
	known, err := classify()
	if err != nil {
		t.Fatal(err)
	}
	gpl, err := os.ReadFile("/usr/share/common-licenses/GPL-3")
	if err != nil {
		t.Skip("this machine has no text of the GPL")
	}
	for name, tt := range map[string]struct {
		texts map[string]string
		want  string
	}{
		"the GPL":      {map[string]string{"COPYING": string(gpl)}, "licence GPL-3.0 is not among those"},
		"no licence":   {nil, "no licence is found"},
		"another text": {map[string]string{"LICENSE": "do what you like"}, "no licence is found"},
	} {
		m := &goModule{Path: "example.org/m", Version: "v1.0.0", Texts: tt.texts}
		m.Licenses = names(known, m)
		if err := verdict(m); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "example.org/m v1.0.0") {
			t.Errorf("%s: the verdict is %v; want %q", name, err, tt.want)
		}
	}
}

func TestByTag(t *testing.T) {
	pin := "@sha256:" + strings.Repeat("a", 64)
	const deployment = "kind: Deployment\nspec: {template: {spec: {containers: [{image: MANAGER, env: [{name: RELATED_IMAGE_A, value: OTHERS}, {name: OTHER, value: 'b:1'}]}]}}}\n"
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"all by digest":            {strings.NewReplacer("MANAGER", "m"+pin, "OTHERS", "r"+pin).Replace(deployment), nil},
		"the manager by tag":       {strings.NewReplacer("MANAGER", "m:1", "OTHERS", "r"+pin).Replace(deployment), []string{"m:1"}},
		"a related one by tag":     {strings.NewReplacer("MANAGER", "m"+pin, "OTHERS", "r:1"+pin+"x").Replace(deployment), []string{"r:1" + pin + "x"}},
		"one left to the manager":  {strings.NewReplacer("MANAGER", "m"+pin, "OTHERS", "''").Replace(deployment), []string{"RELATED_IMAGE_A is empty, and the manager's own choice has a tag"}},
		"fields of a schema":       {"kind: CustomResourceDefinition\nspec: {properties: {image: {type: string}, containerImage: x}}", nil},
		"the annotation of a CSV":  {"a: {containerImage: 'm:1'}\n---\nrelatedImages: [{name: a, image: 'b:2'}]", []string{"b:2", "m:1"}},
		"an example of an object":  {"kind: Glance\nspec: {containerImage: 'g:1'}", []string{"g:1"}},
		"a description with words": {"description: 'image: x'", nil},
	} {
		got, err := byTag([]byte(tt.text))
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, tt.want)
		}
	}
}

func TestSection(t *testing.T) {
	const text = "# Changelog\n\n## [Unreleased]\n\n## [1.1.0] - 2026-01-02\n\n### Added\n\n- b\n\n## [1.0.0]\n- a\n"
	for version, want := range map[string]string{"1.1.0": "### Added\n\n- b\n", "1.0.0": "- a\n", "Unreleased": "", "1.1": "", "2.0.0": ""} {
		got, err := section(text, version)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v; want %q", version, got, err, want)
		}
	}
}

func TestTheChangelogTellsOfTheFirstVersion(t *testing.T) {
	if _, err := section(content(t, "../..", "CHANGELOG.md"), "0.1.0"); err != nil {
		t.Error(err)
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	for _, args := range [][]string{nil, {"inventory", "a", "b"}, {"pinned"}, {"notes", "a"}} {
		if err := run(args); err == nil || !strings.Contains(err.Error(), "usage:") {
			t.Errorf("run(%q) = %v; want how it is used", args, err)
		}
	}
	if err := run([]string{"inventory", t.TempDir(), "v1.0.0", "release_test.go"}); err == nil {
		t.Error("a file that is no program should be an error")
	}
}
