package controllers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	openstackv1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	neutronv1 "github.com/edpm-operators/edpm-operators/apis/neutron/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/images"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakekube"
)

// defaultImages are what specs without images get.
var defaultImages = images.Defaults{NovaCompute: "compute:1", NovaLibvirt: "libvirt:1", NovaAnsibleEE: "nova-ee:1", AnsibleEE: "ee:1", OVNController: "ovn:1", OVNMetadataAgent: "metadata:1"}

// world is a namespace with a manager that looks after it, and pretend hosts.
type world struct {
	ns    string
	hosts *fakekube.Space
	opts  controllers.Options
	// jobs are those of a Nova, if somebody has them succeed.
	databases *databases
	*running
}

// patience is how long stories have computes wait for others that are expected.
const patience = 3 * time.Second

// quick makes everything that waits wait only a little.
func quick() controllers.Options {
	opts := controllers.Options{Engine: edpm.DefaultOptions(), Images: defaultImages}
	opts.Engine.Debounce, opts.Engine.Patience = 60*time.Millisecond, patience
	opts.Gather = 100 * time.Millisecond
	opts.Engine.Backoff = edpm.Backoff{Base: 300 * time.Millisecond, Max: time.Second}
	return opts
}

// newWorld makes an empty world; change can alter the options.
func newWorld(change ...func(*controllers.Options)) *world {
	GinkgoHelper()
	w := newPlace(change...)
	Expect(env.GrantSecrets(ctx, w.ns)).To(Succeed())
	w.running = startManager(w.ns, w.opts)
	return w
}

// newPlace makes a world whose manager has no right on Secrets, and is not
// started yet.
func newPlace(change ...func(*controllers.Options)) *world {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "story-"}}
	Expect(api.Create(ctx, ns)).To(Succeed())
	w := &world{ns: ns.Name, hosts: startHosts(ns.Name), opts: quick()}
	for _, c := range change {
		c(&w.opts)
	}
	DeferCleanup(func() { w.running.end() })
	return w
}

// startHosts starts the pretend hosts of a namespace, which are there until the story ends.
func startHosts(namespace string) *fakekube.Space {
	GinkgoHelper()
	background, stop := context.WithCancel(context.Background())
	DeferCleanup(stop)
	hosts, err := fakekube.Start(background, env.Config, api, namespace)
	Expect(err).NotTo(HaveOccurred())
	return hosts
}

// restart stops the manager and starts another one.
func (w *world) restart() {
	GinkgoHelper()
	w.running.end()
	w.running = startManager(w.ns, w.opts)
}

// newCloud makes a world with a key, a cell named cell1 and a role compute.
func newCloud(change ...func(*controllers.Options)) *world {
	GinkgoHelper()
	w := newWorld(change...)
	w.make(MakeSecret("ssh-key", w.ns, "ssh-privatekey", "key-1"))
	w.makeCell("cell1")
	return w
}

func (w *world) makeCell(name string) {
	GinkgoHelper()
	w.make(
		MakeSecret(name+"-password", w.ns, "ServicePassword", "password-1"),
		MakeSecret(name+"-bus", w.ns, "transport_url", "rabbit://user:pass@"+name+"/?ssl=1"),
		MakeCell(name, w.ns).Obj())
	w.ready(MakeCell(name, w.ns).Obj())
}

// role makes a role with one service of phase 0, which is enough for most.
func (w *world) role(name string) *RoleWrapper {
	return MakeRole(name, w.ns).SSHKey("ssh-key").Services("install-os")
}

func (w *world) make(objects ...client.Object) {
	GinkgoHelper()
	for _, o := range objects {
		Expect(api.Create(ctx, o)).To(Succeed())
	}
}

// nodeNames are n names.
func nodeNames(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("n%03d", i))
	}
	return names
}

// makeNodes makes n nodes of a role.
func (w *world) makeNodes(n int, role string) []string {
	GinkgoHelper()
	w.makeMoreNodes(0, n, role)
	return nodeNames(n)
}

// makeTogether makes n nodes and then their role, which wakes all of them at once:
// they come together however long the machine takes to make them.
func (w *world) makeTogether(role *dataplanev1.OpenStackDataPlaneRole, n int) []string {
	GinkgoHelper()
	names := w.makeNodes(n, role.Name)
	w.makeRoleOf(role, names...)
	return names
}

// makeRoleOf makes the role that nodes wait for.
func (w *world) makeRoleOf(role *dataplanev1.OpenStackDataPlaneRole, names ...string) {
	GinkgoHelper()
	for _, n := range names {
		w.halted(w.node(n), condition.InputReadyCondition, dataplanev1.RoleMissingReason)
	}
	w.make(role)
}

// makeMoreNodes makes the rest of n nodes of which the first are there.
func (w *world) makeMoreNodes(first, n int, role string) {
	GinkgoHelper()
	for _, name := range nodeNames(n)[first:] {
		w.make(MakeNode(name, w.ns).Role(role).Host("10.0.0." + name[1:]).Obj())
	}
}

// get reads the object again.
func get[T client.Object](g Gomega, obj T) T {
	g.Expect(api.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	return obj
}

func (w *world) node(name string) *dataplanev1.OpenStackDataPlaneNode {
	return MakeNode(name, w.ns).Obj()
}

func (w *world) compute(name string) *novav1.NovaExternalCompute {
	return MakeCompute(name, w.ns, "")
}

// change changes a stored object, again if somebody was faster.
func change[T client.Object](obj T, f func(T)) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		f(get(g, obj))
		g.Expect(api.Update(ctx, obj)).To(Succeed())
	}).Should(Succeed())
}

func annotate(obj client.Object, key, value string) {
	GinkgoHelper()
	change(obj, func(o client.Object) {
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = value
		o.SetAnnotations(annotations)
	})
}

func remove(objects ...client.Object) {
	GinkgoHelper()
	for _, o := range objects {
		Expect(api.Delete(ctx, o)).To(Succeed())
	}
}

// gone waits until the object no longer exists.
func gone(obj client.Object) {
	GinkgoHelper()
	Eventually(func() bool {
		return apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(obj), obj))
	}).Should(BeTrue(), "%T %s should go; it is %+v", obj, obj.GetName(), obj)
}

// judged is an object with conditions.
type judged interface {
	client.Object
	GetConditions() *condition.Conditions
}

// observed reports whether the status is that of the current spec.
func observed(obj judged) bool {
	switch o := obj.(type) {
	case *openstackv1.OpenStackControlPlane:
		return o.Status.ObservedGeneration == o.Generation
	case *glancev1.Glance:
		return o.Status.ObservedGeneration == o.Generation
	case *glancev1.GlanceAPI:
		return o.Status.ObservedGeneration == o.Generation
	case *novav1.NovaCompute:
		return o.Status.ObservedGeneration == o.Generation
	case *dataplanev1.OpenStackDataPlane:
		return o.Status.ObservedGeneration == o.Generation
	case *dataplanev1.OpenStackDataPlaneRole:
		return o.Status.ObservedGeneration == o.Generation
	case *dataplanev1.OpenStackDataPlaneNode:
		return o.Status.ObservedGeneration == o.Generation
	case *novav1.Nova:
		return o.Status.ObservedGeneration == o.Generation
	case *novav1.NovaCell:
		return o.Status.ObservedGeneration == o.Generation
	case *novav1.NovaExternalCompute:
		return o.Status.ObservedGeneration == o.Generation
	case *neutronv1.OVNController:
		return o.Status.ObservedGeneration == o.Generation
	case *neutronv1.OVNMetadataAgent:
		return o.Status.ObservedGeneration == o.Generation
	case *edpmv1.EDPMServiceClass:
		return o.Status.ObservedGeneration == o.Generation
	case *edpmv1.EDPMService:
		return o.Status.ObservedGeneration == o.Generation
	case *topologyv1.Topology:
		return o.Status.ObservedGeneration == o.Generation
	case *ansibleeev1.OpenStackAnsibleEE:
		return o.Status.ObservedGeneration == o.Generation
	}
	return false
}

// shown is the condition as status/reason: message, for the current spec.
func shown(g Gomega, obj judged, t condition.Type) string {
	get(g, obj)
	if !observed(obj) {
		return "not observed yet"
	}
	c := obj.GetConditions().Get(t)
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%s/%s/%s: %s", c.Status, c.Reason, c.Severity, c.Message)
}

// condition waits until a condition reads so: status/reason/severity, and the
// message has all the parts.
func (w *world) condition(obj judged, t condition.Type, want string, parts ...string) {
	GinkgoHelper()
	all := make([]OmegaMatcher, len(parts))
	for i, p := range parts {
		all[i] = ContainSubstring(p)
	}
	w.reads(obj, t, want, And(all...))
}

// reads waits until a condition reads so: status/reason/severity, and its message
// matches. What is shown for a moment only, as the number of an attempt, may be missed.
func (w *world) reads(obj judged, t condition.Type, want string, message OmegaMatcher) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		got := shown(g, obj, t)
		g.Expect(got).To(HavePrefix(want+":"), "%s of %s: %+v", t, obj.GetName(), obj.GetConditions())
		g.Expect(got).To(message)
	}).Should(Succeed())
}

// halted waits until a condition is False for the reason, and Ready mirrors it.
func (w *world) halted(obj judged, t condition.Type, reason condition.Reason, parts ...string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		got := shown(g, obj, t)
		g.Expect(got).To(HavePrefix("False/"+string(reason)+"/"), "%s of %s: %+v", t, obj.GetName(), obj.GetConditions())
		for _, p := range parts {
			g.Expect(got).To(ContainSubstring(p))
		}
		g.Expect(shown(g, obj, condition.ReadyCondition)).To(Equal(got), "Ready should mirror %s", t)
	}).Should(Succeed())
}

// ready waits until all objects are Ready for their current spec.
func (w *world) ready(objects ...judged) {
	GinkgoHelper()
	for _, o := range objects {
		Eventually(func(g Gomega) { isReady(g, o) }).WithTimeout(later).Should(Succeed())
	}
}

func (w *world) nodesReady(names ...string) {
	GinkgoHelper()
	for _, n := range names {
		w.ready(w.node(n))
	}
}

func (w *world) computesReady(names ...string) {
	GinkgoHelper()
	for _, n := range names {
		w.ready(w.compute(n))
	}
}

// runs are the runs of the world.
func (w *world) runs() []ansibleeev1.OpenStackAnsibleEE {
	GinkgoHelper()
	list := &ansibleeev1.OpenStackAnsibleEEList{}
	Expect(api.List(ctx, list, client.InNamespace(w.ns))).To(Succeed())
	return list.Items
}

// book is what happened on the hosts, as host/step with the number of times, and
// with the outcome when it was not ok.
func (w *world) book() map[string]int {
	counts := map[string]int{}
	for _, e := range w.hosts.Book() {
		key := e.Host + "/" + e.Step
		if e.Outcome != fakekube.OK {
			key += "/" + string(e.Outcome)
		}
		counts[key]++
	}
	return counts
}

// did are the executions of a step on a host.
func (w *world) did(host, step string) []fakekube.Execution {
	var out []fakekube.Execution
	for _, e := range w.hosts.Book() {
		if e.Host == host && e.Step == step {
			out = append(out, e)
		}
	}
	return out
}

// times is how often a step was run on a host.
func (w *world) times(host, step string) int { return len(w.did(host, step)) }

// steps are the steps of a host in the order in which they were run.
func (w *world) steps(host string) []string {
	var out []string
	for _, e := range w.hosts.Book() {
		if e.Host == host {
			out = append(out, e.Step)
		}
	}
	return out
}

// exactlyOnce expects that no host was configured twice for one hash of a step,
// and that no two runs were on one host at the same time.
func (w *world) exactlyOnce() {
	GinkgoHelper()
	counts := map[string][]string{}
	for _, e := range w.hosts.Book() {
		key := fmt.Sprintf("%s/%s/%s", e.Host, e.Step, e.Hash)
		counts[key] = append(counts[key], fmt.Sprintf("%s (%s)", e.Job, e.Outcome))
	}
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		Expect(counts[key]).To(HaveLen(1), "%s should run once", key)
	}
	Expect(w.hosts.Overlaps()).To(BeEmpty(), "a host should be in one run at a time")
}

// quiet waits until the manager has written nothing for longer than changes are gathered
// and computes are collected into a run, and no reconciliation is active. Requests to nova
// may continue.
func (w *world) quiet() {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		before := len(w.wire.since(0))
		time.Sleep(still + w.opts.Gather + w.opts.Engine.Debounce)
		g.Expect(w.wire.since(before)).To(BeEmpty())
		// A manager that starts sets the gauges of its controllers to zero, also those of
		// another manager that is in the middle of a reconciliation: they are below it then.
		g.Expect(activeWorkers()).To(BeNumerically("<=", 0))
	}).WithTimeout(later).Should(Succeed(), "the manager should come to rest")
}

// resync starts another manager, which looks at every object, and waits until it has come
// to rest.
func (w *world) resync() {
	GinkgoHelper()
	before := reconciliations()
	w.restart()
	Eventually(reconciliations).Should(BeNumerically(">", before))
	w.quiet()
}

// isReady reports an error unless the object is Ready for its current spec.
func isReady(g Gomega, obj judged) {
	g.Expect(shown(g, obj, condition.ReadyCondition)).To(HavePrefix("True/"), "%T %s: %+v", obj, obj.GetName(), obj.GetConditions())
}

// nothingRuns expects that no run is started for a while.
func (w *world) nothingRuns() {
	GinkgoHelper()
	before := len(w.hosts.Book())
	Consistently(func() int { return len(w.hosts.Book()) - before }).Should(BeZero(), "nothing should be run, but: %v", w.book())
}

// events are those of an object, as type reason: note.
func (w *world) events(name string) []string {
	GinkgoHelper()
	list := &corev1.EventList{}
	Expect(api.List(ctx, list, client.InNamespace(w.ns))).To(Succeed())
	var out []string
	for _, e := range list.Items {
		if e.InvolvedObject.Name == name {
			out = append(out, strings.Join([]string{e.Type, e.Reason, e.Message}, " "))
		}
	}
	return out
}

// repeated are the events of the objects that were emitted more than once.
func (w *world) repeated(names ...string) []string {
	GinkgoHelper()
	list := &corev1.EventList{}
	Expect(api.List(ctx, list, client.InNamespace(w.ns))).To(Succeed())
	told, out := map[string]int{}, []string{}
	for _, e := range list.Items {
		if !slices.Contains(names, e.InvolvedObject.Name) {
			continue
		}
		key := strings.Join([]string{e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Type, e.Reason}, " ")
		told[key]++
		if told[key] > 1 || e.Series != nil {
			out = append(out, key+": "+e.Message)
		}
	}
	return out
}

func metaKey(o client.Object) client.ObjectKey { return client.ObjectKeyFromObject(o) }

func jsonPatch(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }

func ownedBy(name, uid, apiVersion, kind string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(uid), Controller: ptr.To(true)}}
}

func asText(v any) string {
	GinkgoHelper()
	text, err := json.Marshal(v)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// backgroundDeletion is how kubectl deletes.
var backgroundDeletion = client.PropagationPolicy(metav1.DeletePropagationBackground)
