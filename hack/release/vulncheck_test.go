package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// vulncheck runs the check against a database that is not there, and returns its
// report.
func vulncheck(t *testing.T, env ...string) (string, error) {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report.txt")
	cmd := exec.CommandContext(t.Context(), "hack/vulncheck.sh", report)
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), append(env, "GOVULNDB=file:///nowhere")...)
	err := cmd.Run()
	text, readErr := os.ReadFile(report)
	if readErr != nil {
		t.Fatal(readErr)
	}
	return string(text), err
}

func TestWhatCannotBeCheckedFailsUnlessAccepted(t *testing.T) {
	report, err := vulncheck(t, "OFFLINE=")
	if err == nil || !strings.HasPrefix(report, "not checked: ") {
		t.Errorf("without the database it ended with %v and reported %q; want an error", err, report)
	}
	report, err = vulncheck(t, "OFFLINE=1")
	if err != nil || !strings.HasPrefix(report, "not checked: ") || !strings.Contains(report, "which OFFLINE=1 accepted") {
		t.Errorf("with OFFLINE=1 it ended with %v and reported %q; want the report to say that it was accepted", err, report)
	}
}

// TestTheExecutionEnvironmentStartsFromADigest : what is checked in base.Containerfile
// is run as the build runs it.
func TestTheExecutionEnvironmentStartsFromADigest(t *testing.T) {
	text, err := os.ReadFile("../../ansible/execution-environment/base.Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	if from := regexp.MustCompile(`(?m)^FROM (.*)$`).FindAllStringSubmatch(string(text), -1); len(from) != 1 || from[0][1] != "${DEBIAN}" {
		t.Errorf("it starts from %q; want the variable DEBIAN alone", from)
	}
	if fallback := regexp.MustCompile(`(?m)^ARG DEBIAN=.*$`).Find(text); fallback != nil {
		t.Errorf("%q is a default, which no one looked at", fallback)
	}
	check := regexp.MustCompile(`(?m)^RUN (case "\$DEBIAN".*)$`).FindSubmatch(text)
	if check == nil {
		t.Fatal("nothing checks DEBIAN")
	}
	for image, good := range map[string]bool{"docker.io/library/debian:bookworm-slim": false, "": false, "docker.io/library/debian@sha256:" + strings.Repeat("0123", 16): true} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", string(check[1]))
		cmd.Env = []string{"DEBIAN=" + image}
		if err := cmd.Run(); (err == nil) != good {
			t.Errorf("DEBIAN=%q: %v; want it accepted: %v", image, err, good)
		}
	}
}
