package edpm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const (
	hostKey      = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
	otherHostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAcNHqIYJrB8OtlhnG2w1bDeHDgPDVgPPIoqxDyRIKy8"
)

func TestKnownHosts(t *testing.T) {
	type vars = map[string]any
	for name, c := range map[string]struct {
		key  string
		vars vars
		want string
	}{
		"a host that no one has met":                {"", vars{"ansible_host": "10.0.0.1"}, ""},
		"by its address":                            {hostKey, vars{"ansible_host": "10.0.0.1"}, "10.0.0.1 " + hostKey + "\n"},
		"by its name, without an address":           {hostKey, vars{}, "h " + hostKey + "\n"},
		"at another port":                           {hostKey, vars{"ansible_host": "10.0.0.1", "ansible_port": 2222.0}, "[10.0.0.1]:2222 " + hostKey + "\n"},
		"at a port that is a text":                  {hostKey, vars{"ansible_port": "2222"}, "[h]:2222 " + hostKey + "\n"},
		"at the usual port":                         {hostKey, vars{"ansible_port": int64(22)}, "h " + hostKey + "\n"},
		"by the older names, which Ansible prefers": {hostKey, vars{"ansible_ssh_host": "10.0.0.2", "ansible_ssh_port": 2222, "ansible_host": "10.0.0.1", "ansible_port": 22}, "[10.0.0.2]:2222 " + hostKey + "\n"},
		"at an address of version 6":                {hostKey, vars{"ansible_host": "fd00::1"}, "fd00::1 " + hostKey + "\n"},
		"with an address that has lines":            {hostKey, vars{"ansible_host": "10.0.0.1\n* " + otherHostKey}, ""},
		"with an address that is a pattern":         {hostKey, vars{"ansible_host": "*"}, ""},
		"with a key that no host can have had":      {"ssh-ed25519 AAAA\n* ssh-rsa AAAA", vars{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := runInputs("run", []*pendingTarget{pendingOf(Target{Host: "h", HostKey: c.key, Vars: c.vars})})
			if err != nil {
				t.Fatal(err)
			}
			if got := string(data["known_hosts"]); got != c.want {
				t.Errorf("the known hosts are %q, want %q", got, c.want)
			}
		})
	}
}

func TestParseInventory(t *testing.T) {
	type vars = map[string]any
	for name, c := range map[string]struct {
		text string
		want vars
	}{
		"variables of the host": {"all: {hosts: {h: {a: 1, b: [x, {c: z}]}}}", vars{"a": 1.0, "b": []any{"x", vars{"c": "z"}}}},
		"a host without any":    {"all: {hosts: {h: }}", vars{}},
		"variables of all hosts are beaten by those of the host": {
			"all: {vars: {a: all, b: all}, hosts: {h: {a: host}}}", vars{"a": "host", "b": "all"},
		},
		"variables of a group beat those of its parent": {
			"all: {vars: {a: all, b: all, c: all}, children: {g: {vars: {a: group, b: group}, hosts: {h: {a: host}}}}}",
			vars{"a": "host", "b": "group", "c": "all"},
		},
		"groups of groups, the nearest wins": {
			"all: {children: {outer: {vars: {a: outer}, children: {inner: {vars: {a: inner}, hosts: {h: }}}}}}", vars{"a": "inner"},
		},
		"groups that the host is not in do not count": {
			"all: {children: {other: {vars: {a: other}, hosts: {x: }}, mine: {hosts: {h: }}}}", vars{},
		},
		"of groups side by side the later by name wins": {
			"all: {children: {g1: {vars: {a: 1, b: 1}, hosts: {h: }}, g2: {vars: {a: 2}, hosts: {h: }}}}", vars{"a": 2.0, "b": 1.0},
		},
		"variables of the host add up over the groups that name it": {
			"all: {children: {g1: {hosts: {h: {a: 1}}}, g2: {vars: {a: 2}, hosts: {h: {b: 2}}}}}", vars{"a": 1.0, "b": 2.0},
		},
		"a group next to all is within all": {
			"aaa: {vars: {a: group}, hosts: {h: }}\nall: {vars: {a: all, b: all}}", vars{"a": "group", "b": "all"},
		},
		"what Ansible has next to hosts does not matter": {
			"all: {hosts: {h: {a: 1}}, something: else}", vars{"a": 1.0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 { // the order of maps is random
				got, err := ParseInventory([]byte(c.text), "h")
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Fatalf("the variables differ (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestParseInventorySaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":            {"", `host "h" is not in the inventory: add it under all.hosts`},
		"another host":       {"all: {hosts: {x: }}", `host "h" is not in the inventory`},
		"no YAML":            {"all: {hosts: ", "not a YAML inventory"},
		"text":               {"hunter2", "not a YAML inventory"},
		"INI":                {"[all]\nh ansible_password=hunter2", "not a YAML inventory"},
		"a list":             {"- all", "not a YAML inventory"},
		"a list of hosts":    {"all: {hosts: [h, hunter2]}", "not a YAML inventory"},
		"a host that is one": {"all: {hosts: {h: hunter2}}", "not a YAML inventory"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseInventory([]byte(c.text), "h")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v; want one with %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error quotes a value: %v", err)
			}
		})
	}
}

func TestAnInventoryIsReadBackAsItWasWritten(t *testing.T) {
	vars := map[string]any{
		"ansible_host": "192.168.122.100", "port": 22.0, "big": 9007199254740991.0, "ratio": 0.5, "yes": true, "nothing": nil,
		"text": "yes", "octal": "0777", "time": "12:30", "float": "1e3", "hex": "0x10", "empty": "", "null": "null", "tilde": "~",
		"date": "2026-03-01", "under": "1_000", "merge": "<<", "at": "@x", "jinja": "{{ other }}", "colon": "a: b", "hash": "a #b",
		"lines": "one\ntwo\n", "spaces": "  x  ", "quote": `it's "so"`, "unicode": "ü→\u2028", "back": `C:\x`, "dollar": "$x",
		"list": []any{}, "map": map[string]any{}, "deep": map[string]any{"a": []any{1.0, map[string]any{"b": false}}},
	}
	inventory := Inventory{All: InventoryGroup{Hosts: map[string]map[string]any{"h": vars, "other": {"x": "y"}}}}
	text, err := inventory.Render()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseInventory([]byte(text), "h")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(vars, got); diff != "" {
		t.Errorf("the variables differ (-want +got):\n%s\n%s", diff, text)
	}
}

func TestRunInputs(t *testing.T) {
	batch := []*pendingTarget{
		{hash: "H-a", Target: Target{Host: "a", Rerun: "again", Step: Step{Name: "nova"}, Vars: map[string]any{"ansible_host": "10.0.0.1", "shared": "x", "own": 1}, Files: map[string][]byte{
			"01-nova.conf": []byte("same"), "02.conf": []byte("only a"),
		}}},
		{hash: "H-b", Target: Target{Host: "b", Step: Step{Name: "nova"}, Vars: map[string]any{"ansible_host": "10.0.0.2", "shared": "x"}, Files: map[string][]byte{
			"01-nova.conf": []byte("same"), "02.conf": []byte("only b"),
		}}},
	}
	data, err := runInputs("run-1", batch)
	if err != nil {
		t.Fatal(err)
	}
	same, a, b := contentKey([]byte("same")), contentKey([]byte("only a")), contentKey([]byte("only b"))
	files := map[string][]byte{}
	for k, v := range data {
		if k != "inventory" {
			files[k] = v
		}
	}
	if diff := cmp.Diff(map[string][]byte{same: []byte("same"), a: []byte("only a"), b: []byte("only b")}, files); diff != "" {
		t.Errorf("the files differ; each content is there once (-want +got):\n%s", diff)
	}
	want := map[string]any{
		"ansible_host": "10.0.0.1", "shared": "x", "own": 1.0,
		"edpm_run": "run-1", "edpm_step": "nova", "edpm_hash": "H-a", "edpm_rerun": digest("again"),
		"edpm_config_files": map[string]any{"01-nova.conf": "/runner/config/" + same, "02.conf": "/runner/config/" + a},
	}
	got, err := ParseInventory(data["inventory"], "a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the variables of a differ (-want +got):\n%s", diff)
	}
	inventory := Inventory{}
	if err := yaml.Unmarshal(data["inventory"], &inventory); err != nil {
		t.Fatal(err)
	}
	shared := map[string]any{"shared": "x", "edpm_run": "run-1", "edpm_step": "nova"}
	if diff := cmp.Diff(shared, inventory.All.Vars); diff != "" {
		t.Errorf("the shared variables differ (-want +got):\n%s", diff)
	}
	if _, changed := batch[0].Vars["edpm_run"]; changed {
		t.Error("the variables of the target were changed")
	}
	again, _ := runInputs("run-1", []*pendingTarget{batch[1], batch[0]})
	if diff := cmp.Diff(data, again); diff != "" {
		t.Errorf("the order of the hosts changes the inputs:\n%s", diff)
	}
}

func TestShareVars(t *testing.T) {
	type hosts = map[string]map[string]any
	for name, c := range map[string]struct {
		hosts, left hosts
		shared      map[string]any
	}{
		"no hosts share nothing": {hosts{}, hosts{}, map[string]any{}},
		"one host shares all":    {hosts{"a": {"x": 1}}, hosts{"a": {}}, map[string]any{"x": 1}},
		"equal values are shared": {
			hosts{"a": {"x": []any{1}, "y": 1}, "b": {"x": []any{1}, "y": 2}}, hosts{"a": {"y": 1}, "b": {"y": 2}}, map[string]any{"x": []any{1}},
		},
		"a value that one host lacks is not shared": {
			hosts{"a": {"x": nil}, "b": {}}, hosts{"a": {"x": nil}, "b": {}}, map[string]any{},
		},
		"text and number differ": {
			hosts{"a": {"x": "1"}, "b": {"x": 1}}, hosts{"a": {"x": "1"}, "b": {"x": 1}}, map[string]any{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			shared := shareVars(c.hosts)
			if diff := cmp.Diff(c.shared, shared); diff != "" {
				t.Errorf("what is shared differs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.left, c.hosts); diff != "" {
				t.Errorf("what is left differs (-want +got):\n%s", diff)
			}
		})
	}
}
