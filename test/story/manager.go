package story

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/internal/cache"
)

// StartManager starts a manager with the controllers of the options, wired as cmd/manager
// does it, that sees one namespace only. It returns what stops it, once.
func StartManager(config *rest.Config, namespace string, opts controllers.Options, change ...func(*ctrl.Options)) (stop func() error) {
	GinkgoHelper()
	held := cache.Options(opts.Operators)
	held.DefaultNamespaces = map[string]ctrlcache.Config{namespace: {}}
	options := ctrl.Options{
		Scheme: api.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, GracefulShutdownTimeout: ptr.To(10 * time.Second),
		Cache: held, Client: cache.ClientOptions(),
		// One for all: each would read the groups and resources of the API server again.
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return api.RESTMapper(), nil },
	}
	options.Controller.SkipNameValidation = ptr.To(true)
	for _, c := range change {
		c(&options)
	}
	mgr, err := ctrl.NewManager(config, options)
	Expect(err).NotTo(HaveOccurred())
	running, cancel := context.WithCancel(context.Background())
	Expect(controllers.Setup(running, mgr, opts)).To(Succeed())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(running) }()
	Expect(mgr.GetCache().WaitForCacheSync(running)).To(BeTrue(), "the caches should fill")
	return sync.OnceValue(func() error {
		GinkgoHelper()
		cancel()
		var err error
		Eventually(done).WithTimeout(later).Should(Receive(&err), "the manager should stop")
		return err
	})
}

// Writes notes what a manager writes, as method and path.
type Writes struct {
	mu   sync.Mutex
	seen []string
}

// RoundTripper is a function that sends requests.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Note notes a request that writes.
func (w *Writes) Note(r *http.Request) {
	if r.Method == http.MethodGet {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, r.Method+" "+r.URL.Path)
}

// Mark returns how many writes there were until now.
func (w *Writes) Mark() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.seen)
}

// Since returns the writes after a mark that have all the parts.
func (w *Writes) Since(mark int, parts ...string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.seen[mark:]), func(s string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(s, p) })
	})
}

// Quiet waits until the manager has written nothing for a while, at the end of which the
// other expectations are met.
func (w *Writes) Quiet(while time.Duration, also ...func(Gomega)) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		before := w.Mark()
		time.Sleep(while)
		g.Expect(w.Since(before)).To(BeEmpty())
		for _, f := range also {
			f(g)
		}
	}).WithTimeout(later).Should(Succeed(), "the manager should come to rest")
}
