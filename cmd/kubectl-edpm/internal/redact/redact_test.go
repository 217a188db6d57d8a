package redact

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

const pem = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAA\nQUFBQUFBQUFBQUFBQUFB\n-----END OPENSSH PRIVATE KEY-----\n"

func TestTextByWhatItLooksLike(t *testing.T) {
	m := New(nil)
	for _, c := range []struct{ name, text, want string }{
		{"oslo.config", "[DEFAULT]\npassword = abc def\nadmin_password=abc\ndebug = true", "[DEFAULT]\npassword = ***\nadmin_password=***\ndebug = true"},
		{"a log with times", "2026-03-01T12:00:00.123Z password = abc def", "2026-03-01T12:00:00.123Z password = ***"},
		{"an address", "transport_url = rabbit://nova:abc@host:5671/?ssl=1", "transport_url = rabbit://nova:***@host:5671/?ssl=1"},
		{"an address without a user", "redis://:abc@host", "redis://:***@host"},
		{"the hosts of an address", "rabbit://a:b1@h1:5671,a:b2@h2:5671/v", "rabbit://a:***@h1:5671,a:***@h2:5671/v"},
		{"hosts of which one has no password", "rabbit://a@h1,a:b2@h2,h3:5671", "rabbit://a@h1,a:***@h2,h3:5671"},
		{"a shared secret", "[neutron]\nmetadata_proxy_shared_secret=a b\nurl=x", "[neutron]\nmetadata_proxy_shared_secret=***\nurl=x"},
		{"a secret of a client in YAML", "  client_secret: abc", "  client_secret: ***"},
		{"words stay", "3 tests pass: all of Secret osp-secret: found", "3 tests pass: all of Secret osp-secret: found"},
		{"several addresses", "rabbit://a:b1@h1,rabbit://a:b2@h2", "rabbit://a:***@h1,rabbit://a:***@h2"},
		{"YAML", "  edpm_registry_password: abc", "  edpm_registry_password: ***"},
		{"JSON", `{"password": "abc", "n": 1}`, `{"password": "***", "n": 1}`},
		{"JSON in a string", `"{\"password\":\"abc\"}"`, `"{\"password\":\"***\"}"`},
		{"an option", "curl --token=abc host", "curl --token=*** host"},
		{"a private key", "x\n" + pem + "y", "x\n***\ny"},
		{"a private key that is cut off", "x\n" + pem[:60], "x\n***"},
		{"a header", "Authorization: Bearer abcdefgh12345", "Authorization: Bearer ***"},
		{"a JSON Web Token", "got eyJhbGciOiJSUzI1.eyJpc3MiOiJrd.c2lnbmF0dXJl here", "got *** here"},
		{"the name of a Secret stays", "ansibleSSHPrivateKeySecret: dataplane-key\nsecret: osp-secret\nsecretName: osp-secret", "ansibleSSHPrivateKeySecret: dataplane-key\nsecret: osp-secret\nsecretName: osp-secret"},
		{"a name of a key stays", "passwordSelectors:\n  service: NovaPassword\n", "passwordSelectors:\n  service: NovaPassword\n"},
		{"a switch stays", "automountServiceAccountToken: false", "automountServiceAccountToken: false"},
		{"an address without a password stays", "https://keystone.example.org:5000/v3", "https://keystone.example.org:5000/v3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(strings.ReplaceAll(c.want, "***", Redacted), m.Text(c.text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWhatTheRunnerMasksToo : the same lines are a test of the filter of the
// collection, ansible/plugins/module_utils/mask.py.
func TestWhatTheRunnerMasksToo(t *testing.T) {
	text, err := os.ReadFile("testdata/lines.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Line    string
		Secrets []string
	}
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) < 10 {
		t.Fatalf("found %d lines: %v", len(cases), err)
	}
	for _, c := range cases {
		masked := New(nil).Text(c.Line)
		for _, secret := range c.Secrets {
			if strings.Contains(masked, secret) {
				t.Errorf("%q became %q, which has %q", c.Line, masked, secret)
			}
		}
	}
}

// Eight times the text takes eight times as long. Were the time quadratic, it would
// be 64 times.
func TestManyLinesTakeTimeInProportion(t *testing.T) {
	for name, piece := range map[string]string{"names": "tokentoken_pass", "addresses": "rabbit://u:p@h,", "at signs": "://u:p@@@,:@"} {
		short, long := quickest(piece, 16<<10), quickest(piece, 128<<10)
		if long > 32*short {
			t.Errorf("16 KiB of %s take %v, 128 KiB take %v", name, short, long)
		}
	}
}

// quickest returns the lowest CPU time of several runs over a text of the given size.
// Other processes do not change it.
func quickest(piece string, size int) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	text, best := strings.Repeat(piece, size/len(piece)), time.Duration(math.MaxInt64)
	for range 5 {
		start := threadTime()
		New(nil).Text(text)
		best = min(best, threadTime()-start)
	}
	return best
}

// threadTime returns the CPU time of the calling thread.
func threadTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func TestTextByValue(t *testing.T) {
	m := New([]corev1.Secret{
		{Data: map[string][]byte{"NovaPassword": []byte("s3cr3t!/&"), "username": []byte("administrator"), "n": []byte("5"), "PinPassword": []byte("k9z")}},
		{Data: map[string][]byte{"transport_url": []byte("rabbit://nova:sw0rdfish@host:5671/")}},
		{Data: map[string][]byte{"notification_url": []byte("rabbit://a:opensaysme@h1,a:friend@h2/")}},
		{Data: map[string][]byte{"inventory": []byte("all:\n  vars:\n    ansible_user: cloud-admin\n    ansible_password: opensesame\n")}},
		{Data: map[string][]byte{"ssh-privatekey": []byte(pem)}},
		{Data: map[string][]byte{"auth.conf": []byte("[a]\nsecret_key = \"xyzzy\"\n")}},
	})
	for _, c := range []struct{ name, text, want string }{
		{"plain", "it said s3cr3t!/& twice: s3cr3t!/&", "it said *** twice: ***"},
		{"in JSON", `{"x":"s3cr3t!/\u0026"}`, `{"x":"***"}`},
		{"in a query", "?p=s3cr3t%21%2F%26", "?p=***"},
		{"in base64", base64.StdEncoding.EncodeToString([]byte("s3cr3t!/&")), "***"},
		{"in base64 with a line break", base64.StdEncoding.EncodeToString([]byte("s3cr3t!/&\n")), "***"},
		{"the passwords of an address with several hosts", "opensaysme, friend", "***, ***"},
		{"the password of an address by itself", "user nova, sw0rdfish", "user nova, ***"},
		{"a value in a document", "tried opensesame", "tried ***"},
		{"a quoted value in a document", "tried xyzzy", "tried ***"},
		{"a line of a key", "key b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAA ends", "key *** ends"},
		{"a short value under a name that says so", "pin k9z", "pin ***"},
		{"words of a document stay", "all: vars: ansible_user: cloud-admin", "all: vars: ansible_user: cloud-admin"},
		{"short values and user names stay", "5 hosts of administrator", "5 hosts of administrator"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(strings.ReplaceAll(c.want, "***", Redacted), m.Text(c.text)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if New(nil).Values() != 0 || m.Values() < 6 {
		t.Errorf("it knows %d values", m.Values())
	}
}

func TestObject(t *testing.T) {
	obj := map[string]any{
		"spec": map[string]any{
			"secret": "osp-secret", "sshKeySecretName": "key", "transportURLSecret": "bus",
			"passwordSelectors": map[string]any{"service": "NovaPassword"},
			"env":               []any{map[string]any{"name": "DB_PASSWORD", "value": "a b c"}, map[string]any{"name": "DEBUG", "value": "1"}},
			"ansibleVars":       map[string]any{"registry_password": "with a space", "bmc_token": "", "n": int64(1)},
			"args":              []any{"--password", "--token=abc"}, "customServiceConfig": "[DEFAULT]\npassword = a b\n",
		},
	}
	New(nil).Object(obj)
	want := map[string]any{
		"spec": map[string]any{
			"secret": "osp-secret", "sshKeySecretName": "key", "transportURLSecret": "bus",
			"passwordSelectors": map[string]any{"service": "NovaPassword"},
			"env":               []any{map[string]any{"name": "DB_PASSWORD", "value": Redacted}, map[string]any{"name": "DEBUG", "value": "1"}},
			"ansibleVars":       map[string]any{"registry_password": Redacted, "bmc_token": "", "n": int64(1)},
			"args":              []any{"--password", "--token=" + Redacted}, "customServiceConfig": "[DEFAULT]\npassword = " + Redacted + "\n",
		},
	}
	if diff := cmp.Diff(want, obj); diff != "" {
		t.Error(diff)
	}
}
