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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// manyDraws show everything that is drawn.
const manyDraws = 500

// maxDiffer is after how many differences no more draws are compared.
const maxDiffer = 10

var (
	drawsFlag = flag.Int("draws", 100, "how many random clusters are compared with kube-scheduler")
	seedFlag  = flag.Uint64("seed", 1, "the seed that the random clusters are drawn from")
	drawFlag  = flag.Int("draw", -1, "compare only the draw of this number")
	drawsOf   = flag.String("generator", "both", "where the clusters come from: rules, shapes, or both by turns")
)

// drawn returns the random cluster of a number.
func drawn(number int) *draw {
	if *drawsOf == "shapes" || *drawsOf == "both" && number%2 == 1 {
		return newShapes(*seedFlag, number)
	}
	return newDraw(*seedFlag, number)
}

// TestAgreesWithKubeScheduler draws random clusters, loads each into a real API
// server with a real kube-scheduler, and rolls a random StatefulSet out. Of each
// pod both must say the same: the same message, with the same reasons and counts,
// if it fits nowhere or is refused; and if it fits, one of the nodes that score
// highest by the prediction. The next pods are tried where kube-scheduler put the ones
// before. At last the prediction of Predict must be what became of the pods, except where
// it says that it depends on chance.
func TestAgreesWithKubeScheduler(t *testing.T) {
	c := startCluster(t)
	seen := map[string]int{}
	differ := 0
	for i := range *drawsFlag {
		if *drawFlag >= 0 && i != *drawFlag {
			continue
		}
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
		"fits", "promised a volume",
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
	// Nobody is there to take the taints and finalizers away that these add.
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
	pods, err := api.Watch(t.Context(), &corev1.PodList{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pods.Stop)
	c := &cluster{Client: api, ctx: t.Context(), pods: pods.ResultChan()}
	for _, o := range standing() {
		if err := c.Create(c.ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	return c
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

// compare plays one draw in both and returns the first disagreement.
func (c *cluster) compare(d *draw, seen map[string]int) (err error) {
	defer func() { err = errors.Join(err, c.clean(d)) }()
	if err := c.load(d); err != nil {
		return fmt.Errorf("loading the cluster: %w", err)
	}
	if err := c.settle(d); err != nil {
		return fmt.Errorf("waiting until kube-scheduler has seen the cluster: %w", err)
	}
	s, err := newSimulation(c.ctx, &d.snapshot)
	if err != nil {
		return err
	}
	defer s.scheduler.stop()
	if err := s.begin(d.workload); err != nil {
		return err
	}
	fits := map[int32]bool{}
	create := func(ordinal int32) error {
		said, err := c.comparePod(d, s, ordinal)
		for _, reason := range said {
			seen[reason]++
		}
		fits[ordinal] = len(said) > 0 && strings.HasPrefix(said[0], fitsKind)
		return err
	}
	remove := func(pod *corev1.Pod) error { return errors.Join(c.deleteNow(pod), c.released(d, pod), s.remove(pod)) }
	if err := s.inOrder(create, remove); err != nil {
		return err
	}
	return c.comparePrediction(d, fits, seen)
}

// comparePrediction holds the prediction, which knows nothing of what kube-scheduler chose,
// to what became of the pods. One over some of the choices only, or of a cluster of
// which kube-scheduler looks at a part each time, is not certain: it is only counted.
func (c *cluster) comparePrediction(d *draw, fits map[int32]bool, seen map[string]int) error {
	plays, err := playAll(c.ctx, d.snapshot, []Workload{d.workload})
	if err != nil {
		return err
	}
	pods, _ := plays.pods(0)
	for i, pod := range pods {
		switch {
		case pod.ByChance:
			seen["pods whose place depends on chance"]++
		case pod.Fits == fits[int32(i)]:
		case plays.complete && len(d.snapshot.Nodes) < 100:
			return fmt.Errorf("the prediction on pod %s is fits %t; kube-scheduler: %t: %s", pod.Name, pod.Fits, fits[int32(i)], pod.Message)
		default:
			seen["pods whose prediction over some choices differs"]++
		}
	}
	return nil
}

// comparePod returns what both say of a pod.
func (c *cluster) comparePod(d *draw, s *simulation, ordinal int32) ([]string, error) {
	if old := s.existing[ordinal]; old != nil {
		if err := errors.Join(c.deleteNow(old), c.released(d, old)); err != nil {
			return nil, err
		}
	}
	predicted, err := s.try(c.ctx, ordinal)
	if err != nil {
		return nil, err
	}
	pod := s.workload.pod(ordinal)
	switch err := c.createAsIs(pod); {
	case apierrors.IsForbidden(err):
		return []string{refusalOf(err)}, agreeOnRefusal(predicted, pod, err)
	case err != nil:
		return nil, err
	}
	c.counted = append(c.counted, pod)
	real, err := c.decision(pod)
	if err != nil {
		return nil, fmt.Errorf("waiting for what kube-scheduler says of %s: %w", pod.Name, err)
	}
	if err := agree(predicted, real); err != nil {
		return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	if real.node == "" {
		// It must not find a place later, which the prediction does not play.
		return reasons(predicted.message()), c.deleteNow(pod)
	}
	if len(d.snapshot.Nodes) < 100 && !slices.Contains(predicted.best, real.node) {
		return nil, fmt.Errorf("pod %s: kube-scheduler chose %s; the highest score by the prediction have %v", pod.Name, real.node, predicted.best)
	}
	return []string{real.kind}, s.scheduler.place(c.ctx, predicted, real.node)
}

func agreeOnRefusal(predicted outcome, pod *corev1.Pod, real error) error {
	if predicted.denied == nil {
		return fmt.Errorf("pod %s: the API server refuses it: %w; the prediction does not", pod.Name, real)
	}
	if !slices.Equal(parts(predicted.denied), parts(real)) {
		return fmt.Errorf("pod %s: other reasons\nAPI server:     %w\nthe prediction: %w", pod.Name, real, predicted.denied)
	}
	return nil
}

// parts are those of a refusal, sorted: LimitRanger goes through maps.
func parts(err error) []string {
	return slices.Sorted(strings.SplitSeq(strings.NewReplacer("[", "", "]", "", "forbidden: ", "forbidden, ").Replace(err.Error()), ", "))
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

func agree(predicted outcome, real decision) error {
	switch {
	case predicted.denied != nil:
		return fmt.Errorf("the API server accepts it; by the prediction it does not: %w", predicted.denied)
	case real.node != "" && !slices.Contains(predicted.feasible, real.node):
		return fmt.Errorf("kube-scheduler chose %s; feasible by the prediction are %v: %s", real.node, predicted.feasible, predicted.message())
	case real.node != "":
		return nil
	case predicted.node != "":
		return fmt.Errorf("by the prediction it fits on %v; kube-scheduler: %s", predicted.feasible, real.message)
	}
	// The scheduler adds what it says of preemption.
	rest, ok := strings.CutPrefix(real.message, predicted.message())
	if !ok || (rest != "" && !strings.HasPrefix(rest, " ")) {
		return fmt.Errorf("other reasons\nkube-scheduler: %s\nthe prediction:    %s", real.message, predicted.message())
	}
	return nil
}

// decision is what kube-scheduler decided about a pod.
type decision struct{ node, message, kind string }

// fitsKind is how the kind of a prediction starts if the pod fits.
const fitsKind = "fits"

func (c *cluster) decision(pod *corev1.Pod) (decision, error) {
	var v decision
	err := c.await(pod, func(pod *corev1.Pod) bool {
		v = decided(pod)
		return v.kind != ""
	})
	return v, err
}

// await waits until a pod is as it should be.
func (c *cluster) await(pod *corev1.Pod, ready func(*corev1.Pod) bool) error {
	late := time.After(time.Minute)
	for {
		select {
		case event, open := <-c.pods:
			now, isPod := event.Object.(*corev1.Pod)
			if !open || !isPod {
				return fmt.Errorf("the watch has ended: %v", event.Object)
			}
			if now.UID == pod.UID && ready(now) {
				return nil
			}
		case <-late:
			return fmt.Errorf("nothing within a minute; the pod is %v", pod.Status)
		}
	}
}

func decided(pod *corev1.Pod) decision {
	if pod.Spec.NodeName != "" {
		return decision{node: pod.Spec.NodeName, kind: fitsKind}
	}
	// The scheduler has decided, and waits for somebody to bind the volumes.
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

// set is the StatefulSet of the workload. Nobody makes its pods; the scheduler spreads
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
	phase, terminating := pod.Status.Phase, pod.DeletionTimestamp != nil
	if err := c.Create(c.ctx, pod); err != nil {
		return err
	}
	switch {
	case terminating:
		pod.DeletionTimestamp = ptr.To(metav1.Now())
		return c.deleteNow(pod)
	case phase != "":
		pod.Status.Phase = phase
		return c.Status().Update(c.ctx, pod)
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

// settle waits until kube-scheduler has seen the cluster: it binds a pod, the
// last that was created, to the node that was created last, with a volume and a
// claim that were created last, of a driver that only the CSINode that was created
// last has.
func (c *cluster) settle(d *draw) error {
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

// clean deletes what a draw and its roll-out have left, object by object: to delete
// a collection the API server lists it, and waits up to 100 ms for each list until
// its cache has caught up with etcd. That volumes are still promised to pods of the
// last draw harms no other: no names are alike.
func (c *cluster) clean(d *draw) error {
	for _, object := range c.created {
		if len(object.GetFinalizers()) > 0 {
			_ = c.Patch(c.ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		}
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
