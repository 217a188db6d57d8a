package recap

import (
	"strings"
	"testing"
)

// A recap comes out of an image that a user made: see docs/security.md.

func TestNothingOfARecapMovesTheCursorOfATerminal(t *testing.T) {
	got, err := Parse(`{"v":1,"hosts":{"a":[1,0,0,0,0,"x\u001b[2J\u009b\r\n\u202ey"]},"error":"\u001b]0;evil\u0007"}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{got.Hosts[0].Message, got.Error} {
		if strings.ContainsAny(text, "\x1b\u009b\r\n\u202e\x07") {
			t.Errorf("%q has control characters", text)
		}
	}
	if _, err := Parse(`{"v":1,"hosts":{"a\u001b[2J":[1,0,0,0,0]}}`); err == nil || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("a host with an impossible name gives the error %q", err)
	}
}

func TestOnlyAKeyBecomesTheKeyOfAHost(t *testing.T) {

	for text, want := range map[string]string{key: key, "nonsense": "", key + `\n* ssh-ed25519 AAAA`: "", "": ""} {
		got, err := Parse(`{"v":1,"hosts":{"a":[1,0,0,0,0,"","` + text + `"]}}`)
		if err != nil {
			t.Fatal(err)
		}
		if got.Hosts[0].HostKey != want {
			t.Errorf("the key %q becomes %q; want %q", text, got.Hosts[0].HostKey, want)
		}
	}
}

// key is the public key of a host.
const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
