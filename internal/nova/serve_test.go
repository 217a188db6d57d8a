package nova

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestTheEndOfHTTPDIsThatOfItsContainer(t *testing.T) {
	text, err := scripts.ReadFile(serveFile)
	if err != nil {
		t.Fatal(err)
	}
	_, last, found := strings.Cut(string(text), "\n\"$httpd\" ")
	if !found {
		t.Fatal("the script starts no httpd")
	}
	for name, c := range map[string]struct {
		httpd string // what it does instead
		stop  bool
		want  int
	}{
		"without a signal":      {"exit 0", false, 0},
		"with an error":         {"exit 3", false, 3},
		"by a signal":           {"kill -SEGV $$", false, 128 + int(syscall.SIGSEGV)},
		"when it is stopped":    {"trap 'sleep 0.3; exit 0' WINCH; touch \"$ready\"; while :; do sleep 0.1; done", true, 0},
		"killed while it stops": {"trap 'kill -KILL $$' WINCH; touch \"$ready\"; while :; do sleep 0.1; done", true, 128 + int(syscall.SIGKILL)},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			httpd, ready := filepath.Join(dir, "httpd"), filepath.Join(dir, "ready")
			if err := os.WriteFile(httpd, []byte("#!/bin/bash\n"+c.httpd+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, "/bin/bash", "-c", "set -euo pipefail\nhttpd="+httpd+"\n\"$httpd\" "+last)
			cmd.Env = append(os.Environ(), "ready="+ready)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if c.stop {
				waitForFile(t, ready)
				time.Sleep(200 * time.Millisecond) // the shell sets its trap after it has started httpd
				_ = cmd.Process.Signal(syscall.SIGTERM)
			}
			var exit *exec.ExitError
			if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if got := cmd.ProcessState.ExitCode(); got != c.want {
				t.Errorf("it ends with %d (%v); want %d", got, ctx.Err(), c.want)
			}
		})
	}
}

func waitForFile(t *testing.T, path string) {
	t.Helper()
	for range 200 {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s does not come", path)
}
