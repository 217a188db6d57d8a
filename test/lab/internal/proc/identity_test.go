package proc

import (
	"os"
	"os/exec"
	"testing"
)

func TestParseStat(t *testing.T) {
	const tail = " 1 2 3 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 777 4096 100"
	for _, tc := range []struct {
		name, line string
		want       stat
		fails      bool
	}{
		{"an ordinary command", "42 (etcd) S" + tail, stat{'S', 777}, false},
		{"a command with spaces and parentheses", "42 (a) b (c) Z" + tail, stat{'Z', 777}, false},
		{"no command", "42 etcd S" + tail, stat{}, true},
		{"a short line", "42 (etcd) S 1 2 3", stat{}, true},
		{"a start time that is no number", "42 (etcd) S 1 2 3 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 x", stat{}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parseStat(tc.line)
			if (err != nil) != tc.fails {
				t.Fatalf("error is %v, want one: %v", err, tc.fails)
			}
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestAnIdentityIsAliveOnlyForTheSameProcess(t *testing.T) {
	self, err := Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	later, rebooted := self, self
	later.StartTicks++
	rebooted.BootID = "another boot"
	for _, tc := range []struct {
		name string
		id   Identity
		want bool
	}{
		{"this process", self, true},
		{"another process with a reused pid", later, false},
		{"the same pid before a reboot", rebooted, false},
		{"no process", Identity{BootID: self.BootID}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.id.Alive(); got != tc.want {
				t.Errorf("Alive() = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestAZombieIsNotAlive(t *testing.T) {
	cmd := exec.Command("cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	id, err := Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if !id.Alive() {
		t.Fatal("a running cat is not alive")
	}
	stdin.Close() // cat ends, and stays a zombie until Wait
	if !waitGone(id, waitLimit) {
		t.Error("a zombie counts as alive")
	}
}
