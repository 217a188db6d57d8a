package progress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// lasts returns what a step runs that takes so long, prints a line, and ends with err.
func lasts(d time.Duration, line string, err error) func(context.Context, io.Writer) error {
	return func(_ context.Context, out io.Writer) error {
		time.Sleep(d)
		if line != "" {
			fmt.Fprintln(out, line)
		}
		return err
	}
}

// runner returns one whose cache is empty, and what it prints, on a terminal of that
// width or, if it is 0, elsewhere.
func runner(t *testing.T, width int) (*Runner, *bytes.Buffer) {
	t.Setenv("EDPM_CACHE", t.TempDir())
	printed := &bytes.Buffer{}
	s := &screen{out: printed}
	if width > 0 {
		s.width = func() int { return width }
	}
	return &Runner{title: "make test", screen: s}, printed
}

func TestStepsRunNextToEachOther(t *testing.T) {
	r, printed := runner(t, 0)
	synctest.Test(t, func(t *testing.T) {
		steps := []Step{
			{Name: "manager", After: []string{"executables"}, Run: lasts(time.Minute, "", nil)},
			{Name: "executables", Run: lasts(4*time.Minute, "go build", nil)},
			{Name: "image glance", Run: lasts(30*time.Second, "", nil)},
		}
		if err := r.Run(t.Context(), steps); err != nil {
			t.Fatal(err)
		}
	})
	want := `[    0s] started; 0 of 3 done, about 6m0s left; running: executables 0s, image glance 0s
[   30s] image glance done in 30s; 1 of 3 done, about 5m30s left; running: executables 30s
[  4m0s] executables done in 4m0s; 2 of 3 done, about 1m0s left; running: manager 0s
[  5m0s] manager done in 1m0s
`
	if diff := cmp.Diff(want, printed.String()); diff != "" {
		t.Errorf("what is printed (-want +got):\n%s", diff)
	}
}

func TestNoMoreStepsRunThanMay(t *testing.T) {
	r, printed := runner(t, 0)
	r.AtOnce = 2
	synctest.Test(t, func(t *testing.T) {
		steps := []Step{
			{Name: "test-stories", Run: lasts(8*time.Minute, "", nil)},
			{Name: "test-pure", Run: lasts(4*time.Minute, "", nil)},
			{Name: "test-served", Run: lasts(4*time.Minute, "", nil)},
		}
		if err := r.Run(t.Context(), steps); err != nil {
			t.Fatal(err)
		}
	})
	if first, _, _ := strings.Cut(printed.String(), "\n"); first != "[    0s] started; 0 of 3 done, about 8m0s left; running: test-stories 0s, test-pure 0s" {
		t.Errorf("it begins with %q", first)
	}
	if !strings.Contains(printed.String(), "[  4m0s] test-pure done in 4m0s; 1 of 3 done, about 4m0s left; running: test-stories 4m0s, test-served 0s\n") {
		t.Errorf("the third step does not take the place of the second:\n%s", printed)
	}
}

func TestAFailureIsShownAndStopsWhatComesAfterIt(t *testing.T) {
	r, printed := runner(t, 0)
	synctest.Test(t, func(t *testing.T) {
		ran := false
		full := errors.New("no space left on device")
		err := r.Run(t.Context(), []Step{
			{Name: "image nova", Run: lasts(time.Minute, "installing 21 packages", full)},
			{Name: "hosts", After: []string{"image nova"}, Run: lasts(0, "", nil)},
			{Name: "executables", Run: func(context.Context, io.Writer) error {
				time.Sleep(2 * time.Minute)
				ran = true
				return nil
			}},
		})
		if !errors.Is(err, full) || !strings.Contains(err.Error(), "image nova: ") || !strings.Contains(err.Error(), "not run because of that: hosts") {
			t.Errorf("the error is %v", err)
		}
		if !ran {
			t.Error("a step that needs nothing of it is not finished")
		}
	})
	if want := "installing 21 packages\nimage nova: no space left on device\n[  1m0s] image nova FAILED after 1m0s; 0 of 3 done"; !strings.Contains(printed.String(), want) {
		t.Errorf("it does not print %q:\n%s", want, printed)
	}
}

func TestATerminalHasOneLineThatChanges(t *testing.T) {
	r, printed := runner(t, 40)
	synctest.Test(t, func(t *testing.T) {
		step := Step{Name: "story", Verbose: true, Run: lasts(1500*time.Millisecond, "a guest runs", nil)}
		if err := r.Run(t.Context(), []Step{step}); err != nil {
			t.Fatal(err)
		}
	})
	const status = "[    %ds] 0 of 1 done, about 0s left;..."
	want := []string{"", "[    0s] started\n", fmt.Sprintf(status, 0), fmt.Sprintf(status, 1),
		"a guest runs\n" + fmt.Sprintf(status, 1), "[    2s] story done in 2s\n", ""}
	if diff := cmp.Diff(want, strings.Split(printed.String(), clearLine)); diff != "" {
		t.Errorf("what is printed between clearings (-want +got):\n%s", diff)
	}
}

func TestDurationsOfTheLastRunAreTheEstimate(t *testing.T) {
	r, printed := runner(t, 0)
	for _, tc := range []struct {
		name          string
		takes, expect time.Duration
	}{
		{"the first time", 3 * time.Minute, 5 * time.Minute},
		{"then as long as it took", 2 * time.Second, 3 * time.Minute},
		{"what was found in a cache does not count", time.Second, 3 * time.Minute},
	} {
		printed.Reset()
		synctest.Test(t, func(t *testing.T) {
			if err := r.Run(t.Context(), []Step{{Name: "executables", Run: lasts(tc.takes, "", nil)}}); err != nil {
				t.Fatal(err)
			}
		})
		if want := "about " + tc.expect.String() + " left"; !strings.Contains(printed.String(), want) {
			t.Errorf("%s: want %q in\n%s", tc.name, want, printed)
		}
	}
}

func TestAStepAfterNoneIsAnError(t *testing.T) {
	r, _ := runner(t, 0)
	err := r.Run(t.Context(), []Step{{Name: "hosts", After: []string{"images"}, Run: lasts(0, "", nil)}})
	if err == nil || !strings.Contains(err.Error(), "images") {
		t.Errorf("the error is %v", err)
	}
}

// notify is closed by the first text that is written to it.
type notify chan struct{}

func (n notify) Write(text []byte) (int, error) {
	close(n)
	return len(text), nil
}

func TestACommandEndsWithWhatItStarted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	file := filepath.Join(t.TempDir(), "pid")
	started, ended := make(notify), make(chan error)
	go func() {
		ended <- Command("sh", "-c", "sleep 1000 & echo $! >"+file+"; echo; wait")(ctx, started)
	}()
	<-started
	cancel()
	if err := <-ended; err == nil {
		t.Error("a command that was ended has succeeded")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// The signal takes effect when the child is next scheduled.
	for deadline := time.Now().Add(time.Minute); running(strings.TrimSpace(string(text))); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the child of the command still runs")
		}
	}
}

// running reports whether there is a process that has not ended.
func running(pid string) bool {
	state, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	return err == nil && !strings.Contains(string(state), ") Z ")
}
