package docs_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/edpm-operators/edpm-operators/test/docpage"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

// What blocks may be marked as. Only the first has commands that are run.
var infos = []string{"sh", notRun, "console", "text", "yaml", "json", "go", "mermaid"}

// notRun marks commands that cannot be run where the tests run.
const notRun = "sh example"

// blocks of all pages, by page as a link from the root of the repository has it.
func blocks(t *testing.T) map[string][]docpage.Block {
	t.Helper()
	found := map[string][]docpage.Block{}
	for file, text := range pages(t) {
		page, err := filepath.Rel(envtest.File(), file)
		if err != nil {
			t.Fatal(err)
		}
		found[page] = docpage.Parse(page, []byte(text))
	}
	return found
}

func TestEveryBlockSaysWhatItIs(t *testing.T) {
	for _, page := range blocks(t) {
		for _, b := range page {
			if !slices.Contains(infos, b.Info) {
				t.Errorf("%s: the block is marked %q; mark it as one of %q", b, b.Info, infos)
			}
		}
	}
}

// prose is a line that can tell why: no heading, no table, no block.
var prose = regexp.MustCompile(`^ *(- |[0-9]+\. )?[A-Za-z*_\[` + "`" + `(]`)

func TestCommandsThatAreNotRunHaveAReasonBeforeThem(t *testing.T) {
	for file, text := range pages(t) {
		lines := strings.Split(text, "\n")
		for _, b := range docpage.Parse(file, []byte(text)) {
			if b.Info != notRun {
				continue
			}
			before := b.Line - 3 // of the line before the fence, from 0
			for before > 0 && strings.TrimSpace(lines[before]) == "" {
				before--
			}
			if before < 0 || !prose.MatchString(lines[before]) {
				t.Errorf("%s: say in the sentence before the block why its commands are not run", b)
			}
		}
	}
}

func TestEveryPageWithCommandsIsRun(t *testing.T) {
	runs := map[string]int{}
	for suite, listed := range docpage.Suites {
		code := suiteCode(t, suite)
		for _, page := range listed {
			runs[page]++
			if !strings.Contains(code, filepath.Base(page)+`"`) && !strings.Contains(code, `docpage.Suites["`+suite+`"]`) {
				t.Errorf("%s is to run %s, which its tests do not name", suite, page)
			}
		}
	}
	for page, found := range blocks(t) {
		want := 0
		if slices.ContainsFunc(found, docpage.Block.Runs) {
			want = 1
		}
		if runs[page] != want {
			t.Errorf("%s is in %d suites of test/docpage; want %d, as it has commands to run, or has none", page, runs[page], want)
		}
		delete(runs, page)
	}
	for _, page := range slices.Sorted(maps.Keys(runs)) {
		t.Errorf("test/docpage names %s, which is not there", page)
	}
}

// suiteCode returns the code of the tests of a suite.
func suiteCode(t *testing.T, suite string) string {
	t.Helper()
	files, err := filepath.Glob(envtest.File(suite, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	code := ""
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code += string(text)
	}
	return code
}
