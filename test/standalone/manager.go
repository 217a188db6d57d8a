package standalone

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

// Manager is the real manager, a process.
type Manager struct {
	// Started is when the process was.
	Started time.Time

	cmd            *exec.Cmd
	done           chan struct{}
	metrics, pprof string
	log            *os.File
}

// StartManager starts the manager for the cluster, without leader election,
// with its defaults but for the flags, and returns once it answers. Its log
// goes to the file.
func (c *Cluster) StartManager(ctx context.Context, logFile string, flags ...string) (*Manager, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	out, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	m := &Manager{metrics: ports[0], pprof: ports[1], done: make(chan struct{}), log: out, Started: time.Now()}
	m.cmd = exec.Command(filepath.Join(c.programs, "manager"), append([]string{"--leader-elect=false",
		"--health-probe-bind-address=0", "--metrics-bind-address=" + m.metrics, "--metrics-secure=false", "--pprof-bind-address=" + m.pprof}, flags...)...)
	m.cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(), // without images it deploys and runs nothing
		"RELATED_IMAGE_GLANCE_API_IMAGE_URL_DEFAULT=localhost/edpm-glance-api:latest",
		"RELATED_IMAGE_ANSIBLEEE_IMAGE_URL_DEFAULT=localhost/edpm-ansibleee:latest", "RELATED_IMAGE_NOVA_ANSIBLE_EE_IMAGE_URL_DEFAULT=localhost/edpm-ansibleee:latest",
		"RELATED_IMAGE_NOVA_COMPUTE_IMAGE_URL_DEFAULT=localhost/edpm-nova-compute:latest", "RELATED_IMAGE_NOVA_LIBVIRT_IMAGE_URL_DEFAULT=localhost/edpm-libvirt:latest")
	m.cmd.Stdout, m.cmd.Stderr = out, out
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = m.cmd.Wait() // how it ended is in its log
		close(m.done)
	}()
	for m.Read() == nil {
		if err := m.Sleep(ctx, 100*time.Millisecond); err != nil {
			m.Stop()
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

// PID of the process.
func (m *Manager) PID() int { return m.cmd.Process.Pid }

// LogFile is the path of its log.
func (m *Manager) LogFile() string { return m.log.Name() }

// Stop ends the manager and waits for its end.
func (m *Manager) Stop() {
	_ = m.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-m.done:
	case <-time.After(20 * time.Second):
		_ = m.cmd.Process.Kill()
		<-m.done
	}
	m.log.Close()
}

// Sleep returns early with an error when the context or the manager ends.
func (m *Manager) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-m.done:
		return fmt.Errorf("the manager has ended: see %s", m.log.Name())
	case <-time.After(d):
		return nil
	}
}

// Activity is what the manager says of itself since it started.
type Activity struct {
	Reconciles, Errors, Writes, Conflicts int
	// Depth of all work queues now.
	Depth int
	// ByController has the reconciliations of each controller.
	ByController map[string]int
	// Hosts that have converged, by step.
	Hosts map[string]int
	// Runs that were started, by step.
	Runs map[string]int
}

// Read returns what the manager says of itself, nil while it does not answer.
func (m *Manager) Read() *Activity {
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
	a := &Activity{Hosts: map[string]int{}, Runs: map[string]int{}, ByController: map[string]int{}}
	for _, s := range parseMetrics(text, "controller_runtime_reconcile_total", "rest_client_requests_total", "workqueue_depth", "edpm_hosts", "edpm_runs_started_total") {
		a.add(s)
	}
	return a
}

func (a *Activity) add(s sample) {
	n := int(s.value)
	switch s.name {
	case "controller_runtime_reconcile_total":
		a.Reconciles += n
		a.ByController[s.labels["controller"]] += n
		if s.labels["result"] == "error" {
			a.Errors += n
		}
	case "workqueue_depth":
		a.Depth += n
	case "edpm_hosts":
		if s.labels["state"] == "Converged" {
			a.Hosts[s.labels["step"]] += n
		}
	case "edpm_runs_started_total":
		a.Runs[s.labels["step"]] += n
	case "rest_client_requests_total":
		if s.labels["method"] != http.MethodGet {
			a.Writes += n
			if s.labels["code"] == "409" {
				a.Conflicts += n
			}
		}
	}
}

// quietFor is how long nothing may happen in a manager that is called quiet:
// longer than any delay with which it gathers events.
const quietFor = 5 * time.Second

// Quiet waits until nothing happens any more. It returns when something last
// did, and what the manager says of itself then.
func (m *Manager) Quiet(ctx context.Context) (time.Time, *Activity, error) {
	last, before := time.Now(), &Activity{}
	for {
		now := m.Read()
		if now == nil {
			return last, nil, fmt.Errorf("the manager does not answer: see %s", m.log.Name())
		}
		if now.Reconciles != before.Reconciles || now.Writes != before.Writes || now.Depth > 0 {
			last = time.Now()
		}
		if time.Since(last) > quietFor {
			return last, now, nil
		}
		before = now
		if err := m.Sleep(ctx, 100*time.Millisecond); err != nil {
			return last, nil, err
		}
	}
}

// SaveProfile writes a profile of the manager to a file.
func (m *Manager) SaveProfile(kind, file string) error {
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
