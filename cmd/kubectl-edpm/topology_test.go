package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/cmd/kubectl-edpm/internal/topologymap"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

var glance = map[string]string{"service": "glance", "glanceAPI": "default"}

const spreadPods = `
apiVersion: topology.openstack.org/v1beta1
kind: Topology
metadata: {name: glance-default-spread-pods}
spec:
  topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: zone
    whenUnsatisfiable: DoNotSchedule
    labelSelector: {matchLabels: {service: glance}}
`

// kubectl is the plugin and what it is used on.
type kubectl struct {
	t          *testing.T
	kubeconfig string
	client     client.Client
}

// shared is emptied by every test that fills it.
var shared = envtest.Shared{Options: envtest.Options{CRDPaths: []string{envtest.File("cmd", "kubectl-edpm", "testdata", "nodesets.yaml")}}}

func TestMain(m *testing.M) { os.Exit(envtest.Run(m, &shared)) }

// newCluster has two nodes in zones and one in none, and a service of three pods
// on the first.
func newCluster(t *testing.T) *kubectl {
	env := shared.Env(t)
	k := &kubectl{t: t, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), client: env.Client}
	if err := env.WriteKubeconfig(k.kubeconfig); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openstack"}}
	if err := env.Client.Create(context.Background(), namespace); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	for name, zone := range map[string]string{"master-0": "zoneA", "master-1": "zoneB", "worker-3": ""} {
		k.makeNode(name, zone)
	}
	k.makeService("glance-default-single", 3, "master-0")
	return k
}

// make makes an object that is there until the test ends.
func (k *kubectl) make(obj client.Object) {
	k.t.Helper()
	if err := k.client.Create(context.Background(), obj); err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() {
		if err := k.client.Delete(context.Background(), obj, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			k.t.Error(err)
		}
	})
}

func (k *kubectl) makeNode(name, zone string) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	if zone != "" {
		node.Labels["zone"] = zone
	}
	k.make(node)
	room := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceCPU: resource.MustParse("8")}
	node.Spec.Taints = nil // the API server says that a new node is not ready
	if err := k.client.Update(context.Background(), node); err != nil {
		k.t.Fatal(err)
	}
	node.Status.Capacity, node.Status.Allocatable = room, room
	if err := k.client.Status().Update(context.Background(), node); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kubectl) makeService(name string, replicas int32, node string) {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: glance},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "api", Image: "glance"}}},
	}
	k.make(&appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: name, Labels: glance},
		Spec:       appsv1.StatefulSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: glance}, Template: template},
	})
	for _, ordinal := range "012"[:replicas] {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: name + "-" + string(ordinal), Labels: glance}, Spec: template.Spec}
		pod.Spec.NodeName = node
		k.make(pod)
	}
}

// run returns what the plugin prints, and its error.
func (k *kubectl) run(input string, args ...string) (string, error) {
	var out bytes.Buffer
	root := newRoot(genericiooptions.IOStreams{In: strings.NewReader(input), Out: &out, ErrOut: &out})
	root.SetArgs(append(args, "--kubeconfig", k.kubeconfig, "--namespace", "openstack"))
	err := root.ExecuteContext(context.Background())
	return out.String(), err
}

func (k *kubectl) says(input string, args []string, words ...string) string {
	k.t.Helper()
	out, err := k.run(input, args...)
	if err != nil {
		k.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	for _, w := range words {
		if !strings.Contains(out, w) {
			k.t.Errorf("%v does not say %q:\n%s", args, w, out)
		}
	}
	return out
}

func TestPlugin(t *testing.T) {
	k := newCluster(t)
	t.Run("the map of a namespace without Topologies goes by zones", func(t *testing.T) {
		k.says("", []string{"topology", "map"}, "No node has the label topology.kubernetes.io/zone", "Node master-0 does not have the label", "|_ glance-default-single-2")
	})
	t.Run("a simulation shows before and after, and touches nothing", func(t *testing.T) {
		before := k.resourceVersions()
		k.says(spreadPods, []string{"topology", "simulate", "-f", "-", "--for", "glance/default"},
			"Before\n", "|_ glance-default-single-0 (master-0)", "After\n", "service=glance by zone (DoNotSchedule): zoneA ", "skew 1 of 1, holds; nodes without the label: worker-3")
		if after := k.resourceVersions(); after != before {
			t.Errorf("something was written: %s, then %s", before, after)
		}
	})
	t.Run("a file may have comments and markers around its document", func(t *testing.T) {
		k.says("# of the seeds\n---"+spreadPods+"---\n# end\n", []string{"topology", "simulate", "-f", "-", "--for", "glance/default"}, "After\n")
	})
	t.Run("a simulation fails when pods would find no place, and says what helps", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "topo.yaml")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(spreadPods, "topologyKey: zone", "topologyKey: rack")), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := k.run("", "topology", "simulate", "-f", file, "--for", "glance")
		if err == nil || err.Error() != "3 pods would be unschedulable" {
			t.Errorf("the error is %v", err)
		}
		for _, want := range []string{"MissingNodeLabel", "kubectl label node", "glance-default-single-0 would be Pending"} {
			if !strings.Contains(out, want) {
				t.Errorf("it does not say %q:\n%s", want, out)
			}
		}
	})
	t.Run("the map goes by the key of the Topologies, and comes as JSON and SVG", func(t *testing.T) {
		top := &topologyv1.Topology{ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: "t"}}
		top.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule}}
		k.make(top)
		k.says("", []string{"topology", "map"}, "| zoneA", "| zoneB", "|_ glance-default-single-0 (master-0)")
		var m topologymap.Map
		if err := json.Unmarshal([]byte(k.says("", []string{"topology", "map", "-o", "json"})), &m); err != nil || len(m.Domains) != 2 || len(m.Domains[0].Nodes[0].Pods) != 3 {
			t.Errorf("the map is %+v (%v)", m, err)
		}
		k.says("", []string{"topology", "map", "-o", "svg"}, "<svg ", "zoneB")
	})
}

func TestPluginRefuses(t *testing.T) {
	k := newCluster(t)
	labels := map[string]string{"service": "empty"}
	k.make(&appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "openstack", Name: "empty", Labels: labels},
		Spec: appsv1.StatefulSetSpec{Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}},
		}},
	})
	for name, c := range map[string]struct {
		input string
		args  []string
		says  string
	}{
		"an unknown output":  {"", []string{"map", "-o", "yaml"}, `--output "yaml" is neither text, json nor svg`},
		"a bad selector":     {"", []string{"map", "-l", "a=(b"}, "--selector: "},
		"a missing file":     {"", []string{"simulate", "-f", "/nonexistent", "--for", "glance"}, "--filename: open /nonexistent"},
		"another kind":       {"apiVersion: v1\nkind: Pod", []string{"simulate", "-f", "-", "--for", "glance"}, "has a v1 Pod; give one Topology"},
		"an unknown field":   {strings.ReplaceAll(spreadPods, "maxSkew", "maxSkw"), []string{"simulate", "-f", "-", "--for", "glance"}, `unknown field "maxSkw"`},
		"the misspelt field": {strings.ReplaceAll(spreadPods, "Constraints:", "Constraint:"), []string{"simulate", "-f", "-", "--for", "glance"}, "write topologySpreadConstraints"},
		"two Topologies": {spreadPods + "---\n" + strings.ReplaceAll(spreadPods, "spread-pods", "other"), []string{"simulate", "-f", "-", "--for", "glance"},
			"has 2 documents (Topology glance-default-spread-pods, Topology glance-default-other), of which one is simulated at a time"},
		"a Topology and something else": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\n" + spreadPods, []string{"simulate", "-f", "-", "--for", "glance"}, "has 2 documents (ConfigMap x, Topology "},
		"an empty file":                 {"# nothing\n---\n", []string{"simulate", "-f", "-", "--for", "glance"}, "is empty: give a Topology"},
		"a set without pods":            {spreadPods, []string{"simulate", "-f", "-", "--for", "empty"}, "has no pods to place (replicas: 0)"},
		"an unknown service":            {spreadPods, []string{"simulate", "-f", "-", "--for", "heat"}, `no StatefulSet of service "heat" is in namespace openstack; the services there are: [empty glance]`},
		"an unknown part":               {spreadPods, []string{"simulate", "-f", "-", "--for", "glance/x"}, "there are: [glance-default-single]"},
		"nothing to simulate":           {spreadPods, []string{"simulate", "-f", "-"}, `required flag(s) "for" not set`},
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := k.run(c.input, append([]string{"topology"}, c.args...)...); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v; want %q\n%s", err, c.says, out)
			}
		})
	}
}

// resourceVersions changes when any pod, node or StatefulSet is written.
func (k *kubectl) resourceVersions() string {
	k.t.Helper()
	var all []string
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.NodeList{}, &appsv1.StatefulSetList{}, &topologyv1.TopologyList{}} {
		if err := k.client.List(context.Background(), list); err != nil {
			k.t.Fatal(err)
		}
		// That of the list follows writes of the API server to objects of its own.
		list.SetResourceVersion("")
		text, err := json.Marshal(list)
		if err != nil {
			k.t.Fatal(err)
		}
		all = append(all, string(text))
	}
	return strings.Join(all, "\n")
}
