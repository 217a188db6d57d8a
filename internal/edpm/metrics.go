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

	checksFinished = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "edpm_checks_finished_total", Help: "Runs of Ansible in check mode that ended, by step and result (Succeeded or Failed).",
	}, []string{"step", "result"})

	convergeSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "edpm_host_converge_seconds", Help: "Time from when a host needed a step until the step succeeded.",
		Buckets: []float64{5, 15, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600},
	}, []string{"step"})

	hostsDesc = prometheus.NewDesc("edpm_hosts", "Hosts by step, cell and state.", []string{"step", "cell", "state"}, nil)
	driftDesc = prometheus.NewDesc("edpm_drifted_hosts", "Hosts on which the last check of a step found differences.", []string{"step"}, nil)
)

func init() {
	crmetrics.Registry.MustRegister(runsStarted, runsFinished, checksFinished, convergeSeconds)
}

// states knows where each target stands, for the metrics. There are many targets, and
// few series.
type states struct {
	mu  sync.Mutex
	all map[Key]state
	// tallies of all: a scrape costs nothing for each target.
	tallies map[series]*tally
	// drifted counts the targets whose hosts differ, by step.
	drifted map[string]int
}

// state of a target: where it is counted, and when it last left Converged, if it has
// not converged since.
type state struct {
	counted *tally
	since   time.Time
	differs bool
}

// series are the labels of a metric.
type series struct{ step, cell, state string }

// tally counts the targets of a series.
type tally struct {
	series
	targets int
}

func newStates() *states {
	return &states{all: map[Key]state{}, tallies: map[series]*tally{}, drifted: map[string]int{}}
}

func (s *states) set(key Key, cell string, phase Phase, differs bool, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := s.all[key].since
	step := metrics.Steps.Value(key.Step)
	s.forget(key)
	switch {
	case phase != Converged && since.IsZero():
		since = now
	case phase == Converged && !since.IsZero():
		convergeSeconds.WithLabelValues(step).Observe(now.Sub(since).Seconds())
		since = time.Time{}
	}
	t := s.tally(series{step, metrics.Cells.Value(cell), string(phase)})
	t.targets++
	if differs {
		s.drifted[step]++
	}
	s.all[key] = state{t, since, differs}
}

// tally of a series. The caller holds the lock.
func (s *states) tally(of series) *tally {
	if s.tallies[of] == nil {
		s.tallies[of] = &tally{series: of}
	}
	return s.tallies[of]
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
	if old.differs {
		s.drifted[old.counted.step]--
	}
	if old.counted.targets--; old.counted.targets == 0 {
		delete(s.tallies, old.counted.series)
	}
}

// Describe implements prometheus.Collector.
func (s *states) Describe(ch chan<- *prometheus.Desc) {
	ch <- hostsDesc
	ch <- driftDesc
}

// Collect implements prometheus.Collector.
func (s *states) Collect(ch chan<- prometheus.Metric) {
	s.mu.Lock()
	counts := make([]tally, 0, len(s.tallies))
	for _, t := range s.tallies {
		counts = append(counts, *t)
	}
	drifted := maps.Clone(s.drifted)
	s.mu.Unlock()
	for step, n := range drifted {
		ch <- prometheus.MustNewConstMetric(driftDesc, prometheus.GaugeValue, float64(n), step)
	}
	for _, t := range counts {
		ch <- prometheus.MustNewConstMetric(hostsDesc, prometheus.GaugeValue, float64(t.targets), t.step, t.cell, t.state)
	}
}
