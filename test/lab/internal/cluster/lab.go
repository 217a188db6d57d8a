package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/edpm-operators/edpm-operators/test/lab/internal/binaries"
	"github.com/edpm-operators/edpm-operators/test/lab/internal/proc"
)

// Lab is one cluster on this machine.
type Lab struct {
	Layout
	// Images holds the image scripts, and once they are needed Bin the executables of
	// Kubernetes and OLM those of OLM.
	Bin, OLM, Images string
	// Executables builds a set of them, or finds it built, and returns its directory.
	Executables func(context.Context, binaries.Set) (string, error)
	procs       *proc.Supervisor
	start       time.Time
	out         io.Writer
}

// New returns the lab of the given layout, running or not.
func New(layout Layout, bin, images string) *Lab {
	return &Lab{
		Layout: layout,
		Bin:    bin,
		Images: images,
		procs:  &proc.Supervisor{RunDir: layout.path("run"), LogDir: layout.path("logs")},
		start:  time.Now(),
		out:    os.Stderr,
	}
}

// componentNames are all processes that a lab can have but for virtual machines, in order of start.
func componentNames() []string {
	return []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "containerd", "kwok", "kubelet", "kube-proxy", "opm", "catalog", "olm"}
}

// processNames are those of components and of the virtual machines that the lab has.
func (l *Lab) processNames() []string {
	names := componentNames()
	for _, h := range l.vmHosts() {
		names = append(names, vmPrefix+h.Name)
	}
	return names
}

// logf prints one line of progress with the time since the command started.
func (l *Lab) logf(format string, args ...any) {
	fmt.Fprintf(l.out, "[%5.1fs] %s\n", time.Since(l.start).Seconds(), fmt.Sprintf(format, args...))
}

// lock keeps two commands from changing the lab at once. The kernel drops it
// when the process ends, however it ends.
func (l *Lab) lock() (unlock func(), err error) {
	f, err := os.OpenFile(l.path(marker), os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		l.logf("Waiting for another lab command to finish")
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", f.Name(), err)
		}
	}
	return func() { f.Close() }, nil
}

// component describes a process whose executable is in Bin.
func (l *Lab) component(name string, port int, args ...string) proc.Component {
	return proc.Component{Name: name, Argv: append([]string{filepath.Join(l.Bin, name)}, args...), Port: port}
}

// run makes c run and waits until ready says so. When c dies first or takes
// longer than two minutes, the error carries the end of its log.
func (l *Lab) run(ctx context.Context, c proc.Component, ready func(context.Context) error) error {
	begin := time.Now()
	started, err := l.procs.Ensure(c)
	if err != nil {
		return err
	}
	if err := l.waitReady(ctx, c.Name, ready); err != nil {
		return fmt.Errorf("%w\n--- end of %s\n%s", err, l.procs.LogPath(c.Name), l.procs.Tail(c.Name, 15))
	}
	if started {
		l.logf("%s is ready (%.1fs)", c.Name, time.Since(begin).Seconds())
	}
	return nil
}

func (l *Lab) waitReady(ctx context.Context, name string, ready func(context.Context) error) error {
	alive := func(ctx context.Context) error {
		if _, ok := l.procs.Alive(name); !ok {
			return errFatal{fmt.Errorf("%s ended", name)}
		}
		return ready(ctx)
	}
	return waitFor(ctx, name, alive)
}

// errFatal ends a wait at once: waiting longer cannot help.
type errFatal struct{ error }

// readyTimeout is how long a part of the lab may take to be ready. Next to a compiler on
// two cores that is minutes; what has ended is known at once.
const readyTimeout = 5 * time.Minute

// waitFor polls probe until it returns nil.
func waitFor(ctx context.Context, what string, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		var fatal errFatal
		if errors.As(err, &fatal) {
			return fmt.Errorf("waiting for %s: %w", what, fatal.error)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; last: %w", what, context.Cause(ctx), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// parallel runs the functions at once and returns all their errors.
func parallel(funcs ...func() error) error {
	errs := make([]error, len(funcs))
	var wg sync.WaitGroup
	for i, f := range funcs {
		wg.Go(func() { errs[i] = f() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// forEach calls f for 0 … count-1, workers at a time.
func forEach(count, workers int, f func(i int)) {
	slots := make(chan struct{}, workers)
	var wg sync.WaitGroup
	for i := range count {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	wg.Wait()
}

// command runs a program and returns what it prints; its error says why it failed.
func command(ctx context.Context, name string, args ...string) (string, error) {
	return commandWithInput(ctx, "", name, args...)
}

func commandWithInput(ctx context.Context, input, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("running %s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err,
			strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
