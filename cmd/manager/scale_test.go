package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
	"github.com/edpm-operators/edpm-operators/test/envtest"
)

const (
	// scaleVariable are the numbers of nodes, pods and services of
	// TestALargeClusterCostsLittle, and how long it is watched, if it is set.
	// docs/performance.md has the figures for 5000/50000/300/5m.
	scaleVariable = "EDPM_SCALE"
	smallScale    = "50/500/10/20s"
	// profileVariable is an existing directory for profiles of the manager, if it is set.
	profileVariable = "EDPM_SCALE_PROFILES"
	// mostMemory is the most that a manager may ever have of the machine, and mostCPU
	// the share of a CPU that it may take while nothing changes that matters.
	mostMemory = 400 << 20
	mostCPU    = 0.05
	// churn is how many nodes and how many pods change in a second.
	churn = 10
)

// scale is a cluster with services whose pods fit nowhere.
type scale struct {
	nodes, pods, services int
	watched               time.Duration
}

func parseScale(t *testing.T, text string) scale {
	t.Helper()
	s, watched := scale{}, ""
	_, err := fmt.Sscanf(strings.ReplaceAll(text, "/", " "), "%d %d %d %s", &s.nodes, &s.pods, &s.services, &watched)
	if err == nil {
		s.watched, err = time.ParseDuration(watched)
	}
	if err != nil || s.nodes < churn || s.pods < churn {
		t.Fatalf("%s=%s: want nodes/pods/services/duration, such as %s (%v)", scaleVariable, text, smallScale, err)
	}
	return s
}

// TestALargeClusterCostsLittle : memory of a whole manager that caches a large
// cluster and predicts for many services, and its CPU time while only
// heartbeats and the status of pods change.
func TestALargeClusterCostsLittle(t *testing.T) {
	text := os.Getenv(scaleVariable)
	if text == "" {
		text = smallScale
	}
	s := parseScale(t, text)
	t.Parallel() // it waits most of the time
	env := envtest.Start(t, envtest.Options{})
	w := newCrowd(t, env, s)
	w.fill()
	w.serve()
	w.measure(t)
}

// measure starts a manager in the cluster, and watches it.
func (c *crowd) measure(t *testing.T) {
	t.Helper()
	port := freePort(t)
	p := launch(t, c.env, "manager-0", fmt.Sprintf("--pprof-bind-address=127.0.0.1:%d", port))
	started := time.Now()
	c.awaitVerdicts()
	p.waitUntilIdle(t)
	settled, before, took := p.size(t), p.cpuTime(t), time.Since(started)
	c.disturb()
	share := float64(p.cpuTime(t)-before) / float64(c.watched)
	after := p.size(t)
	save(t, port, "heap?gc=1", "heap.pb")
	save(t, port, "allocs", "allocs.pb")
	t.Logf(`
| %d nodes, %d pods, %d services whose pods fit nowhere | |
|---|---:|
| From the start until every service has its verdict and nothing is left to do | %.0f s, %.0f s of a processor |
| Resident then | %.0f MiB |
| The same after %s in which %d nodes and %d pods changed each second | %.0f MiB |
| **Peak** (aim: at most %d MiB) | **%.0f MiB** |
| **Share of a processor** meanwhile (aim: at most %.0f%%) | **%.1f%%** |`,
		c.nodes, c.pods, c.services, took.Seconds(), before.Seconds(), mib(settled.resident), c.watched, churn, churn, mib(after.resident),
		mostMemory>>20, mib(after.peak), 100*mostCPU, 100*share)
	if after.peak > mostMemory {
		t.Errorf("the manager had %.0f MiB; at most %d MiB are allowed", mib(after.peak), mostMemory>>20)
	}
	if share > mostCPU {
		t.Errorf("the manager took %.1f%% of a processor; at most %.0f%% are allowed", 100*share, 100*mostCPU)
	}
}

// size is memory of the machine.
type size struct{ resident, peak int }

var (
	residentSize = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)
	// processorTime is that in user and kernel mode, behind the name in parentheses.
	processorTime = regexp.MustCompile(`\) .(?: \S+){10} (\d+) (\d+) `)
)

func (p *process) size(t *testing.T) size {
	t.Helper()
	text := p.proc(t, "status")
	return size{resident: number(t, text, residentSize) << 10, peak: number(t, text, peakSize) << 10}
}

func (p *process) proc(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// cpuTime is the CPU time that the process has used.
func (p *process) cpuTime(t *testing.T) time.Duration {
	t.Helper()
	found := processorTime.FindStringSubmatch(p.proc(t, "stat"))
	if found == nil {
		t.Fatal("/proc/.../stat has no times")
	}
	user, _ := strconv.Atoi(found[1]) // the pattern has digits only
	system, _ := strconv.Atoi(found[2])
	const tick = 10 * time.Millisecond // of Linux, on every architecture that Go runs on
	return time.Duration(user+system) * tick
}

// waitUntilIdle waits until the process does next to nothing.
func (p *process) waitUntilIdle(t *testing.T) {
	t.Helper()
	const pause = 5 * time.Second
	for range 120 {
		before := p.cpuTime(t)
		time.Sleep(pause)
		if p.cpuTime(t)-before < pause/100 {
			return
		}
	}
	t.Fatal("the manager does not come to rest in 10 minutes")
}

// save writes a profile if a directory is given.
func save(t *testing.T, port int, profile, file string) {
	t.Helper()
	dir := os.Getenv(profileVariable)
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/%s", port, profile))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && dir != "" {
		err = os.WriteFile(dir+"/"+file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// crowd is what a large cluster is full of.
type crowd struct {
	scale
	*testing.T
	env *envtest.Env
	api kubernetes.Interface
}

func newCrowd(t *testing.T, env *envtest.Env, s scale) *crowd {
	t.Helper()
	config := rest.CopyConfig(env.Config)
	config.QPS, config.ContentType = -1, "application/vnd.kubernetes.protobuf"
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &crowd{s, t, env, api}
}

// teams are the namespaces that the pods are in.
const teams = 50

// applications are what the pods are of, each with a ReplicaSet of its own.
const applications = 500

func team(i int) string     { return fmt.Sprint("team-", i%teams) }
func nodeName(i int) string { return fmt.Sprintf("worker-%04d", i) }
func podName(i int) string  { return fmt.Sprintf("web-5d8f7c9b6d-%05d", i) }

// fill creates the nodes and the pods that run on them.
func (c *crowd) fill() {
	c.Helper()
	c.each(teams, func(ctx context.Context, i int) error {
		_, err := c.api.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team(i)}}, metav1.CreateOptions{})
		return err
	})
	c.each(c.nodes, func(ctx context.Context, i int) error {
		node, err := c.api.CoreV1().Nodes().Create(ctx, largeNode(i), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		node.Status = largeNode(i).Status
		if node, err = c.api.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
			return err
		}
		node.Spec.Taints = nil // admission takes a new node for one that is not ready
		_, err = c.api.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		return err
	})
	c.each(c.pods, func(ctx context.Context, i int) error {
		pod, err := c.api.CoreV1().Pods(team(i)).Create(ctx, runningPod(i, c.nodes), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		pod.Status = runningPod(i, c.nodes).Status
		_, err = c.api.CoreV1().Pods(team(i)).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		return err
	})
}

// each calls a function for 0 to n-1, some at the same time.
func (c *crowd) each(n int, create func(context.Context, int) error) {
	c.Helper()
	const workers = 16
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			for i := worker; i < n; i += workers {
				if err := create(c.Context(), i); err != nil {
					c.Errorf("%d: %v", i, err)
					return
				}
			}
		})
	}
	if all.Wait(); c.Failed() {
		c.FailNow()
	}
}

// largeNode has what kubelets and cloud providers write to a node.
func largeNode(i int) *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("128Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{
		corev1.LabelHostname: nodeName(i), corev1.LabelTopologyZone: fmt.Sprint("zone-", i%3), corev1.LabelTopologyRegion: "region",
		corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", corev1.LabelInstanceTypeStable: "m5.8xlarge", "node-role.kubernetes.io/worker": "",
	}}}
	node.Status = corev1.NodeStatus{
		Capacity: room, Allocatable: room,
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.%d.%d.1", i/250, i%250)}, {Type: corev1.NodeHostName, Address: nodeName(i)}},
		NodeInfo: corev1.NodeSystemInfo{
			MachineID: strings.Repeat("a", 32), SystemUUID: strings.Repeat("b", 36), BootID: strings.Repeat("c", 36), KernelVersion: "6.12.0-1",
			OSImage: "Linux", ContainerRuntimeVersion: "containerd://2.1.0", KubeletVersion: "v1.37.1", OperatingSystem: "linux", Architecture: "amd64",
		},
	}
	for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: kind, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficient", Message: "kubelet has sufficient resources available"})
	}
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"})
	for image := range 50 { // as many as a kubelet reports
		name := fmt.Sprintf("registry.example.com/team/application-%02d", image)
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names: []string{name + "@sha256:" + strings.Repeat("d", 64), name + ":v1.2.3"}, SizeBytes: 200 << 20,
		})
	}
	return node
}

// runningPod has what a Deployment and a kubelet make of a web server.
func runningPod(i, nodes int) *corev1.Pod {
	app := fmt.Sprint("web-", i%applications)
	labels := map[string]string{"app": app, "app.kubernetes.io/part-of": "shop", "pod-template-hash": "5d8f7c9b6d"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: team(i), Name: podName(i), Labels: labels, Annotations: map[string]string{"checksum/config": strings.Repeat("e", 64)},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-5d8f7c9b6d", UID: types.UID(app), Controller: ptr.To(true)}},
	}}
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/true"}}}}
	container := corev1.Container{
		Name: "web", Image: "registry.example.com/team/application-01:v1.2.3", Command: []string{"/bin/web", "--config=/etc/web/config.yaml"},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}, LivenessProbe: probe, ReadinessProbe: probe,
		Resources:    corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}},
		VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/web"}},
	}
	for e := range 10 {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprint("VARIABLE_", e), Value: "value of some length"})
	}
	config := corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "web"}}}
	pod.Spec = corev1.PodSpec{NodeName: nodeName(i % nodes), Containers: []corev1.Container{container}, Volumes: []corev1.Volume{{Name: "config", VolumeSource: config}}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.128.0.1", HostIP: "10.0.0.1", StartTime: ptr.To(metav1.Now()), ContainerStatuses: []corev1.ContainerStatus{{
		Name: "web", Ready: true, Started: ptr.To(true), Image: container.Image, ImageID: "registry.example.com/team/application-01@sha256:" + strings.Repeat("d", 64),
		ContainerID: "containerd://" + strings.Repeat("f", 64), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
	}}}
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
	}
	return pod
}

// serve creates the services and a Topology that no node can satisfy.
func (c *crowd) serve() {
	c.Helper()
	topology := &topologyv1.Topology{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "nowhere"}}
	topology.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "nowhere", Operator: corev1.NodeSelectorOpExists}}}},
	}}}
	if err := c.env.Client.Create(c.Context(), topology); err != nil {
		c.Fatal(err)
	}
	c.each(c.services, func(ctx context.Context, i int) error {
		api := &glancev1.GlanceAPI{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("glance-", i)}}
		api.Spec.Storage.External, api.Spec.ContainerImage, api.Spec.Replicas = ptr.To(true), "glance:1", ptr.To[int32](3)
		api.Spec.TopologyRef = &topologyv1.TopologyRef{Name: topology.Name}
		return c.env.Client.Create(ctx, api)
	})
}

// awaitVerdicts waits until every service says that its pods fit nowhere.
func (c *crowd) awaitVerdicts() {
	c.Helper()
	verdicts := 0
	for deadline := time.Now().Add(15 * time.Minute); verdicts < c.services; time.Sleep(time.Second) {
		list := &glancev1.GlanceAPIList{}
		if err := c.env.Client.List(c.Context(), list); err != nil {
			c.Fatal(err)
		}
		verdicts = 0
		for i := range list.Items {
			if list.Items[i].Status.Conditions.IsFalse(topologyv1.PlacementReadyCondition) {
				verdicts++
			}
		}
		if time.Now().After(deadline) {
			c.Fatalf("%d of %d services have a verdict", verdicts, c.services)
		}
	}
}

// disturb lets kubelets write what matters to nobody: heartbeats of nodes, and pods
// that become ready or do not.
func (c *crowd) disturb() {
	c.Helper()
	every := time.NewTicker(time.Second / churn)
	defer every.Stop()
	for i, end := 0, time.Now().Add(c.watched); time.Now().Before(end); i++ {
		<-every.C
		if err := c.beat(i % c.nodes); err != nil {
			c.Fatal(err)
		}
		if err := c.flip(i%c.pods, i); err != nil {
			c.Fatal(err)
		}
	}
}

func (c *crowd) beat(i int) error {
	nodes := c.api.CoreV1().Nodes()
	node, err := nodes.Get(c.Context(), nodeName(i), metav1.GetOptions{})
	if err != nil {
		return err
	}
	for at := range node.Status.Conditions {
		node.Status.Conditions[at].LastHeartbeatTime = metav1.Now()
	}
	_, err = nodes.UpdateStatus(c.Context(), node, metav1.UpdateOptions{})
	return err
}

func (c *crowd) flip(i, turn int) error {
	pods := c.api.CoreV1().Pods(team(i))
	pod, err := pods.Get(c.Context(), podName(i), metav1.GetOptions{})
	if err != nil {
		return err
	}
	pod.Status.ContainerStatuses[0].RestartCount = int32(turn) + 1
	pod.Status.Conditions[len(pod.Status.Conditions)-1].LastTransitionTime = metav1.Now()
	_, err = pods.UpdateStatus(c.Context(), pod, metav1.UpdateOptions{})
	return err
}
