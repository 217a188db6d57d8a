package tempest

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// What becomes of a test.
const (
	passed  = "passed"
	failed  = "failed"
	skipped = "skipped"
)

// result is what became of a test, and why if it did not pass.
type result struct{ state, reason string }

// results are those of tests by name.
type results map[string]result

// traced is a line that Tempest prints of a test, or of what comes before all tests of a class:
// its worker, its name, its time if it ran, and its end.
var traced = regexp.MustCompile(`^\{\d+\} (.+?)(?:\[[^\]]*\])?(\))?(?: \[[\d.]+s\])? \.\.\. (\S+?)(?:: (.*))?$`)

var states = map[string]string{"ok": passed, "FAILED": failed, "SKIPPED": skipped}

// parseTrace reads what Tempest printed.
func parseTrace(text string) results {
	found := results{}
	for line := range strings.Lines(text) {
		m := traced.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || states[m[3]] == "" {
			continue
		}
		found[m[1]+m[2]] = result{states[m[3]], strings.TrimSpace(m[4])}
	}
	return found
}

// readResults reads what write wrote.
func readResults(r io.Reader) (results, error) {
	found := results{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line, reason, _ := strings.Cut(lines.Text(), " # ")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		state, name, ok := strings.Cut(line, " ")
		if !ok || !slices.Contains([]string{passed, failed, skipped}, state) {
			return nil, fmt.Errorf("%q is not passed, failed or skipped, and the name of a test", lines.Text())
		}
		found[name] = result{state, reason}
	}
	return found, lines.Err()
}

// write writes a line for each test, by name.
func (r results) write(w io.Writer) error {
	for _, name := range slices.Sorted(maps.Keys(r)) {
		line := r[name].state + " " + name
		if r[name].reason != "" {
			line += " # " + r[name].reason
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// worse lists the tests that passed before and do not pass now.
func (r results) worse(before results) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if before[name].state == passed && r[name].state != passed {
			names = append(names, fmt.Sprintf("%s: %s", name, orMissing(r[name].state)))
		}
	}
	return names
}

func orMissing(state string) string {
	if state == "" {
		return "not run"
	}
	return state
}

// explainAs gives tests that fail as they did before the reason of that.
func (r results) explainAs(before results) {
	for name, one := range r {
		if one.state == failed && before[name].state == failed {
			one.reason = before[name].reason
			r[name] = one
		}
	}
}

// unexplained lists the tests that fail without a reason.
func (r results) unexplained() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if r[name].state == failed && r[name].reason == "" {
			names = append(names, name)
		}
	}
	return names
}

// share is the part of the tests that ran which passed.
func (r results) share() float64 {
	counts := map[string]float64{}
	for _, one := range r {
		counts[one.state]++
	}
	return counts[passed] / max(1, counts[passed]+counts[failed])
}
