// Package metrics has what the own metrics of edpm-operators have in common: label values
// whose number is bounded, and a count of the objects of edpm-operators by where they
// stand. The metrics of the execution engine are in internal/edpm. All are
// listed in docs/metrics.md.
package metrics

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Other is the value of a label for everything that a Vocabulary has no room for.
const Other = "other"

// MaxSteps and MaxCells bound the values of two labels. Names of steps and cells
// are chosen by people: a Prometheus that is shared must not suffer from whoever
// makes many.
const (
	MaxSteps = 32
	MaxCells = 64
)

var (
	// Steps are the values of the label step.
	Steps = NewVocabulary(MaxSteps)
	// Cells are the values of the label cell.
	Cells = NewVocabulary(MaxCells)
)

// Vocabulary bounds the values of a label. The first values that come are kept
// for the life of the process, as series are; those that come later are Other.
type Vocabulary struct {
	mu    sync.Mutex
	known map[string]bool
	size  int
}

// NewVocabulary returns a vocabulary of at most size values next to Other and the
// empty one.
func NewVocabulary(size int) *Vocabulary {
	return &Vocabulary{known: map[string]bool{"": true}, size: size + 1}
}

// Value returns the value of the label for a name: the name itself or Other.
func (v *Vocabulary) Value(name string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.known[name] && len(v.known) >= v.size {
		return Other
	}
	v.known[name] = true
	return name
}

// replacing makes the three steps of Replace one.
var replacing sync.Mutex

// Replace registers a collector with the manager's registry. It takes the place
// of one with the same metrics: a process can make more than one manager, also at
// the same time, as tests do. Those of the last one count.
func Replace(c prometheus.Collector) {
	replacing.Lock()
	defer replacing.Unlock()
	var taken prometheus.AlreadyRegisteredError
	if err := metrics.Registry.Register(c); errors.As(err, &taken) {
		metrics.Registry.Unregister(taken.ExistingCollector)
		metrics.Registry.MustRegister(c)
	}
}
