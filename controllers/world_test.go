package controllers_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"golang.org/x/crypto/ssh"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/images"
	. "github.com/edpm-operators/edpm-operators/test/builders"
	"github.com/edpm-operators/edpm-operators/test/fakekube"
	"github.com/edpm-operators/edpm-operators/test/story"
)

// defaultImages are what specs without images get.
var defaultImages = images.Defaults{NovaCompute: "compute:1", NovaLibvirt: "libvirt:1", NovaAnsibleEE: "nova-ee:1", AnsibleEE: "ee:1", OVNController: "ovn:1", OVNMetadataAgent: "metadata:1"}

// world is a namespace with a manager that looks after it, and pretend hosts.
type world struct {
	ns    string
	hosts *fakekube.Space
	opts  controllers.Options
	// jobs are those of a Nova, if a user has them succeed.
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
	ns := story.NewNamespace()
	w := &world{ns: ns, hosts: startHosts(ns), opts: quick()}
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

func (w *world) make(objects ...client.Object) { GinkgoHelper(); story.Create(objects...) }

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

// makePeers is makeMoreNodes for computes that can move guests to one another: it takes addresses,
// and for those that are shut off host keys. They have to run before they are awaited.
func (w *world) makePeers(first, n int, role string) {
	GinkgoHelper()
	for i, name := range nodeNames(n)[first:] {
		w.hosts.Show(name, hostKey(name))
		w.make(MakeNode(name, w.ns).Role(role).Host(fmt.Sprintf("10.0.0.%d", first+i+1)).Obj())
	}
}

// hostKey is a public key that only the host of a name has.
func hostKey(host string) string {
	GinkgoHelper()
	seed := sha256.Sum256([]byte(host))
	key, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed(seed[:]).Public())
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// peersReady waits until computes are Ready, and can move guests.
func (w *world) peersReady(names ...string) {
	GinkgoHelper()
	w.computesReady(names...)
	for _, name := range names {
		w.condition(w.compute(name), novav1.LiveMigrationReadyCondition, "True/Ready/")
	}
}

// makeMoreNodes makes the rest of n nodes of which the first are there.
func (w *world) makeMoreNodes(first, n int, role string) {
	GinkgoHelper()
	for _, name := range nodeNames(n)[first:] {
		w.make(MakeNode(name, w.ns).Role(role).Host("10.0.0." + name[1:]).Obj())
	}
}

func (w *world) node(name string) *dataplanev1.OpenStackDataPlaneNode {
	return MakeNode(name, w.ns).Obj()
}

func (w *world) compute(name string) *novav1.NovaExternalCompute {
	return MakeCompute(name, w.ns, "")
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

// What stories say most often, in short.
type judged = story.Judged

var remove, gone, shown, isReady = story.Remove, story.Gone, story.Shown, story.IsReady

func get[T client.Object](g Gomega, obj T) T { return story.Get(g, obj) }

func change[T client.Object](obj T, f func(T)) { GinkgoHelper(); story.Change(obj, f) }

func (w *world) ready(objects ...judged) { GinkgoHelper(); story.Ready(objects...) }

func (w *world) events(name string) []string { GinkgoHelper(); return story.Events(w.ns, name) }

func (w *world) condition(obj judged, t condition.Type, want string, parts ...string) {
	GinkgoHelper()
	story.Shows(obj, t, want, parts...)
}

func (w *world) reads(obj judged, t condition.Type, want string, message OmegaMatcher) {
	GinkgoHelper()
	story.Reads(obj, t, want, message)
}

func (w *world) halted(obj judged, t condition.Type, reason condition.Reason, parts ...string) {
	GinkgoHelper()
	story.Halted(obj, t, reason, parts...)
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
		if e.Check {
			continue
		}
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
	w.wire.Quiet(still+w.opts.Gather+w.opts.Engine.Debounce, func(g Gomega) {
		// A manager that starts sets the gauges of its controllers to zero, also those of
		// another manager that is in the middle of a reconciliation: they are below it then.
		g.Expect(activeWorkers()).To(BeNumerically("<=", 0))
	})
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

// nothingRuns expects that no run is started for a while.
func (w *world) nothingRuns() {
	GinkgoHelper()
	before := len(w.hosts.Book())
	Consistently(func() int { return len(w.hosts.Book()) - before }).Should(BeZero(), "nothing should be run, but: %v", w.book())
}

// repeated are the events of the objects that were emitted more than once.
func (w *world) repeated(names ...string) []string {
	GinkgoHelper()
	told, out := map[string]int{}, []string{}
	for _, e := range story.ListEvents(w.ns, names...) {
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
