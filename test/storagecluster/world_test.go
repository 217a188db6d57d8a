package storagecluster_test

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
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crenvtest "sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

const (
	zone = corev1.LabelTopologyZone
	rack = ocsv1.RackLabel
)

// world is a namespace with a manager that looks after it. Nodes are everybody's:
// stories run one after the other, and each removes its own.
type world struct {
	ns   string
	wire *writes
	stop func()
}

func newWorld() *world {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "story-"}}
	Expect(api.Create(ctx, ns)).To(Succeed())
	w := &world{ns: ns.Name}
	w.class("gp2")
	w.start()
	DeferCleanup(func() {
		w.stop()
		Expect(api.DeleteAllOf(ctx, &corev1.Node{})).To(Succeed())
		Expect(api.DeleteAllOf(ctx, &storagev1.StorageClass{})).To(Succeed())
	})
	return w
}

// start starts a manager with the operator ocs, wired as cmd/manager does it and with
// the rights that config/overlays/ocs gives it.
func (w *world) start() {
	GinkgoHelper()
	w.wire = &writes{}
	config := rest.CopyConfig(env.Config)
	config.QPS, config.Impersonate = -1, rest.ImpersonationConfig{UserName: manager}
	config.Wrap(w.wire.over)
	operators := []string{"ocs"}
	Expect(controllers.CheckOperators(operators)).To(Succeed())
	held := controllers.CacheOptions(operators)
	held.DefaultNamespaces = map[string]cache.Config{w.ns: {}}
	options := ctrl.Options{Scheme: env.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Cache: held, GracefulShutdownTimeout: ptr.To(10 * time.Second)}
	options.Controller.SkipNameValidation = ptr.To(true)
	mgr, err := ctrl.NewManager(config, options)
	Expect(err).NotTo(HaveOccurred())
	background, stop := context.WithCancel(context.Background())
	Expect(controllers.Setup(background, mgr, controllers.Options{Operators: operators, Engine: edpm.DefaultOptions(), Gather: gather})).To(Succeed())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(background) }()
	w.stop = sync.OnceFunc(func() {
		GinkgoHelper()
		stop()
		Expect(<-done).To(Succeed(), "the manager should run until it is stopped")
	})
	Expect(mgr.GetCache().WaitForCacheSync(background)).To(BeTrue())
}

// writes notes what a manager writes.
type writes struct {
	mu   sync.Mutex
	seen []string
	// first is done once, before the first request that is of its kind.
	kind  func(*http.Request) bool
	first func()
}

// just does something once, right before the next request of a kind gets to the API
// server: what the manager has read is old by then.
func (w *writes) just(kind func(*http.Request) bool, first func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kind, w.first = kind, first
}

// due returns what is to be done before a request, once.
func (w *writes) due(r *http.Request) func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first == nil || !w.kind(r) {
		return func() {}
	}
	defer func() { w.first = nil }()
	return w.first
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (w *writes) over(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet {
			w.mu.Lock()
			w.seen = append(w.seen, r.Method+" "+r.URL.Path)
			w.mu.Unlock()
		}
		w.due(r)()
		return next.RoundTrip(r)
	})
}

func (w *writes) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

// quiet waits until the manager has written nothing for a while.
func (w *world) quiet() {
	GinkgoHelper()
	Eventually(func() int {
		before := len(w.wire.all())
		time.Sleep(still)
		return len(w.wire.all()) - before
	}).Should(BeZero(), "the manager should come to rest")
}

// rook reports whether the kind CephCluster is there.
var rook bool

// withRook installs the definition of CephCluster, and withoutRook removes it.
func withRook() {
	GinkgoHelper()
	if !rook {
		_, err := crenvtest.InstallCRDs(env.Config, crenvtest.CRDInstallOptions{Paths: []string{envtest.CephClusterCRD()}, MaxTime: soon})
		Expect(err).NotTo(HaveOccurred())
	}
	rook = true
}

func withoutRook() {
	GinkgoHelper()
	if rook {
		Expect(crenvtest.UninstallCRDs(env.Config, crenvtest.CRDInstallOptions{Paths: []string{envtest.CephClusterCRD()}})).To(Succeed())
		Eventually(func() bool {
			return meta.IsNoMatchError(newClient().Get(ctx, client.ObjectKey{Namespace: "x", Name: "x"}, (&world{}).ceph()))
		}).
			Should(BeTrue(), "the kind should go")
	}
	rook = false
}

func newClient() client.Client {
	GinkgoHelper()
	config := rest.CopyConfig(env.Config)
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: env.Scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// nodes makes storage nodes, one for each text: name key=value ...
func (w *world) nodes(texts ...string) {
	GinkgoHelper()
	for _, text := range texts {
		fields := strings.Fields(text)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fields[0], Labels: map[string]string{corev1.LabelHostname: fields[0], ocsv1.StorageNodeLabel: ""}}}
		for _, label := range fields[1:] {
			key, value, _ := strings.Cut(label, "=")
			node.Labels[key] = value
		}
		room := corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110"),
		}
		Expect(api.Create(ctx, node)).To(Succeed())
		node.Status.Allocatable, node.Status.Capacity = room, room
		Expect(api.Status().Update(ctx, node)).To(Succeed())
		untaint(node.Name) // admission takes a new node for one that is not ready
	}
}

func untaint(name string) {
	GinkgoHelper()
	change(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(n *corev1.Node) { n.Spec.Taints = nil })
}

// zones makes a node in each of n zones.
func (w *world) zones(n int) {
	GinkgoHelper()
	for i := range n {
		w.nodes(fmt.Sprintf("n%d %s=z%d", i, zone, i))
	}
}

func label(node, key, value string) {
	GinkgoHelper()
	change(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, func(n *corev1.Node) {
		if delete(n.Labels, key); value != "" {
			n.Labels[key] = value
		}
	})
}

// class makes a storage class that makes volumes where a pod is.
func (w *world) class(name string) {
	GinkgoHelper()
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "ebs.csi.aws.com", VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)}
	Expect(client.IgnoreAlreadyExists(api.Create(ctx, class))).To(Succeed())
}

// set is a device set in YAML, with more fields if given.
func set(name string, count, replica int, more ...string) string {
	text := fmt.Sprintf("  - name: %s\n    count: %d\n", name, count)
	if replica > 0 {
		text += fmt.Sprintf("    replica: %d\n", replica)
	}
	for _, m := range more {
		text += "    " + m + "\n"
	}
	return text + `    portable: true
    dataPVCTemplate:
      spec:
        storageClassName: gp2
        accessModes: [ReadWriteOnce]
        volumeMode: Block
        resources: {requests: {storage: 512Gi}}
`
}

// cluster applies the StorageCluster ocs with the sets and more of the spec.
func (w *world) cluster(sets []string, more ...string) *ocsv1.StorageCluster {
	GinkgoHelper()
	text := "apiVersion: ocs.openshift.io/v1\nkind: StorageCluster\nmetadata: {name: ocs}\nspec:\n"
	for _, m := range more {
		text += "  " + m + "\n"
	}
	if len(sets) > 0 {
		text += "  storageDeviceSets:\n" + strings.Join(sets, "")
	}
	w.apply(text)
	return &ocsv1.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "ocs"}}
}

// apply creates or changes an object, as kubectl does.
func (w *world) apply(text string) {
	GinkgoHelper()
	obj := &unstructured.Unstructured{}
	Expect(yaml.UnmarshalStrict([]byte(text), &obj.Object)).To(Succeed(), text)
	obj.SetNamespace(w.ns)
	Expect(api.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("person"), client.ForceOwnership)).To(Succeed(), text)
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

// shows waits until a condition reads so for the current spec, as
// status/reason/severity, and its message has all the parts.
func shows(c *ocsv1.StorageCluster, t condition.Type, want string, parts ...string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		get(g, c)
		g.Expect(c.Status.ObservedGeneration).To(Equal(c.Generation))
		got := c.Status.Conditions.Get(t)
		g.Expect(got).NotTo(BeNil(), "%s: %+v", t, c.Status.Conditions)
		g.Expect(fmt.Sprintf("%s/%s/%s", got.Status, got.Reason, got.Severity)).To(Equal(want), "%s: %+v", t, c.Status.Conditions)
		for _, p := range parts {
			g.Expect(got.Message).To(ContainSubstring(p))
		}
	}).Should(Succeed())
}

// wrong waits until a condition is False for the reason, and Ready mirrors it.
func wrong(c *ocsv1.StorageCluster, t condition.Type, want string, parts ...string) {
	GinkgoHelper()
	shows(c, t, "False/"+want, parts...)
	Eventually(func(g Gomega) {
		ready := get(g, c).Status.Conditions.Get(condition.ReadyCondition)
		g.Expect(ready.Message).To(Equal(c.Status.Conditions.Get(t).Message), "Ready should mirror %s", t)
		g.Expect(ready.Status).To(Equal(corev1.ConditionFalse))
	}).Should(Succeed())
}

func ready(c *ocsv1.StorageCluster) {
	GinkgoHelper()
	shows(c, condition.ReadyCondition, "True/Ready/")
}

// ceph is the CephCluster as it is stored.
func (w *world) ceph() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(cephv1.GroupVersion.WithKind("CephCluster"))
	u.SetNamespace(w.ns)
	u.SetName("ocs-cephcluster")
	return u
}

// sets are the device sets of the CephCluster.
func (w *world) sets(g Gomega) []cephv1.StorageClassDeviceSet {
	ceph := &cephv1.CephCluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "ocs-cephcluster"}}
	return get(g, ceph).Spec.Storage.StorageClassDeviceSets
}

// counts are the device sets of the CephCluster as name=count.
func (w *world) counts() []string {
	GinkgoHelper()
	var texts []string
	for _, s := range w.sets(Default) {
		texts = append(texts, fmt.Sprintf("%s=%d", s.Name, s.Count))
	}
	return texts
}

// summary reports each constraint: key/whenUnsatisfiable.
func summary(p cephv1.Placement) []string {
	var texts []string
	for _, c := range p.TopologySpreadConstraints {
		texts = append(texts, c.TopologyKey+"/"+string(c.WhenUnsatisfiable))
	}
	return texts
}

// osd makes the claim and the daemon of an OSD, as Rook does.
func (w *world) osd(id int, set, node string) {
	GinkgoHelper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: fmt.Sprintf("%s-data-%dabcde", set, id), Labels: map[string]string{
		cephv1.DeviceSetLabel: set, cephv1.SetIndexLabel: fmt.Sprint(id), cephv1.DeviceSetPVCIDLabel: fmt.Sprintf("%s-data-%d", set, id),
	}}}
	claim.Spec = corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: ptr.To("gp2"),
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("512Gi")}},
	}
	Expect(api.Create(ctx, claim)).To(Succeed())
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, GenerateName: "rook-ceph-osd-", Labels: map[string]string{
		cephv1.AppLabel: cephv1.AppOSD, cephv1.DeviceSetLabel: set, cephv1.PVCLabel: claim.Name, cephv1.OSDIDLabel: fmt.Sprint(id),
	}}}
	pod.Spec = corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "osd", Image: "ceph"}}}
	Expect(api.Create(ctx, pod)).To(Succeed())
}

// events are those of the StorageCluster, as type reason note.
func (w *world) events() []string {
	list := &corev1.EventList{}
	Expect(api.List(ctx, list, client.InNamespace(w.ns))).To(Succeed())
	var out []string
	for _, e := range list.Items {
		out = append(out, strings.Join([]string{e.Type, e.Reason, e.Message}, " "))
	}
	return out
}
