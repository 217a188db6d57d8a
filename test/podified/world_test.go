package podified_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	k8scorev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	openstackv1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/internal/cache"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/images"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
	"github.com/edpm-operators/edpm-operators/test/story"
	"github.com/edpm-operators/edpm-operators/webhooks"
)

// wire notes what the manager writes, without events and what it only tries.
var wire = &story.Writes{}

func noteWrites(next http.RoundTripper) http.RoundTripper {
	return story.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if !strings.Contains(r.URL.Path, "/events") && !r.URL.Query().Has("dryRun") {
			wire.Note(r)
		}
		return next.RoundTrip(r)
	})
}

// startManager starts a manager with everything, wired as cmd/manager does it.
func startManager() {
	GinkgoHelper()
	config := env.AsManager(GinkgoT())
	config.Wrap(noteWrites)
	options := env.ManagerOptions()
	options.Cache = cache.Options(nil)
	options.Client = cache.ClientOptions()
	options.Controller.SkipNameValidation = ptr.To(true)
	mgr, err := ctrl.NewManager(config, options)
	Expect(err).NotTo(HaveOccurred())
	background, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	Expect(controllers.Setup(background, mgr, controllers.Options{Engine: edpm.DefaultOptions(), Gather: gather, Images: images.Defaults{
		GlanceAPI: "glance:1", NovaConductor: "conductor:1", NovaCompute: "compute:1", NovaAPI: "api:1", NovaScheduler: "scheduler:1", NovaNoVNC: "novnc:1",
	}, Services: computeservice.Options{Interval: time.Second, Soon: 200 * time.Millisecond, Timeout: 5 * time.Second, Loopback: true}})).To(Succeed())
	Expect(webhooks.SetupAll(mgr, controllers.Operators)).To(Succeed())
	env.StartManager(GinkgoT(), mgr)
}

// world is a namespace.
type world string

func newWorld() world {
	GinkgoHelper()
	w := world(story.NewNamespace())
	Expect(env.GrantSecrets(ctx, string(w))).To(Succeed())
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

// What stories say most often, in short.
var shows, ready = story.Shows, story.Ready

func get[T client.Object](g Gomega, obj T) T { return story.Get(g, obj) }

func change[T client.Object](obj T, f func(T)) { GinkgoHelper(); story.Change(obj, f) }

func quiet() { GinkgoHelper(); wire.Quiet(still) }

func (w world) apply(text string) { GinkgoHelper(); story.Apply(string(w), text) }

func (w world) events(name string) []string { GinkgoHelper(); return story.Events(string(w), name) }

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
