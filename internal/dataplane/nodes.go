package dataplane

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/names"
)

const (
	// RoleIndex is a field index on OpenStackDataPlaneNode.
	RoleIndex = "spec.role"
	// InventoryKey of the ConfigMap of a node or role.
	InventoryKey = "inventory"
	// SSHKeyKey of the Secret with the key with which Ansible logs in.
	SSHKeyKey = "ssh-privatekey"
)

// Index adds RoleIndex and MachineIndex. They are added once, by whoever wires
// the controllers.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	node, role := &dataplanev1.OpenStackDataPlaneNode{}, &dataplanev1.OpenStackDataPlaneRole{}
	return errors.Join(
		indexer.IndexField(ctx, node, RoleIndex, func(o client.Object) []string { return []string{Role(o)} }),
		indexer.IndexField(ctx, node, MachineIndex, indexMachine),
		indexer.IndexField(ctx, role, MachineIndex, indexMachineOfRole),
	)
}

// Role of a node.
func Role(node client.Object) string { return node.(*dataplanev1.OpenStackDataPlaneNode).Spec.Role }

// NodesOfRole returns the nodes of a role. They are the cache's own: not to be changed.
func NodesOfRole(ctx context.Context, c client.Reader, namespace, role string) ([]dataplanev1.OpenStackDataPlaneNode, error) {
	list := &dataplanev1.OpenStackDataPlaneNodeList{}
	err := c.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{RoleIndex: role}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the nodes of role %s: %w", role, err)
	}
	return list.Items, nil
}

// Replacement is the token by which the machine of a node, which can be nil, was
// last replaced; empty if it never was.
func Replacement(node *dataplanev1.OpenStackDataPlaneNode) string {
	if node == nil || node.Status.BareMetalHost == nil {
		return ""
	}
	return node.Status.BareMetalHost.Replacement
}

// InventoryName is the name of the ConfigMap with the inventory of a node.
func InventoryName(node string) string { return names.Fit("dataplanenode-"+node, names.MaxObject) }

// maxInventory is the most bytes of an inventory in a ConfigMap, which holds 1 MiB.
const maxInventory = 1<<20 - 4<<10

// FitsConfigMap returns an error if an inventory does not fit into a ConfigMap.
func FitsConfigMap(inventory string) error {
	if len(inventory) <= maxInventory {
		return nil
	}
	return fmt.Errorf("the inventory has %d bytes, and a ConfigMap holds %d", len(inventory), maxInventory)
}

// HostVars are the variables of the host in the inventory. What people write in
// ansibleVars wins over what edpm-operators derives.
func HostVars(eff inherit.Effective) map[string]any {
	vars := map[string]any{"ansible_host": eff.AnsibleHost, "canonical_hostname": eff.HostName}
	if eff.AnsibleUser != "" {
		vars["ansible_user"] = eff.AnsibleUser
	}
	if eff.AnsiblePort != 0 {
		vars["ansible_port"] = eff.AnsiblePort
	}
	if eff.ManagementNetwork != "" {
		vars["management_network"] = eff.ManagementNetwork
	}
	if len(eff.Networks) > 0 {
		networks := []map[string]any{}
		for _, n := range eff.Networks {
			networks = append(networks, map[string]any{"network": n.Network, "fixedIP": n.FixedIP})
			if n.FixedIP != "" {
				vars[strings.ToLower(n.Network)+"_ip"] = n.FixedIP
			}
		}
		vars["networks"] = networks
	}
	maps.Copy(vars, eff.Vars)
	return vars
}

// defaultInterval of checks, as the resource definition has it.
var defaultInterval = metav1.Duration{Duration: 24 * time.Hour}

// Rollout returns how runs are rolled out over the nodes of a role. The error
// says what is wrong with the fields.
func Rollout(d dataplanev1.DeployStrategySection) (edpm.Strategy, error) {
	out := edpm.Strategy{
		Deploy: ptr.Deref(d.Deploy, true), BatchSize: int(ptr.Deref(d.BatchSize, 0)), MaxFailures: d.MaxFailures,
		Tags: d.AnsibleTags, SkipTags: d.AnsibleSkipTags, Limit: d.AnsibleLimit,
	}
	if check := d.DriftCheck; check != nil {
		out.Checks = edpm.Checks{Interval: ptr.Deref(check.Interval, defaultInterval).Duration, Steps: check.Steps, Repair: check.Repair}
	}
	if d.MaxUnavailable == nil {
		return out, nil
	}
	if d.MaxUnavailable.Type == intstr.Int {
		out.MaxUnavailable = max(d.MaxUnavailable.IntValue(), 1)
		return out, nil
	}
	percent, err := intstr.GetScaledValueFromIntOrPercent(d.MaxUnavailable, 100, true)
	if err != nil {
		return out, fmt.Errorf("maxUnavailable: %w: give a number or a percentage", err)
	}
	if out.MaxUnavailablePercent = percent; percent == 0 {
		out.MaxUnavailable = 1
	}
	return out, nil
}
