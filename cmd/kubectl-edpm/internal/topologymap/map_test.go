package topologymap

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/placement"
)

func node(name, zone string) *corev1.Node {
	n := &corev1.Node{}
	n.Name, n.Labels = name, map[string]string{corev1.LabelHostname: name}
	if zone != "" {
		n.Labels["zone"] = zone
	}
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("8Gi"),
	}
	return n
}

var glance = map[string]string{"service": "glance"}

func spread(selector map[string]string) corev1.TopologySpreadConstraint {
	return corev1.TopologySpreadConstraint{
		MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: selector},
	}
}

func pod(name, node string, constraints ...corev1.TopologySpreadConstraint) *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name, p.Labels = "openstack", name, glance
	p.Spec.NodeName, p.Spec.TopologySpreadConstraints = node, constraints
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	return p
}

// seven is the cluster of seeds/001, but worker-3 has no zone.
func seven(pods ...*corev1.Pod) placement.Snapshot {
	return placement.Snapshot{Pods: pods, Nodes: []*corev1.Node{
		node("master-0", "zoneA"), node("worker-0", "zoneA"), node("worker-3", ""), node("master-1", "zoneB"),
		node("worker-1", "zoneB"), node("master-2", "zoneC"), node("worker-2", "zoneC"),
	}}
}

func all(*corev1.Pod) bool { return true }

func draw(t *testing.T, w placement.Snapshot) string {
	t.Helper()
	m, err := New(w, "zone", all)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := m.Text(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTheDomainsStandSideBySideWithTheirPods(t *testing.T) {
	w := seven(pod("api-ext-0", "master-0", spread(glance)), pod("api-ext-1", "worker-1", spread(glance)), pod("api-int-0", "worker-3", spread(glance)), pod("api-int-1", "", spread(glance)))
	w.Nodes[4].Spec.Unschedulable = true
	w.Nodes[5].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	want := `
+-------------+          +-----------------------+ +-----------------------+
| zoneA       |          | zoneB                 | | zoneC                 |
|   master-0  |          |   master-1            | |   master-2 [NotReady] |
|   worker-0  |          |   worker-1 [Cordoned] | |   worker-2            |
+-------------+          +-----------------------+ +-----------------------+
|_ api-ext-0 (master-0)  |_ api-ext-1 (worker-1)

Node worker-3 does not have the label zone, but has these pods:
|_ api-int-0

Pending:
|_ api-int-1

service=glance by zone (DoNotSchedule): zoneA 1, zoneB 1, zoneC 0; skew 1 of 1, holds; nodes without the label: worker-3
`
	if diff := cmp.Diff(squeezed(want), squeezed("\n"+draw(t, w))); diff != "" {
		t.Errorf("the picture differs (-want +got):\n%s", diff)
	}
}

// squeezed leaves out how wide columns are.
func squeezed(s string) string {
	var lines []string
	for _, l := range strings.Split(s, "\n") {
		l = strings.NewReplacer("-", "", "+", "").Replace(strings.Join(strings.Fields(l), " "))
		lines = append(lines, strings.TrimSpace(l))
	}
	return strings.Join(lines, "\n")
}

func TestColumnsAreStraight(t *testing.T) {
	lines := strings.Split(draw(t, seven(pod("api-ext-0", "master-0"), pod("b", "worker-1"), pod("c", "master-2"))), "\n")
	edges := strings.Index(lines[0], " +")
	for i, l := range lines[:6] {
		if len(l) <= edges+1 || l[edges] != ' ' || !strings.ContainsRune("+|", rune(l[edges+1])) {
			t.Errorf("line %d has no column at %d: %q", i, edges, l)
		}
	}
}

func TestAConstraintThatSelectsNoneOfItsPodsIsToldOf(t *testing.T) {
	got := draw(t, seven(pod("a", "master-0", spread(map[string]string{"glanceAPI": "czone"}))))
	if !strings.Contains(got, "glanceAPI=czone by zone (DoNotSchedule): zoneA 0, zoneB 0, zoneC 0; skew 0 of 1, holds; it matches none of the pods of its own service") {
		t.Errorf("the picture is\n%s", got)
	}
}

func TestSkewIsThatOfTheScheduler(t *testing.T) {
	got := draw(t, seven(pod("a", "master-0", spread(glance)), pod("b", "worker-0", spread(glance))))
	if !strings.Contains(got, "zoneA 2, zoneB 0, zoneC 0; skew 2 of 1, does not hold") {
		t.Errorf("the picture is\n%s", got)
	}
}

func TestAClusterWithoutTheLabelSaysSo(t *testing.T) {
	got := draw(t, placement.Snapshot{Nodes: []*corev1.Node{node("n", "")}, Pods: []*corev1.Pod{pod("a", "n")}})
	if !strings.Contains(got, "No node has the label zone.") || !strings.Contains(got, "Node n does not have the label zone, but has these pods:\n|_ a") {
		t.Errorf("the picture is\n%s", got)
	}
}

func TestEndedPodsAreLeftOut(t *testing.T) {
	p := pod("done", "master-0")
	p.Status.Phase = corev1.PodSucceeded
	if got := draw(t, seven(p)); strings.Contains(got, "done") {
		t.Errorf("the picture is\n%s", got)
	}
}

func TestSVGIsXMLWithEveryPod(t *testing.T) {
	bad := pod("<&>", "master-1", spread(map[string]string{"x": "y"}))
	bad.DeletionTimestamp = ptr.To(metav1.Now())
	m, err := New(seven(pod("a", "master-0"), bad, pod("lost", ""), pod("out", "worker-3")), "zone", all)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := m.SVG(&b); err != nil {
		t.Fatal(err)
	}
	text := textOf(t, b.String())
	for _, want := range []string{"zoneA", "a", "<&> [Terminating]", "lost [Pending]", "out", "without zone", "pending"} {
		if !slices.Contains(text, want) {
			t.Errorf("the drawing lacks %q: %q", want, text)
		}
	}
}

// textOf returns the pieces of character data of XML.
func textOf(t *testing.T, s string) []string {
	t.Helper()
	var text []string
	for d := xml.NewDecoder(strings.NewReader(s)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return text
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, s)
		}
		if data, ok := token.(xml.CharData); ok {
			text = append(text, strings.TrimSpace(string(data)))
		}
	}
}

func set(name string, replicas int32) appsv1.StatefulSet {
	s := appsv1.StatefulSet{}
	s.Namespace, s.Name, s.Spec.Replicas = "openstack", name, &replicas
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: glance}
	s.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: glance}, Spec: pod("", "").Spec}
	return s
}

func simulate(t *testing.T, w placement.Snapshot, top *topologyv1.Topology, sets ...appsv1.StatefulSet) Simulation {
	t.Helper()
	s, err := Simulate(context.Background(), w, "zone", top, sets)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSimulatingSpreadsTwoStatefulSetsAsOneGroup(t *testing.T) {
	w := seven()
	for i, name := range []string{"ext-0", "ext-1", "ext-2", "int-0", "int-1", "int-2"} {
		w.Pods = append(w.Pods, pod(name, []string{"master-0", "worker-0"}[i%2]))
	}
	top := &topologyv1.Topology{}
	top.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{spread(glance)}
	s := simulate(t, w, top, set("int", 3), set("ext", 3))
	want := []Constraint{{
		TopologyKey: "zone", WhenUnsatisfiable: "DoNotSchedule", Selector: "service=glance",
		Pods: map[string]int{"zoneA": 2, "zoneB": 2, "zoneC": 2}, NodesLackingKey: []string{"worker-3"}, MaxSkew: 1, Holds: true,
	}}
	if diff := cmp.Diff(want, s.After.Constraints); diff != "" {
		t.Errorf("the constraints after differ (-want +got):\n%s", diff)
	}
	if len(s.Before.Domains[0].Nodes[0].Pods) != 3 || len(s.Before.Constraints) != 0 {
		t.Errorf("the picture before is %+v", s.Before)
	}
	if len(w.Pods) != 6 || w.Pods[0].Spec.NodeName != "master-0" {
		t.Error("the snapshot was changed")
	}
}

func TestSimulatingTellsWhoWouldFindNoPlaceAndWhatToDo(t *testing.T) {
	w := placement.Snapshot{Nodes: []*corev1.Node{node("n", "")}, Pods: []*corev1.Pod{pod("api-0", "n")}}
	top := &topologyv1.Topology{}
	top.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{spread(glance)}
	s := simulate(t, w, top, set("api", 1))
	var b bytes.Buffer
	if err := s.Text(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Before\n", "After\n", "Pending:\n|_ api-0", "api-0 would be Pending: 0/1 nodes are available", "MissingNodeLabel: ", "Remedy: label node n with zone"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, b.String())
		}
	}
}

func TestSimulatingTakesAwayWhatAnotherTopologySaid(t *testing.T) {
	sts := set("api", 2)
	sts.Spec.Template.Spec.NodeSelector = nil
	sts.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: inZone("zoneC")}
	top := &topologyv1.Topology{}
	top.Spec.Affinity = &corev1.Affinity{NodeAffinity: inZone("zoneB")}
	s := simulate(t, seven(), top, sts)
	for _, d := range s.After.Domains {
		pods := 0
		for _, n := range d.Nodes {
			pods += len(n.Pods)
		}
		if want := map[string]int{"zoneB": 2}[d.Name]; pods != want {
			t.Errorf("%s has %d pods; want %d", d.Name, pods, want)
		}
	}
}

func inZone(zone string) *corev1.NodeAffinity {
	return &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
	}}}}
}
