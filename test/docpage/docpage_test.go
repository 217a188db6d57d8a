package docpage_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/edpm-operators/edpm-operators/test/docpage"
)

const page = "# Title\n\n```sh\ncd /\nA=1\n```\n\n" +
	"## A list, `and` more\n\n1. In a list:\n\n   ```sh example\n   kubectl apply -f - <<'END'\n   a: 1\n     b\n   END\n   ```\n\n" +
	"````text\n```sh\nno command\n```\n````\n\n```\nplain\n```\n\n```sh\n```\n"

func TestParse(t *testing.T) {
	want := []docpage.Block{
		{Page: "a.md", Section: "Title", Line: 4, Info: "sh", Text: "cd /\nA=1\n"},
		{Page: "a.md", Section: "A list, `and` more", Line: 13, Info: "sh example", Text: "kubectl apply -f - <<'END'\na: 1\n  b\nEND\n"},
		{Page: "a.md", Section: "A list, `and` more", Line: 20, Info: "text", Text: "```sh\nno command\n```\n"},
		{Page: "a.md", Section: "A list, `and` more", Line: 26, Text: "plain\n"},
	}
	blocks := docpage.Parse("a.md", []byte(page))
	if diff := cmp.Diff(want, blocks); diff != "" {
		t.Errorf("blocks differ from what is expected (-want +got):\n%s", diff)
	}
	var run []bool
	for _, b := range blocks {
		run = append(run, b.Runs())
	}
	if diff := cmp.Diff([]bool{true, false, false, false}, run); diff != "" {
		t.Errorf("which blocks are run differs (-want +got):\n%s", diff)
	}
}

func shell(t *testing.T, env ...string) *docpage.Shell {
	t.Helper()
	s, err := docpage.NewShell(t.TempDir(), env...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestBlocksShareOneSession(t *testing.T) {
	s := shell(t, "GIVEN=given")
	for i, b := range []struct{ text, want string }{
		{"local_one=1; export OTHER=2; cd /", ""},
		{"greet() { echo hello; }\nsleep 60 &", ""}, // does not wait for what is in the background
		{`greet; echo "$local_one $OTHER $GIVEN $PWD"; cat; echo late >&2`, "hello\n1 2 given /\nlate\n"},
		{`sh -c 'echo "<${local_one-}>"'`, "<>\n"}, // was not exported
		{"false || true\nif false; then :; fi", ""},
	} {
		out, err := s.Run(t.Context(), docpage.Block{Page: "a.md", Line: 3, Text: b.text})
		if err != nil || out != b.want {
			t.Errorf("block %d printed %q and returned %v; expected %q and no error", i, out, err, b.want)
		}
	}
}

func TestTheFirstFailureEndsThePage(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a command":           {"echo one\ngrep x /dev/null\necho never", "docs/a.md:8: grep x /dev/null: exit status 1\none\n"},
		"within a pipe":       {"\nfalse | cat\necho never", "docs/a.md:8: false | cat: exit status 1\n"},
		"a variable not set":  {"echo one\necho $NOT_SET\n", "docs/a.md:7: exit status"},
		"the end of a script": {"exit 3", "docs/a.md:7: exit status 3"},
		"no syntax":           {"echo 'open", "docs/a.md:7: exit status"},
	} {
		t.Run(name, func(t *testing.T) {
			s := shell(t)
			b := docpage.Block{Page: "docs/a.md", Line: 7, Text: c.text}
			_, err := s.Run(t.Context(), b)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "never") {
				t.Errorf("the error is %q, and should begin with %q", err, c.want)
			}
			if _, err := s.Run(t.Context(), b); err == nil {
				t.Error("the session continues after a failure")
			}
		})
	}
}

func TestABlockThatDoesNotEndIsEnded(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	out, err := shell(t).Run(ctx, docpage.Block{Page: "a.md", Line: 1, Text: "echo begun\nsleep 60"})
	if err == nil || !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) || out != "begun\n" {
		t.Errorf("printed %q and returned %v; expected the end of the context", out, err)
	}
}
