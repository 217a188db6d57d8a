// Package story has what the stories of all suites have in common that run controllers
// against an API server.
package story

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/edpm-operators/edpm-operators/test/envtest"
)

// later is for what takes many reconciliations, on a busy machine.
const later = 6 * time.Minute

var (
	// api is a client of an administrator: see [Connect].
	api client.WithWatch
	ctx = context.Background()
)

// Connect has all functions of the package use the API server, and returns a client of an
// administrator. Logs are shown when a story fails.
func Connect(env *envtest.Env, change ...func(*rest.Config)) client.Client {
	GinkgoHelper()
	ctrl.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(GinkgoWriter))))
	config := rest.CopyConfig(env.Config)
	config.QPS = -1
	for _, c := range change {
		c(config)
	}
	var err error
	api, err = client.NewWithWatch(config, client.Options{Scheme: env.Scheme, Mapper: env.Client.RESTMapper()})
	Expect(err).NotTo(HaveOccurred())
	return api
}

// NewNamespace makes a namespace and returns its name.
func NewNamespace() string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "story-"}}
	Expect(api.Create(ctx, ns)).To(Succeed())
	return ns.Name
}

// Get reads the object again.
func Get[T client.Object](g Gomega, obj T) T {
	g.Expect(api.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	return obj
}

// Each calls do with each object of the kind of the list in the namespace, when it is made
// and whenever it changes, until the story ends.
func Each[T client.Object](namespace string, list client.ObjectList, do func(context.Context, T), opts ...client.ListOption) {
	GinkgoHelper()
	background, stop := context.WithCancel(ctx)
	var ended sync.WaitGroup
	ended.Go(func() { // again, as the API server ends each watch after some time
		wait.UntilWithContext(background, func(ctx context.Context) {
			if w, err := api.Watch(ctx, list, append(opts, client.InNamespace(namespace))...); err == nil {
				follow(ctx, w, do)
			}
		}, 50*time.Millisecond)
	})
	DeferCleanup(func() { stop(); ended.Wait() })
}

func follow[T client.Object](ctx context.Context, w watch.Interface, do func(context.Context, T)) {
	defer w.Stop()
	for event := range w.ResultChan() {
		if obj, ok := event.Object.(T); ok && event.Type != watch.Deleted {
			do(ctx, obj)
		}
	}
}

// Change changes a stored object, again if another writer was faster.
func Change[T client.Object](obj T, f func(T)) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		f(Get(g, obj))
		g.Expect(api.Update(ctx, obj)).To(Succeed())
	}).Should(Succeed())
}

// Create makes the objects.
func Create(objects ...client.Object) {
	GinkgoHelper()
	for _, o := range objects {
		Expect(api.Create(ctx, o)).To(Succeed())
	}
}

// Apply creates or changes the objects of a YAML text in the namespace, as kubectl does.
func Apply(namespace, text string) {
	GinkgoHelper()
	for _, doc := range strings.Split(text, "\n---\n") {
		obj := &unstructured.Unstructured{}
		Expect(yaml.UnmarshalStrict([]byte(doc), &obj.Object)).To(Succeed(), doc)
		obj.SetNamespace(namespace)
		Expect(api.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("person"), client.ForceOwnership)).To(Succeed(), doc)
	}
}

// Remove deletes the objects.
func Remove(objects ...client.Object) {
	GinkgoHelper()
	for _, o := range objects {
		Expect(api.Delete(ctx, o)).To(Succeed())
	}
}

// Gone waits until the object no longer exists.
func Gone(obj client.Object) {
	GinkgoHelper()
	Eventually(func() bool {
		return apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(obj), obj))
	}).Should(BeTrue(), "%T %s should go; it is %+v", obj, obj.GetName(), obj)
}

// Judged is an object with conditions.
type Judged interface {
	client.Object
	GetConditions() *condition.Conditions
}

// IsObserved reports whether the status is that of the current spec.
func IsObserved(g Gomega, obj Judged) bool {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	g.Expect(err).NotTo(HaveOccurred())
	generation, _, err := unstructured.NestedInt64(fields, "status", "observedGeneration")
	g.Expect(err).NotTo(HaveOccurred())
	return generation == obj.GetGeneration()
}

// Shown reads the condition as status/reason/severity: message, for the current spec.
func Shown(g Gomega, obj Judged, t condition.Type) string {
	Get(g, obj)
	if !IsObserved(g, obj) {
		return "not observed yet"
	}
	c := obj.GetConditions().Get(t)
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%s/%s/%s: %s", c.Status, c.Reason, c.Severity, c.Message)
}

// Reads waits until a condition reads so: status/reason/severity, and its message
// matches. What is shown for a moment only, as the number of an attempt, may be missed.
func Reads(obj Judged, t condition.Type, want string, message OmegaMatcher) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		got := Shown(g, obj, t)
		g.Expect(got).To(HavePrefix(want+":"), "%s of %s: %+v", t, obj.GetName(), obj.GetConditions())
		g.Expect(got).To(message)
	}).Should(Succeed())
}

// Shows waits until a condition reads so: status/reason/severity, and the message has all
// the parts.
func Shows(obj Judged, t condition.Type, want string, parts ...string) {
	GinkgoHelper()
	all := make([]OmegaMatcher, len(parts))
	for i, p := range parts {
		all[i] = ContainSubstring(p)
	}
	Reads(obj, t, want, And(all...))
}

// Halted waits until a condition is False for the reason, and Ready mirrors it.
func Halted(obj Judged, t condition.Type, reason condition.Reason, parts ...string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		got := Shown(g, obj, t)
		g.Expect(got).To(HavePrefix("False/"+string(reason)+"/"), "%s of %s: %+v", t, obj.GetName(), obj.GetConditions())
		for _, p := range parts {
			g.Expect(got).To(ContainSubstring(p))
		}
		g.Expect(Shown(g, obj, condition.ReadyCondition)).To(Equal(got), "Ready should mirror %s", t)
	}).Should(Succeed())
}

// IsReady reports an error unless the object is Ready for its current spec.
func IsReady(g Gomega, obj Judged) {
	g.Expect(Shown(g, obj, condition.ReadyCondition)).To(HavePrefix("True/Ready/"), "%T %s: %+v", obj, obj.GetName(), obj.GetConditions())
}

// Ready waits until all objects are Ready for their current spec.
func Ready(objects ...Judged) {
	GinkgoHelper()
	for _, o := range objects {
		Eventually(func(g Gomega) { IsReady(g, o) }).WithTimeout(later).Should(Succeed())
	}
}

// Events are those of an object, as type reason note.
func Events(namespace, name string) []string {
	GinkgoHelper()
	var out []string
	for _, e := range ListEvents(namespace, name) {
		out = append(out, strings.Join([]string{e.Type, e.Reason, e.Message}, " "))
	}
	return out
}

// ListEvents returns the events of the objects of the names.
func ListEvents(namespace string, names ...string) []corev1.Event {
	GinkgoHelper()
	list := &corev1.EventList{}
	Expect(api.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	return slices.DeleteFunc(list.Items, func(e corev1.Event) bool { return !slices.Contains(names, e.InvolvedObject.Name) })
}
