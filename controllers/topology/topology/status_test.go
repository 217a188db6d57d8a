package topology

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	s := &scope{Reconciler: &Reconciler{Client: schemeOnly{}}, topology: &topologyv1.Topology{}}
	for i := range 300 {
		s.topology.Finalizers = append(s.topology.Finalizers, topology.Consumer{Kind: "GlanceAPI", Name: fmt.Sprintf("api-%03d", i)}.Finalizer())
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

func TestPodsTellTheNameThatAFinalizerCuts(t *testing.T) {
	long := topology.Consumer{Kind: "GlanceAPI", Name: strings.Repeat("edge-", 20) + "api"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{topologyv1.ConsumersAnnotation: long.String()}}}
	s := &scope{Reconciler: &Reconciler{Client: schemeOnly{}}, topology: &topologyv1.Topology{}, own: []*corev1.Pod{pod, pod}}
	s.topology.Finalizers = []string{long.Finalizer()}
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
	groups := s.groups(&c)
	if len(groups) != 1 || len(groups["a=b"]) != 2 {
		t.Errorf("30 pods of two kinds are measured as %d groups, the first of %d kinds", len(groups), len(groups["a=b"]))
	}
}

// schemeOnly is a client that knows kinds and nothing else.
type schemeOnly struct{ client.Client }

func (schemeOnly) Scheme() *runtime.Scheme { return runtime.NewScheme() }
