package controllers_test

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/test/story"
)

// running is a manager at work in one namespace.
type running struct {
	wire *wire
	stop func() error
}

// startManager starts a manager with every controller, that sees one namespace only.
func startManager(namespace string, opts controllers.Options) *running {
	GinkgoHelper()
	r := &running{wire: &wire{}}
	config := rest.CopyConfig(managerConfig)
	config.Wrap(r.wire.over)
	r.stop = story.StartManager(config, namespace, opts, func(o *ctrl.Options) {
		o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return api.RESTMapper(), nil }
	})
	return r
}

// end stops the manager, whatever it was doing.
func (r *running) end() {
	GinkgoHelper()
	if err := r.stop(); !r.wire.broken() {
		Expect(err).NotTo(HaveOccurred())
	}
	Expect(r.wire.secretReads("")).To(BeEmpty(), "every request for Secrets should name one, or a label")
}

// wire counts what a manager writes, and can be cut.
type wire struct {
	story.Writes
	mu sync.Mutex
	// reads of Secrets, by their name; "" for those that ask for more than one.
	reads map[string][]string
	// cutAt is the write after which nothing goes through any more; answered
	// reports whether the manager still learns that this one succeeded.
	cutAt    int
	answered bool
	cut      chan struct{}
	// slow is how long what is created is under way, by the resource.
	slow map[string]time.Duration
	// held reports whether a write waits for gate to be closed.
	held func(*http.Request) bool
	gate chan struct{}
	// arrived reports whether one does, or did.
	arrived bool
	// lost reports whether a read is not answered.
	lost func(*http.Request) bool
}

var errCut = errors.New("the manager is dead")

func (w *wire) over(next http.RoundTripper) http.RoundTripper {
	return story.RoundTripper(func(r *http.Request) (*http.Response, error) {
		last, dead := w.note(r)
		if dead {
			return nil, errCut
		}
		if r.Method == http.MethodPost {
			time.Sleep(w.slowness(r.URL.Path))
		}
		if w.loses(r) {
			return nil, errCut
		}
		w.await(r)
		answer, err := next.RoundTrip(r)
		if last && !w.answered {
			if err == nil {
				_ = answer.Body.Close()
			}
			return nil, errCut
		}
		return answer, err
	})
}

// slowdown makes the creation of a resource take its time.
func (w *wire) slowdown(resource string, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slow = map[string]time.Duration{resource: d}
}

func (w *wire) slowness(url string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slow[path.Base(url)]
}

// hold delays the writes that match until the returned function is called.
func (w *wire) hold(match func(*http.Request) bool) (release func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	gate := make(chan struct{})
	w.held, w.gate = match, gate
	return sync.OnceFunc(func() { close(gate) })
}

// lose leaves the reads that match without an answer until the returned function is called.
func (w *wire) lose(match func(*http.Request) bool) (heal func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = match
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lost = nil
	}
}

func (w *wire) loses(r *http.Request) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return r.Method == http.MethodGet && w.lost != nil && w.lost(r)
}

// await returns when a write is no longer held.
func (w *wire) await(r *http.Request) {
	w.mu.Lock()
	gate := w.gate
	held := r.Method != http.MethodGet && w.held != nil && w.held(r)
	w.arrived = w.arrived || held
	w.mu.Unlock()
	if held {
		<-gate
	}
}

// waiting reports whether a write waits that hold delays, or did.
func (w *wire) waiting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.arrived
}

// note counts a request, and reports whether it is the last one that goes through
// or comes too late.
func (w *wire) note(r *http.Request) (last, dead bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cutAt > 0 && w.Mark() >= w.cutAt {
		return false, true
	}
	if r.Method == http.MethodGet {
		w.noteRead(r.URL)
		return false, false
	}
	w.Note(r)
	if last = w.cutAt > 0 && w.Mark() == w.cutAt; last {
		close(w.cut)
	}
	return last, false
}

// noteRead notes what is asked of Secrets. The caller holds the lock.
func (w *wire) noteRead(u *url.URL) {
	_, secret, found := strings.Cut(u.Path+"/", "/secrets/")
	if !found {
		return
	}
	query := u.Query()
	if selected, ok := strings.CutPrefix(query.Get("fieldSelector"), "metadata.name="); ok {
		secret = selected
	} else if strings.Contains(u.Path, "/namespaces/") && query.Get("labelSelector") != "" {
		secret = query.Get("labelSelector")
	}
	if w.reads == nil {
		w.reads = map[string][]string{}
	}
	secret = strings.TrimSuffix(secret, "/")
	w.reads[secret] = append(w.reads[secret], u.String())
}

// secretReads are the requests for the Secret of a name.
func (w *wire) secretReads(name string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.reads[name]...)
}

// cut is closed when a manager has lost its API server.
type cut <-chan struct{}

// orUntil waits until it has happened, or everything is done with fewer writes.
func (c cut) orUntil(done func(Gomega)) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		select {
		case <-c:
		default:
			done(g)
		}
	}).WithTimeout(later).Should(Succeed())
}

// cutAfter makes the manager lose its API server at the n-th write from now.
func (w *wire) cutAfter(n int, answered bool) cut {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cutAt, w.answered, w.cut = w.Mark()+n, answered, make(chan struct{})
	return w.cut
}

func (w *wire) broken() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cutAt > 0 && w.Mark() >= w.cutAt
}

// reconciliations returns how many all controllers of the process have finished so far.
func reconciliations() float64 {
	GinkgoHelper()
	return sum("controller_runtime_reconcile_total", func(m *dto.Metric) float64 { return m.GetCounter().GetValue() })
}

// activeWorkers returns how many reconciliations are under way.
func activeWorkers() float64 {
	GinkgoHelper()
	return sum("controller_runtime_active_workers", func(m *dto.Metric) float64 { return m.GetGauge().GetValue() })
}

// sum adds a metric of all controllers of the process up, without those of pretend hosts.
func sum(metric string, value func(*dto.Metric) float64) float64 {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	total := 0.0
	for _, f := range families {
		if f.GetName() != metric {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "controller" && !strings.HasPrefix(l.GetValue(), "fake-") {
					total += value(m)
				}
			}
		}
	}
	return total
}
