package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/edpm-operators/edpm-operators/test/envtest"
)

// A row of the table of what was tried: its last cell names tests as
// [title or function][reference], and references are files of tests.
var (
	tried     = regexp.MustCompile(`(?m)^\| tried \|.*\n\|[-|]+\|\n((?:\|.*\n)+)`)
	namedTest = regexp.MustCompile(`\[([^\]]+)\]\[([^\]]+)\]`)
	reference = regexp.MustCompile(`(?m)^\[([^\]]+)\]: (\S+)$`)
)

// TestEveryRowOfWhatWasTriedHasItsTests : a row without a test is a promise, and a
// link to a file says nothing once the test in it has another name.
func TestEveryRowOfWhatWasTriedHasItsTests(t *testing.T) {
	page, err := os.ReadFile(envtest.File("docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	code := map[string]string{}
	for _, m := range reference.FindAllStringSubmatch(string(page), -1) {
		text, err := os.ReadFile(envtest.File("docs", m[2]))
		if err != nil {
			t.Errorf("reference [%s]: %v", m[1], err)
		}
		code[m[1]] = string(text)
	}
	tables, used := tried.FindAllStringSubmatch(string(page), -1), map[string]bool{}
	if len(tables) == 0 {
		t.Fatal("security.md has no table of what was tried")
	}
	for _, table := range tables {
		for row := range strings.Lines(table[1]) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), " | ")
			tests := namedTest.FindAllStringSubmatch(cells[len(cells)-1], -1)
			if len(cells) != 3 || len(tests) == 0 {
				t.Errorf("row %q has %d cells and names no test; want | tried | what stops it | [title or function][reference] |", cells[0], len(cells))
			}
			for _, m := range tests {
				if used[m[2]] = true; !hasStory(code[m[2]], m[1]) {
					t.Errorf("row %q: the file of [%s] has no test %q", cells[0], m[2], m[1])
				}
			}
		}
	}
	for ref := range code {
		if !used[ref] {
			t.Errorf("no row refers to [%s]", ref)
		}
	}
}
