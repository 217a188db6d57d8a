package preflight

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"
)

// Check is one result of a host.
type Check struct {
	Name string `json:"check"`
	// OK is nil for what could not be checked yet.
	OK      *bool  `json:"ok"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// Result of a host.
type Result struct {
	Host   string  `json:"host"`
	Checks []Check `json:"checks"`
}

// Failed reports whether the check found a fault.
func (c Check) Failed() bool { return c.OK != nil && !*c.OK }

// state of a check in one word.
func (c Check) state() string {
	switch {
	case c.OK == nil:
		return "skipped"
	case *c.OK:
		return "ok"
	}
	return "FAILED"
}

// Missing is the result of a host that the run has none of.
func Missing(host, why string) Result {
	no := false
	return Result{Host: host, Checks: []Check{{Name: "run", OK: &no, Message: why, Remedy: "see kubectl describe osaee and the events of its Pod while it runs"}}}
}

// Parse returns the results of the hosts of a run in its output, by host. Only the playbook
// knows the token: what a host prints is not taken for the result of another one.
func (r Run) Parse(output string) map[string]Result {
	found := map[string]Result{}
	line := regexp.MustCompile(`EDPM_PREFLIGHT ` + regexp.QuoteMeta(r.Token) + ` ([A-Za-z0-9+/=]+)`)
	for _, match := range line.FindAllStringSubmatch(output, -1) {
		text, err := base64.StdEncoding.DecodeString(match[1])
		result := Result{}
		if err == nil && json.Unmarshal(text, &result) == nil && len(result.Checks) > 0 {
			found[result.Host] = result
		}
	}
	return found
}

// Count returns how many checks there are, and how many failed.
func Count(results []Result) (all, failed int) {
	for _, r := range results {
		for _, c := range r.Checks {
			if all++; c.Failed() {
				failed++
			}
		}
	}
	return all, failed
}

// Write prints one line for each check of each host, with the remedy of what failed.
func Write(out io.Writer, results []Result) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODE\tCHECK\tRESULT\tMESSAGE")
	for _, r := range results {
		for _, c := range r.Checks {
			message := c.Message
			if c.Failed() && c.Remedy != "" {
				message += ". Remedy: " + c.Remedy
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", r.Host, word(c.Name), c.state(), word(message))
		}
	}
	return table.Flush()
}

// word is a text of a host without what would begin another cell or line.
func word(text string) string { return strings.Join(strings.Fields(text), " ") }
