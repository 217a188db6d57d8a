package edpmservice

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm/v1beta1"
)

// agent is a class without fault.
func agent() *edpmv1.EDPMServiceClass {
	c := &edpmv1.EDPMServiceClass{}
	c.Namespace, c.Name = "ns", "agent"
	c.Spec = edpmv1.EDPMServiceClassSpec{
		Annotation: "example.org/agent", Playbook: "example.agents.install", CleanupPlay: "- hosts: all\n", Image: "agent:1",
	}
	return c
}

func TestClassesAreRefusedWithFieldAndRemedy(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*edpmv1.EDPMServiceClassSpec)
		want   []string // parts of the only error; none for no error
	}{
		"one without fault":               {func(*edpmv1.EDPMServiceClassSpec) {}, nil},
		"an annotation without a domain":  {func(s *edpmv1.EDPMServiceClassSpec) { s.Annotation = "agent" }, []string{"spec.annotation", "example.org/agent"}},
		"an annotation that is none":      {func(s *edpmv1.EDPMServiceClassSpec) { s.Annotation = "example.org/a b" }, []string{"spec.annotation", "is not the key of an annotation"}},
		"an annotation of edpm-operators": {func(s *edpmv1.EDPMServiceClassSpec) { s.Annotation = "edpm.openstack.org/rerun" }, []string{"spec.annotation", "a meaning of their own", "example.org/agent"}},
		"an annotation of Kubernetes": {func(s *edpmv1.EDPMServiceClassSpec) {
			s.Annotation = "kubectl.kubernetes.io/last-applied-configuration"
		}, []string{"spec.annotation", "kubernetes.io"}},
		"the annotation of another service":     {func(s *edpmv1.EDPMServiceClassSpec) { s.Annotation = "nova.openstack.org/cell" }, nil},
		"a playbook of the runner itself":       {func(s *edpmv1.EDPMServiceClassSpec) { s.Playbook = "/etc/install.yaml" }, []string{"spec.playbook", "namespace.collection.playbook"}},
		"a playbook outside the project":        {func(s *edpmv1.EDPMServiceClassSpec) { s.CleanupPlaybook, s.CleanupPlay = "../x.yaml", "" }, []string{"spec.cleanupPlaybook", "/runner/project"}},
		"a play that is no list":                {func(s *edpmv1.EDPMServiceClassSpec) { s.Playbook, s.Play = "", "hosts: all" }, []string{"spec.play", "list of plays"}},
		"a clean-up play that is no list":       {func(s *edpmv1.EDPMServiceClassSpec) { s.CleanupPlay = "hosts: all" }, []string{"spec.cleanupPlay", "list of plays"}},
		"customServiceConfig that is none":      {func(s *edpmv1.EDPMServiceClassSpec) { s.CustomServiceConfig = "debug = true\n" }, []string{"spec.customServiceConfig", "line 1"}},
		"a variable of the connection":          {func(s *edpmv1.EDPMServiceClassSpec) { s.Vars = vars(`{"ansible_connection": "local"}`) }, []string{"spec.vars", "ansible_connection"}},
		"a variable that says where hosts are":  {func(s *edpmv1.EDPMServiceClassSpec) { s.Vars = vars(`{"ansible_ssh_host": "10.0.0.9"}`) }, []string{"spec.vars[ansible_ssh_host]", "ansibleVars of the node or its role"}},
		"one that says who logs in, as text":    {func(s *edpmv1.EDPMServiceClassSpec) { s.Vars = vars(`"ansible_user: root"`) }, []string{"spec.vars[ansible_user]", "ansibleVars of the node or its role"}},
		"one as text":                           {func(s *edpmv1.EDPMServiceClassSpec) { s.Vars = vars(`"ansible_ssh_common_args: -o X"`) }, []string{"spec.vars", "ansible_ssh_common_args"}},
		"a mistyped variable of the collection": {func(s *edpmv1.EDPMServiceClassSpec) { s.Vars = vars(`{"edpm_service_mount": []}`) }, []string{"spec.vars", "edpm_service_mounts"}},
		"the variable that spec.image sets":     {func(s *edpmv1.EDPMServiceClassSpec) { s.Vars = vars(`{"edpm_service_image": "x"}`) }, []string{"spec.vars[edpm_service_image]", "set spec.image instead"}},
		"the variable that the name sets":       {func(s *edpmv1.EDPMServiceClassSpec) { s.Vars = vars(`"edpm_service_name: x"`) }, []string{"spec.vars[edpm_service_name]", "name of the class"}},
		"a file in the place of the defaults":   {func(s *edpmv1.EDPMServiceClassSpec) { s.ConfigFiles = files("01-agent.conf", "peer") }, []string{"spec.configFiles[0].name", "customServiceConfig", "00-agent.conf"}},
		"a file in the place of the override":   {func(s *edpmv1.EDPMServiceClassSpec) { s.ConfigFiles = files("02-agent-override.conf", "peer") }, []string{"spec.configFiles[0].name", "customServiceConfig"}},
		"a file of a Secret with a bad name":    {func(s *edpmv1.EDPMServiceClassSpec) { s.ConfigFiles = files("a", "Peer_1") }, []string{"spec.configFiles[0].secret.name", "Peer_1"}},
		"a preceding service with a bad name":   {func(s *edpmv1.EDPMServiceClassSpec) { s.After = []string{"nova", "No va"} }, []string{"spec.after[1]", "No va"}},
	} {
		class := agent()
		c.change(&class.Spec)
		errs := ClassErrors(class)
		if (len(c.want) > 0) != (len(errs) == 1) {
			t.Errorf("%s: errors are %v", name, errs)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(errs[0].Error(), part) {
				t.Errorf("%s: %q should contain %q", name, errs[0].Error(), part)
			}
		}
	}
}

func TestTheErrorsOfAClassHideTheValuesOfItsTexts(t *testing.T) {
	class := agent()
	class.Spec.Vars, class.Spec.CleanupPlay = vars(`"- hunter2"`), "hunter2: ["
	for _, err := range ClassErrors(class) {
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v shows what may be a secret", err)
		}
	}
}

func vars(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }

func files(name, secret string) []common.ConfigFile {
	return []common.ConfigFile{{Name: name, Secret: &common.FileSource{Name: secret}}}
}

func TestTheNameOfAServiceIsMadeOfItsClassAndNode(t *testing.T) {
	service := &edpmv1.EDPMService{}
	service.Name, service.Spec.ClassName, service.Spec.DataplaneNodeName = "agent-n", "agent", "n"
	if errs := NameErrors(service); len(errs) > 0 {
		t.Errorf("errors are %v, want none", errs)
	}
	service.Name = "n"
	if errs := NameErrors(service); len(errs) != 1 || !strings.Contains(errs[0].Error(), `metadata.name: Invalid value: "n": must be agent-n`) {
		t.Errorf("errors are %v", errs)
	}
}

func TestVariablesOfTheHostWinOverThoseOfTheClass(t *testing.T) {
	class := agent()
	class.Spec.Vars = vars(`"port: 1\npath: /class"`)
	got, err := Vars(class, map[string]any{"path": "/host", "edpm_service_image": "other", "ansible_host": "192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"port": float64(1), "path": "/host", "ansible_host": "192.0.2.1", "edpm_service_name": "agent", "edpm_service_image": "agent:1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

func TestTheStrategyOfAClassWinsFieldByField(t *testing.T) {
	class := agent()
	node := dataplanev1.DeployStrategySection{BatchSize: ptr.To[int32](10), MaxFailures: ptr.To[int32](3), AnsibleTags: "x"}
	class.Spec.DeployStrategy = edpmv1.ServiceDeployStrategy{BatchSize: ptr.To[int32](2), MaxUnavailable: ptr.To(intstr.FromString("10%"))}
	got, err := Rollout(class, node)
	if err != nil || got.BatchSize != 2 || got.MaxUnavailablePercent != 10 || *got.MaxFailures != 3 || got.Tags != "x" || !got.Deploy {
		t.Errorf("strategy is %+v (%v)", got, err)
	}
}

func TestDeployOfAClassNeverRunsWhatTheNodeForbids(t *testing.T) {
	for _, c := range []struct {
		class, node *bool
		want        bool
	}{
		{nil, nil, true}, {ptr.To(true), ptr.To(false), false}, {ptr.To(false), ptr.To(true), false}, {ptr.To(true), nil, true}, {nil, ptr.To(false), false},
	} {
		class := agent()
		class.Spec.DeployStrategy.Deploy = c.class
		if got, _ := Rollout(class, dataplanev1.DeployStrategySection{Deploy: c.node}); got.Deploy != c.want {
			t.Errorf("class %v, node %v: deploy is %t, want %t", c.class, c.node, got.Deploy, c.want)
		}
	}
}

func TestCycle(t *testing.T) {
	for name, c := range map[string]struct {
		after map[string][]string
		want  []string
	}{
		"none":                    {map[string][]string{"a": {"b", "nova"}, "b": {"nova"}}, nil},
		"of two":                  {map[string][]string{"a": {"b"}, "b": {"a"}}, []string{"a", "b", "a"}},
		"through others":          {map[string][]string{"a": {"x", "b"}, "b": {"c"}, "c": {"a"}}, []string{"a", "b", "c", "a"}},
		"that others make":        {map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"b"}}, nil},
		"that is met twice":       {map[string][]string{"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": {"b"}}, nil},
		"of one that is unknown":  {map[string][]string{}, nil},
		"of one with itself only": {map[string][]string{"a": {"a"}}, []string{"a", "a"}},
	} {
		if diff := cmp.Diff(c.want, Cycle(c.after, "a")); diff != "" {
			t.Errorf("%s: the cycle of a (-want +got):\n%s", name, diff)
		}
	}
}

func TestAClassReadsWhatItsFilesName(t *testing.T) {
	class := agent()
	class.Spec.ConfigFiles = append(files("a", "peer"), common.ConfigFile{Name: "b", ConfigMap: &common.FileSource{Name: "settings"}})
	if diff := cmp.Diff([]string{"Secret/peer", "ConfigMap/settings"}, Reads(class)); diff != "" {
		t.Errorf("inputs (-want +got):\n%s", diff)
	}
}
