package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// programs that build.sh calls, as scripts: podman saves an image of the given name.
var programs = map[string]string{
	"id":         `echo 0`,
	"mmdebstrap": `exit 1`,
	"go":         `while [ "$1" != -o ]; do shift; done; echo program >"$2"`,
	"podman":     `case $1 in save) while [ "$1" != --output ]; do shift; done; echo image >"$2";; *) cat >/dev/null;; esac`,
	"df":         `printf 'Avail\n%6s\n' 9000M`,
}

// buildPause builds the image pause with those programs, or others of these, in a cache
// that has what a build left that was killed.
func buildPause(t *testing.T, others map[string]string) (cache, said string, err error) {
	t.Helper()
	cache = t.TempDir()
	writeFile(t, filepath.Join(cache, "images", "pause-0123456789abcdef.tar.part"), "half", 0o644)
	said, err = runScript(t, "images/build.sh", cache, others)
	return filepath.Join(cache, "images"), said, err
}

// runScript runs a script for the image pause with those programs, or others of these,
// and returns what it said.
func runScript(t *testing.T, script, cache string, others map[string]string) (string, error) {
	t.Helper()
	bin := t.TempDir()
	for name, text := range programs {
		if other, ok := others[name]; ok {
			text = other
		}
		writeFile(t, filepath.Join(bin, name), "#!/bin/sh\n"+text+"\n", 0o755)
	}
	cmd := exec.CommandContext(t.Context(), script, "pause")
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "EDPM_CACHE="+cache)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func writeFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// images are the files in the cache but for locks.
func images(t *testing.T, cache string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(cache, "[^.]*"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestAnImageWhoseBuildWasKilledIsBuiltAgain(t *testing.T) {
	cache, said, err := buildPause(t, nil)
	if err != nil {
		t.Fatalf("build.sh: %v\n%s", err, said)
	}
	files := images(t, cache)
	if len(files) != 1 || !strings.HasSuffix(strings.TrimSpace(said), files[0]) {
		t.Fatalf("the cache has %q, want the image alone, which build.sh prints:\n%s", files, said)
	}
	if text, err := os.ReadFile(files[0]); err != nil || string(text) != "image\n" {
		t.Errorf("the image is %q (%v)", text, err)
	}
}

func TestAnImageThatCannotBeBuiltLeavesNothing(t *testing.T) {
	const full = "write /cache: no space left on device"
	for _, tc := range []struct {
		name, program, script string
		want                  []string
	}{
		{"the disk gets full while it is written", "podman", `case $1 in save) while [ "$1" != --output ]; do shift; done; echo half >"$2"; echo "` + full + `" >&2; exit 125;; *) cat >/dev/null;; esac`, []string{full}},
		{"the disk is full before", "df", `printf 'Avail\n%6s\n' 17M`, []string{"17 MB free", "needs 4096 MB", "EDPM_CACHE"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cache, said, err := buildPause(t, map[string]string{tc.program: tc.script})
			if err == nil {
				t.Fatalf("build.sh succeeds:\n%s", said)
			}
			for _, words := range tc.want {
				if !strings.Contains(said, words) {
					t.Errorf("build.sh does not say %q:\n%s", words, said)
				}
			}
			if files := images(t, cache); len(files) > 0 {
				t.Errorf("the cache has %q", files)
			}
		})
	}
}

func TestAnImageIsLoadedUnlessPodmanHasTheSame(t *testing.T) {
	for have, loads := range map[string]bool{"": true, "c0ffee": true, "abc123": false} {
		manifest := `[{"Config":"abc123.json","RepoTags":["localhost/pause:latest"]}]`
		podman := `cd "$(mktemp -d)"; case "$1 $2" in save*) while [ "$1" != --output ]; do shift; done; echo '` + manifest + `' >manifest.json; tar -cf "$2" manifest.json;;
"image inspect") echo "` + have + `";; load*) echo loaded;; *) cat >/dev/null;; esac`
		said, err := runScript(t, "images/load.sh", t.TempDir(), map[string]string{"podman": podman})
		if err != nil {
			t.Fatalf("load.sh: %v\n%s", err, said)
		}
		if got := strings.Contains(said, "loaded\n"); got != loads {
			t.Errorf("podman has %q: the image abc123 is loaded: %v, want %v:\n%s", have, got, loads, said)
		}
	}
}
