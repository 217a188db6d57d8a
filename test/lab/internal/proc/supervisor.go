// Package proc runs the lab's components as detached processes that outlive the
// command that started them, and finds them again by identity, not by pid.
package proc

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Component is one process of the lab, as wanted.
type Component struct {
	Name string
	Argv []string
	// Files maps paths to contents that the process reads at start. They are
	// written before it starts; a change restarts it.
	Files map[string]string
	// Env are variables, as in os.Environ, besides PATH and HOME.
	Env []string
	// Port, if set, must be free on every address before the process starts.
	Port int
}

// digest changes when the process must be restarted to become c.
func (c Component) digest() string {
	b, _ := json.Marshal(struct {
		Argv  []string
		Files map[string]string
		Env   []string `json:",omitempty"`
	}{c.Argv, c.Files, c.Env})
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

type record struct {
	Identity
	Digest string   `json:"digest"`
	Argv   []string `json:"argv"`
}

// Supervisor keeps one record per component in RunDir and one log in LogDir.
type Supervisor struct {
	RunDir, LogDir string
}

// Ensure makes c run as described: it does nothing to a live process that
// matches, replaces one that does not, and starts one that is missing. It
// returns whether it started a process.
func (s *Supervisor) Ensure(c Component) (bool, error) {
	r, known := s.load(c.Name)
	if known && r.Alive() && r.Digest == c.digest() {
		return false, nil
	}
	if err := s.Stop(c.Name, 10*time.Second); err != nil {
		return false, err
	}
	if err := writeFiles(c.Files); err != nil {
		return false, err
	}
	if err := portIsFree(c.Port); err != nil {
		return false, fmt.Errorf("starting %s: %w", c.Name, err)
	}
	return true, s.start(c)
}

func (s *Supervisor) start(c Component) error {
	log, err := s.openLog(c.Name)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Env = append(cleanEnv(), c.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = s.RunDir
	// A session of its own: neither the terminal's hang-up nor ^C reaches it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", c.Name, err)
	}
	go func() { _ = cmd.Wait() }() // so that an early death is seen, not left a zombie
	id, err := Identify(cmd.Process.Pid)
	if err != nil {
		return fmt.Errorf("starting %s: it ended at once; see %s", c.Name, log.Name())
	}
	return s.save(c.Name, record{Identity: id, Digest: c.digest(), Argv: c.Argv})
}

// Stop ends the named component: SIGTERM, and SIGKILL after grace. A component
// that is unknown or already gone is no error.
func (s *Supervisor) Stop(name string, grace time.Duration) error {
	r, known := s.load(name)
	if !known {
		return nil
	}
	for _, step := range []struct {
		sig  syscall.Signal
		wait time.Duration
	}{{syscall.SIGTERM, grace}, {syscall.SIGKILL, 10 * time.Second}} {
		if r.Alive() {
			_ = syscall.Kill(r.PID, step.sig)
		}
		if waitGone(r.Identity, step.wait) {
			return s.forget(name)
		}
	}
	return fmt.Errorf("stopping %s: pid %d survives SIGKILL", name, r.PID)
}

// Kill ends a process that has no record, at once.
func Kill(id Identity) error {
	if id.Alive() {
		_ = syscall.Kill(id.PID, syscall.SIGKILL)
	}
	if !waitGone(id, 10*time.Second) {
		return fmt.Errorf("pid %d survives SIGKILL", id.PID)
	}
	return nil
}

// Alive returns the pid of the named component, and false if it is not running.
func (s *Supervisor) Alive(name string) (int, bool) {
	r, known := s.load(name)
	return r.PID, known && r.Alive()
}

// Known says whether the named component was started and never stopped. It may
// have died since.
func (s *Supervisor) Known(name string) bool {
	_, known := s.load(name)
	return known
}

// Rebooted reports whether a component was started before the machine last booted:
// then nothing runs any more, and what was mounted and made in memory is lost.
func (s *Supervisor) Rebooted() bool {
	records, _ := filepath.Glob(s.recordPath("*")) // the pattern is well formed
	return slices.ContainsFunc(records, func(path string) bool {
		r, known := s.load(strings.TrimSuffix(filepath.Base(path), ".json"))
		return known && r.BootID != bootID()
	})
}

// LogPath returns the file that holds the output of the named component.
func (s *Supervisor) LogPath(name string) string {
	return filepath.Join(s.LogDir, name+".log")
}

// Tail returns the last lines of the named component's log.
func (s *Supervisor) Tail(name string, lines int) string {
	b, _ := os.ReadFile(s.LogPath(name))
	all := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func (s *Supervisor) openLog(name string) (*os.File, error) {
	return os.OpenFile(s.LogPath(name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
}

func (s *Supervisor) recordPath(name string) string {
	return filepath.Join(s.RunDir, name+".json")
}

func (s *Supervisor) load(name string) (record, bool) {
	var r record
	b, err := os.ReadFile(s.recordPath(name))
	if err != nil || json.Unmarshal(b, &r) != nil {
		return record{}, false
	}
	return r, true
}

func (s *Supervisor) save(name string, r record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(s.recordPath(name), b, 0o600)
}

func (s *Supervisor) forget(name string) error {
	if err := os.Remove(s.recordPath(name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func waitGone(id Identity, timeout time.Duration) bool {
	for deadline := time.Now().Add(timeout); ; time.Sleep(20 * time.Millisecond) {
		if !id.Alive() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

func writeFiles(files map[string]string) error {
	for path, content := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// portPatience is how long a taken port may stay taken.
var portPatience = 5 * time.Second

// portIsFree waits a little: a process that just ended may hold its sockets for
// as long as its last thread lives.
func portIsFree(port int) error {
	if port == 0 {
		return nil
	}
	var err error
	for deadline := time.Now().Add(portPatience); time.Now().Before(deadline); {
		var l net.Listener
		if l, err = net.Listen("tcp", ":"+strconv.Itoa(port)); err == nil {
			return l.Close()
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("port %d is taken by something else; choose others with EDPM_LAB_PORT_BASE: %w", port, err)
}

// cleanEnv keeps what a daemon needs and drops the rest: a CI runner ends every
// process that carries its marks, and KUBECONFIG would mislead components.
func cleanEnv() []string {
	env := []string{"PATH=" + os.Getenv("PATH")}
	if home := os.Getenv("HOME"); home != "" {
		env = append(env, "HOME="+home)
	}
	return env
}
