package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// managerProcess is the real manager.
type managerProcess struct {
	cmd            *exec.Cmd
	done           chan struct{}
	metrics, pprof string
	started        time.Time
	log            *os.File
}

// startManager starts the manager with its defaults, but for webhooks and
// leader election, which nothing here needs.
func (b *bench) startManager(ctx context.Context, l *lab, logName string) (*managerProcess, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	logFile, err := os.Create(filepath.Join(b.dir, logName))
	if err != nil {
		return nil, err
	}
	m := &managerProcess{metrics: ports[0], pprof: ports[1], done: make(chan struct{}), log: logFile, started: time.Now()}
	m.cmd = exec.Command(filepath.Join(b.dir, "manager"), "--webhooks=false", "--leader-elect=false",
		"--health-probe-bind-address=0", "--metrics-bind-address="+m.metrics, "--pprof-bind-address="+m.pprof)
	m.cmd.Env = append(os.Environ(), "KUBECONFIG="+l.kubeconfig())
	m.cmd.Stdout, m.cmd.Stderr = logFile, logFile
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = m.cmd.Wait() // how it ended is in its log
		close(m.done)
	}()
	for m.read() == nil {
		if err := m.sleep(ctx, 100*time.Millisecond); err != nil {
			m.stop()
			return nil, fmt.Errorf("waiting for the manager: %w", err)
		}
	}
	return m, nil
}

func freePorts(n int) ([]string, error) {
	var addresses []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}

// stop ends the manager and waits for its end.
func (m *managerProcess) stop() {
	_ = m.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-m.done:
	case <-time.After(20 * time.Second):
		_ = m.cmd.Process.Kill()
		<-m.done
	}
	m.log.Close()
}

// sleep returns early with an error when the bench or the manager ends.
func (m *managerProcess) sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-m.done:
		return fmt.Errorf("the manager has ended: see %s", m.log.Name())
	case <-time.After(d):
		return nil
	}
}

// activity is what the manager says of itself.
type activity struct {
	reconciles, writes, depth, conflicts int
	// hosts that have converged, by step.
	hosts map[string]int
	// runs that were started, by step.
	runs map[string]int
	// byController has the reconciliations of each.
	byController map[string]int
	errors       int
}

// read returns nil while the manager does not answer.
func (m *managerProcess) read() *activity {
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get("http://" + m.metrics + "/metrics")
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil
	}
	a := &activity{hosts: map[string]int{}, runs: map[string]int{}, byController: map[string]int{}}
	for _, s := range parseMetrics(text, "controller_runtime_reconcile_total", "rest_client_requests_total", "workqueue_depth", "edpm_hosts", "edpm_runs_started_total") {
		a.add(s)
	}
	return a
}

func (a *activity) add(s sample) {
	n := int(s.value)
	switch s.name {
	case "controller_runtime_reconcile_total":
		a.reconciles += n
		a.byController[s.labels["controller"]] += n
		if s.labels["result"] == "error" {
			a.errors += n
		}
	case "workqueue_depth":
		a.depth += n
	case "edpm_hosts":
		if s.labels["state"] == "Converged" {
			a.hosts[s.labels["step"]] += n
		}
	case "edpm_runs_started_total":
		a.runs[s.labels["step"]] += n
	case "rest_client_requests_total":
		if s.labels["method"] != http.MethodGet {
			a.writes += n
			if s.labels["code"] == "409" {
				a.conflicts += n
			}
		}
	}
}

// quietFor is how long nothing may happen in a manager that is called quiet:
// longer than any delay with which it gathers events.
const quietFor = 5 * time.Second

// quiet waits until nothing happens and returns when something last did.
func (m *managerProcess) quiet(ctx context.Context) (time.Time, *activity, error) {
	last, before := time.Now(), &activity{}
	for {
		now := m.read()
		if now == nil {
			return last, nil, fmt.Errorf("the manager does not answer: see %s", m.log.Name())
		}
		if now.reconciles != before.reconciles || now.writes != before.writes || now.depth > 0 {
			last = time.Now()
		}
		if time.Since(last) > quietFor {
			return last, now, nil
		}
		before = now
		if err := m.sleep(ctx, 100*time.Millisecond); err != nil {
			return last, nil, err
		}
	}
}

// saveProfile writes a profile of the manager to a file.
func (m *managerProcess) saveProfile(kind, file string) error {
	resp, err := http.Get("http://" + m.pprof + "/debug/pprof/" + kind)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	_, err = io.Copy(out, resp.Body)
	return err
}
