package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/edpm-operators/edpm-operators/test/e2e/internal/lab"
)

// history is what the runs had noted on hosts at some moment.
type history map[string][]lab.Run

func historyOf(ctx context.Context, hosts ...lab.Host) history {
	GinkgoHelper()
	h := history{}
	for _, host := range hosts {
		runs, err := host.Runs(ctx)
		Expect(err).NotTo(HaveOccurred())
		h[host.Name] = runs
	}
	return h
}

// since returns what was noted on the host since then, as "<event> <step>".
func (h history) since(ctx context.Context, host lab.Host) ([]string, error) {
	runs, err := host.Runs(ctx)
	if err != nil {
		return nil, err
	}
	lines := []string{}
	for _, r := range runs[len(h[host.Name]):] {
		lines = append(lines, r.Event+" "+r.Step)
	}
	return lines, nil
}

// untouched checks that no run has been on the hosts since.
func (h history) untouched(ctx context.Context, hosts ...lab.Host) {
	GinkgoHelper()
	for _, host := range hosts {
		lines, err := h.since(ctx, host)
		Expect(err).NotTo(HaveOccurred())
		Expect(lines).To(BeEmpty(), "host %s was run on", host.Name)
	}
}

// startsAndEnds counts on a host how often each step was started for each hash, and how
// often it came to its end. Starts of runs that failed on the host are reported and not
// counted: what fails is tried again.
func startsAndEnds(ctx context.Context, ns string, host lab.Host) (starts, ends map[string]int) {
	GinkgoHelper()
	starts, ends = map[string]int{}, map[string]int{}
	failed := failures(ctx, ns, host)
	for _, r := range historyOf(ctx, host)[host.Name] {
		what := fmt.Sprintf("%s for %s", r.Step, r.Hash)
		switch {
		case r.Event == "end":
			ends[what]++
		case failed[r.Run] != "":
			AddReportEntry(fmt.Sprintf("%s failed on %s: %s", r.Run, host.Name, failed[r.Run]), ReportEntryVisibilityAlways)
		default:
			starts[what]++
		}
	}
	return starts, ends
}

// failures returns why runs failed on a host, by run.
func failures(ctx context.Context, ns string, host lab.Host) map[string]string {
	GinkgoHelper()
	failed := map[string]string{}
	for _, run := range allRuns(ctx, ns) {
		if result, known := run.Host(host.Name); run.Finished() && known && !result.Converged() {
			failed[run.Name] = result.Message
		}
	}
	return failed
}
