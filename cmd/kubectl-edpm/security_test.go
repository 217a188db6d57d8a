package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// What runs and hosts say is printed on terminals: see docs/security.md.
func TestNothingThatIsPrintedMovesTheCursorOfATerminal(t *testing.T) {
	const evil = "a\x1b[2J\x1b]0;title\x07\u009b31m\r\u202eb\tc\x7f\xffd\n"
	out := &bytes.Buffer{}
	fmt.Fprint(painter{tame{out}}, evil)
	fmt.Fprint(tame{out}, evil)
	if strings.ContainsAny(out.String(), "\x1b\x07\u009b\r\u202e\x7f") {
		t.Errorf("%q has control characters", out)
	}
	if lines := strings.Split(out.String(), "\n"); len(lines) != 3 || !strings.Contains(lines[0], "b\tc") {
		t.Errorf("%q: line ends and tabs should stay", out)
	}
	if got := printable("façade ✓ \t日本\n"); got != "façade ✓ \t日本\n" {
		t.Errorf("other text changed: %q", got)
	}
}

func TestEveryCommandPrintsThroughIt(t *testing.T) {
	out := &bytes.Buffer{}
	root := newRoot(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: out})
	for _, command := range append(root.Commands(), root) {
		fmt.Fprint(command.OutOrStdout(), "\x1b[2J")
		fmt.Fprint(command.ErrOrStderr(), "\x1b[2J")
	}
	if out.Len() == 0 || strings.Contains(out.String(), "\x1b") {
		t.Errorf("printed %q", out)
	}
}
