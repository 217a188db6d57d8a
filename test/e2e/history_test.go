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

// starts counts on a host how often each step was started for each hash.
func starts(ctx context.Context, host lab.Host) map[string]int {
	GinkgoHelper()
	counts := map[string]int{}
	for _, r := range historyOf(ctx, host)[host.Name] {
		if r.Event == "start" {
			counts[fmt.Sprintf("%s for %s", r.Step, r.Hash)]++
		}
	}
	return counts
}
