package storagecluster_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

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
	"sigs.k8s.io/controller-runtime/pkg/client"
	crenvtest "sigs.k8s.io/controller-runtime/pkg/envtest"

	cephv1 "github.com/edpm-operators/edpm-operators/apis/ceph/v1"
	ocsv1 "github.com/edpm-operators/edpm-operators/apis/ocs/v1"
	"github.com/edpm-operators/edpm-operators/controllers"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/test/envtest"
	"github.com/edpm-operators/edpm-operators/test/story"
)

const (
	zone = corev1.LabelTopologyZone
	rack = ocsv1.RackLabel
)

// world is a namespace with a manager that looks after it. Nodes are everybody's:
// stories run one after the other, and each removes its own.
type world struct {
	ns   string
	wire *wire
	stop func() error
}

func newWorld() *world {
	GinkgoHelper()
	w := &world{ns: story.NewNamespace()}
	w.class("gp2")
	w.start()
	DeferCleanup(func() {
		w.end()
		Expect(api.DeleteAllOf(ctx, &corev1.Node{})).To(Succeed())
		Expect(api.DeleteAllOf(ctx, &storagev1.StorageClass{})).To(Succeed())
	})
	return w
}

// start starts a manager with the operator ocs.
func (w *world) start() {
	GinkgoHelper()
	w.wire = &wire{}
	config := rest.CopyConfig(managerConfig)
	config.Wrap(w.wire.over)
	operators := []string{"ocs"}
	Expect(controllers.CheckOperators(operators)).To(Succeed())
	w.stop = story.StartManager(config, w.ns, controllers.Options{Operators: operators, Engine: edpm.DefaultOptions(), Gather: gather})
}

func (w *world) end() { GinkgoHelper(); Expect(w.stop()).To(Succeed()) }

// restart stops the manager and starts another one.
func (w *world) restart() {
	GinkgoHelper()
	w.end()
	w.start()
}

// wire notes what a manager writes.
type wire struct {
	story.Writes
	mu sync.Mutex
	// first is done once, before the first request that is of its kind.
	kind  func(*http.Request) bool
	first func()
}

// just does something once, right before the next request of a kind gets to the API
// server: what the manager has read is old by then.
func (w *wire) just(kind func(*http.Request) bool, first func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kind, w.first = kind, first
}

// due returns what is to be done before a request, once.
func (w *wire) due(r *http.Request) func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first == nil || !w.kind(r) {
		return func() {}
	}
	defer func() { w.first = nil }()
	return w.first
}

func (w *wire) over(next http.RoundTripper) http.RoundTripper {
	return story.RoundTripper(func(r *http.Request) (*http.Response, error) {
		w.Note(r)
		w.due(r)()
		return next.RoundTrip(r)
	})
}

func (w *wire) all() []string { return w.Since(0) }

func (w *world) quiet() { GinkgoHelper(); w.wire.Quiet(still) }

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
			fresh, err := client.New(env.Config, client.Options{Scheme: env.Scheme}) // whose mapper does not have the kind
			Expect(err).NotTo(HaveOccurred())
			return meta.IsNoMatchError(fresh.Get(ctx, client.ObjectKey{Namespace: "x", Name: "x"}, (&world{}).ceph()))
		}).Should(BeTrue(), "the kind should go")
	}
	rook = false
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

func (w *world) apply(text string) { GinkgoHelper(); story.Apply(w.ns, text) }

// What stories say most often, in short.
func get[T client.Object](g Gomega, obj T) T { return story.Get(g, obj) }

func change[T client.Object](obj T, f func(T)) { GinkgoHelper(); story.Change(obj, f) }

var shows = story.Shows

func (w *world) events() []string { GinkgoHelper(); return story.Events(w.ns, "ocs") }

// wrong waits until a condition is False for the reason and severity, and Ready mirrors it.
func wrong(c *ocsv1.StorageCluster, t condition.Type, want string, parts ...string) {
	GinkgoHelper()
	shows(c, t, "False/"+want, parts...)
	reason, _, _ := strings.Cut(want, "/")
	story.Halted(c, t, condition.Reason(reason))
}

func ready(c *ocsv1.StorageCluster) { GinkgoHelper(); story.Ready(c) }

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
