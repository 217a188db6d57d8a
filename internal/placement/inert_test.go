package placement

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

func required(terms ...corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
}

func preferred(term corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: term}}}}
}

func near(term corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
}

func preferring(term corev1.NodeSelectorTerm) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: term}}}}
}

func selecting(pairs ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: labelled(pairs...)}
}

func TestRulesWithoutEffectAreReported(t *testing.T) {
	const host = corev1.LabelHostname
	constrained := func(change func(*corev1.TopologySpreadConstraint)) corev1.PodSpec {
		c := spreadBy("zone", "service", "glance")
		change(&c)
		return corev1.PodSpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{c}}
	}
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		says string
	}{
		"matchLabelKeys of a Deployment": {
			constrained(func(c *corev1.TopologySpreadConstraint) { c.MatchLabelKeys = []string{"pod-template-hash"} }),
			"matchLabelKeys of the topology spread constraint on \"zone\" has the key pod-template-hash, which no pod of",
		},
		"matchLabelKeys of a StatefulSet": {
			constrained(func(c *corev1.TopologySpreadConstraint) { c.MatchLabelKeys = []string{"controller-revision-hash"} }), "",
		},
		"a soft constraint on a key that no node has": {
			constrained(func(c *corev1.TopologySpreadConstraint) {
				c.TopologyKey, c.WhenUnsatisfiable = "topology.kubernetes.io/zoen", corev1.ScheduleAnyway
			}),
			"names the label topology.kubernetes.io/zoen, which no node has",
		},
		"anti-affinity without a selector":                   {corev1.PodSpec{Affinity: required(corev1.PodAffinityTerm{TopologyKey: host})}, "has no labelSelector"},
		"anti-affinity with a misspelt label":                {corev1.PodSpec{Affinity: required(corev1.PodAffinityTerm{TopologyKey: host, LabelSelector: selecting("service", "glnace")})}, "selects pods with service=glnace, and there is none"},
		"anti-affinity to pods of another service":           {corev1.PodSpec{Affinity: required(corev1.PodAffinityTerm{TopologyKey: host, LabelSelector: selecting("service", "galera")})}, ""},
		"anti-affinity to such pods in another namespace":    {corev1.PodSpec{Affinity: required(corev1.PodAffinityTerm{TopologyKey: host, Namespaces: []string{otherNS}, LabelSelector: selecting("service", "galera")})}, "there is none"},
		"anti-affinity by namespaces that have no such pods": {corev1.PodSpec{Affinity: required(corev1.PodAffinityTerm{TopologyKey: host, NamespaceSelector: selecting("team", "other"), LabelSelector: selecting("service", "glance")})}, "in namespaces with team=other, and there is none"},
		"anti-affinity by a label that no namespace has":     {corev1.PodSpec{Affinity: required(corev1.PodAffinityTerm{TopologyKey: host, NamespaceSelector: selecting("team", "cluod"), LabelSelector: selecting("service", "glance")})}, "in namespaces with team=cluod, and there is none"},
		"anti-affinity by the label of its own namespace":    {corev1.PodSpec{Affinity: required(corev1.PodAffinityTerm{TopologyKey: host, NamespaceSelector: selecting("team", "cloud"), LabelSelector: selecting("service", "glance")})}, ""},
		"anti-affinity in all namespaces":                    {corev1.PodSpec{Affinity: required(corev1.PodAffinityTerm{TopologyKey: host, NamespaceSelector: selecting(), LabelSelector: selecting("service", "glance")})}, ""},
		"matchLabelKeys that each pod has its own value of": {
			constrained(func(c *corev1.TopologySpreadConstraint) { c.MatchLabelKeys = []string{"apps.kubernetes.io/pod-index"} }),
			"selects, of each pod, only the pod itself: matchLabelKeys has apps.kubernetes.io/pod-index",
		},
		"matchLabelKeys with the name of the pod": {
			constrained(func(c *corev1.TopologySpreadConstraint) {
				c.MatchLabelKeys = []string{"statefulset.kubernetes.io/pod-name"}
			}), "it spreads nothing",
		},
		"anti-affinity to the pod itself":                     {corev1.PodSpec{Affinity: required(corev1.PodAffinityTerm{TopologyKey: host, LabelSelector: selecting("service", "glance"), MatchLabelKeys: []string{"apps.kubernetes.io/pod-index"}})}, "only the pod itself"},
		"anti-affinity to pods of the same index":             {corev1.PodSpec{Affinity: required(corev1.PodAffinityTerm{TopologyKey: host, LabelSelector: selecting("service", "galera"), MatchLabelKeys: []string{"apps.kubernetes.io/pod-index"}})}, ""},
		"anti-affinity to pods that differ in what all share": {corev1.PodSpec{Affinity: required(corev1.PodAffinityTerm{TopologyKey: host, LabelSelector: selecting("service", "glance"), MismatchLabelKeys: []string{"service"}})}, "of which none has another value of service, its mismatchLabelKeys, than the pod itself"},
		"anti-affinity to pods that differ in it":             {corev1.PodSpec{Affinity: required(corev1.PodAffinityTerm{TopologyKey: host, LabelSelector: selecting(), MismatchLabelKeys: []string{"service"}})}, ""},
		"required affinity by a key that no pod has":          {corev1.PodSpec{Affinity: near(corev1.PodAffinityTerm{TopologyKey: host, LabelSelector: selecting("service", "galera"), MatchLabelKeys: []string{"pod-template-hash"}})}, "matchLabelKeys of the podAffinity on \"kubernetes.io/hostname\" has the key pod-template-hash"},
		"required affinity to pods that are there":            {corev1.PodSpec{Affinity: near(corev1.PodAffinityTerm{TopologyKey: host, LabelSelector: selecting("service", "galera")})}, ""},
		"a preference for nodes by a value that none has":     {corev1.PodSpec{Affinity: preferring(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"zoneD", "zoneE"}}}})}, "is for nodes with zone In [zoneD, zoneE], and there is none"},
		"a preference for nodes by values that no node has together": {corev1.PodSpec{Affinity: preferring(corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"zoneA"}}},
			MatchFields:      []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"worker-1"}}},
		})}, "zone In [zoneA] and metadata.name In [worker-1]"},
		"a preference for a node that does not exist":       {corev1.PodSpec{Affinity: preferring(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"worker-9"}}}})}, "metadata.name In [worker-9]"},
		"a preference for nodes that are there":             {corev1.PodSpec{Affinity: preferring(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"zoneA"}}}})}, ""},
		"anti-affinity to its own pods":                     {corev1.PodSpec{Affinity: required(corev1.PodAffinityTerm{TopologyKey: host, LabelSelector: selecting("service", "glance")})}, ""},
		"anti-affinity on a key that no node has":           {corev1.PodSpec{Affinity: required(corev1.PodAffinityTerm{TopologyKey: "rack", LabelSelector: selecting("service", "glance")})}, "names the label rack, which no node has"},
		"anti-affinity with keys that no pod has to differ": {corev1.PodSpec{Affinity: required(corev1.PodAffinityTerm{TopologyKey: host, LabelSelector: selecting("service", "glance"), MismatchLabelKeys: []string{"tenant"}})}, "mismatchLabelKeys of the podAntiAffinity"},
		"a preference for pods that are not there":          {corev1.PodSpec{Affinity: preferred(corev1.PodAffinityTerm{TopologyKey: host, LabelSelector: selecting("service", "none")})}, "the podAffinity on \"kubernetes.io/hostname\" selects pods with service=none"},
		"a preference for nodes by a key that none has": {corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
			{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"ssd"}}}}},
		}}}}, "a preference of the nodeAffinity names the label disk"},
		"a preference for nodes without a key": {corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
			{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpDoesNotExist}}}},
		}}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := makeWorkload(2)
			c.spec.Containers = w.Template.Spec.Containers
			w.Template.Spec = c.spec
			v := predict(t, Snapshot{Nodes: sevenNodes(), Namespaces: drawnNamespaces(), Pods: []*corev1.Pod{makePod("galera-0", "master-0", "service", "galera", "apps.kubernetes.io/pod-index", "0")}}, w)
			if c.says == "" && len(v.Preferences) == 0 {
				fine(t, v)
				return
			}
			if soft := strings.Contains(name, "preference") || strings.Contains(name, "soft"); soft {
				fine(t, v)
				v.Problems = v.Preferences
			}
			p := problem(t, v, topologyv1.InertSelectorReason, c.says)
			if !v.Fits() || p.Remedy == "" || strings.Contains(p.Message, "%!") || len(p.Pods) != 2 {
				t.Errorf("got %+v", v)
			}
		})
	}
}

// With one replica a rule by the name of the pod is what a second one would make of it.
func TestARuleOfASinglePodIsNotInert(t *testing.T) {
	c := spreadBy("zone", "service", "glance")
	c.MatchLabelKeys = []string{"statefulset.kubernetes.io/pod-name"}
	fine(t, predict(t, Snapshot{Nodes: sevenNodes()}, makeWorkload(1, c)))
}

// By the index of pods two services with one label are spread against each other.
func TestAConstraintThatCountsPodsOfAnotherWorkloadIsNotInert(t *testing.T) {
	c := spreadBy("zone", "service", "glance")
	c.MatchLabelKeys = []string{"apps.kubernetes.io/pod-index"}
	other := makePod("glance-default-internal-api-0", "master-0", "service", "glance", "apps.kubernetes.io/pod-index", "0")
	fine(t, predict(t, Snapshot{Nodes: sevenNodes(), Pods: []*corev1.Pod{other}}, makeWorkload(2, c)))
}
