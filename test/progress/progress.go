// Package progress runs the steps of a command that takes minutes, as many at once as
// can, and shows what is done, what runs, and about how long the rest takes: in one
// line that is rewritten on a terminal, in one line for each finished step elsewhere.
// How long a step takes it knows from the last run on this machine.
package progress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Step is a part of a command.
type Step struct {
	Name string
	// After are the names of steps that must have succeeded before.
	After []string
	// Run does the step. What it writes to out is printed if it fails.
	Run func(ctx context.Context, out io.Writer) error
	// Verbose has what it writes printed as it comes.
	Verbose bool
}

// Command returns a function for [Step] that runs a program.
func Command(name string, args ...string) func(context.Context, io.Writer) error {
	return func(ctx context.Context, out io.Writer) error {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Stdout, cmd.Stderr = out, out
		// What it has started ends with it: a shell does not pass a signal on.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
		cmd.WaitDelay = 10 * time.Second
		return cmd.Run()
	}
}

// Runner runs the steps of one command.
type Runner struct {
	// AtOnce limits how many steps run at once, 0 does not.
	AtOnce int
	title  string
	screen *screen
}

// New returns a Runner of a command, which shows its progress on standard error. What
// it remembers of the command is kept under the title.
func New(title string) *Runner { return &Runner{title: title, screen: newScreen(os.Stderr)} }

// Write prints whole lines.
func (r *Runner) Write(text []byte) (int, error) { return r.screen.Write(text) }

// task is a step in a run.
type task struct {
	Step
	estimate      time.Duration
	began         time.Time
	took          time.Duration
	started, done bool
	err           error
	log           bytes.Buffer
}

func (t *task) runs() bool      { return t.started && !t.done }
func (t *task) succeeded() bool { return t.done && t.err == nil }

// comesAfter reports whether all steps that it comes after have succeeded.
func (t *task) comesAfter(succeeded map[string]bool) bool {
	return !slices.ContainsFunc(t.After, func(name string) bool { return !succeeded[name] })
}

// run is one run of all steps.
type run struct {
	*Runner
	began time.Time
	tasks []*task
	ended chan *task
}

// Run runs the steps, each once those that it comes after have succeeded. If one fails,
// those after it are not run, and the others are. The error names all that failed.
func (r *Runner) Run(ctx context.Context, steps []Step) error {
	known := r.recall()
	x := &run{Runner: r, began: time.Now(), ended: make(chan *task)}
	for _, step := range steps {
		x.tasks = append(x.tasks, &task{Step: step, estimate: known[step.Name]})
	}
	if err := x.validate(); err != nil {
		return err
	}
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for news := "started"; x.start(ctx, news); {
		select {
		case t := <-x.ended:
			news = x.finish(t)
		case <-second.C:
			news = ""
		}
	}
	r.remember(known, x.tasks)
	return x.failures()
}

func (x *run) validate() error {
	for _, t := range x.tasks {
		for _, name := range t.After {
			if !slices.ContainsFunc(x.tasks, func(other *task) bool { return other.Name == name }) {
				return fmt.Errorf("step %s comes after %s, which is no step", t.Name, name)
			}
		}
	}
	return nil
}

// start starts what can run, shows the news and what runs, and returns whether anything
// does.
func (x *run) start(ctx context.Context, news string) bool {
	running, succeeded := 0, map[string]bool{}
	for _, t := range x.tasks {
		succeeded[t.Name] = t.succeeded()
		if t.runs() {
			running++
		}
	}
	for _, t := range x.tasks {
		if t.started || !x.hasRoom(running) || !t.comesAfter(succeeded) {
			continue
		}
		running++
		t.started, t.began = true, time.Now()
		var out io.Writer = &t.log
		if t.Verbose {
			out = x.screen
		}
		go func() {
			t.err = t.Run(ctx, out)
			x.ended <- t
		}()
	}
	x.screen.show(short(time.Since(x.began)), news, x.status())
	return running > 0
}

// hasRoom reports whether another step may run next to those that are running.
func (x *run) hasRoom(running int) bool { return x.AtOnce == 0 || running < x.AtOnce }

// finish prints why a step failed, and returns that it has ended.
func (x *run) finish(t *task) string {
	t.done, t.took = true, time.Since(t.began)
	if t.err != nil {
		fmt.Fprintf(x.screen, "%s\n%s: %v\n", strings.TrimRight(t.log.String(), "\n"), t.Name, t.err)
		return t.Name + " FAILED after " + short(t.took)
	}
	return t.Name + " done in " + short(t.took)
}

// status is the line that says how things are.
func (x *run) status() string {
	var running []string
	done := 0
	for _, t := range x.tasks {
		if t.succeeded() {
			done++
		}
		if t.runs() {
			running = append(running, t.Name+" "+short(time.Since(t.began)))
		}
	}
	if len(running) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d done, about %s left; running: %s", done, len(x.tasks), short(x.left()), strings.Join(running, ", "))
}

// failures joins the errors of the steps, and names those that were not run.
func (x *run) failures() error {
	var errs []error
	var skipped []string
	for _, t := range x.tasks {
		switch {
		case t.err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", t.Name, t.err))
		case !t.started:
			skipped = append(skipped, t.Name)
		}
	}
	if len(skipped) > 0 {
		errs = append(errs, fmt.Errorf("not run because of that: %s", strings.Join(skipped, ", ")))
	}
	return errors.Join(errs...)
}

// short rounds to seconds.
func short(d time.Duration) string { return d.Round(time.Second).String() }
