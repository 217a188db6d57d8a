package topology

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// probeEvery is how often the probe asks.
	probeEvery = 50 * time.Millisecond
	// reconcile is how long garbage collector, manager and StatefulSet controller may
	// take together, on a busy machine, to give pods their next StatefulSet.
	reconcile = 10 * time.Second
)

// probe asks all the time how many ready endpoints each Service has, and which pods
// have no owner.
type probe struct {
	services []string
	stop     func()

	mu sync.Mutex
	// least is the smallest number of ready endpoints, by Service.
	least map[string]int
	// since is when a pod was first seen without an owner.
	since   map[string]time.Time
	longest time.Duration
	failed  error
}

// watchServices starts a probe, which ends with the spec at the latest.
func watchServices(ctx context.Context, services ...string) *probe {
	GinkgoHelper()
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	p := &probe{services: services, least: map[string]int{}, since: map[string]time.Time{}}
	p.stop = sync.OnceFunc(func() { cancel(); <-done })
	DeferCleanup(p.stop)
	Expect(p.ask(ctx)).To(Succeed())
	go func() {
		defer close(done)
		for background.Err() == nil {
			if err := p.ask(background); err != nil && background.Err() == nil {
				p.failed = err
			}
			time.Sleep(probeEvery)
		}
	}()
	return p
}

func (p *probe) ask(ctx context.Context) error {
	for _, service := range p.services {
		n, err := readyEndpoints(ctx, service)
		if err != nil {
			return err
		}
		p.note(service, n)
	}
	items, err := pods(ctx)
	now, ownerless := time.Now(), map[string]time.Time{}
	for i := range items {
		if metav1.GetControllerOf(&items[i]) == nil {
			name := items[i].Name
			ownerless[name] = now
			if first, seen := p.since[name]; seen {
				ownerless[name] = first
			}
			p.longest = max(p.longest, now.Sub(ownerless[name]))
		}
	}
	p.since = ownerless
	return err
}

func (p *probe) note(service string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if before, seen := p.least[service]; !seen || n < before {
		p.least[service] = n
	}
}

// readyEndpoints counts those of the EndpointSlices of a Service.
func readyEndpoints(ctx context.Context, service string) (int, error) {
	list := &discoveryv1.EndpointSliceList{}
	err := k8s.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service})
	n := 0
	for _, slice := range list.Items {
		for _, endpoint := range slice.Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, false) {
				n++
			}
		}
	}
	return n, err
}

// expectService ends the probe: no Service ever had fewer ready endpoints, and no
// pod was without an owner for longer than a reconciliation takes.
func (p *probe) expectService(endpoints int) {
	GinkgoHelper()
	p.stop()
	AddReportEntry("probe", fmt.Sprintf("least ready endpoints %v, longest time of a pod without owner %s", p.least, p.longest))
	Expect(p.failed).NotTo(HaveOccurred())
	for _, service := range p.services {
		Expect(p.least).To(HaveKeyWithValue(service, BeNumerically(">=", endpoints)), "ready endpoints of Service %s", service)
	}
	Expect(p.longest).To(BeNumerically("<", reconcile), "time of a pod without owner")
}
