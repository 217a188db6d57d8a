package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/cmd/kubectl-edpm/internal/nodeview"
)

// password is in a Secret, and in places where it does not belong.
const password = "correct-horse-battery"

// ansibleOutput is what the run of nova printed.
const ansibleOutput = `
PLAY [nova] ***

TASK [Start it] ***
ok: [edpm-compute-1]
fatal: [edpm-compute-0]: FAILED! => {"msg": "no image, password=` + password + `"}
`

// newDataPlane has a role with a node that failed nova and one that is up.
func newDataPlane(t *testing.T) *kubectl {
	k := newCluster(t)
	k.makeKubelet("kubelet-0", ansibleOutput)
	k.make(&corev1.Secret{ObjectMeta: k.meta("osp-secret"), StringData: map[string]string{"NovaPassword": password}})
	k.make(&dataplanev1.OpenStackDataPlaneRole{ObjectMeta: k.meta("edpm-compute")})
	k.makeDataPlaneNode("edpm-compute-0", is(condition.DeploymentReadyCondition, "Failed", "Step nova failed in nova-run (attempt 2, next at 2099-01-01T00:00:00Z): no image"))
	k.makeDataPlaneNode("edpm-compute-1", condition.Condition{})
	k.makeRun("nova-run", "nova", "kubelet-0")
	return k
}

func (k *kubectl) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "openstack", Name: name}
}

func is(t condition.Type, reason condition.Reason, message string) condition.Condition {
	c := condition.Condition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}
	if reason != "" {
		c.Status, c.Reason, c.Message, c.Severity = corev1.ConditionFalse, reason, message, condition.SeverityWarning
	}
	return c
}

// makeDataPlaneNode makes a node that is Ready, with a nova that has the problem.
func (k *kubectl) makeDataPlaneNode(name string, problem condition.Condition) {
	k.t.Helper()
	n := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: k.meta(name)}
	n.Spec.Role = "edpm-compute"
	n.Spec.Node.AnsibleVars = &apiextensionsv1.JSON{Raw: []byte(`{"edpm_registry_password": "in the clear"}`)}
	k.make(n)
	n.Status.ObservedGeneration = n.Generation
	n.Status.Conditions = condition.Conditions{
		is(condition.ReadyCondition, "", ""), is(condition.InputReadyCondition, "", ""),
		is(dataplanev1.ProvisionReadyCondition, "", ""), is(condition.DeploymentReadyCondition, "", ""),
	}
	n.Status.Services = []dataplanev1.NodeServiceStatus{{Name: "nova", Ready: problem.Type == "", Kind: "NovaExternalCompute", ObjectName: name}}
	k.writeStatus(n)

	nec := &novav1.NovaExternalCompute{ObjectMeta: k.meta(name)}
	nec.Spec.DataplaneNodeName, nec.Spec.CellName = name, "nova-cell1"
	nec.Spec.CustomServiceConfig = "[DEFAULT]\ntransport_url = rabbit://nova:by-hand-9@host:5671/\n"
	k.make(nec)
	nec.Status.Conditions = condition.Conditions{is(condition.ReadyCondition, "", "")}
	if problem.Type != "" {
		ready := problem
		ready.Type = condition.ReadyCondition
		nec.Status.Conditions = condition.Conditions{ready, problem}
		nec.Status.NextRetry = &metav1.Time{Time: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)}
	}
	k.writeStatus(nec)
}

func (k *kubectl) writeStatus(obj client.Object) {
	k.t.Helper()
	if err := k.client.Status().Update(context.Background(), obj); err != nil {
		k.t.Fatal(err)
	}
}

// makeRun makes a run that failed on the first host, with its Pod.
func (k *kubectl) makeRun(name, step, node string) {
	k.t.Helper()
	r := &ansibleeev1.OpenStackAnsibleEE{ObjectMeta: k.meta(name)}
	r.Spec.Step, r.Spec.Targets = step, []ansibleeev1.Target{{Host: "edpm-compute-0", Hash: "h", Attempt: 2}, {Host: "edpm-compute-1", Hash: "h"}}
	k.make(r)
	r.Status.ObservedGeneration, r.Status.JobStatus = r.Generation, ansibleeev1.JobFailed
	r.Status.Hosts = []ansibleeev1.HostStatus{{Name: "edpm-compute-0", OK: 2, Failed: 1, Message: "Start it: no image"}, {Name: "edpm-compute-1", OK: 3}}
	k.writeStatus(r)

	pod := &corev1.Pod{ObjectMeta: k.meta(name + "-x"), Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "openstackansibleee", Image: "ee"}}}}
	pod.Labels = map[string]string{batchv1.JobNameLabel: name, "openstackansibleee_cr": name}
	k.make(pod)
	pod.Status.Phase, pod.Status.ContainerStatuses = corev1.PodFailed, []corev1.ContainerStatus{{Name: "openstackansibleee", Image: "ee", ImageID: "ee"}}
	k.writeStatus(pod)
}

// makeKubelet makes a node whose kubelet has the output as the log of every
// container.
func (k *kubectl) makeKubelet(name, output string) {
	k.t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/containerLogs/openstack/") {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, output)
	}))
	k.t.Cleanup(server.Close)
	k.makeNode(name, "")
	at, err := url.Parse(server.URL)
	if err != nil {
		k.t.Fatal(err)
	}
	host, text, err := net.SplitHostPort(at.Host)
	if err != nil {
		k.t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		k.t.Fatal(err)
	}
	node := &corev1.Node{}
	if err := k.client.Get(context.Background(), types.NamespacedName{Name: name}, node); err != nil {
		k.t.Fatal(err)
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(port)
	k.writeStatus(node)
}

// refuses runs the plugin and expects an error that says so.
func (k *kubectl) refuses(args []string, says string) {
	k.t.Helper()
	if out, err := k.run("", args...); err == nil || !strings.Contains(err.Error(), says) {
		k.t.Errorf("%v: the error is %v; want %q\n%s", args, err, says, out)
	}
}

func TestStatus(t *testing.T) {
	k := newDataPlane(t)
	t.Run("a node says why it is not up, and when it is tried again", func(t *testing.T) {
		k.says("", []string{"status", "edpm-compute-0"}, "Node edpm-compute-0: Ready, but not its services", "1 nova", "Last run:    nova-run, step nova, attempt 2, Failed",
			"Next retry:  in ", "NovaExternalCompute/edpm-compute-0 DeploymentReady is not True: Failed\n    Step nova failed in nova-run", "kubectl edpm explain Failed")
	})
	t.Run("a role has a line for each node, without colours where there is no terminal", func(t *testing.T) {
		out := k.says("", []string{"status", "edpm-compute"}, "Role edpm-compute: 2 of 2 nodes Ready, 1 with all services", "edpm-compute-0   True    nova (not ready)", "edpm-compute-1   True    nova")
		if strings.Contains(out, "\033") {
			t.Errorf("it is coloured: %q", out)
		}
	})
	t.Run("it comes as JSON and YAML", func(t *testing.T) {
		var n nodeview.Node
		if err := json.Unmarshal([]byte(k.says("", []string{"status", "node/edpm-compute-0", "-o", "json"})), &n); err != nil || n.Up || n.NextRetry == nil || n.Last.Recap.Failed != 1 {
			t.Errorf("the node is %+v (%v)", n, err)
		}
		var roles []nodeview.Role
		if err := json.Unmarshal([]byte(k.says("", []string{"status", "-o", "json"})), &roles); err != nil || len(roles) != 1 || len(roles[0].Nodes) != 2 {
			t.Errorf("the roles are %+v (%v)", roles, err)
		}
		k.says("", []string{"status", "role/edpm-compute", "-o", "yaml"}, "- name: edpm-compute\n", "    nextRetry: \"2099-01-01T00:00:00Z\"")
	})
	t.Run("a host that is drained says how many guests it has", func(t *testing.T) {
		compute := &novav1.NovaExternalCompute{ObjectMeta: k.meta("edpm-compute-1")}
		k.read(compute)
		compute.Status.ComputeService = &novav1.ComputeServiceStatus{ID: "1", Host: "compute-1"}
		k.writeStatus(compute)
		k.says("", []string{"status", "edpm-compute-1"}, "Guests:      not counted: openstack server list --all-projects --host compute-1\n")
		compute.Status.Guests = &novav1.GuestsStatus{Total: 3, Moving: 2, Remaining: 1}
		compute.Status.Conditions = append(compute.Status.Conditions, is(novav1.DrainedCondition, novav1.GuestsRemainReason, "Host compute-1 has guests"))
		k.writeStatus(compute)
		k.says("", []string{"status", "edpm-compute-1"}, "Guests:      3 on host compute-1: 2 being moved, 1 that cannot be moved; Drained is False: GuestsRemain\n", "Host compute-1 has guests")
		k.says("", []string{"status"}, "3 (GuestsRemain)")
		k.says("", []string{"status", "edpm-compute-1", "-o", "yaml"}, "guests:\n  count:\n    moving: 2\n    remaining: 1\n    total: 3\n  host: compute-1\n")
	})
	t.Run("it refuses what it does not know", func(t *testing.T) {
		k.refuses([]string{"status", "edpm-compute-9"}, `neither a node nor a role "edpm-compute-9" in namespace openstack`)
		k.refuses([]string{"status", "pod/x"}, "write node/NAME, role/NAME")
		k.refuses([]string{"status", "-o", "svg"}, `--output "svg" is neither text, json nor yaml`)
		k.refuses([]string{"status", "--timeout", "1s"}, "--timeout is for --watch")
		k.make(&dataplanev1.OpenStackDataPlaneRole{ObjectMeta: k.meta("edpm-compute-1")})
		k.refuses([]string{"status", "edpm-compute-1"}, "write node/edpm-compute-1 or role/edpm-compute-1")
	})
	t.Run("watching ends when the node is up, or when the time is over", func(t *testing.T) {
		k.refuses([]string{"status", "edpm-compute-0", "--watch", "--timeout", "1s"}, "--timeout: not all nodes are up after 1s")
		out, ended := k.start("status", "edpm-compute-0", "--watch", "--timeout", "1m")
		out.await(t, "Ready, but not its services")
		n := &dataplanev1.OpenStackDataPlaneNode{}
		if err := k.client.Get(context.Background(), types.NamespacedName{Namespace: "openstack", Name: "edpm-compute-0"}, n); err != nil {
			t.Fatal(err)
		}
		n.Status.Services[0].Ready = true
		k.writeStatus(n)
		if err := <-ended; err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		out.await(t, "Ready, with all its services")
		if times := strings.Count(out.String(), "Node edpm-compute-0"); times != 2 {
			t.Errorf("it printed the node %d times, and it changed once:\n%s", times, out)
		}
	})
}

// screen collects what a command prints that continues.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *screen) await(t *testing.T, words string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !strings.Contains(s.String(), words); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not say %q:\n%s", words, s)
		}
	}
}

// start runs the plugin next to the test.
func (k *kubectl) start(args ...string) (*screen, <-chan error) {
	out, ended := &screen{}, make(chan error, 1)
	root := newRoot(genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: out})
	root.SetArgs(append(args, "--kubeconfig", k.kubeconfig, "--namespace", "openstack"))
	go func() { ended <- root.ExecuteContext(context.Background()) }()
	return out, ended
}

func TestLogs(t *testing.T) {
	k := newDataPlane(t)
	t.Run("the output has the lines of the host, and of no other", func(t *testing.T) {
		for _, args := range [][]string{{"logs", "edpm-compute-0"}, {"logs", "edpm-compute-0", "--step", "nova", "-f"}, {"logs", "edpm-compute-0", "--run", "nova-run", "--all"}} {
			out := k.says("", args, "Run nova-run, step nova: Failed\n", "TASK [Start it] ***\nfatal: [edpm-compute-0]: FAILED!")
			if strings.Contains(out, "edpm-compute-1") {
				t.Errorf("it has lines of another host:\n%s", out)
			}
		}
	})
	t.Run("what no run had is refused", func(t *testing.T) {
		k.refuses([]string{"logs", "edpm-compute-9"}, `no run in namespace openstack has host "edpm-compute-9"`)
		k.refuses([]string{"logs", "edpm-compute-0", "--step", "run-os"}, `no run of step "run-os"`)
		k.refuses([]string{"logs", "edpm-compute-0", "--run", "other"}, `no run "other"`)
	})
	recap := "edpm-compute-0 : ok=2 changed=0 unreachable=0 failed=1 skipped=0\nStart it: no image\n"
	t.Run("when the Kubernetes node does not answer there is the recap", func(t *testing.T) {
		k.makeRun("later-run", "later", "master-0")
		k.says("", []string{"logs", "edpm-compute-0", "--step", "later"}, "There is no output: the log of Pod later-run-x cannot be read", recap)
	})
	t.Run("when the Pod is gone there is the recap", func(t *testing.T) {
		now := int64(0)
		if err := k.client.Delete(context.Background(), &corev1.Pod{ObjectMeta: k.meta("nova-run-x")}, &client.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			t.Fatal(err)
		}
		k.says("", []string{"logs", "edpm-compute-0", "--step", "nova"}, "There is no output: its Pod is gone", recap)
	})
}

func TestRerun(t *testing.T) {
	k := newDataPlane(t)
	role, node, compute := &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: k.meta("edpm-compute")}, &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: k.meta("edpm-compute-0")}, &novav1.NovaExternalCompute{ObjectMeta: k.meta("edpm-compute-0")}
	other := &novav1.NovaExternalCompute{ObjectMeta: k.meta("edpm-compute-1")}
	before := map[client.Object]string{}
	// changed tells whose token is another one than the last time.
	changed := func() []bool {
		var list []bool
		for _, obj := range []client.Object{role, node, compute, other} {
			if err := k.client.Get(context.Background(), client.ObjectKeyFromObject(obj), obj); err != nil {
				t.Fatal(err)
			}
			token := obj.GetAnnotations()[common.RerunAnnotation]
			list = append(list, token != before[obj])
			before[obj] = token
		}
		return list
	}
	for _, c := range []struct {
		name string
		args []string
		want []bool // role, node, its compute, another compute
	}{
		{"a node: what is below it follows", []string{"edpm-compute-0"}, []bool{false, true, false, false}},
		{"a service of a node", []string{"node/edpm-compute-0", "--step", "nova"}, []bool{false, false, true, false}},
		{"a node whose compute has a token of its own", []string{"edpm-compute-0"}, []bool{false, true, true, false}},
		{"a role, with those that have tokens of their own", []string{"edpm-compute"}, []bool{true, true, true, false}},
		{"a service of all nodes of a role", []string{"edpm-compute", "--step", "nova"}, []bool{false, false, true, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			k.says("", append([]string{"rerun"}, c.args...), " runs again (edpm.openstack.org/rerun=")
			if diff := cmp.Diff(c.want, changed()); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("steps of phase 0 run again all together", func(t *testing.T) {
		k.refuses([]string{"rerun", "edpm-compute-0", "--step", "run-os"}, "they have: [nova]. Phase 0 steps cannot be rerun one by one: omit --step")
		k.refuses([]string{"rerun", "edpm-compute-9"}, "neither a node nor a role")
		k.refuses([]string{"rerun", ""}, "name a node or a role")
		if diff := cmp.Diff([]bool{false, false, false, false}, changed()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestMustGather(t *testing.T) {
	k := newDataPlane(t)
	k.make(&corev1.Event{
		ObjectMeta: k.meta("e"), InvolvedObject: corev1.ObjectReference{Kind: "OpenStackDataPlaneNode", Namespace: "openstack", Name: "edpm-compute-0"},
		Type: "Warning", Reason: "Failed", Message: "could not log in with " + password, LastTimestamp: metav1.Now(),
	})
	file := filepath.Join(t.TempDir(), "problem.tar.gz")
	out := k.says("", []string{"must-gather", "-A", "--dest", file}, "Wrote "+file, "no pod of the manager exists")
	found := unpack(t, file)
	for name, want := range map[string]string{
		"README.txt":  "No value of a Secret is in it",
		"secrets.txt": "openstack/osp-secret Opaque\n  NovaPassword has a value",
		"namespaces/openstack/openstackdataplanenodes.dataplane.openstack.org/edpm-compute-0.yaml": "role: edpm-compute",
		"namespaces/openstack/openstackansibleees.ansibleee.openstack.org/nova-run.yaml":           "step: nova",
		"namespaces/openstack/novaexternalcomputes.nova.openstack.org/edpm-compute-1.yaml":         "cellName: nova-cell1",
		"namespaces/openstack/events.txt":                                   "Failed OpenStackDataPlaneNode/edpm-compute-0: could not log in with *****",
		"namespaces/openstack/logs/nova-run-x/openstackansibleee.log":       "fatal: [edpm-compute-0]: FAILED!",
		"namespaces/openstack/status.txt":                                   "Why it is not ready:",
		"namespaces/openstack/topology.txt":                                 "glance-default-single-2",
		"namespaces/openstack/pods/glance-default-single-0.yaml":            "nodeName: master-0",
		"namespaces/openstack/statefulsets.apps/glance-default-single.yaml": "replicas: 3",
		"cluster/nodes/master-0.yaml":                                       "zone: zoneA",
	} {
		if !strings.Contains(found["problem/"+name], want) {
			t.Errorf("%s does not say %q but %q", name, want, found["problem/"+name])
		}
	}
	hidden := map[string]string{
		"the password": password, "its base64": base64.StdEncoding.EncodeToString([]byte(password)),
		"a password in customServiceConfig": "by-hand-9", "a password in ansibleVars": "in the clear",
	}
	for name, text := range found {
		for what, secret := range hidden {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %s:\n%s", name, what, text)
			}
		}
	}
	if strings.Contains(out, password) {
		t.Errorf("the password is printed: %s", out)
	}
	k.refuses([]string{"must-gather", "--dest", file}, "file exists")
	k.refuses([]string{"must-gather", "--dest", filepath.Dir(file)}, "is not empty")
	k.says("", []string{"must-gather", "--dest", filepath.Join(t.TempDir(), "new")}, "Wrote ")
}

// unpack returns the files of an archive by name.
func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	packed, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for r := tar.NewReader(unpacked); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		found[header.Name] = string(text)
	}
}
