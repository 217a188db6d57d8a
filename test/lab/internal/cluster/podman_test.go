package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakePodman puts a podman in the PATH that cannot start a container until it was told to
// number its locks again, and that lists these containers as running. It returns what
// podman was called with.
func fakePodman(t *testing.T, running string) (calls func() []string) {
	t.Helper()
	dir := t.TempDir()
	script := `#!/bin/sh
cd ` + dir + `
echo "$*" >>calls
case $1 in
ps) printf '` + running + `' ;;
system) touch renumbered ;;
start) [ -e renumbered ] || { echo "Error: container c and volume v share lock ID 0: deadlock due to lock mismatch" >&2; exit 125; } ;;
*) echo "Error: no such container" >&2; exit 1 ;;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "podman"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() []string {
		text, err := os.ReadFile(filepath.Join(dir, "calls"))
		if err != nil {
			t.Fatal(err)
		}
		var calls []string
		for line := range strings.Lines(string(text)) {
			calls = append(calls, strings.Fields(line)[0])
		}
		return calls
	}
}

func TestPodmanNumbersItsLocksAgain(t *testing.T) {
	lab := testLab(t)
	calls := fakePodman(t, `edpm-controller-0 `+lab.Dir+`\n`)
	if _, err := lab.podman(t.Context(), "start", "edpm-compute-0"); err != nil {
		t.Fatal(err)
	}
	if want := []string{"start", "ps", "system", "start"}; !slices.Equal(calls(), want) {
		t.Errorf("podman is called with %q, want %q", calls(), want)
	}
}

func TestPodmanKeepsItsLocksWhileOtherContainersRun(t *testing.T) {
	lab := testLab(t)
	calls := fakePodman(t, `registry \n`)
	_, err := lab.podman(t.Context(), "start", "edpm-compute-0")
	for _, words := range []string{"share lock ID", "registry", "podman system renumber"} {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("the error does not say %q: %v", words, err)
		}
	}
	if slices.Contains(calls(), "system") {
		t.Error("the locks are numbered again under a container that runs")
	}
}

func TestAnotherFailureOfPodmanIsOne(t *testing.T) {
	lab := testLab(t)
	calls := fakePodman(t, "")
	if _, err := lab.podman(t.Context(), "rm", "edpm-compute-0"); err == nil || !strings.Contains(err.Error(), "no such container") {
		t.Errorf("the error is %v", err)
	}
	if want := []string{"rm"}; !slices.Equal(calls(), want) {
		t.Errorf("podman is called with %q, want %q", calls(), want)
	}
}
