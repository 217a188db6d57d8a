package dataplane

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
)

const (
	// maxPart is the most bytes of one part of the inventory of a role, so that
	// its ConfigMap stays below 512 KiB.
	maxPart = 448 << 10
	// MaxParts is the most parts of the inventory of a role.
	MaxParts = 16
)

// TooLargeError says that the inventory of a role has more than MaxParts parts.
type TooLargeError struct{ Bytes int }

// Error says how large the inventory is, and how large it may be.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the inventory of the role has some %d KiB, and %d ConfigMaps hold %d KiB", e.Bytes>>10, MaxParts, MaxParts*maxPart>>10)
}

// RoleInventory returns the inventory of all nodes of a role, in a group named
// like it, as one or more inventories that Ansible reads together. What the role
// says is a variable of the group, and each host has what is different there: to
// Ansible every host has the variables that HostVars gives it. Nodes whose
// variables cannot be read are left out. The error is of the role's variables, or
// a *TooLargeError.
func RoleInventory(role *dataplanev1.OpenStackDataPlaneRole, members []dataplanev1.OpenStackDataPlaneNode) ([]string, error) {
	group, hosts, err := shareRoleVars(role, members)
	if err != nil {
		return nil, err
	}
	r := roleInventory{role: role.Name, group: group, hosts: hosts, shared: jsonSize(group)}
	names, total := slices.Sorted(maps.Keys(hosts)), 0
	for _, name := range names {
		total += r.size(name)
	}
	if r.shared > maxPart || total > MaxParts*(maxPart-r.shared) {
		return nil, &TooLargeError{Bytes: r.shared + total}
	}
	return r.parts(names)
}

// shareRoleVars returns the variables of the role's group, and of each host those
// that are different.
func shareRoleVars(role *dataplanev1.OpenStackDataPlaneRole, members []dataplanev1.OpenStackDataPlaneNode) (group map[string]any, hosts map[string]map[string]any, err error) {
	roleVars, err := inherit.Vars(role.Spec.NodeTemplate.AnsibleVars)
	if err != nil {
		return nil, nil, err
	}
	// Without its variables, which are read once and not for each node.
	bare := *role
	bare.Spec.NodeTemplate.AnsibleVars = nil
	group, err = hostVars(&dataplanev1.OpenStackDataPlaneNode{}, &bare, roleVars)
	if err != nil {
		return nil, nil, err
	}
	delete(group, "ansible_host")
	delete(group, "canonical_hostname")
	maps.Copy(group, roleVars)
	hosts = map[string]map[string]any{}
	for i := range members {
		if vars, err := hostVars(&members[i], &bare, roleVars); err == nil { // else the node itself says so
			hosts[members[i].Name] = vars
		}
	}
	dropMissing(group, hosts, roleVars)
	for _, vars := range hosts {
		maps.DeleteFunc(vars, func(name string, value any) bool {
			shared, ok := group[name]
			return ok && reflect.DeepEqual(shared, value)
		})
	}
	return group, hosts, nil
}

// hostVars are the variables of a host that are not the role's own: what is
// derived, unless the role's variables win over it, and those of the node.
func hostVars(node *dataplanev1.OpenStackDataPlaneNode, bare *dataplanev1.OpenStackDataPlaneRole, roleVars map[string]any) (map[string]any, error) {
	eff, err := inherit.EffectiveOf(node, bare)
	if err != nil {
		return nil, err
	}
	own := eff.Vars
	eff.Vars = nil
	vars := HostVars(eff)
	maps.DeleteFunc(vars, func(name string, _ any) bool { _, ok := roleVars[name]; return ok })
	maps.Copy(vars, own)
	return vars, nil
}

// dropMissing removes variables of the group that some host has not at all, such
// as the address in a network of the role: a host cannot unset them.
func dropMissing(group map[string]any, hosts map[string]map[string]any, roleVars map[string]any) {
	for _, vars := range hosts {
		maps.DeleteFunc(group, func(name string, _ any) bool {
			_, has := vars[name]
			_, given := roleVars[name]
			return !has && !given
		})
	}
}

type roleInventory struct {
	role   string
	group  map[string]any
	hosts  map[string]map[string]any
	shared int // bytes of group, about
}

// size is about how many bytes a host takes.
func (r *roleInventory) size(host string) int {
	const indentation = 12
	return len(host) + indentation*(2+len(r.hosts[host])) + jsonSize(r.hosts[host])
}

func jsonSize(vars map[string]any) int {
	text, _ := json.Marshal(vars) // they come from JSON
	return len(text)
}

// parts renders the hosts, in halves while they do not fit.
func (r *roleInventory) parts(names []string) ([]string, error) {
	hosts, estimate := map[string]map[string]any{}, r.shared
	for _, name := range names {
		hosts[name] = r.hosts[name]
		estimate += r.size(name)
	}
	if estimate <= maxPart || len(names) < 2 {
		group := edpm.InventoryGroup{Hosts: hosts, Vars: r.group}
		text, err := edpm.Inventory{All: edpm.InventoryGroup{Children: map[string]edpm.InventoryGroup{r.role: group}}}.Render()
		if err != nil || len(text) <= maxPart {
			return []string{text}, err
		}
		if len(names) < 2 {
			return nil, &TooLargeError{Bytes: len(text)}
		}
	}
	first, err := r.parts(names[:len(names)/2])
	if err != nil {
		return nil, err
	}
	second, err := r.parts(names[len(names)/2:])
	return append(first, second...), err
}
