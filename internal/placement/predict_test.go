package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

func predict(t *testing.T, snapshot Snapshot, w Workload) Prediction {
	t.Helper()
	v, err := Predict(t.Context(), snapshot, w)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// problem returns the only one, which must have the reason and say the words.
func problem(t *testing.T, v Prediction, reason condition.Reason, words ...string) Problem {
	t.Helper()
	if len(v.Problems) != 1 || v.Problems[0].Reason != reason {
		t.Fatalf("want one problem, %s; got %+v", reason, v.Problems)
	}
	p := v.Problems[0]
	for _, word := range words {
		if !strings.Contains(p.Message+"\n"+p.Remedy, word) {
			t.Errorf("nothing of %q in\n%s\n%s", word, p.Message, p.Remedy)
		}
	}
	return p
}

func fine(t *testing.T, v Prediction) {
	t.Helper()
	if !v.Fits() || len(v.Problems) > 0 {
		t.Errorf("want pods that fit and no problem; got %+v", v)
	}
}

// nodesOf returns the nodes of the pods by ordinal.
func nodesOf(v Prediction) []string {
	return collectNames(v.Pods, func(p PodPrediction) string { return p.Node })
}

func TestOneNodeWithoutZone(t *testing.T) {
	const zone = corev1.LabelTopologyZone
	snapshot := Snapshot{Nodes: []*corev1.Node{makeNode("crc")}}
	w := makeWorkload(1, spreadBy(zone, "service", "glance"))

	v := predict(t, snapshot, w)
	p := problem(t, v, topologyv1.MissingNodeLabelReason, zone, "crc", "ScheduleAnyway", "kubectl label node crc "+zone)
	if p.Node != "crc" || p.Key != zone || !slices.Equal(p.Pods, []string{"glance-default-external-api-0"}) {
		t.Errorf("got %+v", p)
	}
	want := "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label)."
	if v.Pods[0].Message != want || v.Pods[0].Fits {
		t.Errorf("got %+v", v.Pods[0])
	}

	w.Template.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable = corev1.ScheduleAnyway
	fine(t, predict(t, snapshot, w))
}

func TestVolumeOnANodeWithoutZone(t *testing.T) {
	w := withClaims(makeWorkload(3, spreadBy("zone", "service", "glance")), "lvms-local-storage")
	snapshot := Snapshot{Nodes: sevenNodes(), StorageClasses: []*storagev1.StorageClass{
		makeClass("lvms-local-storage", "topolvm.io", storagev1.VolumeBindingWaitForFirstConsumer),
	}}
	delete(snapshot.Nodes[2].Labels, "zone") // worker-3
	for ordinal, node := range []string{"worker-0", "worker-2", "worker-3"} {
		pod := makePod(w.podName(int32(ordinal)), node, "service", "glance")
		pod.Spec.Volumes = w.volumes(nil, int32(ordinal))
		snapshot.Pods = append(snapshot.Pods, pod)
		snapshot.bindTo(w, int32(ordinal), node)
	}

	v := predict(t, snapshot, w)
	p := problem(t, v, topologyv1.VolumeNodeAffinityConflictReason, "glance-default-external-api-2", "pvc-glance-glance-default-external-api-2",
		"only worker-3 can reach", "lacks the label zone", "storage.external: true", "label node worker-3 with zone", "kubectl label node worker-3 zone=")
	want := Problem{
		Reason: topologyv1.VolumeNodeAffinityConflictReason, Pods: []string{"glance-default-external-api-2"},
		Node: "worker-3", Volume: "pvc-glance-glance-default-external-api-2", Key: "zone",
	}
	if diff := cmp.Diff(want, p, cmpopts.IgnoreFields(Problem{}, "Message", "Remedy"), cmpopts.IgnoreUnexported(Problem{})); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(v.Pods[2].Message, "1 node(s) didn't match pod topology spread constraints (missing required label), 6 node(s) didn't match PersistentVolume's node affinity") {
		t.Errorf("not the message of seeds/001: %s", v.Pods[2].Message)
	}

	t.Run("goes away with storage.external: true", func(t *testing.T) {
		external := w
		external.ClaimTemplates = nil
		fine(t, predict(t, snapshot, external))
	})
	t.Run("goes away with the label", func(t *testing.T) {
		snapshot.Nodes[2].Labels["zone"] = "zoneB"
		fine(t, predict(t, snapshot, w))
	})
}

func TestVolumeInAFullZone(t *testing.T) {
	w := withClaims(makeWorkload(1, spreadBy("zone", "service", "glance")), "local")
	nodes, pods := zones(1, 0)
	snapshot := Snapshot{Nodes: nodes, Pods: pods, StorageClasses: []*storagev1.StorageClass{makeClass("local", noProvisioner, storagev1.VolumeBindingWaitForFirstConsumer)}}
	snapshot.bindTo(w, 0, "n0")
	p := problem(t, predict(t, snapshot, w), topologyv1.VolumeNodeAffinityConflictReason, "node n0 is in zone z0", "maxSkew 1 (z0 1, z1 0)", "storage.external")
	if p.Key != "" || p.Node != "n0" {
		t.Errorf("got %+v", p)
	}
}

func TestVolumeOnACordonedNode(t *testing.T) {
	w := withClaims(makeWorkload(1), "local")
	snapshot := Snapshot{Nodes: sevenNodes(), StorageClasses: []*storagev1.StorageClass{makeClass("local", noProvisioner, storagev1.VolumeBindingWaitForFirstConsumer)}}
	cordoned(snapshot.Nodes[1])
	snapshot.bindTo(w, 0, "worker-0")
	problem(t, predict(t, snapshot, w), topologyv1.VolumeNodeAffinityConflictReason, "only worker-0 can reach", "were unschedulable", "kubectl uncordon", "storage.external: true")
}

func TestVolumeOutsideTheAffinity(t *testing.T) {
	w := withClaims(makeWorkload(1), "local")
	w.Template.Spec.NodeSelector = labelled("zone", "zoneC")
	snapshot := Snapshot{Nodes: sevenNodes(), StorageClasses: []*storagev1.StorageClass{makeClass("local", noProvisioner, storagev1.VolumeBindingWaitForFirstConsumer)}}
	snapshot.bindTo(w, 0, "worker-0")
	problem(t, predict(t, snapshot, w), topologyv1.VolumeNodeAffinityConflictReason, "only worker-0 can reach", "didn't match Pod's node affinity/selector")
}

func TestVolumeWhoseNodeIsGone(t *testing.T) {
	w := withClaims(makeWorkload(1), "local")
	snapshot := Snapshot{Nodes: sevenNodes(), StorageClasses: []*storagev1.StorageClass{makeClass("local", noProvisioner, storagev1.VolumeBindingWaitForFirstConsumer)}}
	snapshot.bindTo(w, 0, "worker-9")
	problem(t, predict(t, snapshot, w), topologyv1.VolumeNodeAffinityConflictReason, "which no node of the cluster can reach", "bring the volume's node back")
}

func TestSplitPodsGetTwoPerZone(t *testing.T) {
	spread := spreadBy("zone", "service", "glance")
	external, internal := makeWorkload(3, spread), makeWorkload(3, spread)
	internal.Name = "glance-default-internal-api"
	snapshot := Snapshot{Nodes: sevenNodes()}
	// Unaware of zones, as the seed found them: none in B but one.
	for i, node := range []string{"worker-0", "worker-2", "worker-3"} {
		snapshot.Pods = append(snapshot.Pods, makePod(external.podName(int32(i)), node, "service", "glance"))
	}
	for i, node := range []string{"worker-1", "worker-3", "worker-0"} {
		snapshot.Pods = append(snapshot.Pods, makePod(internal.podName(int32(i)), node, "service", "glance"))
	}
	after := predict(t, snapshot, external)
	fine(t, after)
	for i, node := range nodesOf(after) {
		snapshot.Pods[i].Spec.NodeName = node
	}
	after = predict(t, snapshot, internal)
	fine(t, after)
	want := []Spread{{
		TopologyKey: "zone", Domains: map[string]int{"zoneA": 2, "zoneB": 2, "zoneC": 2}, MaxSkew: 1, MinDomains: 1, Selects: true, Holds: true,
	}}
	if diff := cmp.Diff(want, after.Spread); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEdgePodsStayInTheirZone(t *testing.T) {
	w := makeWorkload(3)
	w.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"zoneC"}}},
		}}},
	}}
	v := predict(t, Snapshot{Nodes: sevenNodes()}, w)
	fine(t, v)
	for _, node := range nodesOf(v) {
		if node != "master-2" && node != "worker-2" {
			t.Errorf("a pod goes to %s, out of zone C", node)
		}
	}
	unlabelled := []*corev1.Node{makeNode("master-0"), makeNode("master-1")}
	p := problem(t, predict(t, Snapshot{Nodes: unlabelled}, w), topologyv1.UnsatisfiableReason, "2 node(s) didn't match Pod's node affinity/selector", "fix the node affinity")
	if len(p.Pods) != 3 {
		t.Errorf("want all pods in one problem, got %v", p.Pods)
	}
}

func TestSelectorThatSelectsNoOwnPod(t *testing.T) {
	const own = "service=glance"
	for _, test := range []struct {
		name     string
		selector *metav1.LabelSelector
		says     string
	}{
		{"of seeds/002 with the label value of the operators", &metav1.LabelSelector{MatchLabels: labelled("glanceAPI", "glance-czone-edge")}, "pods with glanceAPI=glance-czone-edge"},
		{"empty", &metav1.LabelSelector{}, "selects nothing"},
		{"missing", nil, "selects nothing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := makeWorkload(2, spreadBy("zone"))
			w.Template.Spec.TopologySpreadConstraints[0].LabelSelector = test.selector
			v := predict(t, Snapshot{Nodes: sevenNodes()}, w)
			p := problem(t, v, topologyv1.InertSelectorReason, test.says, own, "spreads nothing", "fix the labelSelector", "matchLabels: {service: glance}")
			if !v.Fits() || p.Key != "zone" || len(p.Pods) != 2 {
				t.Errorf("got %+v", v)
			}
		})
	}
	t.Run("one that selects a single ordinal is not inert", func(t *testing.T) {
		fine(t, predict(t, Snapshot{Nodes: sevenNodes()}, makeWorkload(2, spreadBy("zone", "apps.kubernetes.io/pod-index", "1"))))
	})
}

func TestTooFewDomains(t *testing.T) {
	spread := spreadBy("zone", "service", "glance")
	spread.MinDomains = ptr.To[int32](3)
	nodes, _ := zones(0, 0)
	v := predict(t, Snapshot{Nodes: nodes}, makeWorkload(3, spread))
	p := problem(t, v, topologyv1.MinDomainsUnmetReason, "wants 3 domains and finds 2 (z0 1, z1 1)", "lower minDomains to 2", "add domains")
	if p.Key != "zone" || !slices.Equal(p.Pods, []string{"glance-default-external-api-2"}) {
		t.Errorf("got %+v", p)
	}
	spread.MinDomains = ptr.To[int32](2)
	fine(t, predict(t, Snapshot{Nodes: nodes}, makeWorkload(3, spread)))
}

func TestUnsatisfiable(t *testing.T) {
	for _, test := range []struct {
		name     string
		snapshot func(w *Snapshot)
		wants    func(w *Workload)
		remedy   string
		says     string
	}{
		{"no nodes", func(w *Snapshot) { w.Nodes = nil }, nil, "add nodes", "no nodes available to schedule pods"},
		{"all cordoned", func(w *Snapshot) { cordoned(w.Nodes[0]); cordoned(w.Nodes[1]) }, nil, "kubectl uncordon", "2 node(s) were unschedulable"},
		{"all tainted", func(w *Snapshot) {
			tainted(w.Nodes[0], corev1.TaintEffectNoSchedule)
			tainted(w.Nodes[1], corev1.TaintEffectNoExecute)
		}, nil, "taints", "2 node(s) had untolerated taint(s)"},
		{"the one node of the affinity is cordoned", func(w *Snapshot) { cordoned(w.Nodes[0]) },
			func(w *Workload) {
				field := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"n0"}}
				w.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{field}}},
				}}}
			},
			"fix the node affinity", "1 node(s) didn't satisfy plugin(s) [NodeAffinity], 1 node(s) were unschedulable"},
		{"one cordoned, one full", func(w *Snapshot) { cordoned(w.Nodes[0]) },
			func(w *Workload) {
				w.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5")}
			},
			"make room on nodes or add some, or lower the resource requests", "1 Insufficient cpu, 1 node(s) were unschedulable"},
		{"a zone that is cordoned and must be next", func(w *Snapshot) {
			cordoned(w.Nodes[1])
			w.Pods = []*corev1.Pod{makePod("x", "n0", "service", "glance")}
		}, func(w *Workload) {
			w.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{spreadBy("zone", "service", "glance")}
		}, "raise maxSkew", "Pods by zone: z0 1, z1 0."},
		{"a claim that waits for its volume", func(w *Snapshot) {
			w.StorageClasses = []*storagev1.StorageClass{makeClass("ceph", "rbd", storagev1.VolumeBindingImmediate)}
			claim := makeClaim("glance-glance-default-external-api-0", "ceph", "1Gi")
			w.PersistentVolumeClaims = append(w.PersistentVolumeClaims, claim)
		}, func(w *Workload) { *w = withClaims(*w, "ceph") }, "kubectl describe pvc", "pod has unbound immediate PersistentVolumeClaims"},
		{"no volume to bind", func(w *Snapshot) {
			w.StorageClasses = []*storagev1.StorageClass{makeClass("local", noProvisioner, storagev1.VolumeBindingWaitForFirstConsumer)}
		}, func(w *Workload) { *w = withClaims(*w, "local") }, "kubectl describe pvc", "2 node(s) didn't find available persistent volumes to bind"},
	} {
		t.Run(test.name, func(t *testing.T) {
			nodes, _ := zones(0, 0)
			snapshot, w := Snapshot{Nodes: nodes}, makeWorkload(1)
			test.snapshot(&snapshot)
			if test.wants != nil {
				test.wants(&w)
			}
			problem(t, predict(t, snapshot, w), topologyv1.UnsatisfiableReason, test.says, test.remedy)
		})
	}
}

func TestTwoCausesAreTwoProblems(t *testing.T) {
	nodes := []*corev1.Node{makeNode("a", "zone", "A"), makeNode("b")}
	v := predict(t, Snapshot{Nodes: []*corev1.Node{cordoned(nodes[0]), nodes[1]}}, makeWorkload(1, spreadBy("zone", "service", "glance")))
	reasons := collectNames(v.Problems, func(p Problem) string { return string(p.Reason) })
	if !slices.Equal(reasons, []string{string(topologyv1.MissingNodeLabelReason), string(topologyv1.UnsatisfiableReason)}) || strings.Contains(v.Problems[1].Remedy, "maxSkew") {
		t.Errorf("got %+v", v.Problems)
	}
}

func TestOrderOfTheRollOut(t *testing.T) {
	w := makeWorkload(5)
	ready := func(ordinal int32) *corev1.Pod { return makePod(w.podName(ordinal), "n") }
	unready, terminating := ready(3), ready(3)
	setReady(unready, corev1.ConditionFalse)
	terminating.DeletionTimestamp = ptr.To(metav1.Now())
	pending := makePod(w.podName(4), "")
	for name, c := range map[string]struct {
		existing                        map[int32]*corev1.Pod
		kept                            []string
		missing, unavailable, available []int32
	}{
		"from the highest ordinal down":                      {map[int32]*corev1.Pod{1: ready(1), 3: ready(3), 4: ready(4), 7: ready(7)}, nil, []int32{0, 2}, nil, []int32{4, 3, 1}},
		"one that is not Ready before those that are":        {map[int32]*corev1.Pod{1: ready(1), 3: unready, 4: ready(4)}, nil, []int32{0, 2}, []int32{3}, []int32{4, 1}},
		"one that is terminating, and one without a node":    {map[int32]*corev1.Pod{1: ready(1), 3: terminating, 4: pending}, nil, []int32{0, 2}, []int32{4, 3}, []int32{1}},
		"with one that stays and one that only lacks a node": {map[int32]*corev1.Pod{1: ready(1), 3: ready(3), 4: pending}, []string{w.podName(3), w.podName(4)}, []int32{0, 2, 4}, nil, []int32{1}},
		"one that stays, though it is not Ready as it runs":  {map[int32]*corev1.Pod{3: unready}, []string{w.podName(3)}, []int32{0, 1, 2, 4}, nil, nil},
	} {
		w.Kept = c.kept
		missing, unavailable, available := w.order(c.existing)
		if !slices.Equal(missing, c.missing) || !slices.Equal(unavailable, c.unavailable) || !slices.Equal(available, c.available) {
			t.Errorf("%s: got %v, %v, %v", name, missing, unavailable, available)
		}
	}
}

// retained returns a workload without pods whose claims have volumes on the nodes, which
// are zone by zone: a1 and a2, b1, c1.
func retained(on ...string) (Snapshot, Workload) {
	w := withClaims(makeWorkload(int32(len(on)), spreadBy("zone", "service", "glance")), "local")
	snapshot := Snapshot{
		Nodes:          []*corev1.Node{makeNode("a1", "zone", "A"), makeNode("a2", "zone", "A"), makeNode("b1", "zone", "B"), makeNode("c1", "zone", "C")},
		StorageClasses: []*storagev1.StorageClass{makeClass("local", noProvisioner, storagev1.VolumeBindingWaitForFirstConsumer)},
	}
	for ordinal, node := range on {
		snapshot.bindTo(w, int32(ordinal), node)
	}
	return snapshot, w
}

// The StatefulSets are Parallel: all missing pods are there at once, and kube-scheduler
// tries one that did not fit again when another one was placed (kubernetes#128832).
func TestMissingPodsAreScheduledInParallel(t *testing.T) {
	for _, on := range [][]string{{"a1", "a2", "b1", "c1"}, {"a1", "a2", "c1", "b1"}, {"b1", "c1", "a1", "a2"}, {"c1", "a2", "b1", "a1"}} {
		t.Run(strings.Join(on, " "), func(t *testing.T) {
			snapshot, w := retained(on...)
			v := predict(t, snapshot, w)
			fine(t, v)
			if !slices.Equal(nodesOf(v), on) {
				t.Errorf("got %v", nodesOf(v))
			}
		})
	}
	t.Run("each as often as it takes", func(t *testing.T) {
		// The third pod waits for a second pod in zone B, and that for one in C.
		on := []string{"a1", "a2", "a1", "b1", "b1", "c1", "c1"}
		snapshot, w := retained(on...)
		v := predict(t, snapshot, w)
		fine(t, v)
		if !slices.Equal(nodesOf(v), on) {
			t.Errorf("got %v", nodesOf(v))
		}
	})
	t.Run("and so are pods that only lack a node", func(t *testing.T) {
		snapshot, w := retained("a1", "a2", "b1", "c1")
		for ordinal := range w.Replicas {
			snapshot.Pods = append(snapshot.Pods, makePod(w.podName(ordinal), "", "service", "glance"))
		}
		w.Kept = collectNames(snapshot.Pods, (*corev1.Pod).GetName)
		fine(t, predict(t, snapshot, w))
	})
	t.Run("also when pods beyond the replicas make room", func(t *testing.T) {
		snapshot, w := retained("a1")
		snapshot.Pods = []*corev1.Pod{makePod(w.podName(1), "a1", "service", "glance")}
		fine(t, predict(t, snapshot, w))
	})
	t.Run("which helps no pod that no other one makes room for", func(t *testing.T) {
		snapshot, w := retained("a1", "a2", "b1")
		snapshot.Nodes = snapshot.Nodes[:3]
		cordoned(snapshot.Nodes[2])
		v := predict(t, snapshot, w)
		fits := len(filter(v.Pods, func(p PodPrediction) bool { return p.Fits || p.ByChance }))
		if v.Fits() || fits != 2 || v.Pods[2].ByChance || !v.Pods[0].ByChance || !v.Pods[1].ByChance {
			t.Errorf("one of the first two fits, whichever is tried first, and the last one never does; got %+v", v.Pods)
		}
	})
	t.Run("over all workloads", func(t *testing.T) {
		snapshot, w := retained("a1", "a2", "b1", "c1")
		var one []Workload
		for ordinal := range w.Replicas {
			single := w
			single.Replicas, single.Name = 1, fmt.Sprintf("osd-%d", ordinal)
			single.ClaimTemplates, single.Template = nil, *w.Template.DeepCopy()
			single.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: w.claims(ordinal)[0].Name},
			}}}
			one = append(one, single)
		}
		predictions, err := PredictAll(t.Context(), snapshot, one)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range predictions {
			fine(t, v)
		}
	})
}

// A pod that is replaced and finds no place stops the roll-out: what would be replaced
// after it does not make room for it.
func TestAReplacedPodThatWaitsStopsTheRollOut(t *testing.T) {
	snapshot, w := retained("a1", "a2", "b1", "c1")
	w.Replicas = 2
	for ordinal, node := range []string{"a1", "a2"} {
		snapshot.Pods = append(snapshot.Pods, makePod(w.podName(int32(ordinal)), node, "service", "glance"))
	}
	v := predict(t, snapshot, w)
	if v.Pods[1].Fits || v.Pods[1].ByChance {
		t.Errorf("got %+v", v.Pods)
	}
}

// Which of them is tried first is left to chance, but one fits and the other does not.
func TestPodsThatTakeEachOthersPlaceAreNotByChance(t *testing.T) {
	snapshot, w := retained("a1", "a1")
	snapshot.Nodes[0].Status.Allocatable[corev1.ResourcePods] = resource.MustParse("1")
	if v := predict(t, snapshot, w); !v.Pods[0].Fits || v.Pods[1].Fits || v.Pods[1].ByChance {
		t.Errorf("got %+v", v.Pods)
	}
}

// A pod that waits stops the roll-out: an available pod does not lose its place to it,
// whichever ordinal they have. One that is not available is made again at once.
func TestAPodThatWaitsStopsTheRollOut(t *testing.T) {
	w := makeWorkload(2)
	node := makeNode("n")
	node.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("1")
	for name, c := range map[string]struct {
		ready corev1.ConditionStatus
		runs  int32
		want  []bool
	}{
		"of a lower ordinal":                  {corev1.ConditionTrue, 1, []bool{false, true}},
		"of a higher ordinal":                 {corev1.ConditionTrue, 0, []bool{true, false}},
		"but gets the room of an unready one": {corev1.ConditionFalse, 1, []bool{true, false}},
	} {
		old := makePod(w.podName(c.runs), "n")
		setReady(old, c.ready)
		v := predict(t, Snapshot{Nodes: []*corev1.Node{node}, Pods: []*corev1.Pod{old}}, w)
		for i, fits := range c.want {
			if v.Pods[i].Fits != fits || v.Pods[i].ByChance {
				t.Errorf("%s: got %+v", name, v.Pods)
			}
		}
	}
}

// The old template keeps the pod of the new one off the only node, and is never replaced
// while that pod waits.
func TestAnOldPodThatStopsTheRollOutIsNamed(t *testing.T) {
	apart := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selecting("service", "glance")}
	w := makeWorkload(2)
	w.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: apart}},
	}}
	old := makePod(w.podName(1), "w1", "service", "glance")
	old.Spec.Affinity = required(apart)
	snapshot := Snapshot{Nodes: []*corev1.Node{makeNode("w1")}, Pods: []*corev1.Pod{old}}
	v := predict(t, snapshot, w)
	p := problem(t, v, topologyv1.UnsatisfiableReason, "existing pods anti-affinity rules")
	if v.Pods[0].Fits || !v.Pods[1].Fits || !slices.Equal(p.Pods, []string{w.podName(0)}) {
		t.Errorf("got %+v in %+v", p, v.Pods)
	}
	if first, _, _ := strings.Cut(p.Remedy, "; or "); !strings.HasPrefix(first, "delete the pods that run with the old template") || !strings.HasSuffix(first, "(kubectl delete pod -n openstack): "+old.Name) {
		t.Errorf("the first remedy is %q", first)
	}
	t.Run("without it all fit", func(t *testing.T) {
		fine(t, predict(t, Snapshot{Nodes: snapshot.Nodes}, w))
	})
	t.Run("it is replaced at once where it is not Ready", func(t *testing.T) {
		setReady(old, corev1.ConditionFalse)
		fine(t, predict(t, snapshot, w))
	})
}

// A pod that runs is not deleted where it could not be made again.
func TestOldPodsThatWouldBeLostAreNotDeleted(t *testing.T) {
	w := makeWorkload(2)
	node := makeNode("n")
	node.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("1")
	v := predict(t, Snapshot{Nodes: []*corev1.Node{node}, Pods: []*corev1.Pod{makePod(w.podName(1), "n")}}, w)
	if p := problem(t, v, topologyv1.UnsatisfiableReason, "make room on nodes"); strings.Contains(p.Remedy, "delete") {
		t.Errorf("got %q", p.Remedy)
	}
}

// With room for one pod in all, the roll-out of two that run shows who goes first.
func TestHighestOrdinalGoesFirst(t *testing.T) {
	node := makeNode("n")
	node.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("1")
	w := makeWorkload(2)
	w.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	running := []*corev1.Pod{makePod(w.podName(0), "n"), makePod(w.podName(1), "n")}
	for pods, want := range map[int][]string{0: {"n", ""}, 2: {"", "n"}} {
		v := predict(t, Snapshot{Nodes: []*corev1.Node{node}, Pods: running[:pods]}, w)
		if !slices.Equal(nodesOf(v), want) {
			t.Errorf("with %d pods that run, got %v, want %v", pods, nodesOf(v), want)
		}
	}
}

func TestPodsBeyondTheReplicasMakeRoom(t *testing.T) {
	node := makeNode("n")
	node.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("2")
	w := makeWorkload(1)
	pods := []*corev1.Pod{makePod(w.podName(0), "n"), makePod(w.podName(1), "n"), makePod("other", "n")}
	// Three pods on a node for two: only as the second one goes, the first fits.
	fine(t, predict(t, Snapshot{Nodes: []*corev1.Node{node}, Pods: pods}, w))
}

func TestPodsThatDoNotCount(t *testing.T) {
	node := makeNode("n")
	node.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("1")
	ended, pending, lost := makePod("ended", "n"), makePod("pending", ""), makePod("lost", "gone")
	ended.Status.Phase = corev1.PodSucceeded
	lost.Name = makeWorkload(1).podName(0) // its node is gone: it is recreated all the same
	fine(t, predict(t, Snapshot{Nodes: []*corev1.Node{node}, Pods: []*corev1.Pod{ended, pending, lost}}, makeWorkload(1)))
}

func TestNewClaims(t *testing.T) {
	first := storagev1.VolumeBindingWaitForFirstConsumer
	ceph := makeClass("ceph", "rbd.csi.ceph.com", storagev1.VolumeBindingImmediate)
	for _, test := range []struct {
		name     string
		snapshot Snapshot
		class    string
		want     []string
	}{
		{"are taken to be bound, wherever, by a class that makes volumes at once",
			Snapshot{StorageClasses: []*storagev1.StorageClass{ceph}}, "ceph", []string{"n0", "n1"}},
		{"of no class get the default class",
			Snapshot{StorageClasses: []*storagev1.StorageClass{ceph, asDefault(makeClass("local", noProvisioner, first))}, PersistentVolumes: []*corev1.PersistentVolume{
				makeVolume("a", "local", "1Gi", corev1.LabelHostname, "n1"),
			}}, "", []string{"n1", ""}},
		{"wait for a pod and then take a volume that no other pod was promised",
			Snapshot{StorageClasses: []*storagev1.StorageClass{makeClass("local", noProvisioner, first)}, PersistentVolumes: []*corev1.PersistentVolume{
				makeVolume("a", "local", "1Gi", corev1.LabelHostname, "n1"), makeVolume("b", "local", "3Gi", corev1.LabelHostname, "n0"),
				makeVolume("small", "local", "1Mi", corev1.LabelHostname, "n1"),
			}}, "local", nil},
		{"of a class without a provisioner are bound at once to volumes that are there",
			Snapshot{StorageClasses: []*storagev1.StorageClass{makeClass("nfs", noProvisioner, storagev1.VolumeBindingImmediate)}, PersistentVolumes: []*corev1.PersistentVolume{
				makeVolume("a", "nfs", "1Gi", corev1.LabelHostname, "n1"),
			}}, "nfs", []string{"n1", ""}},
		{"of a class that does not exist are never bound", Snapshot{}, "typo", []string{"", ""}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.snapshot.Nodes, _ = zones(0, 0)
			w := withClaims(makeWorkload(2), test.class)
			got := nodesOf(predict(t, test.snapshot, w))
			if test.want == nil { // either order
				slices.Sort(got)
				test.want = []string{"n0", "n1"}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	t.Run("of a class with allowed topologies are made there", func(t *testing.T) {
		nodes, _ := zones(0, 0, 0)
		ceph := ceph.DeepCopy()
		ceph.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{"z2"}}}}}
		v := predict(t, Snapshot{Nodes: nodes, StorageClasses: []*storagev1.StorageClass{ceph}}, withClaims(makeWorkload(1), "ceph"))
		if !slices.Equal(nodesOf(v), []string{"n2"}) {
			t.Errorf("got %v", nodesOf(v))
		}
	})
}

func asDefault(class *storagev1.StorageClass) *storagev1.StorageClass {
	class.Annotations = map[string]string{defaultClassAnnotation: "true"}
	return class
}

func TestArgumentsThatAreWrong(t *testing.T) {
	broken := makeWorkload(1, spreadBy("zone"))
	broken.Template.Spec.TopologySpreadConstraints[0].LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}
	for want, w := range map[string]Workload{
		"replicas is -1: use 0 or more": makeWorkload(-1),
		"give both a name":              {Namespace: ns},
		"\"Is\" is not a valid label":   broken,
	} {
		if _, err := Predict(t.Context(), Snapshot{}, w); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

func TestNoReplicas(t *testing.T) {
	nodes, pods := zones(1, 0)
	v := predict(t, Snapshot{Nodes: nodes, Pods: pods}, makeWorkload(0, spreadBy("zone", "service", "glance")))
	fine(t, v)
	if len(v.Pods) != 0 || v.Spread[0].Skew != 1 {
		t.Errorf("got %+v", v)
	}
}

// A status that is made of a prediction must not change while nothing else does,
// and what a cache holds must stay as it is.
func TestPredictIsPure(t *testing.T) {
	for i := range 50 {
		d, again := newDraw(3, i), newDraw(3, i)
		first := predict(t, d.snapshot, d.workload)
		if diff := cmp.Diff(again.snapshot, d.snapshot, cmpopts.IgnoreUnexported(Snapshot{})); diff != "" {
			t.Fatalf("draw %d: the snapshot has changed:\n%s", i, diff)
		}
		if diff := cmp.Diff(first, predict(t, d.snapshot, d.workload), cmpopts.IgnoreUnexported(Problem{})); diff != "" {
			t.Fatalf("draw %d: another prediction:\n%s", i, diff)
		}
	}
}

// Every pod that does not fit is in a problem that says what to do.
func TestNoPodWithoutAReason(t *testing.T) {
	for i := range 60 {
		d := newDraw(5, i)
		v := predict(t, d.snapshot, d.workload)
		told := map[string]bool{}
		for _, p := range v.Problems {
			if p.Message == "" || p.Remedy == "" || len(p.Pods) == 0 {
				t.Errorf("draw %d: %+v", i, p)
			}
			if p.Reason != topologyv1.InertSelectorReason {
				for _, pod := range p.Pods {
					told[pod] = true
				}
			}
		}
		for _, pod := range v.Pods {
			if pod.Fits == told[pod.Name] || pod.Fits == (pod.Message != "") || pod.Fits == (pod.Node == "") {
				t.Errorf("draw %d: %+v in %+v", i, pod, v.Problems)
			}
		}
	}
}
