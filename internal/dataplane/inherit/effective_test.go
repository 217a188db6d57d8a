package inherit

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	ansibleeev1 "github.com/edpm-operators/edpm-operators/apis/ansibleee/v1beta1"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	topologyv1 "github.com/edpm-operators/edpm-operators/apis/topology/v1beta1"
)

func vars(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }

// full is a section in which everything is set, to something with the tag in it.
func full(tag string) dataplanev1.NodeSection {
	return dataplanev1.NodeSection{
		NetworkConfig:              &dataplanev1.NetworkConfigSection{Template: "template-" + tag},
		Networks:                   []dataplanev1.NetworkSection{{Network: "net-" + tag}},
		ManagementNetwork:          "management-" + tag,
		AnsibleUser:                "user-" + tag,
		AnsiblePort:                int32(1000 + len(tag)),
		AnsibleVars:                vars(`{"` + tag + `": true, "both": "` + tag + `"}`),
		AnsibleSSHPrivateKeySecret: "key-" + tag,
		ExtraMounts:                []ansibleeev1.ExtraMount{{ExtraVolType: tag}},
	}
}

func strategy(tag string, n int32, deploy bool) dataplanev1.DeployStrategySection {
	return dataplanev1.DeployStrategySection{
		Deploy: &deploy, AnsibleTags: "tags-" + tag, AnsibleLimit: "limit-" + tag, AnsibleSkipTags: "skip-" + tag,
		BatchSize: ptr.To(n), MaxUnavailable: ptr.To(intstr.FromInt32(n)), MaxFailures: ptr.To(n), Drain: dataplanev1.DrainPolicy("drain-" + tag),
	}
}

func fullRole() *dataplanev1.OpenStackDataPlaneRole {
	return &dataplanev1.OpenStackDataPlaneRole{Spec: dataplanev1.OpenStackDataPlaneRoleSpec{
		NodeTemplate: full("role"), Env: []corev1.EnvVar{{Name: "ROLE"}}, NetworkAttachments: []string{"att-role"},
		TopologyRef: &topologyv1.TopologyRef{Name: "zone-role"}, Services: []string{"one", "two"}, DeployStrategy: strategy("role", 7, true),
	}}
}

func TestANodeThatSaysNothingHasWhatItsRoleSays(t *testing.T) {
	node := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	got, err := EffectiveOf(node, fullRole())
	if err != nil {
		t.Fatal(err)
	}
	want := Effective{
		HostName: "n", AnsibleHost: "n", AnsibleUser: "user-role", AnsiblePort: 1004, ManagementNetwork: "management-role",
		Networks: []dataplanev1.NetworkSection{{Network: "net-role"}}, NetworkTemplate: "template-role",
		Vars: map[string]any{"role": true, "both": "role"}, SSHKeySecret: "key-role",
		ExtraMounts: []ansibleeev1.ExtraMount{{ExtraVolType: "role"}}, Env: []corev1.EnvVar{{Name: "ROLE"}},
		NetworkAttachments: []string{"att-role"}, TopologyRef: &topologyv1.TopologyRef{Name: "zone-role"},
		Services: []string{"one", "two"}, Deploy: strategy("role", 7, true),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is in force differs (-want +got):\n%s", diff)
	}
}

func TestANodeThatSaysEverythingHasThat(t *testing.T) {
	node := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: dataplanev1.OpenStackDataPlaneNodeSpec{
		HostName: "host", AnsibleHost: "10.0.0.1", Node: full("node1"), Env: []corev1.EnvVar{{Name: "NODE"}},
		NetworkAttachments: []string{"att-node"}, TopologyRef: &topologyv1.TopologyRef{Name: "zone-node"}, DeployStrategy: strategy("node", 9, false),
	}}
	got, err := EffectiveOf(node, fullRole())
	if err != nil {
		t.Fatal(err)
	}
	want := Effective{
		HostName: "host", AnsibleHost: "10.0.0.1", AnsibleUser: "user-node1", AnsiblePort: 1005, ManagementNetwork: "management-node1",
		Networks: []dataplanev1.NetworkSection{{Network: "net-node1"}}, NetworkTemplate: "template-node1",
		Vars: map[string]any{"role": true, "node1": true, "both": "node1"}, SSHKeySecret: "key-node1",
		ExtraMounts: []ansibleeev1.ExtraMount{{ExtraVolType: "node1"}}, Env: []corev1.EnvVar{{Name: "NODE"}},
		NetworkAttachments: []string{"att-node"}, TopologyRef: &topologyv1.TopologyRef{Name: "zone-node"},
		Services: []string{"one", "two"}, Deploy: strategy("node", 9, false),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is in force differs (-want +got):\n%s", diff)
	}
}

// TestEachFieldIsInheritedByItself sets one field of the node at a time.
func TestEachFieldIsInheritedByItself(t *testing.T) {
	plain, err := EffectiveOf(&dataplanev1.OpenStackDataPlaneNode{}, fullRole())
	if err != nil {
		t.Fatal(err)
	}
	source := full("node1")
	for field, affects := range map[string]string{
		"NetworkConfig": "NetworkTemplate", "Networks": "Networks", "ManagementNetwork": "ManagementNetwork", "AnsibleUser": "AnsibleUser",
		"AnsiblePort": "AnsiblePort", "AnsibleVars": "Vars", "AnsibleSSHPrivateKeySecret": "SSHKeySecret", "ExtraMounts": "ExtraMounts",
	} {
		t.Run(field, func(t *testing.T) {
			node := &dataplanev1.OpenStackDataPlaneNode{}
			reflect.ValueOf(&node.Spec.Node).Elem().FieldByName(field).Set(reflect.ValueOf(source).FieldByName(field))
			got, err := EffectiveOf(node, fullRole())
			if err != nil {
				t.Fatal(err)
			}
			for i := range reflect.TypeFor[Effective]().NumField() {
				name := reflect.TypeFor[Effective]().Field(i).Name
				same := cmp.Equal(reflect.ValueOf(plain).Field(i).Interface(), reflect.ValueOf(got).Field(i).Interface())
				if same == (name == affects) {
					t.Errorf("whether %s stayed as the role has it is %v", name, same)
				}
			}
		})
	}
}

func TestAnAddressIsTheNearestNameOfTheHost(t *testing.T) {
	for want, spec := range map[string]dataplanev1.OpenStackDataPlaneNodeSpec{
		"n": {}, "host": {HostName: "host"}, "10.0.0.1": {HostName: "host", AnsibleHost: "10.0.0.1"},
	} {
		got, _ := EffectiveOf(&dataplanev1.OpenStackDataPlaneNode{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: spec}, nil)
		if got.AnsibleHost != want {
			t.Errorf("the address of %+v is %q; want %q", spec, got.AnsibleHost, want)
		}
	}
}

func TestARoleWithoutServicesHasTheDefaultOnes(t *testing.T) {
	got, _ := EffectiveOf(&dataplanev1.OpenStackDataPlaneNode{}, nil)
	if diff := cmp.Diff(dataplanev1.DefaultServices, got.Services); diff != "" {
		t.Errorf("the services differ (-want +got):\n%s", diff)
	}
}

func TestStrategyIsMergedFieldByField(t *testing.T) {
	base, none := strategy("role", 7, true), dataplanev1.DeployStrategySection{}
	if diff := cmp.Diff(base, MergeStrategy(none, base)); diff != "" {
		t.Errorf("a node that says nothing differs from its role:\n%s", diff)
	}
	own := strategy("node", 0, false)
	if diff := cmp.Diff(own, MergeStrategy(own, base)); diff != "" {
		t.Errorf("zero and false are said too (-want +got):\n%s", diff)
	}
	for i := range reflect.TypeFor[dataplanev1.DeployStrategySection]().NumField() {
		one := dataplanev1.DeployStrategySection{}
		reflect.ValueOf(&one).Elem().Field(i).Set(reflect.ValueOf(own).Field(i))
		want := base
		reflect.ValueOf(&want).Elem().Field(i).Set(reflect.ValueOf(own).Field(i))
		if diff := cmp.Diff(want, MergeStrategy(one, base)); diff != "" {
			t.Errorf("field %d alone (-want +got):\n%s", i, diff)
		}
	}
}

func TestDeployIsTrueUnlessSomebodySaysNo(t *testing.T) {
	type section = dataplanev1.DeployStrategySection
	yes, no, none := section{Deploy: ptr.To(true)}, section{Deploy: ptr.To(false)}, section{}
	for _, c := range []struct {
		node, role section
		want       bool
	}{{none, none, true}, {none, no, false}, {yes, no, true}, {no, yes, false}, {no, none, false}} {
		node := &dataplanev1.OpenStackDataPlaneNode{Spec: dataplanev1.OpenStackDataPlaneNodeSpec{DeployStrategy: c.node}}
		role := &dataplanev1.OpenStackDataPlaneRole{Spec: dataplanev1.OpenStackDataPlaneRoleSpec{DeployStrategy: c.role}}
		if got := Deploy(node, role); got != c.want {
			t.Errorf("Deploy(%+v, %+v) = %v; want %v", c.node, c.role, got, c.want)
		}
	}
	if !Deploy(&dataplanev1.OpenStackDataPlaneNode{}, nil) {
		t.Error("a node without a role is not deployed")
	}
}

func TestVars(t *testing.T) {
	for name, c := range map[string]struct {
		raw  *apiextensionsv1.JSON
		want map[string]any
	}{
		"none":                    {nil, map[string]any{}},
		"empty":                   {vars(``), map[string]any{}},
		"null":                    {vars(`null`), map[string]any{}},
		"a mapping":               {vars(`{"a": {"b": [1, "x", null]}}`), map[string]any{"a": map[string]any{"b": []any{1.0, "x", nil}}}},
		"empty text":              {vars(`""`), map[string]any{}},
		"text with a comment":     {vars(`"# nothing yet\n"`), map[string]any{}},
		"text of a mapping":       {vars(`"a: 1\nb:\n- x\n"`), map[string]any{"a": 1.0, "b": []any{"x"}}},
		"text that starts with -": {vars(`"---\na: yes\n"`), map[string]any{"a": true}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Vars(c.raw)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the variables differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVarsThatAreNoMapping(t *testing.T) {
	for name, raw := range map[string]string{
		"a list": `["hunter2"]`, "a number": `7`, "a boolean": `true`, "text of a list": `"- hunter2"`, "text of text": `"hunter2"`,
		"text of no YAML": `"a: [hunter2"`, "text with tabs": `"a:\n\tb: hunter2"`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Vars(vars(raw))
			if err == nil || !strings.Contains(err.Error(), "mapping") {
				t.Errorf("the error is %v; want one that says what the variables must be", err)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error quotes a value: %v", err)
			}
		})
	}
	good, bad := dataplanev1.NodeSection{AnsibleVars: vars(`{}`)}, dataplanev1.NodeSection{AnsibleVars: vars(`7`)}
	for where, sections := range map[string][2]dataplanev1.NodeSection{"of the role": {good, bad}, "of the node": {bad, good}} {
		_, err := EffectiveOf(&dataplanev1.OpenStackDataPlaneNode{Spec: dataplanev1.OpenStackDataPlaneNodeSpec{Node: sections[0]}},
			&dataplanev1.OpenStackDataPlaneRole{Spec: dataplanev1.OpenStackDataPlaneRoleSpec{NodeTemplate: sections[1]}})
		if err == nil || !strings.Contains(err.Error(), where) {
			t.Errorf("the error is %v; want it to say that the variables %s are bad", err, where)
		}
	}
}

func TestAnnotation(t *testing.T) {
	const key = "nova.openstack.org/cell"
	with := func(value string) map[string]string { return map[string]string{key: value} }
	for name, c := range map[string]struct {
		node, role map[string]string
		want       string
	}{
		"no one says anything":           {nil, nil, ""},
		"the role alone":                 {nil, with("r"), "r"},
		"the node alone":                 {with("n"), nil, "n"},
		"the node wins":                  {with("n"), with("r"), "n"},
		"the node wins also when empty":  {with(""), with("r"), ""},
		"other annotations do not count": {map[string]string{"x": "n"}, with("r"), "r"},
	} {
		node := &dataplanev1.OpenStackDataPlaneNode{ObjectMeta: metav1.ObjectMeta{Annotations: c.node}}
		role := &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: metav1.ObjectMeta{Annotations: c.role}}
		if got := Annotation(node, role, key); got != c.want {
			t.Errorf("%s: the annotation is %q; want %q", name, got, c.want)
		}
	}
	if got := Annotation(nil, nil, key); got != "" {
		t.Errorf("without objects the annotation is %q", got)
	}
}

func TestTopologyRef(t *testing.T) {
	named, none := &topologyv1.TopologyRef{Name: "zone-node"}, &topologyv1.TopologyRef{}
	node := func(ref *topologyv1.TopologyRef) *dataplanev1.OpenStackDataPlaneNode {
		return &dataplanev1.OpenStackDataPlaneNode{Spec: dataplanev1.OpenStackDataPlaneNodeSpec{TopologyRef: ref}}
	}
	for name, c := range map[string]struct {
		node *dataplanev1.OpenStackDataPlaneNode
		role *dataplanev1.OpenStackDataPlaneRole
		want string
	}{
		"no one says anything":               {node(nil), &dataplanev1.OpenStackDataPlaneRole{}, ""},
		"a node inherits":                    {node(nil), fullRole(), "zone-role"},
		"the node wins":                      {node(named), fullRole(), "zone-node"},
		"a node opts out":                    {node(none), fullRole(), ""},
		"a node whose role is gone":          {node(named), nil, "zone-node"},
		"a node that is gone leaves nothing": {nil, nil, ""},
	} {
		got := ""
		if ref := TopologyRef(c.node, c.role); ref != nil {
			got = ref.Name
		}
		if got != c.want {
			t.Errorf("%s: the Topology is %q; want %q", name, got, c.want)
		}
	}
}
