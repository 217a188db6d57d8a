package placement

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// manyDraws show everything that is drawn: the rarest about 15 times.
const manyDraws = 2000

// maxDiffer is after how many differences no more draws are compared.
const maxDiffer = 10

var (
	drawsFlag = flag.Int("draws", 100, "how many random clusters are compared with kube-scheduler")
	seedFlag  = flag.Uint64("seed", 1, "the seed that the random clusters are drawn from")
	drawFlag  = flag.Int("draw", -1, "compare only the draw of this number")
	drawsOf   = flag.String("generator", "all", "where the clusters come from: rules, shapes, retained, or all by turns")
)

// drawn returns the random cluster of a number.
func drawn(number int) *draw {
	generators := []string{"rules", "shapes", "retained"}
	of := *drawsOf
	if of == "all" {
		of = generators[number%len(generators)]
	}
	switch of {
	case "shapes":
		return newShapes(*seedFlag, number)
	case "retained":
		return newRetained(*seedFlag, number)
	}
	return newDraw(*seedFlag, number)
}

// TestAgreesWithKubeScheduler draws random clusters, loads each into a real API
// server with a real kube-scheduler, and rolls a random StatefulSet out as the
// StatefulSet controller does: all missing pods at once. Of each pod both must say the
// same: the same message, with the same reasons and counts, if it fits nowhere or is
// refused; and if it fits, one of the nodes that score highest by the prediction, where
// kube-scheduler put the ones before. At last what became of the pods must be one of the
// ways that Predict has played.
func TestAgreesWithKubeScheduler(t *testing.T) {
	c := startCluster(t)
	seen := map[string]int{}
	differ := 0
	first, end := 0, *drawsFlag
	if *drawFlag >= 0 {
		first, end = *drawFlag, *drawFlag+1
	}
	for i := first; i < end; i++ {
		if differ == maxDiffer {
			t.Fatal("No more are compared.")
		}
		if err := c.compare(drawn(i), seen); err != nil {
			differ++
			t.Errorf("draw %d: %v\nTo run it alone: go test ./internal/placement -run %s -seed %d -generator %s -draw %d", i, err, t.Name(), *seedFlag, *drawsOf, i)
		}
	}
	t.Logf("what kube-scheduler said: %v", seen)
	if *drawFlag < 0 && *drawsFlag >= manyDraws {
		requireVariety(t, seen)
	}
}

// requireVariety fails if the draws do not show what they should.
func requireVariety(t *testing.T, seen map[string]int) {
	t.Helper()
	for _, reason := range []string{
		"fits", "promised a volume", "unavailable pods that are replaced",
		"didn't match pod topology spread constraints", "(missing required label)", "didn't match PersistentVolume's node affinity",
		"didn't find available persistent volumes to bind", "unbound immediate PersistentVolumeClaims", "untolerated taint", "were unschedulable",
		"Pod's node affinity/selector", "didn't satisfy plugin", "match pod affinity rules", "match pod anti-affinity rules", "existing pods anti-affinity rules",
		"Insufficient cpu", "Too many pods", "free ports", "exceed max volume count", "CSI driver is not installed",
		"refused: exceeded quota", "refused: per Container",
	} {
		n := 0
		for said, times := range seen {
			if strings.Contains(said, reason) {
				n += times
			}
		}
		if n < 5 {
			t.Errorf("the draws show %q only %d times", reason, n)
		}
	}
}

// cluster is a control plane without controllers and kubelets: API server and
// scheduler.
type cluster struct {
	client.Client
	ctx context.Context
	// pods are all changes of pods, in their order.
	pods <-chan watch.Event
	// latest is what became of each pod of a draw, and bound are those that were
	// placed, in the order in which that was seen.
	latest map[types.UID]*corev1.Pod
	bound  []*corev1.Pod

	// created is what the draw has created.
	mu      sync.Mutex
	created []client.Object
	// counted are the pods that the quotas of the draw count.
	counted []*corev1.Pod
	gates   int64
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS is not set: run make compare-scheduler, or export KUBEBUILDER_ASSETS=$(go run ./test/lab binaries)")
	}
	env := &envtest.Environment{ControlPlaneStartTimeout: 5 * time.Minute}
	// No one is there to take the taints and finalizers away that these add.
	env.ControlPlane.GetAPIServer().Configure().
		Set("disable-admission-plugins", "ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection")
	config, err := env.Start()
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	if err != nil {
		t.Fatalf("starting the API server: %v", err)
	}
	startScheduler(t, env.KubeConfig)
	config = rest.CopyConfig(config)
	config.QPS, config.WarningHandlerWithContext = -1, rest.NoWarnings{}
	api, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := watchPods(t.Context(), api)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pods.Stop)
	c := &cluster{Client: api, ctx: t.Context(), pods: pods.ResultChan(), latest: map[types.UID]*corev1.Pod{}}
	for _, o := range standing() {
		if err := c.Create(c.ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// watchPods watches all pods for as long as the test runs: the API server ends each watch within an hour.
func watchPods(ctx context.Context, api client.WithWatch) (watch.Interface, error) {
	var pods corev1.PodList
	if err := api.List(ctx, &pods); err != nil {
		return nil, err
	}
	return watchtools.NewRetryWatcherWithContext(ctx, pods.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return api.Watch(ctx, &corev1.PodList{}, &client.ListOptions{Raw: &options})
		},
	})
}

// standing are the objects that all draws share.
func standing() []client.Object {
	var objects []client.Object
	for _, class := range drawnClasses() {
		objects = append(objects, class)
	}
	for _, driver := range append(drawnDrivers(), sentinelDriver()) {
		objects = append(objects, driver)
	}
	for _, priority := range drawnPriorities() {
		objects = append(objects, priority)
	}
	for _, name := range []string{sentinelNS, gateNS} {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, namespace := range drawnNamespaces() {
		objects = append(objects, namespace)
	}
	return append(objects, gateLimits(0), gateQuota(0))
}

const schedulerConfig = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %s, qps: 5000, burst: 5000}
podMaxBackoffSeconds: 1
`

func startScheduler(t *testing.T, kubeconfig []byte) {
	t.Helper()
	dir := t.TempDir()
	kubeconfigPath, configPath, logPath := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "scheduler.yaml"), filepath.Join(dir, "log")
	config := fmt.Appendf(nil, schedulerConfig, kubeconfigPath)
	if err := errors.Join(os.WriteFile(kubeconfigPath, kubeconfig, 0o600), os.WriteFile(configPath, config, 0o600)); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(logPath)
	if err != nil {
		t.Fatal(err)
	}
	// No port: nothing asks the scheduler but through the API server.
	cmd := exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-scheduler"), "--config="+configPath, "--secure-port=0")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting kube-scheduler: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		_ = log.Close()
		if said, _ := os.ReadFile(logPath); t.Failed() {
			t.Logf("the last words of kube-scheduler:\n%s", said[max(0, len(said)-4000):])
		}
	})
}

// compare rolls one draw out in both and returns the first disagreement.
func (c *cluster) compare(d *draw, seen map[string]int) (err error) {
	defer func() { err = errors.Join(err, c.clean(d)) }()
	if err := c.load(d); err != nil {
		return fmt.Errorf("loading the cluster: %w", err)
	}
	if err := c.waitForScheduler(d); err != nil {
		return fmt.Errorf("waiting until kube-scheduler has seen the cluster: %w", err)
	}
	s, err := begun(c.ctx, d)
	if err != nil {
		return err
	}
	c.latest, c.bound = map[types.UID]*corev1.Pod{}, nil
	r := &rollOut{cluster: c, draw: d, s: s, seen: seen, real: map[int32]*corev1.Pod{}, fits: map[int32]bool{}, class: map[int32]string{}, reported: map[string][]string{}}
	defer func() { r.s.scheduler.stop() }()
	if err := r.play(); err != nil {
		return err
	}
	return r.comparePrediction()
}

// begun returns a simulation of the draw that has begun.
func begun(ctx context.Context, d *draw) (*simulation, error) {
	s, err := newSimulation(ctx, &d.snapshot)
	if err != nil {
		return nil, err
	}
	return s, s.begin(d.workload)
}

func agreeOnRefusal(predicted string, pod *corev1.Pod, real error) error {
	if !slices.Equal(parts(predicted), parts(real.Error())) {
		return fmt.Errorf("pod %s: other reasons\nAPI server:     %w\nthe prediction: %s", pod.Name, real, predicted)
	}
	return nil
}

// parts are those of a refusal, sorted: LimitRanger goes through maps.
func parts(refusal string) []string {
	return slices.Sorted(strings.SplitSeq(strings.NewReplacer("[", "", "]", "", "forbidden: ", "forbidden, ").Replace(refusal), ", "))
}

// refusalOf says which policy refuses a pod.
func refusalOf(err error) string {
	for _, of := range []string{"exceeded quota", "failed quota", "per Container", "per Pod"} {
		if strings.Contains(err.Error(), of) {
			return "refused: " + of
		}
	}
	return "refused"
}

// reasons returns those of a message, without the counts.
func reasons(message string) []string {
	_, list, _ := strings.Cut(message, " nodes are available: ")
	all := strings.Split(strings.TrimSuffix(list, "."), ", ")
	for i := range all {
		all[i] = strings.TrimLeft(all[i], "0123456789 ")
	}
	return all
}

// decision is what kube-scheduler decided about a pod.
type decision struct{ node, message, kind string }

// fitsKind is how the kind of a prediction starts if the pod fits.
const fitsKind = "fits"

func decided(pod *corev1.Pod) decision {
	if pod.Spec.NodeName != "" {
		return decision{node: pod.Spec.NodeName, kind: fitsKind}
	}
	// The scheduler has decided, and waits for a user to bind the volumes.
	if pod.Status.NominatedNodeName != "" {
		return decision{node: pod.Status.NominatedNodeName, kind: fitsKind + " and is promised a volume"}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return decision{message: condition.Message, kind: condition.Reason}
		}
	}
	return decision{}
}

// load creates what was drawn; the last node comes last. The claims that the
// StatefulSet controller would create are there before their pods, so that the
// scheduler has seen them; the prediction does not know of them.
func (c *cluster) load(d *draw) error {
	last := len(d.snapshot.Nodes) - 1
	if err := c.createAsIs(d.set()); err != nil {
		return err
	}
	var objects []client.Object
	for _, node := range d.snapshot.Nodes[:last] {
		objects = append(objects, node)
	}
	for _, pv := range d.snapshot.PersistentVolumes {
		objects = append(objects, pv)
	}
	for _, claim := range d.snapshot.PersistentVolumeClaims {
		objects = append(objects, claim)
	}
	for _, claim := range d.newClaims() {
		objects = append(objects, claim)
	}
	for _, pod := range d.snapshot.Pods {
		objects = append(objects, pod)
	}
	for _, csi := range d.snapshot.CSINodes {
		if csi.Name != d.snapshot.Nodes[last].Name {
			objects = append(objects, csi)
		}
	}
	if err := each(objects, c.createAsIs); err != nil {
		return err
	}
	if err := errors.Join(c.createAsIs(d.snapshot.Nodes[last]), c.createAsIs(d.lastCSINode())); err != nil {
		return err
	}
	return c.loadPolicies(d)
}

// lastCSINode is that of the last node with the driver of the sentinel.
func (d *draw) lastCSINode() *storagev1.CSINode {
	name := d.snapshot.Nodes[len(d.snapshot.Nodes)-1].Name
	csi := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, drawn := range d.snapshot.CSINodes {
		if drawn.Name == name {
			csi = drawn.DeepCopy()
		}
	}
	csi.Spec.Drivers = append(csi.Spec.Drivers, storagev1.CSINodeDriver{Name: sentinel, NodeID: name})
	return csi
}

// set is the StatefulSet of the workload. No one makes its pods; the scheduler spreads
// pods without constraints by its selector. It comes first, since nothing shows when the
// scheduler has seen it.
func (d *draw) set() *appsv1.StatefulSet {
	set := d.workload.statefulSet()
	set.Spec.Template = *d.workload.Template.DeepCopy()
	return set
}

// newClaims returns those of the workload that the snapshot does not have.
func (d *draw) newClaims() []*corev1.PersistentVolumeClaim {
	var claims []*corev1.PersistentVolumeClaim
	for ordinal := range d.workload.Replicas {
		for _, claim := range d.workload.claims(ordinal) {
			there := func(c *corev1.PersistentVolumeClaim) bool { return c.Name == claim.Name }
			if !slices.ContainsFunc(d.snapshot.PersistentVolumeClaims, there) {
				claims = append(claims, claim)
			}
		}
	}
	return claims
}

// createAsIs creates an object with the status that it has, and makes it what
// the API server made of it.
func (c *cluster) createAsIs(object client.Object) error {
	object.SetUID("")
	c.mu.Lock()
	c.created = append(c.created, object)
	c.mu.Unlock()
	switch o := object.(type) {
	case *corev1.PersistentVolume:
		phase := o.Status.Phase
		if err := c.Create(c.ctx, o); err != nil {
			return err
		}
		o.Status.Phase = phase
		return c.Status().Update(c.ctx, o)
	case *corev1.Pod:
		return c.createPod(o)
	}
	return c.Create(c.ctx, object)
}

func (c *cluster) createPod(pod *corev1.Pod) error {
	phase, conditions, terminating := pod.Status.Phase, pod.Status.Conditions, pod.DeletionTimestamp != nil
	if err := c.Create(c.ctx, pod); err != nil {
		return err
	}
	if phase != "" {
		pod.Status.Phase, pod.Status.Conditions = phase, conditions
		if err := c.Status().Update(c.ctx, pod); err != nil {
			return err
		}
	}
	if terminating {
		pod.DeletionTimestamp = ptr.To(metav1.Now())
		return c.deleteNow(pod)
	}
	return nil
}

const (
	sentinelNS = "sentinel"
	sentinel   = "sentinel"
)

// sentinelDriver is a driver that a node must have for pods with its volumes.
func sentinelDriver() *storagev1.CSIDriver {
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: sentinel}, Spec: storagev1.CSIDriverSpec{PreventPodSchedulingIfMissing: ptr.To(true)}}
}

// waitForScheduler waits until kube-scheduler has seen the cluster: it binds a pod, the
// last that was created, to the node that was created last, with a volume and a
// claim that were created last, of a driver that only the CSINode that was created
// last has.
func (c *cluster) waitForScheduler(d *draw) error {
	node := d.snapshot.Nodes[len(d.snapshot.Nodes)-1].Name
	pv := makeVolume(d.prefix+sentinel, sentinel, "1Gi", "", "")
	pv.Spec.PersistentVolumeSource = csiSource(sentinel, pv.Name)
	claim := makeClaim(d.prefix+sentinel, sentinel, "1Gi")
	claim.Namespace = sentinelNS
	bind(claim, pv)
	pod := makePod(d.prefix+sentinel, "")
	pod.Namespace = sentinelNS
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	pod.Spec.Volumes = Workload{Name: "none", ClaimTemplates: []corev1.PersistentVolumeClaim{*claim}}.volumes(nil, 0)
	pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = claim.Name
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
		}}},
	}}}
	for _, object := range []client.Object{pv, claim, pod} {
		if err := c.createAsIs(object); err != nil {
			return err
		}
	}
	if err := c.await(pod, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }); err != nil {
		return err
	}
	return c.deleteNow(pod)
}

// deleteNow deletes a pod as a kubelet would in the end. The scheduler sees that
// before it sees a pod that is created later.
func (c *cluster) deleteNow(pod *corev1.Pod) error {
	return c.Delete(c.ctx, pod, client.GracePeriodSeconds(0))
}

// withoutFinalizers has an object deleted that only its finalizers keep.
func (c *cluster) withoutFinalizers(object client.Object) error {
	if len(object.GetFinalizers()) == 0 {
		return nil
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	return client.IgnoreNotFound(c.Patch(c.ctx, object.DeepCopyObject().(client.Object), patch))
}

// clean deletes what a draw and its roll-out have left, object by object: to delete
// a collection the API server lists it, and waits up to 100 ms for each list until
// its cache has caught up with etcd. That volumes are still promised to pods of the
// last draw harms no other: no names are alike.
func (c *cluster) clean(d *draw) error {
	for _, object := range c.created {
		_ = c.withoutFinalizers(object)
	}
	err := each(c.created, func(object client.Object) error {
		return client.IgnoreNotFound(c.Delete(c.ctx, object, client.GracePeriodSeconds(0)))
	})
	c.created = nil
	if err != nil || !d.policed() {
		return err
	}
	return c.gate()
}

// each works on a few at a time.
func each[T any](all []T, work func(T) error) error {
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	errs := make([]error, len(all))
	for i := range all {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = work(all[i])
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
