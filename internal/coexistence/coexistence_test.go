package coexistence

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

var usual = []string{"ansibleee", "core", "dataplane", "edpm", "glance", "neutron", "nova", "topology"}

// cluster has our definitions, but for those of others, marked with !, and those
// that are missing, marked with -.
func cluster(t *testing.T, except ...string) Definitions {
	t.Helper()
	found := Definitions{}
	for _, name := range Names(slices.Collect(maps.Keys(needsOf))) {
		found[name] = true
	}
	for _, e := range except {
		if _, known := found[e[1:]]; !known {
			t.Fatalf("there is no definition %s", e[1:])
		}
		if found[e[1:]] = false; e[0] == '-' {
			delete(found, e[1:])
		}
	}
	return found
}

func TestDecide(t *testing.T) {
	for name, c := range map[string]struct {
		chosen []string
		except []string
		want   string
		// says is a part of each message, by operator.
		says map[string]string
	}{
		"everything is ours": {usual, nil, "ansibleee core dataplane edpm glance neutron nova topology", nil},
		"glance-operator is there": {usual, []string{"!glances.glance.openstack.org", "!glanceapis.glance.openstack.org"}, "ansibleee dataplane edpm neutron nova topology", map[string]string{
			"glance": "definition glanceapis.glance.openstack.org belongs to another operator: set --operators without glance",
			"core":   "it needs operator glance, which is disabled: definition glanceapis.glance.openstack.org belongs",
		}},
		"one kind of an operator is enough": {usual, []string{"!novacells.nova.openstack.org"}, "ansibleee dataplane edpm glance neutron topology", map[string]string{
			"nova": "definition novacells.nova.openstack.org belongs to another", "core": "it needs operator nova",
		}},
		"openstack-ansibleee-operator is there": {usual, []string{"!openstackansibleees.ansibleee.openstack.org"}, "glance topology", map[string]string{
			"ansibleee": "belongs to another", "dataplane": "it needs operator ansibleee", "edpm": "it needs operator ansibleee", "neutron": "it needs operator ansibleee", "nova": "it needs operator ansibleee",
			"core": "it needs operator nova, which is disabled: it needs operator ansibleee, which is disabled: definition openstackansibleees",
		}},
		"dataplane-operator is there": {usual, []string{"!openstackdataplanenodes.dataplane.openstack.org"}, "ansibleee glance topology", map[string]string{
			"dataplane": "belongs to another", "edpm": "it needs operator dataplane", "neutron": "it needs operator dataplane", "nova": "it needs operator dataplane", "core": "it needs operator nova",
		}},
		"a Topology of infra-operator is used by all but its operator": {usual, []string{"!topologies.topology.openstack.org"}, "ansibleee core dataplane edpm glance neutron nova", map[string]string{
			"topology": "belongs to another",
		}},
		"without any Topology no one can work who follows one": {usual, []string{"-topologies.topology.openstack.org"}, "", map[string]string{
			"ansibleee": "definition topologies.topology.openstack.org does not exist: apply config/crd", "core": "does not exist", "dataplane": "does not exist", "edpm": "does not exist",
			"glance": "does not exist", "neutron": "does not exist", "nova": "does not exist", "topology": "does not exist",
		}},
		"a definition is missing": {[]string{"glance", "topology"}, []string{"-glances.glance.openstack.org"}, "topology", map[string]string{
			"glance": "definition glances.glance.openstack.org does not exist: apply config/crd",
		}},
		"what was not chosen does not matter":       {[]string{"topology"}, []string{"!glances.glance.openstack.org", "-nova.nova.openstack.org"}, "topology", nil},
		"what is needed may run in another manager": {[]string{"nova"}, nil, "nova", nil},
		"but its kinds have to be ours":             {[]string{"nova"}, []string{"!openstackdataplaneroles.dataplane.openstack.org"}, "", map[string]string{"nova": "it needs operator dataplane"}},
		"ocs-operator is there":                     {[]string{"ocs", "topology"}, []string{"!storageclusters.ocs.openshift.io"}, "topology", map[string]string{"ocs": "belongs to another"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(c.chosen, cluster(t, c.except...))
			if got := strings.Join(d.Running, " "); got != c.want {
				t.Errorf("%s run; want %s", got, c.want)
			}
			var left, want []string
			for _, out := range d.LeftOut {
				left = append(left, out.Operator)
				if !strings.Contains(out.Message, c.says[out.Operator]) {
					t.Errorf("of %s it says %q; want %q in it", out.Operator, out.Message, c.says[out.Operator])
				}
			}
			want = slices.Sorted(maps.Keys(c.says))
			if diff := cmp.Diff(want, left); diff != "" {
				t.Errorf("the operators that are left out differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecideWatched(t *testing.T) {
	for name, c := range map[string]struct {
		chosen []string
		except []string
		want   string
	}{
		"all that exist":         {[]string{"topology"}, nil, "glanceapis nova novacells novacomputes openstackdataplanenodes openstackdataplaneroles"},
		"others' as well":        {[]string{"topology"}, []string{"!glanceapis.glance.openstack.org", "-novacells.nova.openstack.org"}, "glanceapis nova novacomputes openstackdataplanenodes openstackdataplaneroles"},
		"no one who looks":       {[]string{"ocs"}, nil, ""},
		"who looks does not run": {[]string{"topology"}, []string{"!topologies.topology.openstack.org"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, name := range Decide(c.chosen, cluster(t, c.except...)).Watched {
				kind, _, _ := strings.Cut(name, ".")
				got = append(got, kind)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%q are watched; want %q", got, c.want)
			}
		})
	}
}

func TestCondition(t *testing.T) {
	const missing, foreign = "-nova.nova.openstack.org", "!glances.glance.openstack.org"
	for name, c := range map[string]struct {
		chosen, except []string
		isTrue         bool
		reason, says   string
	}{
		"all run":                     {[]string{"glance", "topology"}, nil, true, "AllRunning", "Running: glance, topology"},
		"one is missing":              {[]string{"nova", "topology"}, []string{missing}, false, "MissingDefinition", "Running: topology; nova is disabled: definition nova"},
		"what is foreign comes first": {[]string{"glance", "nova", "topology"}, []string{missing, foreign}, false, "ForeignDefinition", "; nova is disabled: "},
		"none runs":                   {[]string{"glance"}, []string{foreign}, false, "ForeignDefinition", "Running: none; glance is disabled: "},
	} {
		t.Run(name, func(t *testing.T) {
			isTrue, reason, message := Decide(c.chosen, cluster(t, c.except...)).Condition()
			if isTrue != c.isTrue || string(reason) != c.reason || !strings.Contains(message, c.says) {
				t.Errorf("the condition is %v, %s: %q; want %v, %s with %q", isTrue, reason, message, c.isTrue, c.reason, c.says)
			}
		})
	}
}

// TestDefinitions : every definition of config/crd is one of ours, and looked after
// by the operator that its group is named after.
func TestDefinitions(t *testing.T) {
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d definitions: %v", len(files), err)
	}
	want, got := map[string][]string{}, map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			t.Fatal(err)
		}
		operator, _, _ := strings.Cut(crd.Spec.Group, ".")
		want[operator] = append(want[operator], crd.Name)
		if !Ours(crd.Labels) {
			t.Errorf("%s has labels %v: the type needs the marker +kubebuilder:metadata:labels that the others have", crd.Name, crd.Labels)
		}
	}
	for operator := range needsOf {
		got[operator] = slices.Sorted(slices.Values(owns(operator)))
	}
	for operator := range want {
		slices.Sort(want[operator])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("who looks after which definition differs (-config +kinds):\n%s", diff)
	}
}
