package hostlog

import (
	"strings"
	"testing"
)

// FuzzFilter looks for output of a run that crashes the plugin, or makes it show
// what came of another host.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{
		"PLAY [all] ***\nTASK [a] ***\nok: [other] => {secret}\n", "fatal: [other]: FAILED! =>\nsecret\n", "included: a for other, mine => (item=secret)",
		"ok: [mine] => x\nok: [other] => secret", "other : ok=1 secret", "\x00\n\r\n[WARNING]: a",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		filter := New("mine")
		var kept []string
		for line := range strings.Lines(text + "\nchanged: [other] => secret of the other\nsecret continues\n") {
			kept = append(kept, filter.Line(strings.TrimRight(line, "\r\n"))...)
		}
		if out := strings.Join(append(kept, filter.End()...), "\n"); strings.Contains(out, "secret of the other") || strings.HasSuffix(out, "secret continues") {
			t.Errorf("%q: the result of another host is shown: %q", text, out)
		}
	})
}
