package migration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddressIn(t *testing.T) {
	for name, c := range map[string]struct {
		vars          map[string]any
		network, want string
	}{
		"that of Ansible":               {map[string]any{"ansible_host": "192.0.2.1"}, "", "192.0.2.1"},
		"IPv6":                          {map[string]any{"ansible_host": "2001:DB8::1"}, "", "2001:db8::1"},
		"IPv4 in IPv6":                  {map[string]any{"ansible_host": "::ffff:192.0.2.1"}, "", "192.0.2.1"},
		"that of a network":             {map[string]any{"ansible_host": "192.0.2.1", "internalapi_ip": "198.51.100.1"}, "InternalAPI", "198.51.100.1"},
		"none in the network":           {map[string]any{"ansible_host": "192.0.2.1"}, "InternalAPI", "invalid IP"},
		"a host name":                   {map[string]any{"ansible_host": "edpm-compute-0"}, "", "invalid IP"},
		"a template":                    {map[string]any{"ansible_host": "{{ x }}"}, "", "invalid IP"},
		"what is no text":               {map[string]any{"ansible_host": 7}, "", "invalid IP"},
		"the host itself":               {map[string]any{"ansible_host": "127.0.0.1"}, "", "invalid IP"},
		"any address":                   {map[string]any{"ansible_host": "0.0.0.0"}, "", "invalid IP"},
		"one of a link, with its zone":  {map[string]any{"ansible_host": "fe80::1%eth0"}, "", "invalid IP"},
		"another line for the firewall": {map[string]any{"ansible_host": "192.0.2.1 accept\n"}, "", "invalid IP"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := addressIn(c.vars, c.network).String(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	for name, c := range map[string]struct {
		note string
		want []string
	}{
		"nothing":          {"", nil},
		"another note":     {"A restart is pending for edpm_libvirt_virtlogd, which guests need", nil},
		"one":              {"Not reached over TLS: edpm-0.example.org (no answer)", []string{"edpm-0.example.org (no answer)"}},
		"many":             {"Not reached over TLS: a (no answer), b (it does not listen), 7 more", []string{"a (no answer)", "b (it does not listen)", "7 more"}},
		"between others":   {"A restart is pending. Not reached over TLS: a (no answer). More", []string{"a (no answer)"}},
		"one that was cut": {"Not reached over TLS: a (no answer), b (it do…", []string{"a (no answer)", "b (it do"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, unreachable(c.note)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
