package migration

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/edpm-operators/edpm-operators/apis/common"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
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
		"nothing":           {"", nil},
		"another note":      {"A restart is pending for edpm_libvirt_virtlogd, which guests need", nil},
		"one":               {"Not reached over TLS: edpm-0.example.org (no answer)", []string{"edpm-0.example.org (no answer)"}},
		"many":              {"Not reached over TLS: a (no answer), b (it does not listen), 7 more", []string{"a (no answer)", "b (it does not listen)", "7 more"}},
		"between others":    {"A restart is pending. Not reached over TLS: a (no answer). More", []string{"a (no answer)"}},
		"more after a cut":  {"Not reached over TLS: a (no answer)…", []string{"a (no answer)", "…"}},
		"one that was cut":  {"Not reached over TLS: a (no answer), b (it do…", []string{"a (no answer)", "b (it do", "…"}}, // others may follow
		"one cut in a name": {"Not reached over TLS: a (no answer), edpm-co…", []string{"a (no answer)", "edpm-co"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, unreachable(c.note)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// asksFor returns what the compute a asks of the step that reaches for others, by what it did not
// reach, once b and c were configured at these seconds and the step has ended at second 100.
func asksFor(unreached []string, b, c int64) *edpm.Target {
	cells, a := &Cells{}, compute("a", "192.0.2.1", "")
	at := func(second int64) *metav1.Time { return &metav1.Time{Time: time.Unix(second, 0)} }
	a.Status.LiveMigration.UnreachablePeers = unreached
	a.Status.Runs = map[string]common.RunRecord{peersStep.Name: {End: at(100)}}
	cells.note(a)
	for name, end := range map[string]int64{"b": b, "c": c, "2": 50} {
		peer := compute(name, "192.0.2.2", "")
		peer.Status.Runs = map[string]common.RunRecord{libvirtStep: {End: at(end)}}
		cells.note(peer)
	}
	t := &edpm.Target{Rerun: "of a person", Tokens: map[string]string{"node": "of a person"}}
	(&Migration{compute: a, peers: cells.peersOf(a)}).reachAgain(t)
	return t
}

func TestComputesThatTheNoteDoesNotNameAreReachedForOnceMore(t *testing.T) {
	const again = "unreached-1970-01-01T00:01:40Z"
	for title, c := range map[string]struct {
		unreached []string
		b, c      int64
		want      string
	}{
		"all are reached":                        {nil, 200, 200, "of a person"},
		"all are named, and one was configured":  {[]string{"b (no answer)", "c (no answer)"}, 200, 50, "of a person"},
		"all are named, and were configured":     {[]string{"b (no answer)", "c (no answer)"}, 200, 200, "of a person"},
		"more, and one was configured":           {[]string{"b (no answer)", "c (no answer)", "2 more"}, 200, 50, "of a person"},
		"more, and all named ones were":          {[]string{"b (no answer)", "c (no answer)", "2 more"}, 200, 200, again},
		"a note that was cut in a reason":        {[]string{"b (no answer)", "c (no ans", "…"}, 200, 200, again},
		"a note that was cut in a name":          {[]string{"b (no answer)", "edpm-comp"}, 200, 200, again},
		"a note that was cut after a reason":     {[]string{"b (no answer)", "…"}, 200, 200, again},
		"a note that was cut in its first name":  {[]string{"edpm-comp"}, 200, 200, "of a person"},
		"one that is called as a number is left": {[]string{"b (no answer)", "2 (no answer)"}, 200, 200, "of a person"},
	} {
		got := asksFor(c.unreached, c.b, c.c)
		if got.Rerun != c.want || got.Tokens["node"] != "of a person" || c.want == again && got.Tokens["unreached"] != again {
			t.Errorf("%s: it asks for %q with %v; want %q", title, got.Rerun, got.Tokens, c.want)
		}
	}
}

func TestReaches(t *testing.T) {
	at := func(second int64) *metav1.Time { return &metav1.Time{Time: time.Unix(second, 0)} }
	from := compute("a", "192.0.2.1", "")
	from.Status.LiveMigration.UnreachablePeers = []string{"b (no answer)", "repaired (no answer)", "2 more"}
	from.Status.Runs = map[string]common.RunRecord{peersStep.Name: {End: at(100)}}
	for name, want := range map[string]bool{"b": false, "repaired": true, "c": true, "2": true} {
		to := compute(name, "192.0.2.2", "")
		to.Status.Runs = map[string]common.RunRecord{libvirtStep: {End: at(map[string]int64{"repaired": 200}[name])}}
		if got := Reaches(from, to); got != want {
			t.Errorf("%s is reached: %t, want %t", name, got, want)
		}
	}
}
