package openstackdataplanenode

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/inherit"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/nodes"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/topology"
)

// networkFile is the name under which the network template is given to its service.
const networkFile = "network-config-template"

// ensureFinalizer makes sure that a node cannot go before its services are off
// the host.
func (s *scope) ensureFinalizer(ctx context.Context) error {
	return s.patchFinalizers(ctx, controllerutil.AddFinalizer)
}

func (s *scope) patchFinalizers(ctx context.Context, change func(client.Object, string) bool) error {
	patched := s.node.DeepCopy()
	if !change(patched, dataplanev1.NodeFinalizer) {
		return nil
	}
	if err := s.Patch(ctx, patched, client.MergeFromWithOptions(s.node, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patching the finalizers: %w", err)
	}
	// Not the new resource version: it would make the status write conflict with
	// that of a service on the node.
	s.node.Finalizers = patched.Finalizers
	return nil
}

// lookUpRole is the phase that finds the role and computes what is in force.
func (s *scope) lookUpRole(ctx context.Context) error {
	name := s.node.Spec.Role
	if name == "" {
		return phase.Stalled(condition.InputReadyCondition, dataplanev1.RoleMissingReason, "spec.role is empty: name the OpenStackDataPlaneRole of this node")
	}
	role := &dataplanev1.OpenStackDataPlaneRole{}
	err := s.Get(ctx, types.NamespacedName{Namespace: s.node.Namespace, Name: name}, role)
	if err == nil {
		s.role = role
	} else if !apierrors.IsNotFound(err) {
		return err
	} else if s.node.DeletionTimestamp.IsZero() {
		return phase.Failing(condition.InputReadyCondition, dataplanev1.RoleMissingReason,
			"spec.role: OpenStackDataPlaneRole %q does not exist: create it, or name another", name)
	}
	if s.eff, err = inherit.Node(s.node, s.role); err != nil {
		return phase.Stalled(condition.InputReadyCondition, dataplanev1.InvalidVarsReason, "%v", err)
	}
	return nil
}

// keepInventory is the first phase of a node that is being deleted. As long as
// services are to be taken off the host they need the inventory, also when the
// role has gone or the variables have become invalid: then it stays as it is.
func (s *scope) keepInventory(ctx context.Context) error {
	if len(s.node.Status.Services) == 0 {
		return nil
	}
	err := s.lookUpRole(ctx)
	if halt := (*phase.Halt)(nil); errors.As(err, &halt) || err == nil && s.role == nil {
		return nil
	}
	if err != nil {
		return err
	}
	return s.inventory(ctx)
}

// inventory is the phase that publishes the inventory of the node. A node that
// is being deleted keeps it, but no longer as a child: its services need it to
// be taken off the host.
func (s *scope) inventory(ctx context.Context) error {
	s.vars = nodes.HostVars(s.eff)
	text, err := edpm.Inventory{All: edpm.InventoryGroup{Hosts: map[string]map[string]any{s.node.Name: s.vars}}}.Render()
	if err != nil {
		return err
	}
	if err := nodes.FitsConfigMap(text + s.eff.NetworkTemplate); err != nil {
		return phase.Stalled(condition.InputReadyCondition, dataplanev1.InvalidSpecReason,
			"%v: shorten ansibleVars or networkConfig.template of the node or its role, or put large texts into a ConfigMap or Secret of an OpenStackDataPlaneService", err)
	}
	data := map[string]string{nodes.InventoryKey: text}
	if s.eff.NetworkTemplate != "" {
		data["network"] = s.eff.NetworkTemplate
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.node.Namespace, Name: nodes.InventoryName(s.node.Name)}, Data: data}
	var owner client.Object = s.node
	if !s.node.DeletionTimestamp.IsZero() {
		owner = nil
	}
	err = apply.Child(ctx, s.Client, manager, owner, cm, &corev1.ConfigMap{})
	if conflict := (*apply.ConflictError)(nil); errors.As(err, &conflict) {
		return phase.Stalled(condition.InputReadyCondition, dataplanev1.NodeConflictReason, "%v", conflict)
	}
	if err != nil {
		return err
	}
	s.node.Status.InventoryConfigMapName = cm.Name
	return nil
}

// sshKey is the phase that checks the key with which Ansible logs in.
func (s *scope) sshKey(ctx context.Context) error {
	if s.eff.SSHKeySecret == "" {
		return phase.Stalled(condition.InputReadyCondition, edpmv1.SecretMissingReason,
			"No SSH key: set ansibleSSHPrivateKeySecret in spec.node, or in spec.nodeTemplate of role %s", s.role.Name)
	}
	_, err := s.Inputs.SecretKey(ctx, s.node.Namespace, s.eff.SSHKeySecret, nodes.SSHKeyKey)
	return inputs.Halt(condition.InputReadyCondition, err)
}

// provision is phase -1. Hosts that run already need nothing of it; that they
// answer is found out by the first run, which is made from the network that
// reaches them.
func (s *scope) provision(context.Context) error {
	s.node.Status.Conditions.MarkTrue(condition.InputReadyCondition, condition.InputReadyMessage)
	bare := s.role.Spec.BaremetalSetTemplate
	if bare != nil && len(bare.BaremetalHosts) > 0 && !ptr.Deref(s.role.Spec.PreProvisioned, false) {
		return phase.Stalled(dataplanev1.ProvisionReadyCondition, dataplanev1.BaremetalNotYetReason,
			"Provisioning from bare metal is not supported yet: provision the hosts of role %s otherwise and set preProvisioned: true, or remove baremetalSetTemplate.baremetalHosts", s.role.Name)
	}
	return nil
}

// topology is the phase that sees to it that runs have the Topology that they
// are to follow. The node holds the one that it refers to itself; that of its
// role is held by the role.
func (s *scope) topology(ctx context.Context) error {
	own := topology.Nearest(s.node.Spec.TopologyRef)
	if _, err := topology.Ensure(ctx, s.Client, s.node, own, s.node.Status.LastAppliedTopology); err != nil {
		return err
	}
	s.node.Status.LastAppliedTopology = own
	t, err := topology.Get(ctx, s.Client, s.node.Namespace, s.eff.TopologyRef)
	if err != nil || t == nil {
		return err
	}
	s.node.Status.Conditions.MarkTrue(condition.TopologyReadyCondition, "Runs follow Topology %s", t.Name)
	return nil
}

// deploy is phase 0.
func (s *scope) deploy(ctx context.Context) error {
	s.deploying = true
	state, err := s.Engine.Converge(ctx, &s.node.Status.Ledger, s.targets...)
	if err != nil {
		return err
	}
	conditions := &s.node.Status.Conditions
	switch {
	case state.Unreachable:
		return edpm.Failure(dataplanev1.ProvisionReadyCondition, dataplanev1.HostUnreachableReason, state)
	case state.Phase == edpm.Converged || state.Phase == edpm.Failed || len(s.node.Status.Hash) > 0:
		conditions.MarkTrue(dataplanev1.ProvisionReadyCondition, "The host answers")
	default:
		conditions.MarkUnknown(dataplanev1.ProvisionReadyCondition, condition.RequestedReason, "The host has not been reached yet: the first run will tell")
	}
	if state.Phase == edpm.Converged {
		s.forgetOldServices()
		conditions.MarkTrue(condition.DeploymentReadyCondition, condition.DeploymentReadyMessage)
		return nil
	}
	return edpm.Halt(condition.DeploymentReadyCondition, state)
}

// forgetOldServices drops the records of services that the role no longer has,
// so that they are run again should it have them again.
func (s *scope) forgetOldServices() {
	kept := map[string]bool{}
	for i := range s.targets {
		kept[s.targets[i].Step.Name] = true
	}
	for step := range s.node.Status.Hash {
		if !kept[strings.TrimSuffix(step, "@limited")] {
			delete(s.node.Status.Hash, step)
		}
	}
}

// remove is the last phase of a node that is being deleted: it waits until
// every service is off the host, and then lets the node go.
func (s *scope) remove(ctx context.Context) error {
	s.Engine.Forget(s.node.Namespace, s.node.Name, stepsOf(s.node)...)
	if left := s.node.Status.Services; len(left) > 0 {
		parts := []string{}
		for _, svc := range left {
			parts = append(parts, fmt.Sprintf("%s (%s/%s: %s)", svc.Name, svc.Kind, svc.ObjectName, svc.Message))
		}
		return phase.Waiting(condition.DeploymentReadyCondition, dataplanev1.ServicesRemainingReason,
			"Deleting: waiting for services to be taken off the host: %s", strings.Join(parts, "; "))
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.node.Namespace, Name: nodes.InventoryName(s.node.Name)}}
	if err := client.IgnoreNotFound(s.Delete(ctx, cm)); err != nil {
		return fmt.Errorf("deleting the inventory: %w", err)
	}
	if err := topology.Release(ctx, s.Client, s.node, s.node.Status.LastAppliedTopology, s.node.Spec.TopologyRef); err != nil {
		return err
	}
	return client.IgnoreNotFound(s.patchFinalizers(ctx, controllerutil.RemoveFinalizer))
}

func stepsOf(node *dataplanev1.OpenStackDataPlaneNode) []string {
	steps := []string{}
	for key := range node.Status.Runs {
		step, _, _ := strings.Cut(key, "@")
		steps = append(steps, step)
	}
	return append(steps, dataplanev1.DefaultServices...)
}
