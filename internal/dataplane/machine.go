package dataplane

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/watch"
)

// MachineIndex is a field index on OpenStackDataPlaneNode, of its own address and
// its host key, and on OpenStackDataPlaneRole, of the address that its variables
// give to its nodes.
const MachineIndex = "edpm.machine"

func byAddress(address string) string { return "address/" + address }
func byKey(key string) string         { return "key/" + key }

// Host is what makes the host of a node known.
type Host struct {
	Namespace, Node string
	// Vars of the host in the inventory.
	Vars map[string]any
	// Jump host through which it is reached; nil means directly.
	Jump *common.JumpHost
	// Key that the host has, without a comment; empty when it is not known yet.
	Key string
}

// HostOf returns the host of a node with the effective values.
func HostOf(node *dataplanev1.OpenStackDataPlaneNode, eff inherit.Effective) Host {
	return Host{Namespace: node.Namespace, Node: node.Name, Vars: HostVars(eff), Jump: eff.JumpHost, Key: HostKey(node)}
}

// HostKey is the key that a person has set for the host of a node, else the recorded
// one, without a comment; empty when it is not known yet.
func HostKey(node *dataplanev1.OpenStackDataPlaneNode) string {
	if key := BareKey(node.Annotations[common.HostKeyAnnotation]); key != "" {
		return key
	}
	return BareKey(node.Status.HostKey)
}

// BareKey returns a public key without its comment; empty for what is no key.
func BareKey(text string) string {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// Rival is a node that describes the same machine as another one.
type Rival struct {
	Node *dataplanev1.OpenStackDataPlaneNode
	// Shared is what both have: an address or a key.
	Shared string
	// Foreign reports whether the node is in another namespace.
	Foreign bool
}

// Name of the rival for a message. Objects of another namespace are not named.
func (r *Rival) Name() string {
	if r.Foreign {
		return "a node of another namespace"
	}
	return "OpenStackDataPlaneNode " + r.Node.Name
}

// Restored reports whether the node has its finalizer and no status, as a backup
// leaves it: no one knows what is on its host. A new node looks like this until its
// first status is in the cache.
func Restored(node *dataplanev1.OpenStackDataPlaneNode) bool {
	return node.Status.ObservedGeneration == 0 && controllerutil.ContainsFinalizer(node, dataplanev1.NodeFinalizer)
}

// Deployed reports whether anything was ever run for the node.
func Deployed(node *dataplanev1.OpenStackDataPlaneNode) bool { return len(node.Status.Runs) > 0 }

// FindRival returns a node that is the same machine as the host, preferably one
// that is not being deleted, or nil. Of another namespace only a node counts on which
// something has run, as its status records: else whoever can create nodes anywhere,
// also such as a backup restores, could stop the runs on any host. It does not count either when both keys are known and differ,
// because networks of two namespaces can have the same addresses.
func FindRival(ctx context.Context, c client.Reader, h Host) (*Rival, error) {
	var found *Rival
	err := eachRival(ctx, c, h, func(r *Rival) bool {
		found = r
		return r.Node.DeletionTimestamp.IsZero()
	})
	return found, err
}

// FindOccupant returns a node that has been deployed on the machine of the host
// and stays there, or nil. Where both keys are known and differ it is another
// machine: ssh refuses to talk to the wrong one.
func FindOccupant(ctx context.Context, c client.Reader, h Host) (*Rival, error) {
	var found *Rival
	err := eachRival(ctx, c, h, func(r *Rival) bool {
		if r.Node.DeletionTimestamp.IsZero() && Deployed(r.Node) && !differ(h.Key, HostKey(r.Node)) {
			found = r
		}
		return found != nil
	})
	return found, err
}

// AtAddressOf returns the name of another node of the namespace that has the
// address of a node, which need not exist yet, or nothing.
func AtAddressOf(ctx context.Context, c client.Reader, node *dataplanev1.OpenStackDataPlaneNode) (string, error) {
	vars, jump, err := accessInForce(ctx, c, node)
	if err != nil {
		return "", err
	}
	var name string
	err = eachRival(ctx, c, Host{Namespace: node.Namespace, Node: node.Name, Vars: vars, Jump: jump}, func(r *Rival) bool {
		if !r.Foreign {
			name = r.Node.Name
		}
		return name != ""
	})
	return name, err
}

// differ reports whether both keys are known and are not the same.
func differ(a, b string) bool { return a != "" && b != "" && a != b }

// eachRival calls the function with the rivals of a host until it returns true.
func eachRival(ctx context.Context, c client.Reader, h Host, stop func(*Rival) bool) error {
	candidates, err := neighbours(ctx, c, edpm.Address(h.Vars, h.Node), h.Key)
	if err != nil {
		return err
	}
	for i := range candidates {
		r, err := h.rival(ctx, c, &candidates[i])
		if err != nil {
			return err
		}
		if r != nil && stop(r) {
			return nil
		}
	}
	return nil
}

// rival returns the other node as a rival, nil if it is none.
func (h Host) rival(ctx context.Context, c client.Reader, other *dataplanev1.OpenStackDataPlaneNode) (*Rival, error) {
	r := &Rival{Node: other, Foreign: other.Namespace != h.Namespace}
	if !r.Foreign && other.Name == h.Node || r.Foreign && (!other.Status.Ran() || differ(h.Key, HostKey(other))) {
		return nil, nil
	}
	vars, jump, err := accessInForce(ctx, c, other)
	if err != nil {
		return nil, err
	}
	switch machine := edpm.Machine(h.Namespace, h.Vars, h.Node, h.Jump); {
	case machine != "" && machine == edpm.Machine(other.Namespace, vars, other.Name, jump):
		r.Shared = "address " + strings.TrimPrefix(machine, h.Namespace+"/")
	case h.Key != "" && h.Key == HostKey(other):
		r.Shared = "host key " + fingerprint(h.Key)
	default:
		return nil, nil
	}
	return r, nil
}

// accessInForce are the variables of the host of a node, none if they cannot be read, and its
// jump host.
func accessInForce(ctx context.Context, c client.Reader, node *dataplanev1.OpenStackDataPlaneNode) (map[string]any, *common.JumpHost, error) {
	role := &dataplanev1.OpenStackDataPlaneRole{}
	err := c.Get(ctx, types.NamespacedName{Namespace: node.Namespace, Name: node.Spec.Role}, role)
	if client.IgnoreNotFound(err) != nil {
		return nil, nil, err
	}
	eff, err := inherit.EffectiveOf(node, role)
	if err != nil {
		return nil, nil, nil //nolint:nilerr // it says so itself, and nothing is run for it
	}
	return HostVars(eff), eff.JumpHost, nil
}

func fingerprint(key string) string {
	parsed, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key))
	if err != nil {
		return key
	}
	return ssh.FingerprintSHA256(parsed)
}

// neighbours are the nodes of all namespaces that have an address or a key,
// themselves or through the variables of their role. They are the cache's own.
func neighbours(ctx context.Context, c client.Reader, address, key string, options ...client.ListOption) ([]dataplanev1.OpenStackDataPlaneNode, error) {
	var found []dataplanev1.OpenStackDataPlaneNode
	options = append(options, client.UnsafeDisableDeepCopy)
	list := &dataplanev1.OpenStackDataPlaneNodeList{}
	if key != "" {
		if err := c.List(ctx, list, append(options, client.MatchingFields{MachineIndex: byKey(key)})...); err != nil {
			return nil, fmt.Errorf("listing the nodes with a host key: %w", err)
		}
		found = append(found, list.Items...)
	}
	if address == "" {
		return found, nil
	}
	roles := &dataplanev1.OpenStackDataPlaneRoleList{}
	at := slices.Concat(options, []client.ListOption{client.MatchingFields{MachineIndex: byAddress(address)}})
	for _, l := range []client.ObjectList{list, roles} {
		if err := c.List(ctx, l, at...); err != nil {
			return nil, fmt.Errorf("listing the nodes and roles with an address: %w", err)
		}
	}
	found = append(found, list.Items...)
	for i := range roles.Items {
		members, err := NodesOfRole(ctx, c, roles.Items[i].Namespace, roles.Items[i].Name)
		if err != nil {
			return nil, err
		}
		found = append(found, members...)
	}
	return found, nil
}

// indexMachine is the value of MachineIndex for a node.
func indexMachine(obj client.Object) []string {
	node := obj.(*dataplanev1.OpenStackDataPlaneNode)
	var values []string
	if eff, err := inherit.EffectiveOf(node, nil); err == nil {
		if address := edpm.Address(HostVars(eff), node.Name); address != "" {
			values = append(values, byAddress(address))
		}
	}
	if key := HostKey(node); key != "" {
		values = append(values, byKey(key))
	}
	return values
}

// indexMachineOfRole is the value of MachineIndex for a role.
func indexMachineOfRole(obj client.Object) []string {
	vars, err := inherit.Vars(obj.(*dataplanev1.OpenStackDataPlaneRole).Spec.NodeTemplate.AnsibleVars)
	if err != nil {
		return nil
	}
	if address := edpm.Address(vars, ""); address != "" {
		return []string{byAddress(address)}
	}
	return nil
}

// manyRivals is how many nodes on one machine are requeued when another one of
// them changes. Where there are more, they are in conflict whatever it does.
const manyRivals = 100

// Rivals returns a map function from a node, or from a role whose variables have
// an address, to the nodes that may be the same machine.
func Rivals(c client.Reader) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		address, key, err := identity(ctx, c, obj)
		if err != nil {
			return nil // the cache has stopped
		}
		others, err := neighbours(ctx, c, address, key, client.Limit(manyRivals))
		if err != nil {
			return nil // the index is missing: SetupWithManager has failed already
		}
		var requests []reconcile.Request
		for i := range others {
			if others[i].UID != obj.GetUID() {
				requests = append(requests, watch.Request(others[i].Namespace, others[i].Name))
			}
		}
		return requests
	}
}

// identity returns the address and the key by which others are found.
func identity(ctx context.Context, c client.Reader, obj client.Object) (address, key string, err error) {
	if role, ok := obj.(*dataplanev1.OpenStackDataPlaneRole); ok {
		vars, _ := inherit.Vars(role.Spec.NodeTemplate.AnsibleVars) // its nodes say when they cannot be read
		return edpm.Address(vars, ""), "", nil
	}
	node := obj.(*dataplanev1.OpenStackDataPlaneNode)
	vars, _, err := accessInForce(ctx, c, node)
	return edpm.Address(vars, node.Name), HostKey(node), err
}

// MachineChanges lets through what decides whether nodes are the same machine:
// what people change, the host key, the address of a machine that is provisioned from
// bare metal, the first run, and whether it is in conflict.
var MachineChanges = watch.SpecOr(func(obj client.Object) string {
	node := obj.(*dataplanev1.OpenStackDataPlaneNode)
	input := node.Status.Conditions.Get(condition.InputReadyCondition)
	conflict := input != nil && input.Reason == dataplanev1.MachineConflictReason
	address := ""
	if node.Status.BareMetalHost != nil {
		address = node.Status.BareMetalHost.Address
	}
	return fmt.Sprintln(node.Status.HostKey, address, Deployed(node), node.Status.Ran(), conflict)
})

// ConflictMessage says that a node and its rival are one machine, and what to do.
func (r *Rival) ConflictMessage() string {
	if !r.Node.DeletionTimestamp.IsZero() {
		return fmt.Sprintf("%s, which is being deleted, is the same machine: both have %s. Nothing is run until it no longer exists: wait until its clean-up is complete, or set annotation %s: \"true\" on it",
			capital(r.Name()), r.Shared, common.SkipCleanupAnnotation)
	}
	return fmt.Sprintf("%s is the same machine: both have %s. Nothing is run for either: correct the address or the key of one of them, or delete one, with annotation %s: \"true\" if its services are to stay on the host",
		capital(r.Name()), r.Shared, common.SkipCleanupAnnotation)
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
