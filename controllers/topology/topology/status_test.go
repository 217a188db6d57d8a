package topology

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/topology"
)

// crowd is a measurement with many domains, one pod each, and as many nodes that
// lack the key.
func crowd(n int) *measurement {
	m := &measurement{pods: map[string]int{}, lacking: map[string]bool{}}
	for i := range n {
		m.pods[fmt.Sprintf("host-%03d", i)] = 1
		m.lacking[fmt.Sprintf("odd-%03d", i)] = true
	}
	return m
}

func TestAStatusHasBounds(t *testing.T) {
	c := &corev1.TopologySpreadConstraint{TopologyKey: corev1.LabelHostname}
	status := crowd(500).status(c, nil)
	if len(status.Domains) != topologyv1.MaxDomains || status.DomainCount != 500 || status.Domains[0].Name != "host-000" {
		t.Errorf("%d of %d domains are listed, from %s on; want the first %d of 500", len(status.Domains), status.DomainCount, status.Domains[0].Name, topologyv1.MaxDomains)
	}
	if lacking := status.NodesLackingKey; len(lacking.Names) != topologyv1.MaxNodes || lacking.Count != 500 {
		t.Errorf("%d of %d nodes are listed; want the first %d of 500", len(lacking.Names), lacking.Count, topologyv1.MaxNodes)
	}
}

func TestConsumersHaveBoundsAndAreAllCounted(t *testing.T) {
	s := &scope{topology: &topologyv1.Topology{}, used: map[topology.Consumer]bool{}}
	for i := range 300 {
		s.used[topology.Consumer{Kind: "GlanceAPI", Name: fmt.Sprintf("api-%03d", i)}] = true
	}
	now := metav1.Now()
	s.topology.DeletionTimestamp = &now
	if err := s.consumers(t.Context()); err != nil {
		t.Fatal(err)
	}
	status := s.topology.Status
	if len(status.Consumers) != topologyv1.MaxConsumers || status.ConsumerCount != 300 {
		t.Errorf("%d of %d consumers are listed; want %d of 300", len(status.Consumers), status.ConsumerCount, topologyv1.MaxConsumers)
	}
	message := status.Conditions.Get(topologyv1.ConsumersReadyCondition).Message
	if !strings.Contains(message, "api-009 and 290 more") || strings.Contains(message, "api-010") {
		t.Errorf("the condition names too many, or does not count the others: %s", message)
	}
}

func TestConsumersShowTheirPods(t *testing.T) {
	long := topology.Consumer{Kind: "GlanceAPI", Name: strings.Repeat("edge-", 20) + "api"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{topologyv1.ConsumersAnnotation: long.String()}}}
	s := &scope{topology: &topologyv1.Topology{}, own: []*corev1.Pod{pod, pod}, used: map[topology.Consumer]bool{long: true}}
	got := s.consumersWithPods()
	if want := (topologyv1.Consumer{Kind: "GlanceAPI", Name: long.Name, Pods: 2}); len(got) != 1 || got[0] != want {
		t.Errorf("the consumers are %+v; want %+v", got, want)
	}
}

func TestPodsThatAskTheSameOfNodesAreMeasuredOnce(t *testing.T) {
	c := corev1.TopologySpreadConstraint{TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
	s := &scope{topology: &topologyv1.Topology{}}
	for i := range 30 {
		pod := &corev1.Pod{}
		if i%3 == 0 {
			pod.Spec.NodeSelector = map[string]string{"disk": "fast"}
		}
		s.own = append(s.own, pod)
	}
	groups, err := s.groups(&c)
	if err != nil || len(groups) != 1 || len(groups["a=b"]) != 2 {
		t.Errorf("30 pods of two kinds are measured as %d groups, the first of %d kinds", len(groups), len(groups["a=b"]))
	}
}

// rolling are pods of two revisions in two zones: each revision is spread evenly,
// and both together as well.
func rolling(revisions ...string) *scope {
	c := corev1.TopologySpreadConstraint{
		TopologyKey: "zone", MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule, MatchLabelKeys: []string{"revision"},
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
	}
	s := &scope{topology: &topologyv1.Topology{Spec: topologyv1.TopologySpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{c}}}}
	for _, zone := range []string{"z1", "z2"} {
		s.nodes = append(s.nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: zone, Labels: map[string]string{"zone": zone}}})
	}
	for _, revision := range revisions {
		name, zone, _ := strings.Cut(revision, "@")
		s.pods = append(s.pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b", "revision": name}},
			Spec:       corev1.PodSpec{NodeName: zone, TopologySpreadConstraints: s.topology.Spec.TopologySpreadConstraints},
		})
	}
	s.own = s.pods
	return s
}

// The scheduler counts for each pod those with its own values of matchLabelKeys, so
// that a roll-out is spread by itself.
func TestEachValueOfMatchLabelKeysIsMeasuredByItself(t *testing.T) {
	for name, c := range map[string]struct {
		pods  []string
		skew  int32
		ready bool
	}{
		"each revision exceeds maxSkew, and all together do not": {[]string{"old@z1", "old@z1", "new@z2", "new@z2"}, 2, false},
		"one revision exceeds it":                                {[]string{"old@z1", "old@z2", "new@z2", "new@z2"}, 2, false},
		"each keeps to it, and all together do not":              {[]string{"old@z1", "new@z1"}, 1, true},
	} {
		for range 2 {
			s := rolling(c.pods...)
			if err := s.spread(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := s.topology.Status
			if got.Conditions.IsTrue(topologyv1.SpreadReadyCondition) != c.ready || got.Constraints[0].Skew != c.skew {
				t.Errorf("%s, pods %v: the skew is %d, and SpreadReady says %q; want skew %d and %v",
					name, c.pods, got.Constraints[0].Skew, got.Conditions.Get(topologyv1.SpreadReadyCondition).Message, c.skew, c.ready)
			}
			pods := 0
			for _, d := range got.Constraints[0].Domains {
				pods += int(d.Pods)
			}
			if pods != len(c.pods) {
				t.Errorf("%s: %d pods are counted; want %d", name, pods, len(c.pods))
			}
			slices.Reverse(c.pods)
		}
	}
}

// Pods of before an edit have other constraints, and so other nodes count for them.
func TestTheOrderOfPodsDoesNotMatter(t *testing.T) {
	var skews []string
	for range 2 {
		s := rolling("old@z1", "old@z1", "old@z2")
		old := s.pods[0].DeepCopy()
		old.Spec.TopologySpreadConstraints = append(slices.Clone(old.Spec.TopologySpreadConstraints), corev1.TopologySpreadConstraint{TopologyKey: "rack", WhenUnsatisfiable: corev1.DoNotSchedule})
		s.pods[0], s.own = old, s.pods
		if len(skews) > 0 {
			slices.Reverse(s.own)
		}
		if err := s.spread(t.Context()); err != nil {
			t.Fatal(err)
		}
		skews = append(skews, s.topology.Status.SkewSummary+" "+s.topology.Status.DomainsSummary)
	}
	if skews[0] != skews[1] {
		t.Errorf("in one order it is %s, in the other %s", skews[0], skews[1])
	}
}
