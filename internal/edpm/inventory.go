package edpm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
	"sigs.k8s.io/yaml"
)

// Inventory is the part of Ansible's YAML inventory that edpm-operators writes and reads.
type Inventory struct {
	All InventoryGroup `json:"all"`
}

// InventoryGroup is a group of an inventory.
type InventoryGroup struct {
	Hosts    map[string]map[string]any `json:"hosts,omitempty"`
	Vars     map[string]any            `json:"vars,omitempty"`
	Children map[string]InventoryGroup `json:"children,omitempty"`
}

// Render returns the inventory as YAML.
func (i Inventory) Render() (string, error) {
	text, err := yaml.Marshal(i)
	if err != nil {
		return "", fmt.Errorf("rendering an inventory: %w", err)
	}
	return string(text), nil
}

// ParseInventory returns the variables of one host of a YAML inventory, those
// of its groups included, the nearest winning. Errors say what is wrong with
// the text; they do not quote values.
func ParseInventory(text []byte, host string) (map[string]any, error) {
	inventory := map[string]InventoryGroup{}
	if err := yaml.Unmarshal(text, &inventory); err != nil {
		return nil, fmt.Errorf("not a YAML inventory: %w", err)
	}
	root := inventory["all"]
	delete(inventory, "all")
	maps.Copy(inventory, root.Children)
	root.Children = inventory // every group is within all, which any other group beats
	vars, own, found := root.find(host)
	if !found {
		return nil, fmt.Errorf("host %q is not in the inventory: add it under all.hosts", host)
	}
	maps.Copy(vars, own)
	return vars, nil
}

// find returns what the groups say of the host, and what is said of the host
// itself, which wins wherever it is said. Of groups side by side the later by
// name wins, as Ansible has it: the same text always gives the same result.
func (g InventoryGroup) find(host string) (groups, own map[string]any, found bool) {
	groups, own = map[string]any{}, map[string]any{}
	self, found := g.Hosts[host]
	maps.Copy(groups, g.Vars)
	maps.Copy(own, self)
	for _, name := range slices.Sorted(maps.Keys(g.Children)) {
		if theirs, more, ok := g.Children[name].find(host); ok {
			found = true
			maps.Copy(groups, theirs)
			maps.Copy(own, more)
		}
	}
	return groups, own, found
}

// runInputs returns the data of the Secret with the inputs of a run: the
// inventory and the files by the hash of their content. Variables that all
// hosts share are written once.
func runInputs(name string, batch []*pendingTarget) (map[string][]byte, error) {
	data := map[string][]byte{}
	hosts := map[string]map[string]any{}
	for _, o := range batch {
		hosts[o.Host] = hostVars(name, o)
		if line := KnownHost(o.Vars, o.Host, o.HostKey); line != "" {
			data[KnownHostsKey] = append(data[KnownHostsKey], line...)
		}
		for _, files := range o.files() {
			for _, content := range files {
				data[contentKey(content)] = content
			}
		}
	}
	text, err := Inventory{All: InventoryGroup{Vars: shareVars(hosts), Hosts: hosts}}.Render()
	data[InventoryKey] = []byte(text)
	return data, err
}

// KnownHost returns the line of the host with the variables in ssh's file of known
// hosts, none if its key is not known yet.
func KnownHost(vars map[string]any, host, hostKey string) string {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(hostKey))
	if err != nil {
		return "" // none, or what no host can have shown
	}
	address := variable(vars, "ansible_ssh_host", "ansible_host")
	if strings.ContainsFunc(address, unicode.IsSpace) || strings.ContainsAny(address, ",*?!#|@") {
		return "" // it would speak of other hosts of the run
	}
	port := 22
	if text := variable(vars, "ansible_ssh_port", "ansible_port"); text != "" {
		port, _ = strconv.Atoi(text)
	}
	return knownhosts.Line([]string{net.JoinHostPort(cmp.Or(address, host), strconv.Itoa(port))}, key) + "\n"
}

const (
	// InventoryKey has the inventory in the Secret with the inputs of a run.
	InventoryKey = "inventory"
	// KnownHostsKey is where the runner finds the keys of the hosts.
	KnownHostsKey = "known_hosts"
	// configDir is where the runner finds the files.
	configDir = "/runner/config"
)

// hostVars returns the variables of a host. What differs between the steps of a run of
// several is in edpm_steps: the playbook of the run makes edpm_step, edpm_hash and
// edpm_config_files of it.
func hostVars(run string, o *pendingTarget) map[string]any {
	vars := maps.Clone(o.Vars)
	if vars == nil {
		vars = map[string]any{}
	}
	maps.Copy(vars, o.Hints)
	vars["edpm_run"] = run
	if o.Rerun != "" {
		// Anybody may write the token, and Ansible takes text for a template.
		vars["edpm_rerun"] = digest(o.Rerun)
	}
	if len(o.then) == 0 {
		vars["edpm_step"], vars["edpm_hash"], vars["edpm_config_files"] = o.Step.Name, o.hash, paths(o.Files)
		return vars
	}
	steps, files := map[string]any{}, o.files()
	names, targets := o.steps()
	for i, step := range names {
		steps[step.Name] = map[string]any{"hash": targets[i].Hash, "files": paths(files[i])}
	}
	vars["edpm_steps"] = steps
	return vars
}

// paths of files on the runner, by name.
func paths(files map[string][]byte) map[string]any {
	paths := map[string]any{}
	for name, content := range files {
		paths[name] = configDir + "/" + contentKey(content)
	}
	return paths
}

// shareVars moves variables with the same value on all hosts out of hosts.
func shareVars(hosts map[string]map[string]any) map[string]any {
	var shared map[string]any
	for _, vars := range hosts {
		if shared == nil {
			shared = maps.Clone(vars)
		}
		maps.DeleteFunc(shared, func(name string, value any) bool {
			v, ok := vars[name]
			return !ok || !isSame(v, value)
		})
	}
	for _, vars := range hosts {
		maps.DeleteFunc(vars, func(name string, _ any) bool { _, ok := shared[name]; return ok })
	}
	if shared == nil {
		return map[string]any{}
	}
	return shared
}

// isSame reports whether two values are written as the same text. Most are compared without
// writing them: what computes know of a cell has thousands of entries.
func isSame(a, b any) bool {
	if v := reflect.ValueOf(a); v.IsValid() && v.Comparable() && a == b {
		return true
	}
	return encode(a) == encode(b)
}

func encode(v any) string {
	text, _ := json.Marshal(v) // values come from JSON
	return string(text)
}
