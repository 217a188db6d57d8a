package standalone

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/client-go/kubernetes"
)

// sample is one value of the text format of Prometheus.
type sample struct {
	name   string
	labels map[string]string
	value  float64
}

var label = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)

// parseMetrics returns the samples of the named metrics.
func parseMetrics(text []byte, names ...string) []sample {
	wanted := map[string]bool{}
	for _, n := range names {
		wanted[n] = true
	}
	var out []sample
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		name := line[:max(0, strings.IndexAny(line, "{ "))]
		if !wanted[name] {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			continue
		}
		s := sample{name, map[string]string{}, value}
		for _, m := range label.FindAllStringSubmatch(line, -1) {
			s.labels[m[1]] = m[2]
		}
		out = append(out, s)
	}
	return out
}

// Request is a kind of request to the API server. Verb is that of its metrics,
// such as POST, PATCH and APPLY.
type Request struct{ Group, Resource, Subresource, Verb string }

// Requests counts them.
type Requests map[Request]int

// CountRequests returns the API server's own count, whoever sent them and
// whatever became of them, without those that only asked what would become of them.
func CountRequests(ctx context.Context, c kubernetes.Interface) (Requests, error) {
	text, err := c.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of the API server: %w", err)
	}
	return parseRequests(text), nil
}

func parseRequests(text []byte) Requests {
	counts := Requests{}
	for _, s := range parseMetrics(text, "apiserver_request_total") {
		if s.labels["dry_run"] != "" {
			continue
		}
		counts[Request{s.labels["group"], s.labels["resource"], s.labels["subresource"], s.labels["verb"]}] += int(s.value)
	}
	return counts
}

// Since returns what was added to an earlier count.
func (r Requests) Since(before Requests) Requests {
	out := Requests{}
	for k, v := range r {
		if d := v - before[k]; d > 0 {
			out[k] = d
		}
	}
	return out
}
