package dataplane

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

// wrong has a mistake in every field of a section that is checked.
var wrong = dataplanev1.NodeSection{
	AnsibleUser:                "-o",
	AnsibleVars:                &apiextensionsv1.JSON{Raw: []byte(`[]`)},
	AnsibleSSHPrivateKeySecret: "A",
	UserData:                   &corev1.SecretReference{Name: "A"},
	NetworkData:                &corev1.SecretReference{Name: "a", Namespace: "B"},
	Networks:                   []dataplanev1.NetworkSection{{Network: "n", FixedIP: "x"}},
}

var wrongStrategy = dataplanev1.DeployStrategySection{
	AnsibleLimit: "@f", AnsibleTags: "a b", AnsibleSkipTags: "a b", MaxUnavailable: ptr.To(intstr.FromInt32(-1)),
}

var wrongEnv = []corev1.EnvVar{{Name: "ANSIBLE_ENABLE_TASK_DEBUGGER"}}

func fieldsOf(errs field.ErrorList) []string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Field)
	}
	return all
}

func TestEveryCheckedFieldIsNamed(t *testing.T) {
	node := dataplanev1.OpenStackDataPlaneNodeSpec{
		Role: "R", HostName: "a_b", AnsibleHost: "a_b", Node: wrong, Env: wrongEnv, NetworkAttachments: []string{"N"}, TopologyRef: &topologyv1.TopologyRef{Name: "T"}, DeployStrategy: wrongStrategy,
	}
	role := dataplanev1.OpenStackDataPlaneRoleSpec{
		DataPlane: "D", NodeTemplate: wrong, Env: wrongEnv, NetworkAttachments: []string{"N"}, TopologyRef: &topologyv1.TopologyRef{Namespace: "other"}, Services: []string{"S"}, DeployStrategy: wrongStrategy,
	}
	nodeFields := []string{
		"role", "hostName", "ansibleHost",
		"node.ansibleUser", "node.ansibleVars", "node.ansibleSSHPrivateKeySecret", "node.userData.name", "node.networkData.namespace", "node.networks[0].fixedIP",
		"env[0].name", "networkAttachments[0]", "topologyRef.name",
		"deployStrategy.ansibleLimit", "deployStrategy.ansibleTags", "deployStrategy.ansibleSkipTags", "deployStrategy.maxUnavailable",
	}
	roleFields := []string{
		"dataPlane",
		"nodeTemplate.ansibleUser", "nodeTemplate.ansibleVars", "nodeTemplate.ansibleSSHPrivateKeySecret", "nodeTemplate.userData.name", "nodeTemplate.networkData.namespace", "nodeTemplate.networks[0].fixedIP",
		"env[0].name", "networkAttachments[0]", "topologyRef.namespace", "services[0]",
		"deployStrategy.ansibleLimit", "deployStrategy.ansibleTags", "deployStrategy.ansibleSkipTags", "deployStrategy.maxUnavailable",
	}
	tests := map[string]struct{ got, want []string }{
		"node": {fieldsOf(nodeErrors(&dataplanev1.OpenStackDataPlaneNode{Spec: node})), under("spec", nodeFields)},
		"role": {fieldsOf(roleErrors(&dataplanev1.OpenStackDataPlaneRole{Spec: role})), under("spec", roleFields)},
		"data plane": {
			fieldsOf(dataPlaneErrors(&dataplanev1.OpenStackDataPlane{Spec: dataplanev1.OpenStackDataPlaneSpec{
				Roles: map[string]dataplanev1.OpenStackDataPlaneRoleSpec{"r": role}, Nodes: map[string]dataplanev1.OpenStackDataPlaneNodeSpec{"n": node, "": {}},
				DeployStrategy: dataplanev1.DeployStrategySection{AnsibleLimit: "@f"},
			}})),
			append(append(under("spec.roles[r]", roleFields), append([]string{"spec.nodes[]"}, under("spec.nodes[n]", nodeFields)...)...), "spec.deployStrategy.ansibleLimit"),
		},
		"service": {
			fieldsOf(serviceErrors(&dataplanev1.OpenStackDataPlaneService{Spec: dataplanev1.OpenStackDataPlaneServiceSpec{
				Playbook: "/a", Play: "a", ConfigMaps: []string{"C"}, Secrets: []string{"S"},
			}})),
			under("spec", []string{"playbook", "play", "configMaps[0]", "secrets[0]"}),
		},
		"empty node":       {fieldsOf(nodeErrors(&dataplanev1.OpenStackDataPlaneNode{})), nil},
		"empty role":       {fieldsOf(roleErrors(&dataplanev1.OpenStackDataPlaneRole{})), nil},
		"empty data plane": {fieldsOf(dataPlaneErrors(&dataplanev1.OpenStackDataPlane{})), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.got); diff != "" {
				t.Errorf("fields with errors (-want +got):\n%s", diff)
			}
		})
	}
}

func under(at string, fields []string) []string {
	var all []string
	for _, f := range fields {
		all = append(all, at+"."+f)
	}
	return all
}

// failing cannot be read from.
type failing struct{ client.Reader }

func (failing) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("no answer")
}

func (failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("no answer")
}

func TestAWarningThatCannotBeFoundDoesNotRefuseTheNode(t *testing.T) {
	node := &dataplanev1.OpenStackDataPlaneNode{Spec: dataplanev1.OpenStackDataPlaneNodeSpec{AnsibleHost: "10.0.0.1"}}
	warnings, err := nodeRules(failing{}).ValidateCreate(t.Context(), node)
	if err != nil || len(warnings) > 0 {
		t.Errorf("want no verdict, got warnings %q and error %v", warnings, err)
	}
}

func TestADataPlaneThatWouldNotFitIsRefused(t *testing.T) {
	planeOf := func(n int) *dataplanev1.OpenStackDataPlane {
		plane := &dataplanev1.OpenStackDataPlane{Spec: dataplanev1.OpenStackDataPlaneSpec{Nodes: map[string]dataplanev1.OpenStackDataPlaneNodeSpec{}}}
		for i := range n {
			plane.Spec.Nodes[fmt.Sprintf("edpm-compute-%05d", i)] = dataplanev1.OpenStackDataPlaneNodeSpec{Role: "edpm-compute", AnsibleHost: fmt.Sprintf("10.%d.%d.1", i/256, i%256)}
		}
		return plane
	}
	fits, large, larger := planeOf(5000), planeOf(9000), planeOf(9001)
	if errs := dataPlaneErrors(fits); len(errs) > 0 {
		t.Errorf("5000 nodes are refused: %v", errs)
	}
	if diff := cmp.Diff([]string{"spec"}, fieldsOf(dataPlaneErrors(large))); diff != "" {
		t.Errorf("the errors of 9000 nodes differ (-want +got):\n%s", diff)
	}
	if _, err := dataPlaneRules.ValidateUpdate(t.Context(), large, larger); err != nil {
		t.Errorf("one that is too large already cannot be changed: %v", err)
	}
	if _, err := dataPlaneRules.ValidateUpdate(t.Context(), fits, large); err == nil {
		t.Error("it can grow without a limit")
	}
}
