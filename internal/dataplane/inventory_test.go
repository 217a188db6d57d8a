package dataplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/test/needs"
)

func asJSON(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }

// crowd is a role with variables of so many bytes, and n nodes.
func crowd(n, bytes int) (*dataplanev1.OpenStackDataPlaneRole, []dataplanev1.OpenStackDataPlaneNode) {
	role := &dataplanev1.OpenStackDataPlaneRole{ObjectMeta: metav1.ObjectMeta{Name: "edpm-compute"}}
	role.Spec.NodeTemplate = dataplanev1.NodeSection{AnsibleUser: "cloud-admin", AnsiblePort: 22, AnsibleVars: asJSON(`{"large": "` + strings.Repeat("x", bytes) + `"}`)}
	members := make([]dataplanev1.OpenStackDataPlaneNode, n)
	for i := range members {
		members[i].Name = fmt.Sprintf("edpm-compute-%04d", i)
		members[i].Spec = dataplanev1.OpenStackDataPlaneNodeSpec{Role: role.Name, AnsibleHost: fmt.Sprintf("10.%d.%d.%d", 16+i>>14, i>>7&127, i&127+1)}
	}
	return role, members
}

func TestTheInventoryOfALargeRoleFits(t *testing.T) {
	for name, c := range map[string]struct{ nodes, bytes, parts int }{
		"a small role is one part":                       {50, 3 << 10, 1},
		"variables of the role count once":               {3000, 3 << 10, 1},
		"5000 nodes with 3 KiB of variables of the role": {5000, 3 << 10, 2},
		"variables of the role that are large":           {5000, 200 << 10, 4},
	} {
		t.Run(name, func(t *testing.T) {
			parts, err := RoleInventory(crowd(c.nodes, c.bytes))
			if err != nil {
				t.Fatal(err)
			}
			hosts := 0
			for _, text := range parts {
				if len(text) > 512<<10 {
					t.Errorf("a part has %d bytes; want at most 512 KiB", len(text))
				}
				hosts += strings.Count(text, "canonical_hostname: ")
			}
			if hosts != c.nodes || len(parts) != c.parts {
				t.Errorf("%d hosts in %d parts; want %d in %d", hosts, len(parts), c.nodes, c.parts)
			}
		})
	}
}

func TestAnInventoryThatIsTooLargeIsAnError(t *testing.T) {
	own, members := crowd(5000, 10)
	for i := range members {
		members[i].Spec.Node.AnsibleVars = asJSON(`{"own": "` + strings.Repeat("x", 3<<10) + `"}`)
	}
	one, single := crowd(1, 10)
	single[0].Spec.Node.AnsibleVars = asJSON(`{"own": "` + strings.Repeat("x", 500<<10) + `"}`)
	large, few := crowd(2, 500<<10)
	for name, try := range map[string]func() ([]string, error){
		"many large hosts": func() ([]string, error) { return RoleInventory(own, members) },
		"one large host":   func() ([]string, error) { return RoleInventory(one, single) },
		"a large role":     func() ([]string, error) { return RoleInventory(large, few) },
	} {
		if parts, err := try(); !errors.As(err, new(*TooLargeError)) {
			t.Errorf("%s: %d parts, error %v; want a TooLargeError", name, len(parts), err)
		}
	}
}

// mixed is a role whose nodes override what they can, in every way.
func mixed() (*dataplanev1.OpenStackDataPlaneRole, []dataplanev1.OpenStackDataPlaneNode) {
	role, members := crowd(6, 3)
	role.Spec.NodeTemplate.AnsibleVars = asJSON(`{"a": 1, "b": {"c": [1, 2]}, "text": "yes", "canonical_hostname": "from-the-role", "ansible_port": 2022}`)
	role.Spec.NodeTemplate.ManagementNetwork = "ctlplane"
	role.Spec.NodeTemplate.Networks = []dataplanev1.NetworkSection{{Network: "InternalApi", FixedIP: "172.17.0.9"}, {Network: "storage"}}
	section := func(i int) *dataplanev1.NodeSection { return &members[i].Spec.Node }
	section(1).AnsibleVars = asJSON(`{"a": null, "own": true}`)
	section(2).AnsibleVars = asJSON(`"b: {c: [1]}\ntext: 'no'\n"`)
	section(3).Networks = []dataplanev1.NetworkSection{{Network: "tenant", FixedIP: "172.18.0.3"}}
	section(4).AnsibleUser, section(4).AnsiblePort, section(4).ManagementNetwork = "root", 2222, "other"
	members[5].Spec.HostName, members[5].Spec.Node.AnsibleVars = "host-5.example.org", asJSON(`{"ansible_host": "fd00::5"}`)
	return role, members
}

// normal is a value as JSON has it.
func normal(t *testing.T, value any) map[string]any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func wantVars(t *testing.T, role *dataplanev1.OpenStackDataPlaneRole, node *dataplanev1.OpenStackDataPlaneNode) map[string]any {
	t.Helper()
	eff, err := inherit.EffectiveOf(node, role)
	if err != nil {
		t.Fatal(err)
	}
	return normal(t, HostVars(eff))
}

func TestHostsHaveInTheRoleWhatTheyHaveAlone(t *testing.T) {
	role, members := mixed()
	parts, err := RoleInventory(role, members)
	if err != nil {
		t.Fatal(err)
	}
	for i := range members {
		got, err := edpm.ParseInventory([]byte(parts[0]), members[i].Name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wantVars(t, role, &members[i]), normal(t, got)); diff != "" {
			t.Errorf("the variables of %s differ (-alone +in the role):\n%s", members[i].Name, diff)
		}
	}
}

// TestAnsibleReadsTheInventoryOfARole asks Ansible itself, for one part and for
// parts that it reads together.
func TestAnsibleReadsTheInventoryOfARole(t *testing.T) {
	needs.Ansible(t, "ansible-inventory")
	role, members := mixed()
	large, many := crowd(40, 200<<10)
	for i := range many {
		many[i].Spec.Node.AnsibleVars = asJSON(`{"own": "` + strings.Repeat("x", 20<<10) + `"}`)
	}
	for name, c := range map[string]struct {
		role    *dataplanev1.OpenStackDataPlaneRole
		members []dataplanev1.OpenStackDataPlaneNode
		parts   int
	}{"one part": {role, members, 1}, "several parts": {large, many, 4}} {
		t.Run(name, func(t *testing.T) {
			parts, err := RoleInventory(c.role, c.members)
			if err != nil || len(parts) != c.parts {
				t.Fatalf("%d parts, error %v; want %d", len(parts), err, c.parts)
			}
			vars := ansibleReads(t, parts)
			for i := range c.members {
				if diff := cmp.Diff(wantVars(t, c.role, &c.members[i]), vars[c.members[i].Name]); diff != "" {
					t.Errorf("the variables of %s differ (-alone +in the role):\n%s", c.members[i].Name, diff)
				}
			}
		})
	}
}

// ansibleReads returns the variables of all hosts of inventories.
func ansibleReads(t *testing.T, parts []string) map[string]map[string]any {
	t.Helper()
	args, dir := []string{"--list"}, t.TempDir()
	for i, text := range parts {
		file := filepath.Join(dir, fmt.Sprintf("hosts-%d.yaml", i))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-i", file)
	}
	cmd := exec.CommandContext(t.Context(), "ansible-inventory", args...)
	cmd.Env = append(os.Environ(), "ANSIBLE_INVENTORY_UNPARSED_FAILED=true", "HOME="+dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("ansible-inventory: %v", err)
	}
	var got struct {
		Meta struct {
			HostVars map[string]map[string]any `json:"hostvars"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	return got.Meta.HostVars
}
