package login

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
	corev1 "k8s.io/api/core/v1"

	"github.com/edpm-operators/edpm-operators/internal/sshkey"
)

const (
	keyOne = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
	keyTwo = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAcNHqIYJrB8OtlhnG2w1bDeHDgPDVgPPIoqxDyRIKy8"
)

func TestKnownHosts(t *testing.T) {
	for name, c := range map[string]struct {
		hosts []Host
		want  string
	}{
		"none":                 {nil, ""},
		"IPv4":                 {[]Host{{"192.0.2.1", keyOne}}, "[192.0.2.1]:2022 " + keyOne + "\n"},
		"IPv6":                 {[]Host{{"2001:db8::1", keyOne}}, "[2001:db8::1]:2022 " + keyOne + "\n"},
		"in any order":         {[]Host{{"192.0.2.2", keyTwo}, {"192.0.2.1", keyOne}}, "[192.0.2.1]:2022 " + keyOne + "\n[192.0.2.2]:2022 " + keyTwo + "\n"},
		"the same one twice":   {[]Host{{"192.0.2.1", keyOne}, {"192.0.2.1", keyOne}}, "[192.0.2.1]:2022 " + keyOne + "\n"},
		"two with one address": {[]Host{{"192.0.2.1", keyTwo}, {"192.0.2.1", keyOne}}, "[192.0.2.1]:2022 " + keyTwo + "\n[192.0.2.1]:2022 " + keyOne + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, string(knownHosts(c.hosts))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSSHFindsHostsByAddressAndPort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(path, knownHosts([]Host{{"192.0.2.1", keyOne}, {"2001:db8::1", keyTwo}}), 0o600); err != nil {
		t.Fatal(err)
	}
	check, err := knownhosts.New(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		address, key string
		known        bool
	}{
		"its key":                 {"192.0.2.1:2022", keyOne, true},
		"its key, over IPv6":      {"[2001:db8::1]:2022", keyTwo, true},
		"that of another compute": {"192.0.2.1:2022", keyTwo, false},
		"at another port":         {"192.0.2.1:22", keyOne, false},
		"at another address":      {"192.0.2.2:2022", keyOne, false},
	} {
		t.Run(name, func(t *testing.T) {
			key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(c.key))
			if err != nil {
				t.Fatal(err)
			}
			if err := check(c.address, &net.TCPAddr{}, key); (err == nil) != c.known {
				t.Errorf("known is %t: %v", err == nil, err)
			}
		})
	}
}

func TestAuthorizedKeys(t *testing.T) {
	data := next(t, nil, "", false)
	keys := parsed(t, data)
	key, _, options, rest, err := ssh.ParseAuthorizedKey(keys.Public([]Host{{"192.0.2.2", keyOne}, {"2001:db8::1", keyTwo}, {"192.0.2.2", keyOne}})[AuthorizedKeysFile])
	if err != nil || len(rest) > 0 {
		t.Fatal(err, rest)
	}
	if diff := cmp.Diff([]string{"restrict", `command="/etc/ssh/copy_disks"`, `from="192.0.2.2,2001:db8::1"`}, options); diff != "" {
		t.Error(diff)
	}
	if ssh.FingerprintSHA256(key) != keys.Fingerprint() {
		t.Error("another key is accepted")
	}
	if got := keys.Public(nil)[AuthorizedKeysFile]; len(got) > 0 {
		t.Errorf("without hosts some are let in: %s", got)
	}
}

func TestOpenSSHReadsTheKey(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil && os.Getenv("CI") == "" {
		t.Skip("ssh-keygen is missing: install openssh-client; in CI the test fails without it")
	}
	data := next(t, nil, "", false)
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, data[corev1.SSHAuthPrivateKey], 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-y", "-f", path).Output()
	if err != nil || strings.TrimSpace(string(out)) != sshkey.Public(parsed(t, data).present) {
		t.Errorf("it reads %s: %v", out, err)
	}
}

func TestRotation(t *testing.T) {
	first := next(t, nil, "", true)
	if diff := cmp.Diff(first, next(t, first, "", true)); diff != "" {
		t.Errorf("without a token it changes: %s", diff)
	}
	second := next(t, first, "a", true)
	if bytes.Equal(second[corev1.SSHAuthPrivateKey], first[corev1.SSHAuthPrivateKey]) || !bytes.Equal(second[PreviousKey], first[corev1.SSHAuthPrivateKey]) {
		t.Error("the key should be another one, and the one before the previous one")
	}
	public, private := parsed(t, second).Public([]Host{{"192.0.2.1", keyOne}}), parsed(t, second).Private()
	if lines := bytes.Count(public[AuthorizedKeysFile], []byte("\n")); lines != 2 || private[PreviousKey] == nil {
		t.Errorf("%d keys are accepted", lines)
	}
	if diff := cmp.Diff(second, next(t, second, "b", false)); diff != "" {
		t.Errorf("it does not wait until every host has the key: %s", diff)
	}
	third := next(t, second, "a", true)
	if third[PreviousKey] != nil || !bytes.Equal(third[corev1.SSHAuthPrivateKey], second[corev1.SSHAuthPrivateKey]) {
		t.Error("the previous key should be dropped, and nothing else")
	}
	if diff := cmp.Diff(third, next(t, third, "a", true)); diff != "" {
		t.Errorf("the same token changes it again: %s", diff)
	}
	if diff := cmp.Diff(third, next(t, third, "", true)); diff != "" {
		t.Errorf("taking the token back changes it: %s", diff)
	}
}

func TestAKeyThatCannotBeReadIsReplaced(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "no key": "secret text", "another format": keyOne} {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{corev1.SSHAuthPrivateKey: []byte(text)}
			if _, err := Parse(data); err == nil || text != "" && strings.Contains(err.Error(), text) {
				t.Errorf("the error is %v", err)
			}
			if keys := parsed(t, next(t, data, "a", false)); keys.Previous() != "" {
				t.Error("there is a previous key")
			}
		})
	}
}

// What a host says of itself ends up in files of all others: a key of it is one line.
func FuzzHostsAddNoLines(f *testing.F) {
	for _, key := range []string{keyOne, keyTwo + " comment", "ssh-ed25519 AAAA", "* ssh-ed25519 AAAA", keyOne + "\n* " + keyTwo, "@cert-authority * " + keyOne, `command="x" ` + keyOne} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
		if err != nil {
			return
		}
		lines := strings.Split(strings.TrimSuffix(string(knownHosts([]Host{{"192.0.2.1", sshkey.Public(key)}})), "\n"), "\n")
		if fields := strings.Fields(lines[0]); len(lines) != 1 || len(fields) != 3 || !slices.Equal(fields[:1], []string{"[192.0.2.1]:2022"}) {
			t.Errorf("%q adds %q", text, lines)
		}
	})
}

func next(t *testing.T, data map[string][]byte, token string, isEverywhere bool) map[string][]byte {
	t.Helper()
	data, err := Next(data, token, func(string) bool { return isEverywhere })
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func parsed(t *testing.T, data map[string][]byte) *Keys {
	t.Helper()
	keys, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}
