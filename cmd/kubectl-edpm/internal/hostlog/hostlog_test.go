package hostlog

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what is kept into testdata")

// testdata/run.txt is what ansible-core 2.14 printed for three hosts.
func TestKeepsWhatIsOfOneHost(t *testing.T) {
	for _, host := range []string{"edpm-compute-0", "edpm-compute-1", "edpm-compute-10", "edpm-compute-2"} {
		t.Run(host, func(t *testing.T) {
			in, err := os.Open("testdata/run.txt")
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			var got strings.Builder
			if err := Copy(&got, in, New(host)); err != nil {
				t.Fatal(err)
			}
			golden := "testdata/" + host + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhoseALineIs(t *testing.T) {
	const plays = "PLAY [p] ***\n\nTASK [t] ***\n"
	for _, c := range []struct{ name, output, want string }{
		{"what comes before the first play is everybody's", "Identity added\nERROR! the playbook could not be found\n", "Identity added\nERROR! the playbook could not be found\n"},
		{"a warning ahead of a result goes with it", plays + "[WARNING]: of a\nmore of it\nok: [a]\n[WARNING]: of b\nmore of it\nok: [b]\n", "\nPLAY [p] ***\n\nTASK [t] ***\n[WARNING]: of a\nmore of it\nok: [a]\n"},
		{"an error of newer versions goes with the failure", plays + "[ERROR]: Task failed: of b\nOrigin: /p.yml:3:5\n\nfatal: [b]: FAILED! => {}\n[ERROR]: Task failed: of a\nfatal: [a]: FAILED! => {}\n", "\nPLAY [p] ***\n\nTASK [t] ***\n[ERROR]: Task failed: of a\nfatal: [a]: FAILED! => {}\n"},
		{"a warning that no result follows is everybody's", plays + "ok: [b]\n[WARNING]: of all\n\nPLAY RECAP ***\nb : ok=1 changed=0\n", "[WARNING]: of all\n"},
		{"and so at the end", plays + "ok: [b]\n[WARNING]: of all\n", "[WARNING]: of all\n"},
		{"a result of several lines stays together", plays + "ok: [b] => \n  msg: b\n\n  more: b\nok: [a] => \n  msg: a\n\n  more: a\n", "\nPLAY [p] ***\n\nTASK [t] ***\nok: [a] => \n  msg: a\n  more: a\n"},
		{"the path of a task goes with its heading", plays + "task path: /p.yml:3\nok: [b]\n\nTASK [u] ***\ntask path: /p.yml:4\nchanged: [a]\n", "\nPLAY [p] ***\n\nTASK [u] ***\ntask path: /p.yml:4\nchanged: [a]\n"},
		{"a task without a result of the host is left out", plays + "ok: [b]\n\nTASK [u] ***\nok: [a]\n", "\nPLAY [p] ***\n\nTASK [u] ***\nok: [a]\n"},
		{"a delegated result is of the host that delegates", plays + "ok: [a -> b]\nok: [b -> a]\n", "\nPLAY [p] ***\n\nTASK [t] ***\nok: [a -> b]\n"},
		{"a host whose name begins alike is another one", plays + "ok: [ab]\nok: [a.example.org]\n", ""},
		{"included files", plays + "included: /x.yml for b, a => (item=1)\nincluded: /x.yml for b\n", "\nPLAY [p] ***\n\nTASK [t] ***\nincluded: /x.yml for b, a => (item=1)\n"},
		{"asynchronous tasks", plays + "ASYNC OK on a: jid=1\nASYNC POLL on b: jid=2 started=1\n", "\nPLAY [p] ***\n\nTASK [t] ***\nASYNC OK on a: jid=1\n"},
		{"the last line need not end", plays + "ok: [a]", "\nPLAY [p] ***\n\nTASK [t] ***\nok: [a]\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got strings.Builder
			if err := Copy(&got, strings.NewReader(c.output), New("a")); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCopyPassesOnTheErrorOfAStream(t *testing.T) {
	lost := errors.New("connection lost")
	if err := Copy(&strings.Builder{}, iotest.ErrReader(lost), New("a")); !errors.Is(err, lost) {
		t.Errorf("the error is %v", err)
	}
}

func TestOneStepOfARunOfSeveral(t *testing.T) {
	const (
		one = "PLAY [Step one] ***\n\nTASK [t] ***\nok: [a]\nok: [b]\n\nPLAY [End of step one] ***\n\n"
		two = "PLAY [Step two] ***\n\nTASK [u] ***\nok: [b]\nfatal: [a]: FAILED! => {\"msg\": \"PLAY [End of step two] ***\"}\n\nPLAY [End of step two] ***\n\n"
		end = "PLAY RECAP ***\na : ok=1 changed=0\nb : ok=2 changed=0\n"
	)
	for step, want := range []string{
		"\nPLAY [Step one] ***\n\nTASK [t] ***\nok: [a]\n",
		"\nPLAY [Step two] ***\n\nTASK [u] ***\nfatal: [a]: FAILED! => {\"msg\": \"PLAY [End of step two] ***\"}\n",
		"\nPLAY RECAP ***\na : ok=1 changed=0\n",
	} {
		var got strings.Builder
		if err := Copy(&got, strings.NewReader(one+two+end), New("a").Step(step)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.String()); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", step, diff)
		}
	}
}
