package edpm

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/edpm-operators/edpm-operators/internal/metrics"
)

var (
	runsStarted = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "edpm_runs_started_total", Help: "Runs of Ansible that were started, by step.",
	}, []string{"step"})

	runsFinished = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "edpm_runs_finished_total", Help: "Runs of Ansible that ended, by step and result (Succeeded or Failed).",
	}, []string{"step", "result"})

	convergeSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "edpm_host_converge_seconds", Help: "Time from when a host needed a step until it had run successfully.",
		Buckets: []float64{5, 15, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600},
	}, []string{"step"})

	hostsDesc = prometheus.NewDesc("edpm_hosts", "Hosts by step, cell and where they stand.", []string{"step", "cell", "state"}, nil)
)

func init() { crmetrics.Registry.MustRegister(runsStarted, runsFinished, convergeSeconds) }

// states knows where each target stands, for the metrics.
type states struct {
	mu  sync.Mutex
	all map[Key]standing
}

type standing struct {
	cell  string
	phase Phase
	since time.Time // when it last left Converged
}

func newStates() *states { return &states{all: map[Key]standing{}} }

func (s *states) set(key Key, cell string, phase Phase, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, known := s.all[key]
	next := standing{cell, phase, now}
	if known && old.phase != Converged {
		next.since = old.since
	}
	if known && old.phase != Converged && phase == Converged {
		convergeSeconds.WithLabelValues(metrics.Steps.Value(key.Step)).Observe(now.Sub(old.since).Seconds())
	}
	s.all[key] = next
}

func (s *states) remove(key Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, key)
}

// Describe implements prometheus.Collector.
func (s *states) Describe(ch chan<- *prometheus.Desc) { ch <- hostsDesc }

// Collect implements prometheus.Collector.
func (s *states) Collect(ch chan<- prometheus.Metric) {
	type labels struct{ step, cell, phase string }
	counts := map[labels]int{}
	s.mu.Lock()
	for key, st := range s.all {
		counts[labels{metrics.Steps.Value(key.Step), metrics.Cells.Value(st.cell), string(st.phase)}]++
	}
	s.mu.Unlock()
	for l, n := range counts {
		ch <- prometheus.MustNewConstMetric(hostsDesc, prometheus.GaugeValue, float64(n), l.step, l.cell, l.phase)
	}
}
