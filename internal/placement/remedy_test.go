package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// The first remedy is tried on the model before it is given: once it is applied the pods
// fit, whatever kube-scheduler chooses.
func TestTheFirstRemedyHelps(t *testing.T) {
	draws := max(8, *drawsFlag/20)
	problems := 0
	for i := range draws {
		for _, d := range []*draw{newDraw(*seedFlag, i), newShapes(*seedFlag, i), newRetained(*seedFlag, i)} {
			problems += tryFirstRemedies(t, d)
		}
	}
	if problems < draws {
		t.Errorf("only %d problems were drawn", problems)
	}
}

// tryFirstRemedies applies the first remedy of each problem of a draw, and returns how
// many problems there are.
func tryFirstRemedies(t *testing.T, d *draw) (problems int) {
	t.Helper()
	workloads := []Workload{d.workload}
	v := predict(t, d.snapshot, d.workload)
	all := newRemedies(t.Context(), d.snapshot, workloads, []Prediction{v})
	for _, p := range v.Problems {
		if p.Reason == inertReason {
			continue
		}
		problems++
		helpful, err := all.of(0, p)
		if err != nil || len(helpful) == 0 {
			t.Errorf("draw %s: nothing helps against %+v; %v", d.prefix, p, err)
			continue
		}
		if !strings.HasPrefix(p.Remedy, describe(helpful[:1], p)) {
			t.Errorf("draw %s: the remedy is %q; the first that helps is %q", d.prefix, p.Remedy, describe(helpful[:1], p))
		}
		after := all.start
		for _, remedy := range helpful[0] {
			remedy.apply(&after)
		}
		plays, err := playAll(t.Context(), after.Snapshot, after.workloads)
		if err != nil {
			t.Fatal(err)
		}
		pods, _ := plays.pods(0)
		for _, pod := range pods {
			if slices.Contains(p.Pods, pod.Name) && !pod.Fits {
				t.Errorf("draw %s: after %q: %+v", d.prefix, p.Remedy, pod)
			}
		}
	}
	return problems
}

func controlPlane(node *corev1.Node) *corev1.Node {
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule})
	return node
}

// The threads are those of people whose nodes with taints counted as empty domains.
func TestNodesWithTaintsAreNoEmptyDomains(t *testing.T) {
	const host = corev1.LabelHostname
	drained := cordoned(makeNode("n2", "zone", "z2"))
	drained.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
	for name, c := range map[string]struct {
		nodes    []*corev1.Node
		replicas int32
		key      string
		of       string
	}{
		"a control plane (kubernetes#116118)":              {[]*corev1.Node{controlPlane(makeNode("cp")), makeNode("w1"), makeNode("w2"), makeNode("w3")}, 7, host, "(cp)"},
		"a node for something special (kubernetes#107464)": {[]*corev1.Node{makeNode("a"), makeNode("b"), tainted(makeNode("special"), corev1.TaintEffectNoSchedule)}, 6, host, "(special)"},
		"a node that is drained (kubernetes#106127)":       {[]*corev1.Node{makeNode("n0", "zone", "z0"), makeNode("n1", "zone", "z1"), drained}, 3, "zone", "(n2)"},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, w := Snapshot{Nodes: c.nodes}, makeWorkload(c.replicas, spreadBy(c.key, "service", "glance"))
			p := problem(t, predict(t, snapshot, w), topologyv1.UnsatisfiableReason)
			want := "set nodeTaintsPolicy: Honor in the topology spread constraint on " + c.key
			if !strings.HasPrefix(p.Remedy, want) || !strings.Contains(p.Remedy, c.of) {
				t.Errorf("the remedy is %q; want first %q, and %q", p.Remedy, want, c.of)
			}
			w.Template.Spec.TopologySpreadConstraints[0].NodeTaintsPolicy = ptr.To(corev1.NodeInclusionPolicyHonor)
			fine(t, predict(t, snapshot, w))
		})
	}
}

// What changes least comes first, and what does not help is not given.
func TestRemediesInOrder(t *testing.T) {
	for name, c := range map[string]struct {
		nodes   []*corev1.Node
		change  func(*Workload)
		want    []string
		without string
	}{
		"a taint before the skew, where the policy does not help": {
			[]*corev1.Node{tainted(makeNode("a", "zone", "A"), corev1.TaintEffectNoSchedule)}, nil, []string{"take the taints off nodes, or tolerate them: a"}, "nodeTaintsPolicy",
		},
		"the control plane last": {
			[]*corev1.Node{controlPlane(makeNode("cp", "zone", "A"))}, nil, []string{"add nodes", "tolerate the taints of the control plane"}, "take the taints",
		},
		"a node that is not ready": {
			[]*corev1.Node{withTaint(makeNode("a", "zone", "A"), corev1.TaintNodeNotReady)}, nil, []string{"bring these nodes back"}, "take the taints",
		},
		"two together, if neither helps alone": {
			[]*corev1.Node{cordoned(tainted(makeNode("a", "zone", "A"), corev1.TaintEffectNoSchedule))},
			func(w *Workload) {
				w.Template.Spec.NodeSelector = labelled("zone", "A")
				w.Template.Spec.TopologySpreadConstraints = nil
			}, []string{"add nodes"}, "uncordon",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := makeWorkload(1, spreadBy("zone", "service", "glance"))
			if c.change != nil {
				c.change(&w)
			}
			p := problem(t, predict(t, Snapshot{Nodes: c.nodes}, w), topologyv1.UnsatisfiableReason)
			rest := p.Remedy
			for i, want := range c.want {
				_, after, found := strings.Cut(rest, want)
				if rest = after; !found || i == 0 && !strings.HasPrefix(p.Remedy, want) {
					t.Errorf("the remedy is %q; want in this order %q", p.Remedy, c.want)
				}
			}
			if strings.Contains(p.Remedy, c.without) {
				t.Errorf("%q does not help: %q", c.without, p.Remedy)
			}
		})
	}
}

func withTaint(node *corev1.Node, key string) *corev1.Node {
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	return node
}

// A claim is only given up if nothing else helps, and then the data on it is named.
func TestDeletingAClaimIsTheLastRemedy(t *testing.T) {
	snapshot, w := retained("a1", "a2")
	snapshot.StorageClasses[0].Provisioner = "topolvm.io"
	snapshot.Nodes = snapshot.Nodes[2:]
	single := w
	single.ClaimTemplates, single.Replicas, single.Name = nil, 1, "osd"
	single.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: w.claims(0)[0].Name},
	}}}
	for name, workload := range map[string]Workload{"of a service": w, "of an OSD": single} {
		t.Run(name, func(t *testing.T) {
			for _, p := range predict(t, snapshot, workload).Problems {
				if !strings.HasPrefix(p.Remedy, "bring the volume's node back") || strings.Contains(p.Remedy, "delete") {
					t.Errorf("got %q", p.Remedy)
				}
			}
		})
	}
	t.Run("names what is lost", func(t *testing.T) {
		p := Problem{claim: "glance-0", Volume: "pv-0", size: "2Gi"}
		lost := deleteClaims(&situation{Snapshot: snapshot, workloads: []Workload{w}, stuck: []stuckPod{{0, w.podName(0)}}})[0]
		if got, want := lost.text(p), "delete claim glance-0, so that a new volume is made elsewhere; all data on PersistentVolume pv-0 (2Gi) is lost"; got != want || !lost.loses {
			t.Errorf("got %q", got)
		}
	})
}

// A plugin that a later Kubernetes adds needs a change that helps against it, and a place
// here.
func TestEveryFilterIsKnown(t *testing.T) {
	objects, err := newObjects(&Snapshot{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := newScheduler(t.Context(), objects, (*nodeInfos)(nil).with(nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	filters := []string{}
	for _, p := range s.ListPlugins().Filter.Enabled {
		filters = append(filters, p.Name)
	}
	slices.Sort(filters)
	// A template names no node, and needs no feature of the kubelet.
	want := []string{
		"InterPodAffinity", "NodeAffinity", "NodeDeclaredFeatures", "NodeName", "NodePorts", "NodeResourcesFit", "NodeUnschedulable", "NodeVolumeLimits",
		"PodTopologySpread", "TaintToleration", "VolumeBinding", "VolumeRestrictions", "VolumeZone",
	}
	if !slices.Equal(filters, want) {
		t.Errorf("the filters are %v, want %v", filters, want)
	}
}

// small makes a node too small for any pod that requests CPU.
func small(node *corev1.Node) *corev1.Node {
	node.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("1m")
	return node
}

// apartFrom returns a pod of a namespace that refuses pods with a label on its node.
func apartFrom(namespace, name, node string, pairs ...string) *corev1.Pod {
	pod := makePod(name, node)
	pod.Namespace = namespace
	pod.Spec.Affinity = required(corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, Namespaces: []string{ns}, LabelSelector: selecting(pairs...)})
	return pod
}

// A remedy names the objects that have to change, and not all of their kind.
func TestRemediesChangeAsLittleAsHelps(t *testing.T) {
	full := small(makeNode("w1"))
	var many []*corev1.Node
	for i := range 16 {
		many = append(many, small(cordoned(makeNode(fmt.Sprintf("old-%02d", i)))))
	}
	for name, c := range map[string]struct {
		nodes []*corev1.Node
		pods  []*corev1.Pod
		want  string
	}{
		"one of two cordoned nodes":      {[]*corev1.Node{full, small(cordoned(makeNode("old"))), cordoned(makeNode("w2"))}, nil, "uncordon nodes (kubectl uncordon): w2; or"},
		"one of many cordoned nodes":     {append(many, cordoned(makeNode("new"))), nil, "uncordon nodes (kubectl uncordon): new; or"},
		"one of two nodes that would do": {[]*corev1.Node{full, cordoned(makeNode("w2")), cordoned(makeNode("w3"))}, nil, "uncordon nodes (kubectl uncordon): w2; or"},
		"one of two nodes with taints": {
			[]*corev1.Node{full, small(tainted(makeNode("old"), corev1.TaintEffectNoSchedule)), tainted(makeNode("w2"), corev1.TaintEffectNoSchedule)}, nil, "take the taints off nodes, or tolerate them: w2; or",
		},
		"the pods that refuse it, and not those that refuse others": {
			[]*corev1.Node{makeNode("w1"), full},
			[]*corev1.Pod{apartFrom(otherNS, "b", "w1", "service", "glance"), apartFrom(otherNS, "a", "w1", "service", "glance"), apartFrom(ns, "c", "w1", "service", "glance"), apartFrom(ns, "d", "w1", "service", "nova")},
			"relax the required anti-affinity of other pods (c, other/a, other/b); or",
		},
		"one of two that refuse it on two nodes": {
			[]*corev1.Node{makeNode("w1"), makeNode("w2")},
			[]*corev1.Pod{apartFrom(ns, "a", "w1", "service", "glance"), apartFrom(ns, "b", "w2", "service", "glance")},
			"relax the required anti-affinity of other pods (a); or",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := makeWorkload(1)
			w.Template.Spec.Containers[0].Resources.Requests = resources("cpu", "1")
			p := problem(t, predict(t, Snapshot{Nodes: c.nodes, Pods: c.pods}, w), topologyv1.UnsatisfiableReason)
			if !strings.HasPrefix(p.Remedy, c.want) {
				t.Errorf("the remedy is %q; want %q", p.Remedy, c.want)
			}
		})
	}
	t.Run("one of two old pods", func(t *testing.T) {
		apart := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: selecting("service", "glance")}
		w := makeWorkload(3)
		w.Template.Spec.Containers[0].Resources.Requests = resources("cpu", "1")
		plain, refusing := makePod(w.podName(1), "w1", "service", "glance"), makePod(w.podName(2), "w2", "service", "glance")
		refusing.Spec.Affinity = required(apart)
		nodes := []*corev1.Node{makeNode("w1"), makeNode("w2")}
		nodes[0].Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("1")
		plain.Spec.Containers[0].Resources.Requests = resources("cpu", "1")
		p := problem(t, predict(t, Snapshot{Nodes: nodes, Pods: []*corev1.Pod{plain, refusing}}, w), topologyv1.UnsatisfiableReason)
		if want := "(kubectl delete pod -n openstack): " + refusing.Name + "; or"; !strings.Contains(p.Remedy, want) {
			t.Errorf("the remedy is %q; want %q", p.Remedy, want)
		}
	})
}
