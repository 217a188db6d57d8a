package placement

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// storedSnapshot is a cache that has a snapshot. To read its nodes takes some time.
type storedSnapshot struct {
	cache.Cache
	Snapshot
	takes time.Duration
	// reads counts how often the snapshot was read.
	reads int
}

type storedInformer struct {
	cache.Informer
	toolscache.Store
}

func (i storedInformer) GetStore() toolscache.Store { return i.Store }

func (s *storedSnapshot) GetInformer(ctx context.Context, kind client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	if _, ok := kind.(*corev1.Node); ok {
		s.reads++
		time.Sleep(s.takes)
	}
	return newFilledCache(s.Snapshot).GetInformer(ctx, kind, opts...)
}

// filledCache is a cache with a store for each kind.
type filledCache struct {
	cache.Cache
	stores map[reflect.Type]toolscache.Store
}

func newFilledCache(w Snapshot) filledCache {
	c := filledCache{stores: map[reflect.Type]toolscache.Store{}}
	for _, o := range w.all() {
		_ = c.store(o).Add(o) // every object has a key
	}
	return c
}

func (c filledCache) store(o client.Object) toolscache.Store {
	kind := reflect.TypeOf(o)
	if c.stores[kind] == nil {
		c.stores[kind] = toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	}
	return c.stores[kind]
}

func (c filledCache) GetInformer(_ context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return storedInformer{Store: c.store(o)}, nil
}

// requests is a queue that keeps what is added.
type requests struct {
	queue
	sync.Mutex
	added []string
}

func (r *requests) Add(request reconcile.Request) {
	r.Lock()
	defer r.Unlock()
	r.added = append(r.added, request.Name)
}

// take returns what was added since the last call.
func (r *requests) take() []string {
	r.Lock()
	defer r.Unlock()
	added := r.added
	r.added = nil
	return added
}

// story is a Predictor with a snapshot that it reads, and the queue that it fills.
type story struct {
	*Predictor
	*storedSnapshot
	*requests
	t *testing.T
}

const (
	kind   = "glanceapi"
	gather = 2 * time.Second
)

func newStory(t *testing.T, snapshot Snapshot) *story {
	s := &story{storedSnapshot: &storedSnapshot{Snapshot: snapshot}, requests: &requests{}, t: t}
	s.Predictor = NewPredictor(s.storedSnapshot, gather)
	if err := s.Wakes(kind).Start(t.Context(), s.requests); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *story) predict(name string, w Workload) Prediction {
	s.t.Helper()
	v, err := s.Predict(s.t.Context(), Key{Kind: kind, NamespacedName: types.NamespacedName{Namespace: ns, Name: name}}, w)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// pass lets time pass, and returns what was queued meanwhile.
func (s *story) pass(d time.Duration) []string {
	s.take()
	time.Sleep(d)
	synctest.Wait()
	return s.take()
}

// views reports whether the Predictor keeps a view of the cluster.
func (s *story) views() bool {
	s.running.Lock()
	defer s.running.Unlock()
	return s.infos != nil
}

// wants fails unless so many predictions were made.
func (s *story) wants(reads int) {
	s.t.Helper()
	if s.reads != reads {
		s.t.Errorf("the cluster was read %d times; want %d", s.reads, reads)
	}
}

// full is a cluster where nothing fits any more.
func full() Snapshot { return Snapshot{Nodes: []*corev1.Node{cordoned(makeNode("n0", "zone", "a"))}} }

func TestPodsThatFitNowhereArePredictedAgainWhenThatIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := newStory(t, full()), makeWorkload(1)
		if v := s.predict("api", w); v.Fits() {
			t.Fatalf("want a pod that fits nowhere, got %+v", v)
		}
		if queued := s.pass(time.Hour); queued != nil {
			t.Errorf("no one has asked again, but %v is queued", queued)
		}
		s.Nodes = []*corev1.Node{makeNode("n0", "zone", "a")}
		fine(t, s.predict("api", w))
		s.wants(2)
		fine(t, s.predict("api", w))
		if queued := s.pass(time.Hour); queued != nil {
			t.Errorf("the pod fits, but %v is queued", queued)
		}
	})
}

func TestAPredictionIsGivenAgainUntilItMayBePredictedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := newStory(t, full()), makeWorkload(1)
		first := s.predict("api", w)
		if diff := cmp.Diff(first, s.predict("api", w), cmpopts.IgnoreUnexported(Problem{})); diff != "" {
			t.Error(diff)
		}
		s.wants(1)
		if queued := s.pass(s.Gather); !slices.Equal(queued, []string{"api"}) {
			t.Errorf("%v is queued; want the object that was given an old prediction", queued)
		}
		s.predict("api", w)
		s.wants(2)
		// Another roll-out has a prediction of its own, at once.
		w.Replicas = 2
		if v := s.predict("api", w); len(v.Pods) != 2 {
			t.Errorf("want the prediction of the new roll-out, got %+v", v)
		}
		s.wants(3)
	})
}

// To try remedies takes longer than to predict: those of the same problem are kept for a
// while.
func TestRemediesOfTheSameProblemAreTriedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := newStory(t, full()), makeWorkload(1)
		remedy := func() *string {
			return &s.unfit[Key{Kind: kind, NamespacedName: types.NamespacedName{Namespace: ns, Name: "api"}}].predictions[0].Problems[0].Remedy
		}
		fresh := s.predict("api", w).Problems[0].Remedy
		*remedy() = "tried before"
		s.pass(s.Gather)
		if got := s.predict("api", w).Problems[0].Remedy; got != "tried before" {
			t.Errorf("the remedy is tried again: %q", got)
		}
		w.Template.Spec.NodeSelector = labelled("zone", "none")
		if got := s.predict("api", w).Problems[0].Remedy; got == "tried before" {
			t.Error("the remedy is that of another roll-out")
		}
		w.Template.Spec.NodeSelector = nil
		s.predict("api", w)
		*remedy() = "tried before"
		s.pass(forgetAfter + time.Second)
		if got := s.predict("api", w).Problems[0].Remedy; got != fresh {
			t.Errorf("the remedy is not tried again after a while: %q", got)
		}
	})
}

// 30 roll-outs, one second each: a round takes 30 s, so ten minutes are between two.
func TestRepeatedPredictionsTakeAShareOfAProcessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects = 30
		s, w := newStory(t, full()), makeWorkload(1)
		s.takes = time.Second
		for i := range objects {
			s.predict(fmt.Sprint("api-", i), w)
		}
		s.reads = 0
		start := time.Now()
		for time.Since(start) < time.Hour {
			for i := range objects { // something changes all the time
				s.predict(fmt.Sprint("api-", i), w)
			}
			time.Sleep(s.Gather)
		}
		if share := float64(s.reads) * float64(s.takes) / float64(time.Since(start)); share > maxShare {
			t.Errorf("predictions took %.1f%% of a processor; at most %.1f%% are allowed", 100*share, 100*maxShare)
		}
		if fewest := 4 * objects; s.reads < fewest {
			t.Errorf("%d predictions in an hour; want each object every ten minutes or so", s.reads)
		}
	})
}

func TestRollOutsThatNobodyAsksAboutAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStory(t, full())
		s.predict("deleted", makeWorkload(1))
		time.Sleep(2 * forgetAfter)
		s.predict("other", makeWorkload(1))
		if len(s.unfit) != 1 {
			t.Errorf("%d roll-outs are remembered; want the other one", len(s.unfit))
		}
	})
}

func TestTheViewIsReleasedWhenNothingIsPredicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStory(t, full())
		s.predict("api", makeWorkload(1))
		s.pass(forgetAfter / 2)
		s.predict("other", makeWorkload(1))
		s.pass(forgetAfter - time.Second)
		if !s.views() {
			t.Error("the view is released although something was predicted lately")
		}
		s.pass(time.Minute)
		if s.views() {
			t.Error("the view is kept although nothing is predicted")
		}
	})
}

func TestACacheOfChosenNamespacesIsListed(t *testing.T) {
	c := &listedSnapshot{Reader: fake.NewClientBuilder().WithObjects(makeNode("n0")).Build()}
	v, err := NewPredictor(c, gather).Predict(t.Context(), Key{}, makeWorkload(1))
	if err != nil || !v.Fits() {
		t.Errorf("got %+v, %v", v, err)
	}
	c.err = errors.New("no such kind")
	if _, err := NewPredictor(c, gather).Predict(t.Context(), Key{}, makeWorkload(1)); err == nil || !strings.Contains(err.Error(), "listing *v1.Node for the placement prediction: no such kind") {
		t.Errorf("got %v", err)
	}
}

// listedSnapshot is a cache whose informers have no store.
type listedSnapshot struct {
	cache.Cache
	client.Reader
	err error
}

func (l *listedSnapshot) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return struct{ cache.Informer }{}, l.err
}

func (l *listedSnapshot) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return l.Reader.List(ctx, list, opts...)
}

func (l *listedSnapshot) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return l.Reader.Get(ctx, key, o, opts...)
}

// What was counted before is used again, and makes no difference.
func TestASnapshotAfterChangesIsLikeANewOne(t *testing.T) {
	for i := range 200 {
		d := newDraw(11, i)
		before := (*nodeInfos)(nil).with(d.snapshot.Nodes, d.snapshot.Pods)
		d.snapshot.Nodes, d.snapshot.Pods = someChanged(d, d.snapshot.Nodes), someChanged(d, d.snapshot.Pods)
		want := predict(t, d.snapshot, d.workload)
		d.snapshot.infos = before
		if diff := cmp.Diff(want, predict(t, d.snapshot, d.workload), cmpopts.IgnoreUnexported(Problem{})); diff != "" {
			t.Fatalf("draw %d: -new +after changes:\n%s", i, diff)
		}
	}
}

// someChanged leaves out some objects and replaces others.
func someChanged[T client.Object](d *draw, all []T) []T {
	var result []T
	for _, o := range all {
		switch {
		case d.maybe(0.2):
		case d.maybe(0.3):
			changed := o.DeepCopyObject().(T)
			if pod, ok := any(changed).(*corev1.Pod); ok {
				pod.Labels["service"] = "other"
			}
			if node, ok := any(changed).(*corev1.Node); ok {
				node.Labels["zone"] = "zone0"
			}
			result = append(result, changed)
		default:
			result = append(result, o)
		}
	}
	return result
}

func TestUnchangedNodesAreShared(t *testing.T) {
	nodes := sevenNodes()
	pods := podsOn(map[string]int{"worker-0": 2, "worker-1": 1}, "service", "glance")
	for _, pod := range pods {
		pod.UID = types.UID(pod.Name)
	}
	before := (*nodeInfos)(nil).with(nodes, pods)
	moved := makePod("moved", "worker-1")
	moved.UID = "moved"
	after := before.with(slices.Clone(nodes), append(slices.Clone(pods), moved))
	for i, node := range nodes {
		if shared := before.list[i] == after.list[i]; shared != (node.Name != "worker-1") {
			t.Errorf("node %s is shared: %v", node.Name, shared)
		}
	}
}
