package placement

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// maxShare is how much of one CPU repeated predictions may take.
	maxShare = 0.05
	// forgetAfter is when a roll-out that no one asks about any more is forgotten.
	forgetAfter = 10 * time.Minute
)

// Predictor predicts for all controllers of a process. Its predictions share one
// view of the cluster and run one at a time, which bounds their memory. A roll-out
// with pods that fit nowhere is predicted again when it is asked for, but only so
// often that all of these together take maxShare of a CPU: where one prediction
// takes long, the present one counts for longer.
type Predictor struct {
	// Gather is how long changes of the cluster are gathered before pods that would fit
	// nowhere are predicted again, and the shortest time between two predictions of one
	// roll-out.
	Gather time.Duration

	cache cache.Cache

	// running is held during a prediction, and guards infos, which idle releases when
	// nothing was predicted for a while.
	running sync.Mutex
	infos   *nodeInfos
	idle    *time.Timer

	// mu guards what is below.
	mu     sync.Mutex
	unfit  map[Key]*unfit
	queues map[string]queue
	// timer calls wake at next; next is zero if it does not.
	timer *time.Timer
	next  time.Time
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Key names the object that a roll-out is of.
type Key struct {
	Kind string
	types.NamespacedName
}

// unfit are roll-outs of an object some pods of which would fit nowhere.
type unfit struct {
	workloads   []Workload
	predictions []Prediction
	cost        time.Duration
	// tried is when the oldest of the remedies was tried.
	tried time.Time
	// due is when they may be predicted again.
	due time.Time
	// repeated reports whether the predictions were given again, so that the object is to
	// be queued when they are due.
	repeated bool
}

// NewPredictor returns a Predictor that reads the cluster from a cache, and whose
// Gather is as given.
func NewPredictor(c cache.Cache, gather time.Duration) *Predictor {
	return &Predictor{Gather: gather, cache: c, unfit: map[Key]*unfit{}, queues: map[string]queue{}}
}

// Wakes returns a source for the controller of a kind: it queues the objects that
// were given an old prediction, once a new one may be made.
func (p *Predictor) Wakes(kind string) source.Source {
	return source.Func(func(_ context.Context, q queue) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.queues[kind] = q
		return nil
	})
}

// Predict returns what [Predict] returns for the cluster as the cache has it. A
// prediction that pods fit nowhere can be older, and then the object is queued once it
// may be predicted again.
func (p *Predictor) Predict(ctx context.Context, key Key, workload Workload) (Prediction, error) {
	predictions, err := p.PredictAll(ctx, key, []Workload{workload})
	if err != nil {
		return Prediction{}, err
	}
	return predictions[0], nil
}

// PredictAll is [Predictor.Predict] for an object with several workloads, which are
// rolled out one after the other as by [PredictAll].
func (p *Predictor) PredictAll(ctx context.Context, key Key, workloads []Workload) ([]Prediction, error) {
	if predictions, found := p.known(key, workloads); found {
		return predictions, nil
	}
	p.running.Lock()
	defer p.running.Unlock()
	start := time.Now()
	snapshot, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	predictions, err := predictAll(ctx, snapshot, workloads)
	if err != nil {
		return nil, err
	}
	tried := p.remember(key, workloads, predictions)
	if err := withRemedies(ctx, snapshot, workloads, predictions); err != nil {
		return nil, err
	}
	p.note(key, &unfit{workloads: workloads, predictions: predictions, cost: time.Since(start), tried: tried})
	return predictions, nil
}

// remember gives problems that were there before, with the same pods and the same
// reasons of the scheduler, the remedies that they had, and returns when these were tried.
// To try them takes ten times as long as the prediction; after a while they are tried
// again.
func (p *Predictor) remember(key Key, workloads []Workload, predictions []Prediction) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	u, now := p.unfit[key], time.Now()
	if u == nil || now.Sub(u.tried) > forgetAfter || !equality.Semantic.DeepEqual(u.workloads, workloads) {
		return now
	}
	for i := range predictions {
		for j := range predictions[i].Problems {
			problem := &predictions[i].Problems[j]
			at := slices.IndexFunc(u.predictions[i].Problems, func(b Problem) bool {
				b.Remedy = problem.Remedy
				return reflect.DeepEqual(b, *problem)
			})
			if at >= 0 {
				problem.Remedy = u.predictions[i].Problems[at].Remedy
			}
		}
	}
	return u.tried
}

// InertRules returns what [Workload.InertRules] does in the cluster as the cache has it.
func (p *Predictor) InertRules(ctx context.Context, workload Workload) ([]Problem, error) {
	var nodes []*corev1.Node
	var pods []*corev1.Pod
	var namespaces []*corev1.Namespace
	from := func(object client.Object, list client.ObjectList, each func(any)) error {
		return p.each(ctx, object, list, each)
	}
	err := errors.Join(into(&nodes, from, &corev1.Node{}, &corev1.NodeList{}), into(&pods, from, &corev1.Pod{}, &corev1.PodList{}),
		into(&namespaces, from, &corev1.Namespace{}, &corev1.NamespaceList{}))
	if err != nil {
		return nil, err
	}
	return workload.InertRules(nodes, pods, namespaces)
}

// Replace returns what [Replace] does in the cluster as the cache has it.
func (p *Predictor) Replace(ctx context.Context, pods []*corev1.Pod) ([]Replacement, error) {
	p.running.Lock()
	defer p.running.Unlock()
	snapshot, err := p.read(ctx)
	if err != nil {
		return nil, err
	}
	return Replace(ctx, snapshot, pods)
}

// known returns the predictions on roll-outs that are not to be predicted again yet.
func (p *Predictor) known(key Key, workloads []Workload) ([]Prediction, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.unfit[key]
	if u == nil || !u.due.After(time.Now()) || !equality.Semantic.DeepEqual(u.workloads, workloads) {
		return nil, false
	}
	u.repeated = true
	p.wakeAt(u.due)
	return u.predictions, true
}

// note remembers a prediction if pods do not fit, and forgets those that no one has
// asked for lately: their objects are deleted, or their pods run.
func (p *Predictor) note(key Key, u *unfit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(p.unfit, func(k Key, u *unfit) bool { return k == key || now.Sub(u.due) > forgetAfter })
	if all(u.predictions, Prediction.Fits) {
		return
	}
	p.unfit[key] = u
	u.due = now.Add(max(p.Gather, p.round()))
}

// round is how long it takes to predict everything again with maxShare of a CPU.
func (p *Predictor) round() time.Duration {
	var sum time.Duration
	for _, u := range p.unfit {
		sum += u.cost
	}
	return time.Duration(float64(sum) / maxShare)
}

// wakeAt calls wake at a time, if it is not called before.
func (p *Predictor) wakeAt(at time.Time) {
	if !p.next.IsZero() && !at.Before(p.next) {
		return
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	p.next = at
	p.timer = time.AfterFunc(time.Until(at), p.wake)
}

// wake queues the objects that are due.
func (p *Predictor) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = time.Time{}
	now := time.Now()
	for key, u := range p.unfit {
		switch q := p.queues[key.Kind]; {
		case !u.repeated || q == nil:
		case u.due.After(now):
			p.wakeAt(u.due)
		default:
			u.repeated = false
			q.Add(reconcile.Request{NamespacedName: key.NamespacedName})
		}
	}
}

// read returns the cluster as the cache has it, with what was counted before.
func (p *Predictor) read(ctx context.Context) (Snapshot, error) {
	w, err := read(func(object client.Object, list client.ObjectList, each func(any)) error {
		return p.each(ctx, object, list, each)
	})
	if err != nil {
		return Snapshot{}, err
	}
	p.infos = p.infos.with(w.Nodes, w.Pods)
	w.infos = p.infos
	if p.idle != nil {
		p.idle.Stop()
	}
	p.idle = time.AfterFunc(forgetAfter, p.release)
	return w, nil
}

func (p *Predictor) release() {
	p.running.Lock()
	defer p.running.Unlock()
	p.infos = nil
}

// each calls a function with all objects of a kind. To list them would copy each
// struct, which is 60 MB for 50,000 pods. A cache of chosen namespaces has no store.
func (p *Predictor) each(ctx context.Context, object client.Object, list client.ObjectList, each func(any)) error {
	informer, err := p.cache.GetInformer(ctx, object)
	if err != nil {
		return err
	}
	stored, ok := informer.(interface{ GetStore() toolscache.Store })
	if !ok {
		return eachListed(ctx, p.cache, list, each)
	}
	for _, o := range stored.GetStore().List() {
		each(o)
	}
	return nil
}
