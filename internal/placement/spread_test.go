package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	"k8s.io/utils/ptr"
)

// zones returns a node per count, in zones z0, z1 and so on, with as many pods.
func zones(counts ...int) ([]*corev1.Node, []*corev1.Pod) {
	var nodes []*corev1.Node
	on := map[string]int{}
	for i, n := range counts {
		name := fmt.Sprintf("n%d", i)
		nodes = append(nodes, makeNode(name, "zone", fmt.Sprintf("z%d", i)))
		on[name] = n
	}
	return nodes, podsOn(on, "service", "glance")
}

func TestSkewIsTheSchedulersAndNotThatOfTheSeed(t *testing.T) {
	for _, test := range []struct {
		counts []int
		skew   int32
		holds  bool
	}{
		{[]int{3, 2, 2}, 1, true},
		{[]int{4, 2, 1}, 3, false},
		{[]int{4, 3, 2}, 2, false}, // seeds/002 says |4-3| = 1
		{[]int{2, 0}, 2, false},    // seeds/002 says |2-1| = 1
		{[]int{5}, 0, true},
		{[]int{0, 0, 0}, 0, true},
		{nil, 0, true},
	} {
		t.Run(fmt.Sprint(test.counts), func(t *testing.T) {
			nodes, pods := zones(test.counts...)
			s, err := Measure(spreadBy("zone", "service", "glance"), makePod("self", "", "service", "glance"), nodes, pods)
			if err != nil || s.Skew != test.skew || s.Holds != test.holds {
				t.Errorf("got skew %d, holds %t, error %v; want %d, %t", s.Skew, s.Holds, err, test.skew, test.holds)
			}
		})
	}
}

// scene is what Measure is given.
type scene struct {
	constraint corev1.TopologySpreadConstraint
	self       *corev1.Pod
	nodes      []*corev1.Node
	pods       []*corev1.Pod
}

// newScene has two pods in z0 and one in z1.
func newScene() *scene {
	nodes, pods := zones(2, 1)
	self := makePod("self", "", "service", "glance", "tier", "edge")
	return &scene{spreadBy("zone", "service", "glance"), self, nodes, pods}
}

func TestMeasure(t *testing.T) {
	both := map[string]int{"z0": 2, "z1": 1}
	none := map[string]int{"z0": 0, "z1": 0}
	for _, test := range []struct {
		name  string
		given func(s *scene)
		want  Spread
	}{
		{"pods that terminate are not counted",
			func(s *scene) {
				for _, p := range s.pods {
					p.DeletionTimestamp = ptr.To(metav1.Now())
				}
			},
			Spread{Domains: none, Selects: true, Holds: true}},
		{"pods that have ended, are pending or live in another namespace are not counted",
			func(s *scene) {
				s.pods[0].Status.Phase, s.pods[1].Namespace, s.pods[2].Spec.NodeName = corev1.PodSucceeded, "other", ""
			},
			Spread{Domains: none, Selects: true, Holds: true}},
		{"a node without the key is named and its pods count nowhere",
			func(s *scene) {
				s.nodes = append(s.nodes, makeNode("worker-3"))
				s.pods = append(s.pods, makePod("x", "worker-3", "service", "glance"))
			},
			Spread{Domains: both, NodesLackingKey: []string{"worker-3"}, Outside: 1, Skew: 1, Selects: true, Holds: true}},
		{"too few domains make the global minimum 0",
			func(s *scene) { s.constraint.MinDomains = ptr.To[int32](3) },
			Spread{Domains: both, Skew: 2, MinDomains: 3, Selects: true}},
		{"a node that the affinity rules out is no domain",
			func(s *scene) { s.self.Spec.NodeSelector = labelled("zone", "z0") },
			Spread{Domains: map[string]int{"z0": 2}, Outside: 1, Selects: true, Holds: true}},
		{"unless nodeAffinityPolicy is Ignore",
			func(s *scene) {
				s.self.Spec.NodeSelector = labelled("zone", "z0")
				s.constraint.NodeAffinityPolicy = ptr.To(corev1.NodeInclusionPolicyIgnore)
			},
			Spread{Domains: both, Skew: 1, Selects: true, Holds: true}},
		{"a tainted node is a domain",
			func(s *scene) { tainted(s.nodes[1], corev1.TaintEffectNoSchedule) },
			Spread{Domains: both, Skew: 1, Selects: true, Holds: true}},
		{"unless nodeTaintsPolicy is Honor",
			func(s *scene) {
				tainted(s.nodes[1], corev1.TaintEffectNoSchedule)
				s.constraint.NodeTaintsPolicy = ptr.To(corev1.NodeInclusionPolicyHonor)
			},
			Spread{Domains: map[string]int{"z0": 2}, Outside: 1, Selects: true, Holds: true}},
		{"a taint that only prefers keeps no node out",
			func(s *scene) {
				tainted(s.nodes[1], corev1.TaintEffectPreferNoSchedule)
				s.constraint.NodeTaintsPolicy = ptr.To(corev1.NodeInclusionPolicyHonor)
			},
			Spread{Domains: both, Skew: 1, Selects: true, Holds: true}},
		{"matchLabelKeys narrow the selector to the pod's own values",
			func(s *scene) {
				s.constraint.MatchLabelKeys = []string{"tier", "absent"}
				s.pods[0].Labels["tier"] = "edge"
			},
			Spread{Domains: map[string]int{"z0": 1, "z1": 0}, Skew: 1, Selects: true, Holds: true}},
		{"a missing selector selects nothing",
			func(s *scene) { s.constraint.LabelSelector = nil },
			Spread{Domains: none, Holds: true}},
		{"an empty selector selects nothing either",
			func(s *scene) { s.constraint.LabelSelector = &metav1.LabelSelector{} },
			Spread{Domains: none, Holds: true}},
		{"a selector of other pods is measured but does not select the workload",
			func(s *scene) { s.self.Labels = labelled("service", "nova") },
			Spread{Domains: both, Skew: 1, Holds: true}},
		{"a node without the key of another strict constraint counts for neither",
			func(s *scene) {
				s.self.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{s.constraint, spreadBy("rack", "service", "glance")}
				s.nodes[0].Labels["rack"] = "r0"
			},
			Spread{Domains: map[string]int{"z0": 2}, Outside: 1, Selects: true, Holds: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newScene()
			test.given(s)
			test.want.TopologyKey, test.want.MaxSkew, test.want.MinDomains = "zone", 1, max(test.want.MinDomains, 1)
			got, err := Measure(s.constraint, s.self, s.nodes, s.pods)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestMeasureNamesTheSelectorThatIsWrong(t *testing.T) {
	c := spreadBy("zone")
	c.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "service", Operator: "Is"}}
	_, err := Measure(c, makePod("self", ""), nil, nil)
	if err == nil || !strings.Contains(err.Error(), "labelSelector of the topology spread constraint on zone") {
		t.Errorf("got %v", err)
	}
}

// Where the scheduler got as far as spreading, Measure must say of each node
// what the scheduler says.
func TestMeasureAgreesWithTheSchedulersPlugin(t *testing.T) {
	refused, admitted := 0, 0
	for i := range 500 {
		for _, d := range []*draw{newDraw(7, i), newShapes(7, i)} {
			s, err := begun(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.create(0); err != nil {
				t.Fatal(err)
			}
			if len(s.waiting) == 0 { // the API server refuses it
				s.scheduler.stop()
				continue
			}
			o, err := s.scheduler.schedule(t.Context(), s.waiting[0].pod)
			if err != nil {
				t.Fatalf("draw %s: %v", d.prefix, err)
			}
			pods := s.scheduler.lister.pods()
			for _, node := range d.snapshot.Nodes {
				reason, asked := reasonOf(o, node)
				if !asked || reason != "" && !strings.HasPrefix(reason, podtopologyspread.ErrReasonConstraintsNotMatch) {
					continue
				}
				if reason == "" {
					admitted++
				} else {
					refused++
				}
				if want := spreadingSays(t, o.pod, node, d.snapshot.Nodes, pods); reason != want {
					t.Errorf("draw %s, node %s: scheduler says %q, Measure %q", d.prefix, node.Name, reason, want)
				}
			}
			s.scheduler.stop()
		}
	}
	if refused < 200 || admitted < 200 {
		t.Errorf("the draws are one-sided: %d nodes refused, %d admitted", refused, admitted)
	}
}

// reasonOf is what the scheduler says of a node; empty if the pod fits there.
func reasonOf(o outcome, node *corev1.Node) (reason string, asked bool) {
	if slices.Contains(o.feasible, node.Name) {
		return "", true
	}
	return strings.Join(o.statuses.Get(node.Name).Reasons(), ", "), true
}

func spreadingSays(t *testing.T, pod *corev1.Pod, node *corev1.Node, nodes []*corev1.Node, pods []*corev1.Pod) string {
	t.Helper()
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		domain, ok := node.Labels[c.TopologyKey]
		if !ok {
			return podtopologyspread.ErrReasonNodeLabelNotMatch
		}
		s, err := Measure(c, pod, nodes, pods)
		if err != nil {
			t.Fatal(err)
		}
		if !s.Admits(domain) {
			return podtopologyspread.ErrReasonConstraintsNotMatch
		}
	}
	return ""
}

func TestSummarizeNamesFewDomainsAndCountsMany(t *testing.T) {
	for n, want := range map[int]string{0: "", 2: "host-000=1,host-001=1", 500: "500 domains"} {
		domains := map[string]int{}
		for i := range n {
			domains[fmt.Sprintf("host-%03d", i)] = 1
		}
		if got := Summarize(domains); got != want {
			t.Errorf("%d domains are summed up as %q; want %q", n, got, want)
		}
	}
}

func TestDescribe(t *testing.T) {
	one := Problem{Pods: []string{"b", "a"}, Message: "no node takes it.", Remedy: "label one"}
	if got, want := Describe([]Problem{one}), "a, b: no node takes it. To fix it: label one."; got != want {
		t.Errorf("Describe says %q; want %q", got, want)
	}
	if got := Describe([]Problem{one, one, one, one, one}); strings.Count(got, "label one") != maxDescribed || !strings.HasSuffix(got, "And 2 more.") {
		t.Errorf("Describe of five problems says %q", got)
	}
}
