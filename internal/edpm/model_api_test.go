package edpm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
)

// The API server of the model: objects that are never changed in place, and for
// each kind a log of what happened, along which each cache moves at its own pace.

const (
	modelNamespace = "ns"
	runKind        = "OpenStackAnsibleEE"
	nodeKind       = "Node"
	computeKind    = "Compute"
	secretKind     = "Secret"
)

// modelOwner stands for an object that owns targets.
type modelOwner struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	kind   string
	spec   modelSpec
	ledger common.Ledger
	// phase that its controller has written.
	phase Phase
}

// modelSpec is what a person wants of an owner.
type modelSpec struct {
	role     string
	versions [2]int
	// address of the machine, if it is not the name of the host.
	address string
	access  string
	// inline playbooks cannot share a run with others.
	inline bool
	// token of the owner and of its role: the former is in force if there is one.
	token, roleToken string
	strategy         Strategy
}

func (o *modelOwner) id() ownerID { return ownerID{o.kind, o.Namespace, o.Name} }

func (o *modelOwner) DeepCopyObject() runtime.Object {
	c := *o
	c.ObjectMeta, c.ledger = *o.ObjectMeta.DeepCopy(), *o.ledger.DeepCopy()
	return &c
}

// change is one event of a watch: without old it is a creation, without new a deletion.
type change struct{ old, new client.Object }

type table struct {
	objects map[string]client.Object
	log     []change
}

type modelStore struct {
	clock  clock.PassiveClock
	tables map[string]*table
	// keys of each version of a run, by index.
	keys    map[client.Object]map[string][]string
	version int
}

func newModelStore(c clock.PassiveClock) *modelStore {
	s := &modelStore{clock: c, tables: map[string]*table{}, keys: map[client.Object]map[string][]string{}}
	for _, kind := range []string{runKind, nodeKind, computeKind, secretKind} {
		s.tables[kind] = &table{objects: map[string]client.Object{}}
	}
	return s
}

func kindOf(obj client.Object) string {
	switch o := obj.(type) {
	case *ansibleeev1.OpenStackAnsibleEE:
		return runKind
	case *modelOwner:
		return o.kind
	}
	return secretKind
}

func notFound(kind, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, name)
}

// stamp is the time as the API server stores it.
func (s *modelStore) stamp() metav1.Time { return metav1.NewTime(s.clock.Now().Truncate(time.Second)) }

// put stores a version of an object, and a deletion if it may go.
func (s *modelStore) put(obj client.Object) {
	s.version++
	obj.SetResourceVersion(fmt.Sprint(s.version))
	t, old := s.tables[kindOf(obj)], s.tables[kindOf(obj)].objects[obj.GetName()]
	if obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 {
		delete(t.objects, obj.GetName())
		t.log = append(t.log, change{old: obj})
		s.index(obj)
		return
	}
	t.objects[obj.GetName()] = obj
	t.log = append(t.log, change{old, obj})
	s.index(obj)
}

func (s *modelStore) index(obj client.Object) {
	if kindOf(obj) == runKind {
		s.keys[obj] = map[string][]string{}
		for name, keys := range indexes {
			s.keys[obj][name] = keys(obj)
		}
	}
}

func (s *modelStore) create(obj client.Object) error {
	if s.tables[kindOf(obj)].objects[obj.GetName()] != nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: kindOf(obj)}, obj.GetName())
	}
	obj = obj.DeepCopyObject().(client.Object)
	obj.SetUID(types.UID(fmt.Sprintf("%s-%d", obj.GetName(), s.version)))
	obj.SetCreationTimestamp(s.stamp())
	obj.SetGeneration(1)
	s.put(obj)
	return nil
}

func (s *modelStore) delete(kind, name string, uid *types.UID) error {
	obj := s.tables[kind].objects[name]
	if obj == nil || uid != nil && *uid != obj.GetUID() {
		return notFound(kind, name)
	}
	if obj.GetDeletionTimestamp() != nil {
		return nil
	}
	obj = obj.DeepCopyObject().(client.Object)
	now := s.stamp()
	obj.SetDeletionTimestamp(&now)
	obj.SetGeneration(obj.GetGeneration() + 1)
	s.put(obj)
	return nil
}

// dropFinalizers is the only patch of the engine: with an optimistic lock.
func (s *modelStore) dropFinalizers(seen client.Object) error {
	obj := s.tables[kindOf(seen)].objects[seen.GetName()]
	if obj == nil {
		return notFound(kindOf(seen), seen.GetName())
	}
	if obj.GetResourceVersion() != seen.GetResourceVersion() {
		return apierrors.NewConflict(schema.GroupResource{Resource: kindOf(seen)}, seen.GetName(), nil)
	}
	obj = obj.DeepCopyObject().(client.Object)
	obj.SetFinalizers(nil)
	s.put(obj)
	return nil
}

func (s *modelStore) run(name string) *ansibleeev1.OpenStackAnsibleEE {
	run, _ := s.tables[runKind].objects[name].(*ansibleeev1.OpenStackAnsibleEE)
	return run
}

func (s *modelStore) owner(kind, name string) *modelOwner {
	owner, _ := s.tables[kind].objects[name].(*modelOwner)
	return owner
}

func (s *modelStore) names(kind string) []string {
	return slices.Sorted(maps.Keys(s.tables[kind].objects))
}

// modelCache shows what the store had at some earlier time, by kind.
type modelCache struct {
	store   *modelStore
	objects map[string]map[string]client.Object
	// runs by name, for lists.
	runs  []*ansibleeev1.OpenStackAnsibleEE
	shown map[string]int
}

func newModelCache(s *modelStore, kinds ...string) *modelCache {
	c := &modelCache{store: s, objects: map[string]map[string]client.Object{}, shown: map[string]int{}}
	for _, kind := range kinds {
		c.objects[kind], c.shown[kind] = maps.Clone(s.tables[kind].objects), len(s.tables[kind].log)
	}
	c.sort()
	return c
}

func (c *modelCache) behind(kind string) bool { return c.shown[kind] < len(c.store.tables[kind].log) }

// advance shows the next change of a kind.
func (c *modelCache) advance(kind string) {
	next := c.store.tables[kind].log[c.shown[kind]]
	c.shown[kind]++
	if next.new == nil {
		delete(c.objects[kind], next.old.GetName())
	} else {
		c.objects[kind][next.new.GetName()] = next.new
	}
	if kind == runKind {
		c.sort()
	}
}

func (c *modelCache) sort() {
	c.runs = c.runs[:0]
	for _, name := range slices.Sorted(maps.Keys(c.objects[runKind])) {
		c.runs = append(c.runs, c.objects[runKind][name].(*ansibleeev1.OpenStackAnsibleEE))
	}
}

func (c *modelCache) list(index, value string) []ansibleeev1.OpenStackAnsibleEE {
	var found []ansibleeev1.OpenStackAnsibleEE
	for _, run := range c.runs {
		if slices.Contains(c.store.keys[run][index], value) {
			found = append(found, *run)
		}
	}
	return found
}

func (c *modelCache) all() []ansibleeev1.OpenStackAnsibleEE {
	var found []ansibleeev1.OpenStackAnsibleEE
	for _, run := range c.runs {
		found = append(found, *run)
	}
	return found
}

// modelClient is the client of a manager: it reads from the cache of the manager,
// and writes as well as the manager can.
type modelClient struct {
	client.Client
	m *manager
}

func (c modelClient) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	return fill(c.m.cache.objects[kindOf(obj)][key.Name], key.Name, obj)
}

func fill(from client.Object, name string, obj client.Object) error {
	if from == nil {
		return notFound(kindOf(obj), name)
	}
	switch o := obj.(type) {
	case *ansibleeev1.OpenStackAnsibleEE:
		*o = *from.(*ansibleeev1.OpenStackAnsibleEE)
	case *modelOwner:
		*o = *from.(*modelOwner)
	case *corev1.Secret:
		*o = *from.(*corev1.Secret)
	}
	return nil
}

func (c modelClient) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	items := &list.(*ansibleeev1.OpenStackAnsibleEEList).Items
	if o.FieldSelector == nil {
		*items = c.m.cache.all()
		return nil
	}
	index, value, _ := strings.Cut(o.FieldSelector.String(), "=")
	if index == groupIndex {
		c.m.world.interleave()
	}
	*items = c.m.cache.list(index, value)
	return nil
}

func (c modelClient) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	switch o := obj.(type) {
	case *corev1.Secret: // the first thing that is done once the run is decided on
		c.m.claimed[o.Name] = maps.Clone(c.m.said)
	case *ansibleeev1.OpenStackAnsibleEE:
		c.m.world.checkNew(c.m, o)
		c.m.made[o.Name] = true
	}
	return c.m.write("create "+obj.GetName(), func() error { return c.m.world.api.create(obj) })
}

func (c modelClient) Delete(_ context.Context, obj client.Object, opts ...client.DeleteOption) error {
	o := client.DeleteOptions{}
	o.ApplyOptions(opts)
	var uid *types.UID
	if o.Preconditions != nil {
		uid = o.Preconditions.UID
	}
	return c.m.write("delete "+obj.GetName(), func() error {
		if o.Preconditions != nil && o.Preconditions.ResourceVersion != nil {
			stored := c.m.world.api.tables[kindOf(obj)].objects[obj.GetName()]
			if stored != nil && stored.GetResourceVersion() != *o.Preconditions.ResourceVersion {
				return apierrors.NewConflict(schema.GroupResource{}, obj.GetName(), errors.New("another version is stored"))
			}
		}
		return c.m.world.api.delete(kindOf(obj), obj.GetName(), uid)
	})
}

func (c modelClient) Patch(_ context.Context, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
	return c.m.write("drop finalizers of "+obj.GetName(), func() error { return c.m.world.api.dropFinalizers(obj) })
}

// modelReader reads past the cache.
type modelReader struct {
	client.Reader
	store *modelStore
}

func (r modelReader) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	return fill(r.store.tables[kindOf(obj)].objects[key.Name], key.Name, obj)
}

// modelQueue is a workqueue whose time is that of the model and that gives what is
// due in any order that the model chooses.
type modelQueue[T comparable] struct {
	clock    clock.PassiveClock
	at       map[T]time.Time
	busy     map[T]bool
	failures map[T]int
}

func newModelQueue[T comparable](c clock.PassiveClock) *modelQueue[T] {
	return &modelQueue[T]{clock: c, at: map[T]time.Time{}, busy: map[T]bool{}, failures: map[T]int{}}
}

// due items, in a stable order.
func (q *modelQueue[T]) due() []T {
	var due []T
	for item, at := range q.at {
		if !q.busy[item] && !at.After(q.clock.Now()) {
			due = append(due, item)
		}
	}
	slices.SortFunc(due, func(a, b T) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return due
}

// next is when the first item is due.
func (q *modelQueue[T]) next() (first time.Time, found bool) {
	for _, at := range q.at {
		if !found || at.Before(first) {
			first, found = at, true
		}
	}
	return first, found
}

// process takes an item and does with its result what controller-runtime does.
func (q *modelQueue[T]) process(item T, do func() (time.Duration, error)) {
	delete(q.at, item)
	q.busy[item] = true
	after, err := do()
	delete(q.busy, item)
	switch {
	case err != nil:
		q.AddRateLimited(item)
		return
	case after > 0:
		q.AddAfter(item, after)
	}
	q.Forget(item)
}

func (q *modelQueue[T]) Add(item T) { q.AddAfter(item, 0) }
func (q *modelQueue[T]) AddAfter(item T, d time.Duration) {
	at := q.clock.Now().Add(d)
	if old, ok := q.at[item]; !ok || at.Before(old) {
		q.at[item] = at
	}
}

func (q *modelQueue[T]) AddRateLimited(item T) {
	q.failures[item]++
	q.AddAfter(item, 5*time.Millisecond<<min(q.failures[item], 17))
}
func (q *modelQueue[T]) Forget(item T)          { delete(q.failures, item) }
func (q *modelQueue[T]) NumRequeues(item T) int { return q.failures[item] }
func (q *modelQueue[T]) Len() int               { return len(q.at) }
func (q *modelQueue[T]) Get() (item T, shutdown bool) {
	panic("the model takes items itself")
}
func (q *modelQueue[T]) Done(T)             {}
func (q *modelQueue[T]) ShutDown()          {}
func (q *modelQueue[T]) ShutDownWithDrain() {}
func (q *modelQueue[T]) ShuttingDown() bool { return false }
