package main

import (
	"context"
	"encoding/base64"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm/v1beta1"
	neutronv1 "github.com/edpm-operators/edpm-operators/apis/neutron/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/hosted"
)

// newServices has the data plane with the class agent on both nodes, which waits for
// another one on the first, and with OVN on the second.
func newServices(t *testing.T) *kubectl {
	k := newDataPlane(t)
	k.makeClass("agent")
	k.makeService1("edpm-compute-0", k.ofClass("agent", "edpm-compute-0"),
		is(edpmv1.PrecedingServicesReadyCondition, edpmv1.PrecedingNotReadyReason, "Waiting for service nova of OpenStackDataPlaneNode edpm-compute-0 to become Ready"))
	k.makeService1("edpm-compute-1", k.ofClass("agent", "edpm-compute-1"), condition.Condition{})
	controller, agent := &neutronv1.OVNController{ObjectMeta: k.meta("edpm-compute-1")}, &neutronv1.OVNMetadataAgent{ObjectMeta: k.meta("edpm-compute-1")}
	for _, of := range []*neutronv1.OVNService{controller.OVN(), agent.OVN()} {
		of.Spec.DataplaneNodeName, of.Spec.OVNConfigSecretName = "edpm-compute-1", "ovn"
	}
	k.makeService1("edpm-compute-1", controller, condition.Condition{})
	k.makeService1("edpm-compute-1", agent, condition.Condition{})
	k.makeRun("agent-run", "agent", "kubelet-0")
	return k
}

// makeClass makes a class whose annotation is example.org/<name>, with secrets where they
// do not belong.
func (k *kubectl) makeClass(name string) {
	k.t.Helper()
	k.make(&corev1.Secret{ObjectMeta: k.meta(name + "-secret"), StringData: map[string]string{"key": agentKey}})
	class := &edpmv1.EDPMServiceClass{ObjectMeta: k.meta(name)}
	class.Spec.Annotation = "example.org/" + name
	class.Spec.Play = "- hosts: all\n  vars:\n    agent_password: in-the-play-7\n    agent_key: " + agentKey + "\n"
	class.Spec.CleanupPlaybook = "example.agent.absent"
	class.Spec.CustomServiceConfig = "[DEFAULT]\ntransport_url = rabbit://agent:by-hand-8@host:5671/\n"
	class.Spec.Vars = &apiextensionsv1.JSON{Raw: []byte(`{"agent_token": "in-the-vars", "agent_password": 48151623}`)}
	class.Spec.ConfigFiles = []common.ConfigFile{{Name: "key", Secret: &common.FileSource{Name: name + "-secret"}}}
	k.make(class)
}

// agentKey is in a Secret that a class names.
const agentKey = "sesame-open-sesame"

func (k *kubectl) ofClass(class, node string) *edpmv1.EDPMService {
	s := &edpmv1.EDPMService{ObjectMeta: k.meta(class + "-" + node)}
	s.Spec.ClassName, s.Spec.DataplaneNodeName = class, node
	s.Spec.CustomServiceConfig = "[agent]\npassword = by-hand-6\n"
	return s
}

// makeService1 makes the object of a service of phase 1 with the problem, and has the
// node show it.
func (k *kubectl) makeService1(node string, obj hosted.Object, problem condition.Condition) {
	k.t.Helper()
	k.make(obj)
	ready := problem
	if problem.Type == "" {
		ready = is(condition.ReadyCondition, "", "")
	}
	ready.Type = condition.ReadyCondition
	*obj.GetConditions() = condition.Conditions{ready}
	if problem.Type != "" {
		*obj.GetConditions() = append(*obj.GetConditions(), problem)
	}
	k.writeStatus(obj)
	entry := dataplanev1.NodeServiceStatus{Ready: problem.Type == "", ObjectName: obj.GetName()}
	switch s := obj.(type) {
	case *edpmv1.EDPMService:
		entry.Name, entry.Kind = s.Spec.ClassName, "EDPMService"
	case *neutronv1.OVNController:
		entry.Name, entry.Kind = "ovn-controller", "OVNController"
	case *neutronv1.OVNMetadataAgent:
		entry.Name, entry.Kind = neutronv1.MetadataStep, "OVNMetadataAgent"
	}
	k.showService(node, entry)
}

// showService adds an entry to the services of a node.
func (k *kubectl) showService(node string, entry dataplanev1.NodeServiceStatus) {
	k.t.Helper()
	n := k.node(node)
	n.Status.Services = append(n.Status.Services, entry)
	k.writeStatus(n)
}

func (k *kubectl) node(name string) *dataplanev1.OpenStackDataPlaneNode {
	k.t.Helper()
	n := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: k.meta(name)}
	k.read(n)
	return n
}

func (k *kubectl) read(obj client.Object) {
	k.t.Helper()
	if err := k.client.Get(context.Background(), client.ObjectKeyFromObject(obj), obj); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kubectl) annotate(obj client.Object, key, value string) {
	k.t.Helper()
	k.read(obj)
	obj.SetAnnotations(map[string]string{key: value})
	if err := k.client.Update(context.Background(), obj); err != nil {
		k.t.Fatal(err)
	}
}

func TestServicesOfClassesAndOfOVN(t *testing.T) {
	k := newServices(t)
	t.Run("status says what a service waits for", func(t *testing.T) {
		k.says("", []string{"status", "edpm-compute-0"}, "1 agent", "PrecedingServiceNotReady",
			"EDPMService/agent-edpm-compute-0 PrecedingServicesReady is not True: PrecedingServiceNotReady\n    Waiting for service nova of OpenStackDataPlaneNode")
		k.says("", []string{"status", "edpm-compute-1"}, "Ready, with all its services", "1 agent            True", "1 ovn-controller   True", "1 ovn-metadata     True")
		k.says("", []string{"status", "role/edpm-compute"}, "nova (not ready), agent (not ready)", "nova, agent, ovn-controller, ovn-metadata")
	})
	t.Run("logs are those of the step with the name of the class", func(t *testing.T) {
		out := k.says("", []string{"logs", "edpm-compute-0", "--step", "agent"}, "Run agent-run, step agent: Failed\n", "fatal: [edpm-compute-0]: FAILED!")
		if strings.Contains(out, "edpm-compute-1") || strings.Contains(out, "nova-run") {
			t.Errorf("it has lines of another host or step:\n%s", out)
		}
		k.refuses([]string{"logs", "edpm-compute-0", "--step", "agent-cleanup"}, `no run of step "agent-cleanup"`)
	})
	t.Run("rerun sets the token on the object of the service alone", func(t *testing.T) {
		first, second := k.ofClass("agent", "edpm-compute-0"), k.ofClass("agent", "edpm-compute-1")
		ovn := &neutronv1.OVNMetadataAgent{ObjectMeta: k.meta("edpm-compute-1")}
		objects := []client.Object{first, second, ovn, k.node("edpm-compute-0"), k.node("edpm-compute-1")}
		for _, c := range []struct {
			args []string
			want []string
		}{
			{[]string{"edpm-compute-0", "--step", "agent"}, []string{"agent-edpm-compute-0"}},
			{[]string{"role/edpm-compute", "--step", "agent"}, []string{"agent-edpm-compute-0", "agent-edpm-compute-1"}},
			{[]string{"edpm-compute-1", "--step", "ovn-metadata"}, []string{"edpm-compute-1"}},
		} {
			before := k.tokens(objects)
			k.says("", append([]string{"rerun"}, c.args...), " runs again (edpm.openstack.org/rerun=")
			after := k.tokens(objects)
			var changed []string
			for i, obj := range objects {
				if before[i] != after[i] {
					changed = append(changed, obj.GetName())
				}
			}
			if diff := cmp.Diff(c.want, changed); diff != "" {
				t.Errorf("%v: %s", c.args, diff)
			}
		}
		k.says("", []string{"rerun", "edpm-compute-0"}, "OpenStackDataPlaneNode/edpm-compute-0 runs again", "EDPMService/agent-edpm-compute-0 runs again")
		k.refuses([]string{"rerun", "edpm-compute-1", "--step", "agnt"}, "they have: [agent nova ovn-controller ovn-metadata]")
	})
	t.Run("must-gather has classes and services, and none of their secrets", k.gathersServices)
	t.Run("an object of another node is neither shown nor run again, although it has the name", func(t *testing.T) {
		const taken = `EDPMService "agent-edpm-compute-0" belongs to node "edpm-compute-0"`
		k.make(&dataplanev1.OpenStackDataPlaneNode{ObjectMeta: k.meta("compute-0")})
		k.showService("compute-0", dataplanev1.NodeServiceStatus{Name: "agent-edpm", Message: taken, Kind: "EDPMService", ObjectName: "agent-edpm-compute-0"})
		out := k.says("", []string{"status", "compute-0"}, "1 agent-edpm   False", taken)
		if strings.Contains(out, "PrecedingServiceNotReady") {
			t.Errorf("it shows what the service of the other node waits for:\n%s", out)
		}
		k.refuses([]string{"rerun", "compute-0", "--step", "agent-edpm"}, "no object of this service belongs to these nodes")
	})
	t.Run("a node is not up before it shows the service that its annotation selects", func(t *testing.T) {
		k.makeClass("late")
		k.annotate(k.node("edpm-compute-1"), "example.org/late", "false")
		k.says("", []string{"status", "edpm-compute-1"}, "Ready, with all its services")
		k.annotate(k.node("edpm-compute-1"), "example.org/late", "true")
		k.says("", []string{"status", "edpm-compute-1"}, "Ready, but not its services", "selects service late, and the node does not show it yet")
		out, ended := k.start("status", "edpm-compute-1", "--watch", "--timeout", "1m")
		out.await(t, "Ready, but not its services")
		k.makeService1("edpm-compute-1", k.ofClass("late", "edpm-compute-1"), condition.Condition{})
		if err := <-ended; err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// tokens are those of the objects.
func (k *kubectl) tokens(objects []client.Object) []string {
	var tokens []string
	for _, obj := range objects {
		k.read(obj)
		tokens = append(tokens, obj.GetAnnotations()[common.RerunAnnotation])
	}
	return tokens
}

func (k *kubectl) gathersServices(t *testing.T) {
	file := filepath.Join(t.TempDir(), "problem.tgz")
	k.says("", []string{"must-gather", "--dest", file}, "Wrote "+file)
	found := unpack(t, file)
	for name, want := range map[string]string{
		"edpmserviceclasses.edpm.openstack.org/agent.yaml":                    "secret:\n      name: agent-secret",
		"edpmservices.edpm.openstack.org/agent-edpm-compute-0.yaml":           "reason: PrecedingServiceNotReady",
		"edpmservices.edpm.openstack.org/agent-edpm-compute-1.yaml":           "className: agent",
		"ovncontrollers.neutron.openstack.org/edpm-compute-1.yaml":            "ovnConfigSecretName: ovn",
		"ovnmetadataagents.neutron.openstack.org/edpm-compute-1.yaml":         "ovnConfigSecretName: ovn",
		"openstackansibleees.ansibleee.openstack.org/agent-run.yaml":          "step: agent",
		"openstackdataplanenodes.dataplane.openstack.org/edpm-compute-0.yaml": "objectName: agent-edpm-compute-0",
		"status.txt": "EDPMService/agent-edpm-compute-0 PrecedingServicesReady is not True",
	} {
		if text := found["problem/namespaces/openstack/"+name]; !strings.Contains(text, want) {
			t.Errorf("%s does not say %q but %q", name, want, text)
		}
	}
	if want := "openstack/agent-secret Opaque\n  key has a value"; !strings.Contains(found["problem/secrets.txt"], want) {
		t.Errorf("secrets.txt does not say %q but %q", want, found["problem/secrets.txt"])
	}
	for name, text := range found {
		for _, secret := range []string{agentKey, base64.StdEncoding.EncodeToString([]byte(agentKey)), "in-the-play-7", "by-hand-8", "in-the-vars", "48151623", "by-hand-6"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s has the secret %s:\n%s", name, secret, text)
			}
		}
	}
}
