package inputs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/edpm-operators/edpm-operators/test/envtest"
)

const someone = "system:serviceaccount:default:someone"

// TestSecrets runs the stories against one API server.
func TestSecrets(t *testing.T) {
	env := envtest.Start(t, envtest.Options{})
	for name, story := range map[string]func(*testing.T, *shelf){
		"many readers make one request, by namespace and name":         oneRequest,
		"a Secret that is made, changed or deleted wakes its user":     changes,
		"a right that is granted later wakes the user":                 grant,
		"what concerns no one is watched no longer":                    ending,
		"a Secret that edpm-operators makes is read with its metadata": generating,
		"no more Secrets of a namespace are held than the limits":      limiting,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t, newShelf(t, env))
		})
	}
}

// shelf is a namespace with a Reader, and a controller that hears of Secrets.
type shelf struct {
	*Reader
	t     *testing.T
	env   *envtest.Env
	api   client.Client
	ns    string
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// alone is the name of the one Secret that concerns a user, if it is set.
	alone string

	mu       sync.Mutex
	requests []string
}

func newShelf(t *testing.T, env *envtest.Env) *shelf {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shelf-"}}
	if err := env.Client.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	s := &shelf{t: t, env: env, api: env.Client, ns: ns.Name, queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())}
	t.Cleanup(s.queue.ShutDown)
	s.use(env.Config)
	return s
}

// use makes the Reader, with the rights that the configuration has.
func (s *shelf) use(config *rest.Config) {
	s.t.Helper()
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			s.mu.Lock()
			s.requests = append(s.requests, fmt.Sprintf("%s %s watch=%s %s", r.Method, r.URL.Path, r.URL.Query().Get("watch"), r.URL.Query().Get("fieldSelector")))
			s.mu.Unlock()
			return next.RoundTrip(r)
		})
	})
	s.Reader = &Reader{secrets: newSecrets(s.t.Context(), kubernetes.NewForConfigOrDie(config).CoreV1(), DefaultLimits)}
	wake := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		if s.alone != "" && s.alone != obj.GetName() {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
	})
	if err := s.SecretChanges(wake).Start(s.t.Context(), s.queue); err != nil {
		s.t.Fatal(err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (s *shelf) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

func (s *shelf) secret(name, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}, Data: map[string][]byte{"k": []byte(value)}}
}

func (s *shelf) do(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// reads expects a value, or for none an error of the type of want.
func (s *shelf) reads(name, value string) {
	s.t.Helper()
	got, err := s.SecretKey(s.t.Context(), s.ns, name, "k")
	if missing := (*MissingError)(nil); string(got) != value || (value == "") != errors.As(err, &missing) {
		s.t.Fatalf("Secret %s has %q, %v; want %q", name, got, err, value)
	}
}

// woken expects that the controller hears of the Secret.
func (s *shelf) woken(name string) {
	s.t.Helper()
	stop := time.AfterFunc(30*time.Second, s.queue.ShutDown)
	defer stop.Stop()
	r, over := s.queue.Get()
	if over || r.Name != name {
		s.t.Fatalf("woken for %v, over %v; want %s", r, over, name)
	}
	s.queue.Done(r)
}

func oneRequest(t *testing.T, s *shelf) {
	s.do(s.api.Create(t.Context(), s.secret("key", "v")))
	s.do(s.api.Create(t.Context(), s.secret("other", "x")))
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() { s.reads("key", "v") })
	}
	all.Wait()
	for range 100 {
		s.reads("key", "v")
	}
	want := []string{"GET /api/v1/namespaces/" + s.ns + "/secrets watch=true metadata.name=key"}
	if diff := cmp.Diff(want, s.asked()); diff != "" {
		t.Errorf("the requests differ (-want +got):\n%s", diff)
	}
	if n := s.queue.Len(); n > 0 {
		t.Errorf("%d objects are woken by what they have read themselves", n)
	}
}

func changes(t *testing.T, s *shelf) {
	secret := s.secret("key", "one")
	s.reads("key", "")
	s.do(s.api.Create(t.Context(), secret))
	s.woken("key")
	s.reads("key", "one")
	secret.Data["k"] = []byte("two")
	s.do(s.api.Update(t.Context(), secret))
	s.woken("key")
	s.reads("key", "two")
	s.do(s.api.Delete(t.Context(), secret))
	s.woken("key")
	s.reads("key", "")
}

func grant(t *testing.T, s *shelf) {
	s.do(s.api.Create(t.Context(), s.secret("key", "v")))
	config := rest.CopyConfig(s.env.Config)
	config.Impersonate.UserName = someone
	s.use(config)
	var forbidden *ForbiddenError
	if _, err := s.Secret(t.Context(), s.ns, "key"); !errors.As(err, &forbidden) || forbidden.Namespace != s.ns {
		t.Fatalf("the error is %v; want a ForbiddenError", err)
	}
	meta := metav1.ObjectMeta{Namespace: s.ns, Name: "reads-key"}
	s.do(s.api.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		// A right on this one Secret is enough: it is asked for by its name.
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"key"}, Verbs: []string{"list", "watch"}},
	}}))
	s.do(s.api.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: someone}},
	}))
	s.woken("key")
	s.reads("key", "v")
}

func ending(t *testing.T, s *shelf) {
	s.do(s.api.Create(t.Context(), s.secret("kept", "v")))
	s.do(s.api.Create(t.Context(), s.secret("left", "v")))
	watches := func(want ...string) {
		t.Helper()
		s.secrets.mu.Lock()
		defer s.secrets.mu.Unlock()
		got := map[string]bool{}
		for key := range s.secrets.watched {
			got[key.Name] = true
		}
		if len(got) != len(want) {
			t.Fatalf("%v are watched; want %v", got, want)
		}
		for _, name := range want {
			if !got[name] {
				t.Fatalf("%v are watched; want %v", got, want)
			}
		}
	}
	s.reads("kept", "v")
	s.reads("left", "v")
	s.reads("missing", "")
	s.secrets.sweep()
	watches("kept", "left", "missing") // each concerns a user
	s.alone = "kept"
	ended := s.secrets.watch(types.NamespacedName{Namespace: s.ns, Name: "left"})
	s.secrets.sweep()
	watches("kept")
	s.do(s.api.Delete(t.Context(), s.secret("left", "")))
	if s.reads("left", ""); ended.last().UID == "" {
		t.Error("the watch that was ended continues")
	}
	watches("kept", "left")
}

func generating(t *testing.T, s *shelf) {
	if got, err := s.Generated(t.Context(), s.ns, "key"); got != nil || err != nil {
		t.Errorf("before it is made it is %v, %v; want nil", got, err)
	}
	s.do(s.api.Create(t.Context(), s.secret("key", "v")))
	s.woken("key")
	if got, err := s.Generated(t.Context(), s.ns, "key"); err != nil || got.UID == "" || string(got.Data["k"]) != "v" {
		t.Errorf("it is %v, %v; want the Secret with its metadata", got, err)
	}
}

// limiting : whoever names many Secrets, or large ones, has a message, and no one
// in another namespace notices.
func limiting(t *testing.T, s *shelf) {
	s.secrets.limits = Limits{Secrets: 3, Bytes: 4 << 10}
	refused := func(name string) {
		t.Helper()
		var limit *LimitError
		if _, err := s.Secret(t.Context(), s.ns, name); !errors.As(err, &limit) || limit.Name != name || limit.Namespace != s.ns {
			t.Fatalf("the error of %s is %v; want a LimitError", name, err)
		}
	}
	large := strings.Repeat("x", 3<<10)
	for name, value := range map[string]string{"a": "v", "b": "v", "c": "v", "d": "v", "large": large} {
		s.do(s.api.Create(t.Context(), s.secret(name, value)))
	}
	s.reads("a", "v")
	s.reads("large", large)
	s.reads("c", "v")
	refused("d")
	requests := len(s.asked())
	refused("d")
	if n := len(s.asked()); n != requests {
		t.Errorf("a Secret that is refused costs %d requests", n-requests)
	}
	elsewhere := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shelf-"}}
	s.do(s.api.Create(t.Context(), elsewhere))
	if _, err := s.SecretKey(t.Context(), elsewhere.Name, "none", "k"); !errors.As(err, new(*MissingError)) {
		t.Errorf("the error in another namespace is %v", err)
	}

	t.Log("One becomes larger than there is room")
	s.do(s.api.Update(t.Context(), s.secret("a", large)))
	s.woken("a")
	refused("a")

	t.Log("Room is made")
	s.alone = "d"
	s.secrets.sweep()
	s.woken("d")
	s.reads("d", "v")
	s.reads("a", large)
	if used := s.secrets.used[s.ns]; used.secrets != 2 || used.bytes < 3<<10 || used.bytes > 4<<10 {
		t.Errorf("the usage is %+v", used)
	}
}

// TestASecretThatIsReadDuringASweepStaysWatched : an object that refers to it may
// have appeared after the handlers were asked.
func TestASecretThatIsReadDuringASweepStaysWatched(t *testing.T) {
	s := newSecrets(t.Context(), kubernetes.NewForConfigOrDie(&rest.Config{Host: "127.0.0.1:1"}).CoreV1(), DefaultLimits)
	key := types.NamespacedName{Namespace: "ns", Name: "s"}
	asked := 0
	late := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		if asked++; asked == 1 {
			s.watch(key)
		}
		return nil
	})
	if err := s.source(late).Start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s.watch(key)
	if s.sweep(); s.watched[key] == nil {
		t.Error("it is watched no longer")
	}
	if s.sweep(); s.watched[key] != nil {
		t.Error("it is watched for ever")
	}
}

// TestWhatIsKnownOfASecret goes through what a reflector can meet.
func TestWhatIsKnownOfASecret(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("secrets"), "s", errors.New("no"))
	fault := errors.New("the API server is away")
	object := func(version string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", ResourceVersion: version}}
	}
	type step struct {
		do    func(*watched)
		read  string // what a reader then gets; not read if empty
		event string // reported meanwhile
	}
	sees := func(version string) func(*watched) {
		return func(w *watched) { _ = w.Replace([]any{object(version)}, "") }
	}
	sees0 := func(w *watched) { _ = w.Replace(nil, "") }
	fails := func(err error) func(*watched) { return func(w *watched) { w.note(err) } }
	for name, steps := range map[string][]step{
		"what is there at first is no news":          {{sees("1"), "1", ""}, {sees("1"), "1", ""}},
		"that nothing is there at first is no news":  {{sees0, "none", ""}, {sees0, "none", ""}},
		"it is made, changed and deleted":            {{sees0, "none", ""}, {sees("1"), "1", "none -> 1"}, {sees("2"), "2", "1 -> 2"}, {sees0, "none", "2 -> none"}},
		"what was known stays through a fault":       {{sees("1"), "1", ""}, {fails(fault), "1", ""}, {sees("1"), "1", ""}},
		"who got an error hears of the answer":       {{fails(fault), "error", ""}, {sees("1"), "1", "none -> 1"}},
		"also when the answer is that it is missing": {{fails(forbidden), "error", ""}, {sees0, "none", "none -> none"}},
		"who asked for nothing hears of nothing":     {{fails(fault), "", ""}, {sees("1"), "1", ""}},
		"a right that is lost is news, once": {
			{sees("1"), "1", ""}, {fails(forbidden), "error", "1 -> none"}, {fails(forbidden), "error", ""}, {sees("1"), "1", "none -> 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var told string
			w := &watched{fits: func(*watched, int) error { return nil }, answered: make(chan struct{}), tell: func(_ types.NamespacedName, before, now *corev1.Secret) {
				told += strings.Join([]string{shown(before, nil), shown(now, nil)}, " -> ")
			}}
			for i, s := range steps {
				told = ""
				if s.do(w); told != s.event {
					t.Errorf("step %d tells %q; want %q", i, told, s.event)
				}
				if s.read == "" {
					continue
				}
				if got := shown(w.get(t.Context())); got != s.read {
					t.Errorf("after step %d a reader gets %s; want %s", i, got, s.read)
				}
			}
		})
	}
}

func shown(secret *corev1.Secret, err error) string {
	switch {
	case err != nil:
		return "error"
	case secret == nil:
		return "none"
	}
	return secret.ResourceVersion
}
