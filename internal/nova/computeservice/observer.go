// Package computeservice reads the state of compute services from the API of each
// Nova. Nova has no watch: there is one list for all computes of a Nova, at a bounded
// rate, and who waits for a compute is woken when what concerns it has changed.
// Nothing is asked of a Nova that has no computes.
package computeservice

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// Options of an Observer.
type Options struct {
	// Interval between two lists of a Nova whose computes are as they should be. Nova
	// itself takes a minute to notice that a service is down.
	Interval time.Duration
	// Soon is the interval while computes are about to report.
	Soon time.Duration
	// Timeout of a request.
	Timeout time.Duration
	// Loopback allows addresses of the machine itself: in tests.
	Loopback bool
}

// DefaultOptions of a manager.
var DefaultOptions = Options{Interval: 30 * time.Second, Soon: 5 * time.Second, Timeout: 20 * time.Second}

// Observer observes the compute services of all Novas.
type Observer struct {
	ctx  context.Context
	opts Options

	mu    sync.Mutex
	novas map[types.NamespacedName]*novaState
	// computeQueue, podQueue and novaQueue are those of the controllers that are woken.
	computeQueue, podQueue, novaQueue watch.Queue
}

// New returns an Observer that ends with the context. Zero options are the default.
func New(ctx context.Context, opts Options) *Observer {
	if opts == (Options{}) {
		opts = DefaultOptions
	}
	return &Observer{ctx: ctx, opts: opts, novas: map[types.NamespacedName]*novaState{}}
}

// Pause before nova is asked again for what it tells no one.
func (o *Observer) Pause(soon bool) time.Duration {
	if soon {
		return o.opts.Soon
	}
	return o.opts.Interval
}

// Computes wakes NovaExternalComputes.
func (o *Observer) Computes() source.Source { return o.source(&o.computeQueue) }

// Pods wakes NovaComputes.
func (o *Observer) Pods() source.Source { return o.source(&o.podQueue) }

// Novas wakes Novas.
func (o *Observer) Novas() source.Source { return o.source(&o.novaQueue) }

func (o *Observer) source(into *watch.Queue) source.Source {
	return source.Func(func(_ context.Context, q watch.Queue) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		*into = q
		return nil
	})
}

// wake the object of a name. The caller holds the lock.
func wake(q watch.Queue, name types.NamespacedName) {
	if q != nil {
		q.Add(reconcile.Request{NamespacedName: name})
	}
}

// wakeComputes wakes the objects of computes. The caller holds the lock.
func (o *Observer) wakeComputes(names []Name) {
	for _, name := range names {
		queue := o.computeQueue
		if name.Pod != "" {
			queue = o.podQueue
		}
		wake(queue, name.NamespacedName)
	}
}

// Configure says how the API of a Nova is asked from now on.
func (o *Observer) Configure(nova types.NamespacedName, access Access) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.stateOf(nova)
	if c.access != nil && *c.access == access {
		return
	}
	c.access, c.api, c.failures = &access, nil, 0 // it is tried soon
	c.pollSoon(time.Now())
	o.adjust(nova, c)
}

// Configured reports whether it is known how the API of a Nova is asked.
func (o *Observer) Configured(nova types.NamespacedName) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.novas[nova]
	return c != nil && c.access != nil
}

// Forget ends the observation of a Nova that runs no API, or no longer exists.
func (o *Observer) Forget(nova types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.novas[nova]; c != nil {
		c.access, c.watched = nil, time.Time{}
		o.adjust(nova, c)
	}
}

// Listing is what nova listed last.
type Listing struct {
	// Asked reports whether it has been asked since the Nova is watched.
	Asked bool
	// Services of all hosts, in no order.
	Services []Service
	// Trouble is why it could not be asked the last time, nil if it could.
	Trouble *Trouble
}

// Watch returns what nova listed last, and wakes the Nova after each list until Unwatch. The first
// call has nova asked soon: what it listed before may not be so any more.
func (o *Observer) Watch(nova types.NamespacedName) Listing {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.stateOf(nova)
	if c.watched.IsZero() {
		c.watched = time.Now()
		c.reschedule()
	}
	o.adjust(nova, c)
	return Listing{c.isFresh(), slices.Collect(maps.Values(c.services)), c.trouble}
}

// Unwatch says that no list wakes the Nova any more.
func (o *Observer) Unwatch(nova types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.novas[nova]; c != nil {
		c.watched = time.Time{}
		o.adjust(nova, c)
	}
}

// Name of a compute: that of a NovaExternalCompute, or of a NovaCompute and its pod.
type Name struct {
	types.NamespacedName
	Pod string
}

// Subject is a compute.
type Subject struct {
	Name Name
	// Hosts are the names that the host can have in nova, the best first.
	Hosts []string
	// Mapped is the id of the service of which it is known that its host is mapped, and
	// ComputeID that of its compute node; empty if it is not known.
	Mapped, ComputeID string
	// Since is when nova-compute was started last, as far as that is known.
	Since time.Time
}

// Observe has a compute observed, and returns what is known of it now.
func (o *Observer) Observe(nova types.NamespacedName, s Subject) View {
	o.mu.Lock()
	defer o.mu.Unlock()
	for other, c := range o.novas {
		if other != nova {
			o.drop(other, c, s.Name)
		}
	}
	c := o.stateOf(nova)
	c.subjects[s.Name] = s
	switch {
	case s.Mapped == "":
	case s.Name.Pod != "":
		c.byService[s.Mapped] = true
	case c.mapped[s.Mapped] == "":
		c.mapped[s.Mapped] = s.ComputeID
	}
	o.adjust(nova, c)
	return c.view(s)
}

// Await says that the service of a compute, which is observed, should be up by now.
func (o *Observer) Await(nova types.NamespacedName, compute Name) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.novas[nova]; c != nil && !c.awaited[compute] {
		c.awaited[compute] = true
		c.pollSoon(time.Now())
	}
}

// Follow wakes a compute, which is observed, once nova has been asked again, whatever it
// says then. Where something is in progress it is asked soon.
func (o *Observer) Follow(nova types.NamespacedName, compute Name, soon bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.novas[nova]
	if c == nil {
		return
	}
	if c.followed[compute] = soon; soon {
		c.reschedule()
	}
}

// Withdraw ends the observation of a NovaExternalCompute.
func (o *Observer) Withdraw(compute types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for nova, c := range o.novas {
		o.drop(nova, c, Name{NamespacedName: compute})
	}
}

// WithdrawPods ends the observation of the pods of a NovaCompute, but for some.
func (o *Observer) WithdrawPods(compute types.NamespacedName, kept ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for nova, c := range o.novas {
		for name := range c.subjects {
			if name.NamespacedName == compute && name.Pod != "" && !slices.Contains(kept, name.Pod) {
				o.drop(nova, c, name)
			}
		}
	}
}

// drop the compute from a Nova. The caller holds the lock.
func (o *Observer) drop(nova types.NamespacedName, c *novaState, compute Name) {
	if _, ok := c.subjects[compute]; ok {
		delete(c.subjects, compute)
		delete(c.awaited, compute)
		delete(c.followed, compute)
		o.adjust(nova, c)
	}
}

// Trouble is why the services of a Nova cannot be listed, nil if they can. It is not
// known before that was tried.
func (o *Observer) Trouble(nova types.NamespacedName) (trouble *Trouble, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.novas[nova]; c != nil {
		return c.trouble, c.asked || c.trouble != nil
	}
	return nil, false
}

// Discovery returns the hosts that a Job is to map, nil if there are none. It is the
// same until that Job has ended.
func (o *Observer) Discovery(nova types.NamespacedName) *Round {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.novas[nova]; c != nil {
		return c.round
	}
	return nil
}

// Discovered says that the Job of a round has ended: nova is asked which hosts it has
// mapped.
func (o *Observer) Discovered(nova types.NamespacedName, r *Round) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.novas[nova]; c != nil {
		o.wakeComputes(c.ended(r, o.opts, time.Now()))
	}
}

// stateOf a Nova is what is known of it. The caller holds the lock.
func (o *Observer) stateOf(nova types.NamespacedName) *novaState {
	c := o.novas[nova]
	if c == nil {
		c = &novaState{subjects: map[Name]Subject{}, awaited: map[Name]bool{}, followed: map[Name]bool{}, mapped: map[string]string{}, byService: map[string]bool{}, rescheduled: make(chan struct{}, 1)}
		o.novas[nova] = c
	}
	return c
}

// adjust starts or ends asking a Nova. The caller holds the lock.
func (o *Observer) adjust(nova types.NamespacedName, c *novaState) {
	switch needed := c.access != nil && (len(c.subjects) > 0 || !c.watched.IsZero()); {
	case needed && c.stop == nil:
		ctx, stop := context.WithCancel(o.ctx)
		c.stop = stop
		c.read = time.Now().Add(-o.opts.Soon * 4 / 5) // computes come together
		go o.run(ctx, nova, c)
	case !needed && c.stop != nil:
		c.stop()
		c.reset()
		if c.concernsNova() {
			wake(o.novaQueue, nova)
		}
	}
	if c.access == nil && len(c.subjects) == 0 {
		delete(o.novas, nova)
	}
}

// run asks a Nova until the context ends.
func (o *Observer) run(ctx context.Context, nova types.NamespacedName, c *novaState) {
	for {
		o.mu.Lock()
		due := c.due(o.opts, time.Now())
		o.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-c.rescheduled:
		case <-time.After(due):
			o.ask(ctx, nova, c)
		}
	}
}

// ask lists the services of a Nova, and the mapped hosts if some are not known to be.
func (o *Observer) ask(ctx context.Context, nova types.NamespacedName, c *novaState) {
	o.mu.Lock()
	if ctx.Err() != nil {
		o.mu.Unlock()
		return
	}
	access, client, begun := *c.access, c.api, time.Now()
	o.mu.Unlock()
	found, err := o.answer(ctx, c, access, &client)
	o.mu.Lock()
	defer o.mu.Unlock()
	if ctx.Err() != nil || *c.access != access {
		return // it is no longer needed, or to be asked in another way
	}
	c.api = client
	o.wakeComputes(c.note(found, err, time.Now()))
	if found.services != nil {
		c.listed = begun
	}
	if c.concernsNova() {
		wake(o.novaQueue, nova)
	}
}

// answer is what a Nova says.
type answer struct {
	services  map[string]Service // by host
	unreached map[string]bool    // hosts of which it knows nothing now
	mapped    map[string]string  // by id; nil if it was not asked
	standing  []Migration        // nil if it was not asked, or did not answer
}

func (o *Observer) answer(ctx context.Context, c *novaState, access Access, client **api) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*o.opts.Timeout)
	defer cancel()
	var err error
	if *client == nil {
		if *client, err = connect(ctx, access, o.opts); err != nil {
			return answer{}, err
		}
	}
	listed, unreached, err := (*client).list(ctx, "")
	if err != nil {
		return answer{}, err
	}
	found := answer{services: map[string]Service{}, unreached: unreached}
	for _, s := range listed {
		other, twice := found.services[s.Host]
		if twice && other.Up && !s.Up {
			s = other // the other one is what is left in another cell
		}
		s.Rival = twice
		found.services[s.Host] = s
	}
	o.mu.Lock()
	unsure := c.unsure(found.services)
	o.mu.Unlock()
	if unsure {
		found.mapped, err = (*client).mapped(ctx)
	}
	switch {
	case err != nil:
	case len(unreached) > 0:
		err = (*client).noDatabase(unreached)
	default:
		found.standing = o.askForStanding(ctx, c, *client)
	}
	return found, err
}

// askForStanding asks a Nova for migrations that stand still, unless it is too early. What is wrong
// with nova is in the list of services; what is wrong with migrations only, a drain says.
func (o *Observer) askForStanding(ctx context.Context, c *novaState, client *api) []Migration {
	now := time.Now()
	o.mu.Lock()
	isTime := c.standing.begin(o.opts, now)
	o.mu.Unlock()
	if !isTime {
		return nil
	}
	found, err := client.standing(ctx, now)
	if err != nil {
		return nil
	}
	return found
}

// View is what is known of a compute.
type View struct {
	// Asked reports whether nova has been asked since the manager was started, and reached
	// the cell of the compute.
	Asked bool
	// Service of the compute; zero if nova does not know it.
	Service Service
	// Reported reports whether it is up and has reported since it was started: nova shows a
	// service up for a minute that reports no more.
	Reported bool
	// Trouble is why nova cannot be asked about a compute that is not known to be up.
	Trouble *Trouble
}

// settled reports whether nova knows the compute, and knows its cell.
func (v View) settled() bool { return v.Service.ID != "" && v.Service.Mapped }

func sameTrouble(a, b *Trouble) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func (v View) equal(other View) bool {
	return v.Asked == other.Asked && v.Reported == other.Reported && v.Service == other.Service && sameTrouble(v.Trouble, other.Trouble)
}

// firstHost is the service of the best name that nova knows.
func firstHost(services map[string]Service, hosts []string) Service {
	if i := slices.IndexFunc(hosts, func(host string) bool { return services[host].ID != "" }); i >= 0 {
		return services[hosts[i]]
	}
	return Service{}
}
