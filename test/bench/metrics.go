package main

import (
	"bufio"
	"bytes"
	"regexp"
	"strconv"
	"strings"
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

// request is a kind of request to the API server.
type request struct{ group, resource, subresource, verb string }

// requests counts them.
type requests map[request]int

// countRequests reads the API server's own count.
func countRequests(text []byte) requests {
	counts := requests{}
	for _, s := range parseMetrics(text, "apiserver_request_total") {
		counts[request{s.labels["group"], s.labels["resource"], s.labels["subresource"], s.labels["verb"]}] += int(s.value)
	}
	return counts
}

// since returns what was added to an earlier count.
func (r requests) since(before requests) requests {
	out := requests{}
	for k, v := range r {
		if d := v - before[k]; d > 0 {
			out[k] = d
		}
	}
	return out
}
