package podified_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	appsv1 "k8s.io/api/apps/v1"
	k8scorev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	openstackv1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/webhooks"
)

// wire notes what the manager writes.
var wire = &writes{}

type writes struct {
	mu   sync.Mutex
	seen []string
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (w *writes) over(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/events") && !r.URL.Query().Has("dryRun") {
			w.mu.Lock()
			w.seen = append(w.seen, r.Method+" "+r.URL.Path)
			w.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

// mark is where the writes are now; since returns those after a mark that have
// all the parts.
func (w *writes) mark() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.seen)
}

func (w *writes) since(mark int, parts ...string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.seen[mark:]), func(s string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(s, p) })
	})
}

// startManager starts a manager with everything, wired as cmd/manager does it.
func startManager() {
	GinkgoHelper()
	config := env.AsManager(GinkgoT())
	config.Wrap(wire.over)
	options := env.ManagerOptions()
	options.Cache = controllers.CacheOptions(nil)
	options.Client = controllers.ClientOptions()
	options.Controller.SkipNameValidation = ptr.To(true)
	mgr, err := ctrl.NewManager(config, options)
	Expect(err).NotTo(HaveOccurred())
	background, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	Expect(controllers.Setup(background, mgr, controllers.Options{Engine: edpm.DefaultOptions(), Gather: gather, Images: images.Defaults{
		GlanceAPI: "glance:1", NovaConductor: "conductor:1", NovaCompute: "compute:1", NovaAPI: "api:1", NovaScheduler: "scheduler:1", NovaNoVNC: "novnc:1",
	}})).To(Succeed())
	Expect(webhooks.SetupAll(mgr, controllers.Operators)).To(Succeed())
	env.StartManager(GinkgoT(), mgr)
}

// world is a namespace.
type world string

func newWorld() world {
	GinkgoHelper()
	ns := &k8scorev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "story-"}}
	Expect(api.Create(ctx, ns)).To(Succeed())
	Expect(env.GrantSecrets(ctx, ns.Name)).To(Succeed())
	w := world(ns.Name)
	DeferCleanup(w.clear)
	return w
}

// clear removes all that takes room, so that stories do not meet.
func (w world) clear() {
	for _, list := range []client.Object{&openstackv1.OpenStackControlPlane{}, &glancev1.Glance{}, &glancev1.GlanceAPI{}, &novav1.Nova{}, &novav1.NovaCell{}, &novav1.NovaCompute{}} {
		Expect(api.DeleteAllOf(ctx, list, client.InNamespace(string(w)))).To(Succeed())
	}
	Eventually(func(g Gomega) {
		g.Expect(w.pods()).To(BeEmpty())
	}).Should(Succeed(), "the pods should go with their owners")
}

// apply creates or changes the objects of a YAML text, as kubectl does.
func (w world) apply(text string) {
	GinkgoHelper()
	for _, doc := range strings.Split(text, "\n---\n") {
		obj, err := w.parse(doc)
		Expect(err).NotTo(HaveOccurred(), doc)
		Expect(api.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("person"), client.ForceOwnership)).To(Succeed(), doc)
	}
}

func (w world) parse(doc string) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	err := yaml.UnmarshalStrict([]byte(doc), &obj.Object)
	obj.SetNamespace(string(w))
	return obj, err
}

func get[T client.Object](g Gomega, obj T) T {
	g.Expect(api.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	return obj
}

// change changes a stored object, again if somebody was faster.
func change[T client.Object](obj T, f func(T)) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		f(get(g, obj))
		g.Expect(api.Update(ctx, obj)).To(Succeed())
	}).Should(Succeed())
}

func (w world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: string(w), Name: name}
}

func (w world) api(name string) *glancev1.GlanceAPI {
	return &glancev1.GlanceAPI{ObjectMeta: w.meta(name)}
}

func (w world) glance() *glancev1.Glance { return &glancev1.Glance{ObjectMeta: w.meta("glance")} }

func (w world) topology(name string) *topologyv1.Topology {
	return &topologyv1.Topology{ObjectMeta: w.meta(name)}
}

// users are the consumers that a Topology shows, as kind/name.
func (w world) users(name string) []string {
	GinkgoHelper()
	var users []string
	for _, c := range get(Default, w.topology(name)).Status.Consumers {
		users = append(users, c.Kind+"/"+c.Name)
	}
	return users
}

func (w world) set(name string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: w.meta(name)}
}

// pods are the pods of the services of the namespace as name@zone, by name; a pod without a node
// is name@.
func (w world) pods() []string {
	list := &k8scorev1.PodList{}
	Expect(api.List(ctx, list, client.InNamespace(string(w)))).To(Succeed())
	var out []string
	for _, pod := range list.Items {
		if pod.Labels["app"] != "openstack-job" {
			out = append(out, pod.Name+"@"+zones[pod.Spec.NodeName])
		}
	}
	slices.Sort(out)
	return out
}

// pod reads one pod.
func (w world) pod(name string) *k8scorev1.Pod {
	GinkgoHelper()
	pod := &k8scorev1.Pod{ObjectMeta: w.meta(name)}
	Expect(api.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
	return pod
}

// births are the UIDs of the pods of services, by name: another one is another pod.
func (w world) births() map[string]string {
	list := &k8scorev1.PodList{}
	Expect(api.List(ctx, list, client.InNamespace(string(w)))).To(Succeed())
	out := map[string]string{}
	for _, pod := range list.Items {
		if pod.Labels["app"] != "openstack-job" {
			out[pod.Name] = string(pod.UID)
		}
	}
	return out
}

// perZone counts pods by zone.
func (w world) perZone(prefix string) map[string]int {
	counts := map[string]int{}
	for _, pod := range w.pods() {
		if name, zone, _ := strings.Cut(pod, "@"); strings.HasPrefix(name, prefix) {
			counts[zone]++
		}
	}
	return counts
}

// judged is an object with conditions.
type judged interface {
	client.Object
	GetConditions() *condition.Conditions
}

// shows waits until a condition reads so, as status/reason/severity, and its
// message has all the parts.
func shows(obj judged, t condition.Type, want string, parts ...string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		c := get(g, obj).GetConditions().Get(t)
		g.Expect(c).NotTo(BeNil(), "%s of %s: %+v", t, obj.GetName(), obj.GetConditions())
		g.Expect(fmt.Sprintf("%s/%s/%s", c.Status, c.Reason, c.Severity)).To(Equal(want), "%s of %s: %+v", t, obj.GetName(), obj.GetConditions())
		for _, p := range parts {
			g.Expect(c.Message).To(ContainSubstring(p))
		}
	}).Should(Succeed())
}

// ready waits until the objects are Ready for their current spec.
func ready(objects ...interface {
	judged
	IsReady() bool
}) {
	GinkgoHelper()
	for _, o := range objects {
		Eventually(func(g Gomega) {
			g.Expect(get(g, o).(interface{ IsReady() bool }).IsReady()).To(BeTrue(), "%T %s: %+v", o, o.GetName(), o.GetConditions())
		}).Should(Succeed())
	}
}

// quiet waits until the manager has written nothing for a while.
func quiet() {
	GinkgoHelper()
	Eventually(func() []string {
		before := wire.mark()
		time.Sleep(still)
		return wire.since(before)
	}).WithTimeout(3*time.Minute).Should(BeEmpty(), "the manager should come to rest")
}

// events are those of an object, as type reason: note.
func (w world) events(name string) []string {
	list := &k8scorev1.EventList{}
	Expect(api.List(ctx, list, client.InNamespace(string(w)))).To(Succeed())
	var out []string
	for _, e := range list.Items {
		if e.InvolvedObject.Name == name {
			out = append(out, strings.Join([]string{e.Type, e.Reason, e.Message}, " "))
		}
	}
	return out
}
