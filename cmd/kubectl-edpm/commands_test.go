package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/edpm-operators/edpm-operators/internal/conditions"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

var (
	script   = regexp.MustCompile("(?ms)^ *```(?:sh|console)\n(.*?)^ *```$")
	inline   = regexp.MustCompile("`(kubectl edpm[^`\n]*)`")
	inScript = regexp.MustCompile(`(?m)^ *(?:\$ )?(kubectl edpm.*)$`)
)

// parses reports whether the plugin takes the command line. Where it is only
// mentioned, as in prose, its arguments can be left out.
func parses(line string, mentioned bool) error {
	line, _, _ = strings.Cut(line, " #")
	line, _, _ = strings.Cut(line, " > ")
	line = strings.TrimSuffix(line, " --help")
	root := newRoot(genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard})
	cmd, rest, err := root.Find(strings.Fields(line)[2:])
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil || mentioned {
		return err
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return err
	}
	return cmd.ValidateRequiredFlags()
}

func TestTheDocumentationHasCommandsThatParse(t *testing.T) {
	files := []string{envtest.File("README.md"), envtest.File("CONTRIBUTING.md")}
	for _, folder := range []string{"", "how-to", "runbooks"} {
		found, err := filepath.Glob(envtest.File("docs", folder, "*.md"))
		if err != nil || len(found) == 0 {
			t.Fatalf("docs/%s has pages %v (%v)", folder, found, err)
		}
		files = append(files, found...)
	}
	found := 0
	check := func(place, line string, mentioned bool) {
		found++
		if err := parses(line, mentioned); err != nil {
			t.Errorf("%s: %s: %v", place, line, err)
		}
	}
	for _, file := range files {
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range inline.FindAllStringSubmatch(string(page), -1) {
			check(filepath.Base(file), m[1], true)
		}
		for _, block := range script.FindAllStringSubmatch(string(page), -1) {
			for _, m := range inScript.FindAllStringSubmatch(block[1], -1) {
				check(filepath.Base(file), m[1], false)
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d commands were found", found)
	}
}

func TestTheHelpHasCommandsThatParse(t *testing.T) {
	root := newRoot(genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard})
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, m := range inScript.FindAllStringSubmatch(cmd.Example, -1) {
			if err := parses(m[1], false); err != nil {
				t.Errorf("help of %s: %s: %v", cmd.Name(), m[1], err)
			}
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
}

func TestParsesRefuses(t *testing.T) {
	for _, line := range []string{"kubectl edpm state", "kubectl edpm status --wach", "kubectl edpm logs", "kubectl edpm topology simulate"} {
		if parses(line, false) == nil {
			t.Errorf("%s is taken", line)
		}
	}
}

// What a remedy tells people to look up is there.
func TestRemediesHaveCommandsThatParse(t *testing.T) {
	for _, name := range conditions.Names() {
		for _, m := range conditions.Find(name) {
			for _, r := range m.Condition.Reasons {
				for _, command := range inline.FindAllStringSubmatch(r.Remedy, -1) {
					if err := parses(command[1], false); err != nil {
						t.Errorf("%s of %s: %s: %v", r.Name, m.Condition.Type, command[1], err)
					}
				}
			}
		}
	}
}
