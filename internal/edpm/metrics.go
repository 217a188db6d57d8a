package edpm

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/edpm-operators/edpm-operators/internal/metrics"
)

var (
	runsStarted = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "edpm_runs_started_total", Help: "Runs of Ansible that were started, by step: one of several steps counts for each.",
	}, []string{"step"})

	runsFinished = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "edpm_runs_finished_total", Help: "Runs of Ansible that ended, by step and result (Succeeded or Failed).",
	}, []string{"step", "result"})

	convergeSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "edpm_host_converge_seconds", Help: "Time from when a host needed a step until the step succeeded.",
		Buckets: []float64{5, 15, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600},
	}, []string{"step"})

	hostsDesc = prometheus.NewDesc("edpm_hosts", "Hosts by step, cell and state.", []string{"step", "cell", "state"}, nil)
)

func init() { crmetrics.Registry.MustRegister(runsStarted, runsFinished, convergeSeconds) }

// states knows where each target stands, for the metrics.
type states struct {
	mu  sync.Mutex
	all map[Key]standing
	// counts of all: a scrape costs nothing for each target.
	counts map[series]int
}

type standing struct {
	series
	phase Phase
	since time.Time // when it last left Converged
}

// series are the labels of a metric.
type series struct{ step, cell, state string }

func newStates() *states { return &states{all: map[Key]standing{}, counts: map[series]int{}} }

func (s *states) set(key Key, cell string, phase Phase, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, known := s.all[key]
	step := metrics.Steps.Value(key.Step)
	next := standing{series{step, metrics.Cells.Value(cell), string(phase)}, phase, now}
	if known && old.phase != Converged {
		next.since = old.since
	}
	if known && old.phase != Converged && phase == Converged {
		convergeSeconds.WithLabelValues(step).Observe(now.Sub(old.since).Seconds())
	}
	s.forget(key)
	s.all[key] = next
	s.counts[next.series]++
}

func (s *states) remove(key Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(key)
}

// forget drops a target. The caller holds the lock.
func (s *states) forget(key Key) {
	old, known := s.all[key]
	if !known {
		return
	}
	delete(s.all, key)
	if s.counts[old.series]--; s.counts[old.series] == 0 {
		delete(s.counts, old.series)
	}
}

// Describe implements prometheus.Collector.
func (s *states) Describe(ch chan<- *prometheus.Desc) { ch <- hostsDesc }

// Collect implements prometheus.Collector.
func (s *states) Collect(ch chan<- prometheus.Metric) {
	s.mu.Lock()
	counts := maps.Clone(s.counts)
	s.mu.Unlock()
	for l, n := range counts {
		ch <- prometheus.MustNewConstMetric(hostsDesc, prometheus.GaugeValue, float64(n), l.step, l.cell, l.state)
	}
}
