package needs

import (
	"fmt"
	"strings"
	"testing"
)

type recorder struct{ said string }

func (*recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.said = "failed: " + fmt.Sprintf(format, args...)
}

func (r *recorder) Skipf(format string, args ...any) {
	r.said = "skipped: " + fmt.Sprintf(format, args...)
}

func TestWhatIsMissingFailsInCI(t *testing.T) {
	for ci, want := range map[string]string{"": "skipped: no-such-program", "1": "failed: no-such-program"} {
		t.Setenv("CI", ci)
		r := &recorder{}
		if Ansible(r, "no-such-program"); !strings.HasPrefix(r.said, want) {
			t.Errorf("with CI=%q it %q; want %q", ci, r.said, want)
		}
		r = &recorder{}
		if modules(r, t.TempDir(), "cloud-init", "cloudinit"); !strings.HasPrefix(r.said, want[:7]) || !strings.Contains(r.said, "hack/cloud-init.sh") {
			t.Errorf("with CI=%q and without cloud-init it %q; want %q", ci, r.said, want[:7])
		}
		r = &recorder{}
		if Oslo(r, "no-such-python"); !strings.HasPrefix(r.said, want[:7]) || !strings.Contains(r.said, "oslo.config") {
			t.Errorf("with CI=%q and without oslo.config it %q; want %q", ci, r.said, want[:7])
		}
		r = &recorder{}
		if Ansible(r, "go"); r.said != "" {
			t.Errorf("with CI=%q and the program it %q", ci, r.said)
		}
	}
}
