package oslo

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// hunter2 stands for the secret in these tests and must never be quoted.
const hunter2 = "hunter2"

func TestErrorsQuoteTheLineButNotTheSecret(t *testing.T) {
	tests := []struct {
		name, text, want string // want is the Text of the last error
	}{
		{"an option without section", "transport_url = rabbit://u:hunter2@h/\n", "transport_url = ***"},
		{"an option with a colon", "password: hunter2\n", "password: ***"},
		{"an option in capitals with dashes", "ADMIN-PASSWORD = hunter2\n", "ADMIN-PASSWORD = ***"},
		{"an option ending in _key", "memcache_secret_key = hunter2\n", "memcache_secret_key = ***"},
		{"an option ending in keys", "hmac_keys = hunter2\n", "hmac_keys = ***"},
		{"a quoted key", "\"password\": \"hunter2\"\n", "\"password\": ***"},
		{"a key with no separator", "[a]\npassword hunter2\n", "password ***"},
		{"a key with nothing after it", "[a]\npassword\n", "password"},
		{"a key in the middle of a line", "[a]\ncrudini --set nova.conf DEFAULT admin_token hunter2\n", "crudini --set nova.conf DEFAULT admin_token ***"},
		{"a key within a value", "[a]\n  foo = bar password=hunter2\n", "  foo = bar password=***"},
		{"a key behind a header", "[database] connection = hunter2\n", "[database] connection = ***"},
		{"a key in an unclosed header", "[password = hunter2\n", "[password = ***"},
		{"a value that begins with separators", "[a]\n password == hunter2\n", " password =***"},
		{"a URL under a harmless key", "foo = http://u:hunter2@h/x\n", "foo = http:***@h/x"},
		{"a URL whose password has @ and spaces", "foo = http://u:a@b hunter2@h\n", "foo = http:***@h"},
		{"a URL part without scheme", "[a]\n  nova:hunter2@h\n", "  nova:***@h"},
		{"the next line of an empty secret", "[a]\npassword =\nhunter2\n", "***"},
		{"a continuation cut off by a blank line", "[a]\npassword = x\n\n  hunter2\n", "***"},
		{"a continuation cut off by a comment", "[a]\npassword =\n# note\n  hunter2\n", "***"},
		{"a continuation of a secret that is commented out", "[a]\n#password = x\n  hunter2\n", "***"},
		{"the line after a rejected secret", "[a]\npassword\nhunter2\n", "***"},
		{"the line after a rejected header with a secret", "[password\nhunter2\n", "***"},
		{"a second line in the wake of a secret", "[a]\npassword =\nx\nhunter2\n", "***"},
		{"a header in the wake of a secret stays readable", "[a]\npassword = hunter2\n[libvirt\n", "[libvirt"},
		{"a header with text in the wake of a secret", "[a]\npassword = x\n[b] hunter2\n", "***"},
		{"a header that looks secret stays readable", "[keystone_authtoken] # note\n", "[keystone_authtoken] # note"},
		{"a section named like a secret", "[password] hunter2\n", "[password] ***"},
		{"a harmless key ends the wake of a secret", "[a]\npassword = hunter2\nb = 1\n\n  c\n", "  c"},
		{"a new section ends the wake of a secret", "[a]\npassword = hunter2\n[b]\n  c\n", "  c"},
		{"a harmless key that is commented out", "[a]\n#b = 1\n  c\n", "  c"},
		{"a comment without a separator, whatever it mentions", "[a]\n# the password of nova\n  c\n", "  c"},
		{"a value without key", "[a]\n= hunter2\n", "=***"},
		{"text that is no UTF-8", "[a]\npassword = \xff hunter2\n", "password = ***"},
		{"a private key at column one", "[a]\nprivate_key = -----BEGIN\nhunter2\n", "***"},
		{"a secret behind the cut of a long line", "[a]\n  x:" + strings.Repeat("y", 300) + "hunter2@h\n", "  x:***@h"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse(test.text)
			errs, ok := err.(Errors)
			if !ok {
				t.Fatalf("Parse(%q) = %v, want Errors", test.text, err)
			}
			if strings.Contains(err.Error(), hunter2) {
				t.Errorf("the secret is in the message: %v", err)
			}
			if got := errs[len(errs)-1].Text; got != test.want {
				t.Errorf("Text = %q, want %q", got, test.want)
			}
		})
	}
}

func TestConfigPrintsWithoutItsContents(t *testing.T) {
	cfg := mustParse(t, "[a]\npassword = hunter2\n")
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(format, cfg); got != "oslo.Config{1 sections, 1 options}" {
			t.Errorf("%s prints %s", format, got)
		}
	}
}

// FuzzErrorsHideSecrets puts a secret behind its key anywhere in any text.
func FuzzErrorsHideSecrets(f *testing.F) {
	f.Add("[a]\n", " = ", "\n")
	f.Add("[a]\nk = http://x@y:", ":", "@")
	f.Add("[", "\t", "] # x")
	f.Fuzz(func(t *testing.T, before, between, after string) {
		between = strings.Map(func(r rune) rune {
			if strings.ContainsRune(" \t=:", r) {
				return r
			}
			return -1
		}, between)
		if between == "" || strings.Contains(before+after, hunter2) {
			t.Skip("no separator, or the secret is elsewhere as well")
		}
		text := before + "password" + between + hunter2 + after
		_, err := Parse(text)
		errs, _ := err.(Errors)
		for _, e := range errs {
			if strings.Contains(e.Error(), hunter2) {
				t.Errorf("Parse(%q): the secret is in the message: %v", text, e)
			}
		}
	})
}

// words are those of a text that are long enough to be recognized in a message.
func words(text string) []string {
	return slices.DeleteFunc(strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }),
		func(w string) bool { return len(w) < 6 })
}

func TestErrorsOfATextFromASecretHaveNoWordOfIt(t *testing.T) {
	for name, text := range map[string]string{
		"a bare password":        "correcthorsebatterystaple",
		"a password with spaces": "correcthorse batterystaple",
		"a private key":          "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gt\nZWQyNTUxOQAAACBsecretpart==\n-----END OPENSSH PRIVATE KEY-----\n",
		"a dockerconfigjson":     "{\n  \"auths\": {\n    \"registry.example\": {\"username\": \"robot99\", \"auth\": \"cm9ib3Q6aHVudGVyMg==\"}\n  }\n}\n",
		"a broken oslo.config":   "stray = hunter2222\n[database]\nconnection hunter3333\nplainpassword4444\n[unclosedsection5555\n  indented6666\n= novalue7777\n",
		"text that is no UTF-8":  "[a]\n\xffsecretbytes\n",
		"a byte order mark":      "\ufeffhunter8888 = 1\n",
		"many lines":             strings.Repeat("hunter9999\n", 30),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseSecret(text)
			errs, ok := err.(Errors)
			if !ok || !strings.Contains(err.Error(), "line 1") && !strings.Contains(err.Error(), "line 2") {
				t.Fatalf("ParseSecret = %v, want Errors with line numbers", err)
			}
			message := fmt.Sprintf("%v %+v %q", err, errs, errors.Join(errs.Unwrap()...))
			for _, word := range words(text) {
				if strings.Contains(message, word) {
					t.Errorf("%q is in the message: %s", word, message)
				}
			}
		})
	}
}

func TestATextFromASecretThatIsGoodIsRead(t *testing.T) {
	config, err := ParseSecret("[a]\nk = 1\n")
	if err != nil || !slices.Equal(config.Get("a", "k"), []string{"1"}) {
		t.Errorf("ParseSecret = %v, %v", config, err)
	}
}

func TestMaskedHidesWhatAPersonMayNotKnow(t *testing.T) {
	for _, tt := range [][3]string{
		{"password", "hunter2", "***"}, {"transport_url", "rabbit://u:hunter2@h/", "***"}, {"hmac_keys", "hunter2", "***"}, {"password", "hunter2\nhunter2", "***"},
		{"endpoint", "http://u:hunter2@h/x", "http:***@h/x"}, {"backend_argument", "password:hunter2", "password:***"}, {"list", "a\npassword=\nhunter2", "a\npassword=\n***"},
		{"service_token_roles_required", "true", "true"}, {"inject_password", "False", "False"}, {"password", "", ""},
		{"cpu_dedicated_set", "4-31", "4-31"}, {"alias", `{"vendor_id": "8086", "name": "nic"}`, `{"vendor_id": "8086", "name": "nic"}`},
	} {
		if got := Masked(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%s = %q is shown as %q; want %q", tt[0], tt[1], got, tt[2])
		}
	}
}
