package proc

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const waitLimit = 5 * time.Second

func newSupervisor(t *testing.T) *Supervisor {
	t.Helper()
	dir := t.TempDir()
	s := &Supervisor{RunDir: dir, LogDir: dir}
	t.Cleanup(func() { _ = s.Stop("sleeper", waitLimit) })
	return s
}

func sleeper(seconds string) Component {
	return Component{Name: "sleeper", Argv: []string{"sleep", seconds}}
}

func ensure(t *testing.T, s *Supervisor, c Component, wantStart bool) int {
	t.Helper()
	started, err := s.Ensure(c)
	if err != nil {
		t.Fatal(err)
	}
	if started != wantStart {
		t.Errorf("Ensure started a process: %v, want %v", started, wantStart)
	}
	pid, alive := s.Alive(c.Name)
	if !alive {
		t.Fatal("the component does not run")
	}
	return pid
}

func TestEnsureLeavesAloneWhatIsWell(t *testing.T) {
	s := newSupervisor(t)
	first := ensure(t, s, sleeper("100"), true)
	if again := ensure(t, s, sleeper("100"), false); again != first {
		t.Errorf("pid went from %d to %d", first, again)
	}
}

func TestEnsureReplacesWhatDiedOrChanged(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	reconfigured := sleeper("101")
	reconfigured.Files = map[string]string{config: "new"}
	for _, tc := range []struct {
		name  string
		next  Component
		upset func(s *Supervisor)
	}{
		{"other arguments", sleeper("101"), func(*Supervisor) {}},
		{"another file to read", reconfigured, func(*Supervisor) {}},
		{"a process that was killed", sleeper("100"), func(s *Supervisor) {
			r, _ := s.load("sleeper")
			_ = Kill(r.Identity)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSupervisor(t)
			first := ensure(t, s, sleeper("100"), true)
			tc.upset(s)
			if ensure(t, s, tc.next, true) == first {
				t.Errorf("pid is still %d", first)
			}
		})
	}
	if content, err := os.ReadFile(config); err != nil || string(content) != "new" {
		t.Errorf("the file holds %q, %v", content, err)
	}
}

func TestStopSparesAProcessThatReusedThePid(t *testing.T) {
	s := newSupervisor(t)
	ensure(t, s, sleeper("100"), true)
	r, _ := s.load("sleeper")
	stale := r
	stale.StartTicks--
	if err := s.save("sleeper", stale); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop("sleeper", waitLimit); err != nil {
		t.Fatal(err)
	}
	if !r.Alive() {
		t.Error("Stop killed a process that is not the component")
	}
	if err := Kill(r.Identity); err != nil {
		t.Fatal(err)
	}
}

func TestABootOfTheMachineIsNoticed(t *testing.T) {
	s := newSupervisor(t)
	if s.Rebooted() {
		t.Error("nothing was started yet")
	}
	ensure(t, s, sleeper("100"), true)
	if s.Rebooted() {
		t.Error("the machine has not been booted since")
	}
	r, _ := s.load("sleeper")
	before := r
	before.BootID = "an earlier boot"
	if err := s.save("another", before); err != nil {
		t.Fatal(err)
	}
	if !s.Rebooted() {
		t.Error("a component is of an earlier boot")
	}
	if _, alive := s.Alive("another"); alive {
		t.Error("a process of this boot is taken for one of an earlier boot")
	}
}

func TestAPortInUseIsNamed(t *testing.T) {
	portPatience = 200 * time.Millisecond
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := sleeper("100")
	c.Port = l.Addr().(*net.TCPAddr).Port
	_, err = newSupervisor(t).Ensure(c)
	if err == nil || !strings.Contains(err.Error(), "EDPM_LAB_PORT_BASE") {
		t.Errorf("error %v does not say what to do", err)
	}
}

func TestMentions(t *testing.T) {
	match := Mentions("/lab/", "etcd", "kubelet")
	for _, tc := range []struct {
		name string
		argv []string
		want bool
	}{
		{"a component of this lab", []string{"/cache/etcd", "--data-dir=/lab/etcd"}, true},
		{"a component of another lab", []string{"/cache/etcd", "--data-dir=/other/etcd"}, false},
		{"an editor on a file of the lab", []string{"vi", "/lab/conf/kubelet.yaml"}, false},
		{"an executable under the lab's directory", []string{"/lab/etcd"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := match(tc.argv); got != tc.want {
				t.Errorf("match(%q) = %v, want %v", tc.argv, got, tc.want)
			}
		})
	}
}
