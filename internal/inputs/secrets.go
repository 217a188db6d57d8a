package inputs

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// secrets watches every Secret that a user reads, each by its namespace and
// name, and no other. A watch has the whole object and not only its metadata:
// content and version then never differ, and nothing is left to read.
//
// The kubelet has the like (k8s.io/kubernetes/pkg/kubelet/util/manager), but its watches
// wake no one when a Secret changes, hide for what reason a Secret is not known, keep it
// after the permission was taken away, and have no limits.
type secrets struct {
	// ctx is that of the manager: watches outlive the reconciliations that start them.
	ctx context.Context
	api typedcorev1.SecretsGetter

	limits Limits

	mu        sync.Mutex
	watched   map[types.NamespacedName]*watched
	used      map[string]*usage // by namespace
	listeners []listener
}

// Limits of the Secrets of one namespace that are watched at the same time: who
// may write objects of edpm-operators there decides how many they name.
type Limits struct {
	// Secrets is how many there may be. Each watch costs some 80 KiB of memory.
	Secrets int
	// Bytes that they may have together.
	Bytes int
}

// DefaultLimits let hosts have keys of their own, by the thousand, and keep one
// namespace from taking a quarter of the memory that the manager may have.
var DefaultLimits = Limits{Secrets: 2000, Bytes: 32 << 20}

// usage is what the Secrets of a namespace take.
type usage struct {
	secrets, bytes int
	// refused are Secrets that are not watched because of the limits. They are
	// tried again with the next sweep.
	refused map[types.NamespacedName]bool
}

// listener is a controller that hears of changes.
type listener struct {
	ctx     context.Context // of the controller
	handler handler.EventHandler
	queue   queue
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func newSecrets(ctx context.Context, api typedcorev1.SecretsGetter, limits Limits) *secrets {
	return &secrets{ctx: ctx, api: api, limits: limits, watched: map[types.NamespacedName]*watched{}, used: map[string]*usage{}}
}

// get returns a Secret, nil if there is none, or an error if it is not known
// whether there is. The first time it waits for what the API server says.
func (s *secrets) get(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	w := s.watch(key)
	if w == nil {
		return nil, s.limit(key)
	}
	return w.get(ctx)
}

func (s *secrets) limit(key types.NamespacedName) error {
	return &LimitError{Namespace: key.Namespace, Name: key.Name, Limits: s.limits}
}

// watch returns the watch of a Secret, which it starts if there is none, or nil if
// the limits forbid it.
func (s *secrets) watch(key types.NamespacedName) *watched {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.watched[key]
	if !ok {
		used := s.usage(key.Namespace)
		if used.refused[key] || used.secrets >= s.limits.Secrets {
			used.refused[key] = true
			return nil
		}
		used.secrets++
		w = s.start(key)
		s.watched[key] = w
	}
	w.wanted = true
	return w
}

func (s *secrets) start(key types.NamespacedName) *watched {
	ctx, stop := context.WithCancel(s.ctx)
	w := &watched{key: key, tell: s.notify, fits: s.fits, stop: stop, answered: make(chan struct{})}
	lw := toolscache.ToListWatcherWithWatchListSemantics(w.listWatch(s.api.Secrets(key.Namespace)), s.api)
	go toolscache.NewReflectorWithOptions(lw, &corev1.Secret{}, w, toolscache.ReflectorOptions{Name: "secrets"}).RunWithContext(ctx)
	return w
}

// usage of a namespace. The caller holds the lock.
func (s *secrets) usage(namespace string) *usage {
	if s.used[namespace] == nil {
		s.used[namespace] = &usage{refused: map[types.NamespacedName]bool{}}
	}
	return s.used[namespace]
}

// end ends a watch, and makes room. The caller holds the lock.
func (s *secrets) end(w *watched) {
	w.stop()
	if s.watched[w.key] != w {
		return
	}
	delete(s.watched, w.key)
	used := s.usage(w.key.Namespace)
	used.secrets--
	used.bytes -= w.bytes
	if used.secrets == 0 && len(used.refused) == 0 {
		delete(s.used, w.key.Namespace)
	}
}

// fits notes the size of a Secret that is about to be held. When there is no room
// for it, the watch ends and the error says so.
func (s *secrets) fits(w *watched, size int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watched[w.key] != w {
		return nil // it has ended already
	}
	used := s.usage(w.key.Namespace)
	if used.bytes-w.bytes+size > s.limits.Bytes {
		used.refused[w.key] = true
		s.end(w)
		return s.limit(w.key)
	}
	used.bytes += size - w.bytes
	w.bytes = size
	return nil
}

// source is a source of the changes of all Secrets that are watched.
func (s *secrets) source(h handler.EventHandler) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.listeners = append(s.listeners, listener{ctx, h, q})
		return nil
	})
}

func (s *secrets) allListeners() []listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listeners
}

// notify tells the controllers that a Secret was made, changed or deleted, or that
// it is known now, or no longer, what it is.
func (s *secrets) notify(key types.NamespacedName, before, now *corev1.Secret) {
	for _, l := range s.allListeners() {
		switch {
		case before != nil && now != nil:
			l.handler.Update(l.ctx, event.UpdateEvent{ObjectOld: before, ObjectNew: now}, l.queue)
		case now != nil:
			l.handler.Create(l.ctx, event.CreateEvent{Object: now}, l.queue)
		case before != nil:
			l.handler.Delete(l.ctx, event.DeleteEvent{Object: before}, l.queue)
		default:
			l.handler.Generic(l.ctx, event.GenericEvent{Object: named(key)}, l.queue)
		}
	}
}

func named(key types.NamespacedName) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}

// sweepEvery is how often watches are ended that no one needs.
const sweepEvery = 10 * time.Minute

// Start ends watches that no one needs, until the manager stops.
func (s *secrets) Start(ctx context.Context) error {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			s.sweep()
		}
	}
}

// sweep ends the watches of which an event would wake no object: what no one
// would hear of need not be watched. One that is read meanwhile stays.
func (s *secrets) sweep() {
	defer s.again()
	for _, w := range s.unmarked() {
		if s.concerns(w) {
			continue
		}
		s.mu.Lock()
		if !w.wanted {
			s.end(w)
		}
		s.mu.Unlock()
	}
}

// again wakes those who name a Secret that was refused: there may be room now.
func (s *secrets) again() {
	s.mu.Lock()
	var refused []types.NamespacedName
	for namespace, used := range s.used {
		refused = slices.AppendSeq(refused, maps.Keys(used.refused))
		clear(used.refused)
		if used.secrets == 0 {
			delete(s.used, namespace)
		}
	}
	s.mu.Unlock()
	for _, key := range refused {
		s.notify(key, nil, nil)
	}
}

// unmarked returns all watches. It takes back that they are wanted, so that it
// shows afterwards which were read since.
func (s *secrets) unmarked() []*watched {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*watched, 0, len(s.watched))
	for _, w := range s.watched {
		w.wanted = false
		all = append(all, w)
	}
	return all
}

// concerns reports whether an event of the Secret would wake an object.
func (s *secrets) concerns(w *watched) bool {
	secret := w.last()
	for _, l := range s.allListeners() {
		woken := &counter{}
		if l.handler.Generic(l.ctx, event.GenericEvent{Object: secret}, woken); woken.requests > 0 {
			return true
		}
	}
	return false
}

// counter is a queue that only counts.
type counter struct {
	queue
	requests int
}

// Add counts a request.
func (c *counter) Add(reconcile.Request) { c.requests++ }

// watched is one Secret. It is the store of a reflector, which lists and watches.
type watched struct {
	key  types.NamespacedName
	tell func(key types.NamespacedName, before, now *corev1.Secret)
	// fits notes a size, and returns an error if there is no room for it.
	fits func(w *watched, size int) error
	stop context.CancelFunc
	// bytes that it has of its namespace; guarded by the mutex of secrets.
	bytes int
	// wanted reports whether it was read since the last sweep began; guarded by the
	// mutex of secrets.
	wanted bool
	// answered is closed when the API server has answered for the first time.
	answered chan struct{}

	mu     sync.Mutex
	known  bool
	secret *corev1.Secret // nil when there is none, or nothing is known
	err    error          // why nothing is known
	// owed reports whether a user got an error instead of an answer.
	owed bool
}

// listWatch asks for this one Secret.
func (w *watched) listWatch(api typedcorev1.SecretInterface) *toolscache.ListWatch {
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, w.key.Name).String()
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = only
			list, err := api.List(ctx, options)
			w.note(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			options.FieldSelector = only
			stream, err := api.Watch(ctx, options)
			w.note(err)
			return stream, err
		},
	}
}

func (w *watched) get(ctx context.Context) (*corev1.Secret, error) {
	select {
	case <-w.answered:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owed = w.owed || !w.known
	return w.secret, w.err
}

// last returns the Secret as far as it is known.
func (w *watched) last() *corev1.Secret {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.secret != nil {
		return w.secret
	}
	return named(w.key)
}

// note notes that the API server cannot or will not say what the Secret is. The
// reflector asks again. What was known stays until then, unless the right to
// know it was taken away.
func (w *watched) note(err error) {
	if err == nil {
		return
	}
	w.mu.Lock()
	before, refused := w.secret, w.known && apierrors.IsForbidden(err)
	if !w.known || refused {
		w.known, w.secret, w.err = false, nil, err
	}
	w.answer()
	w.mu.Unlock()
	if refused {
		w.tell(w.key, before, nil)
	}
}

// put notes what the Secret is, and tells it to the controllers unless they
// know.
func (w *watched) put(now *corev1.Secret) {
	size := 0
	if now != nil {
		now.ManagedFields = nil // nobody reads them
		size = now.Size()
	}
	if err := w.fits(w, size); err != nil {
		w.refuse(err)
		return
	}
	w.mu.Lock()
	before := w.secret
	news := w.owed || w.known && version(before) != version(now)
	w.known, w.secret, w.err, w.owed = true, now, nil, false
	w.answer()
	w.mu.Unlock()
	if news {
		w.tell(w.key, before, now)
	}
}

// refuse drops the Secret: there is no room for what it has become.
func (w *watched) refuse(err error) {
	w.mu.Lock()
	before, known := w.secret, w.known
	w.known, w.secret, w.err = false, nil, err
	w.answer()
	w.mu.Unlock()
	if known {
		w.tell(w.key, before, nil)
	}
}

// answer lets those continue who wait for the first answer. The caller holds the lock.
func (w *watched) answer() {
	select {
	case <-w.answered:
	default:
		close(w.answered)
	}
}

func version(secret *corev1.Secret) string {
	if secret == nil {
		return ""
	}
	return string(secret.UID) + "/" + secret.ResourceVersion
}

// Add is called by the reflector when the Secret was made.
func (w *watched) Add(obj any) error { return w.Update(obj) }

// Update is called by the reflector when the Secret was changed.
func (w *watched) Update(obj any) error {
	w.put(obj.(*corev1.Secret))
	return nil
}

// Delete is called by the reflector when the Secret was deleted.
func (w *watched) Delete(any) error {
	w.put(nil)
	return nil
}

// Replace is called by the reflector when it has listed the Secret.
func (w *watched) Replace(list []any, _ string) error {
	if len(list) == 0 {
		return w.Delete(nil)
	}
	return w.Update(list[0])
}

// Resync is called by nobody: the reflector has no period for it.
func (w *watched) Resync() error { return nil }
