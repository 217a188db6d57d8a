package openstackdataplanenode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/dataplane/inherit"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/inputs"
	"github.com/edpm-operators/edpm-operators/internal/metal"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/topology"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// networkFile is the name under which the network template is given to its service.
const networkFile = "network-config-template"

// ensureFinalizer makes sure that a node cannot go before its services are off
// the host. A node that is to claim a machine has a status before: with the finalizer
// and without a status it was restored from a backup, and never claims one silently.
// So the role, which says whether it is to, comes first: a manager that dies in
// between must not leave a new node that looks like a restored one.
func (s *scope) ensureFinalizer(ctx context.Context) error {
	if s.created && !s.restored && metal.Asked(s.role) {
		return nil
	}
	return s.finalizer(ctx, controllerutil.AddFinalizer)
}

func (s *scope) finalizer(ctx context.Context, change func(client.Object, string) bool) error {
	return apply.Finalizer(ctx, s.Client, s.node, dataplanev1.NodeFinalizer, change)
}

// detectRestore is the phase that finds out whether the object was restored from a
// backup without its status: then no one knows what is on its host, and services
// that are deleted with it are removed from there. It notes that also if the API server
// does not answer: a status without it would say that nothing is there.
func (s *scope) detectRestore(ctx context.Context) error {
	if !s.restored {
		return nil
	}
	live := &dataplanev1.OpenStackDataPlaneNode{}
	err := s.Live.Get(ctx, client.ObjectKeyFromObject(s.node), live)
	if err == nil && (live.UID != s.node.UID || live.Status.ObservedGeneration != 0) {
		return apply.CacheBehind(live, "OpenStackDataPlaneNode")
	}
	s.node.Status.SetUnknown()
	return client.IgnoreNotFound(err)
}

// lookUpRole is the phase that finds the role.
func (s *scope) lookUpRole(ctx context.Context) error {
	name := s.node.Spec.Role
	if name == "" {
		return phase.Stalled(condition.InputReadyCondition, dataplanev1.RoleMissingReason, "spec.role is empty: set it to the OpenStackDataPlaneRole of this node")
	}
	role := &dataplanev1.OpenStackDataPlaneRole{}
	err := s.Get(ctx, types.NamespacedName{Namespace: s.node.Namespace, Name: name}, role)
	if err == nil {
		s.role = role
	} else if !apierrors.IsNotFound(err) {
		return err
	} else if s.node.DeletionTimestamp.IsZero() {
		return phase.Failing(condition.InputReadyCondition, dataplanev1.RoleMissingReason,
			"spec.role: OpenStackDataPlaneRole %q does not exist: create it, or set another role", name)
	}
	return nil
}

// inheritVars is the phase that computes the effective values. It comes after the finalizer,
// so that a node with invalid variables has its services, which wait for it.
func (s *scope) inheritVars(context.Context) (err error) {
	if s.eff, err = inherit.EffectiveOf(s.node, s.role); err != nil {
		return phase.Stalled(condition.InputReadyCondition, dataplanev1.InvalidVarsReason, "%v", err)
	}
	return nil
}

// validateReach is the phase that repeats what admission refuses: variables by which hosts
// would be reached or trusted in another way, a jump host that is invalid, and a tool that
// no role knows.
func (s *scope) validateReach(context.Context) error {
	errs := validate.HostVars(field.NewPath("ansibleVars"), s.eff.Vars)
	errs = append(errs, validate.ReachEnv(field.NewPath("env"), s.eff.Env)...)
	if len(errs) > 0 {
		return phase.Stalled(condition.InputReadyCondition, dataplanev1.InvalidVarsReason, "Node or role: %v", errs.ToAggregate())
	}
	if wrong := validate.JumpHost(field.NewPath("jumpHost"), s.eff.JumpHost); len(wrong) > 0 {
		return phase.Stalled(condition.InputReadyCondition, dataplanev1.InvalidSpecReason, "Node or role: %v", wrong.ToAggregate())
	}
	if wrong := validate.TakeOver(s.node.Annotations); wrong != nil {
		return phase.Stalled(condition.InputReadyCondition, dataplanev1.InvalidSpecReason, "%v", wrong)
	}
	return nil
}

// keepInventory is the first phase of a node that is being deleted. As long as
// services are to be removed from the host they need the inventory, also when the
// role no longer exists or the variables have become invalid: then it stays as it is.
func (s *scope) keepInventory(ctx context.Context) error {
	if len(s.node.Status.Services) == 0 {
		return nil
	}
	err := s.lookUpRole(ctx)
	if err == nil {
		err = s.inheritVars(ctx)
	}
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
// be removed from the host.
func (s *scope) inventory(ctx context.Context) error {
	s.vars = dataplane.HostVars(s.eff)
	text, err := edpm.Inventory{All: edpm.InventoryGroup{Hosts: map[string]map[string]any{s.node.Name: s.vars}}}.Render()
	if err != nil {
		return err
	}
	if err := dataplane.FitsConfigMap(text + s.eff.NetworkTemplate); err != nil {
		return phase.Stalled(condition.InputReadyCondition, dataplanev1.InvalidSpecReason,
			"%v: shorten ansibleVars or networkConfig.template of the node or its role, or put large texts into a ConfigMap or Secret of an OpenStackDataPlaneService", err)
	}
	data := map[string]string{dataplane.InventoryKey: text}
	if s.eff.NetworkTemplate != "" {
		data["network"] = s.eff.NetworkTemplate
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.node.Namespace, Name: dataplane.InventoryName(s.node.Name)}, Data: data}
	var options []apply.Option
	if !s.node.DeletionTimestamp.IsZero() {
		options = append(options, apply.Orphan)
	}
	if err := apply.Child(ctx, s.Client, fieldManager, s.node, cm, &corev1.ConfigMap{}, options...); err != nil {
		return apply.Halt(condition.InputReadyCondition, err)
	}
	s.node.Status.InventoryConfigMapName = cm.Name
	return nil
}

// checkMachineConflict is the phase that refuses a host that another node has as well.
func (s *scope) checkMachineConflict(ctx context.Context) error {
	rival, err := dataplane.FindRival(ctx, s.Client, dataplane.HostOf(s.node, s.eff))
	switch {
	case err != nil || rival == nil:
		return err
	case !rival.Node.DeletionTimestamp.IsZero():
		return phase.Waiting(condition.InputReadyCondition, dataplanev1.MachineConflictReason, "%s", rival.ConflictMessage())
	}
	return phase.Stalled(condition.InputReadyCondition, dataplanev1.MachineConflictReason, "%s", rival.ConflictMessage())
}

// sshKey is the phase that checks the keys with which ssh logs in to the host and to its
// jump host.
func (s *scope) sshKey(ctx context.Context) error {
	if s.eff.SSHKeySecret == "" {
		return phase.Stalled(condition.InputReadyCondition, common.SecretMissingReason,
			"No SSH key: set ansibleSSHPrivateKeySecret in spec.node, or in spec.nodeTemplate of role %s", s.role.Name)
	}
	_, err := s.Inputs.SecretKey(ctx, s.node.Namespace, s.eff.SSHKeySecret, dataplane.SSHKeyKey)
	if err == nil {
		s.jumpKey, err = dataplane.JumpKeyDigest(ctx, s.Inputs, s.node.Namespace, s.eff.JumpHost)
	}
	return inputs.Halt(condition.InputReadyCondition, err)
}

// again is how soon a node with its first status gets its finalizer.
const again = 10 * time.Millisecond

// awaitMachine is phase -1 of a node that has, or is to have, a BareMetalHost.
func (s *scope) awaitMachine(context.Context) error {
	halt := dataplane.PendingMachine(s.node, s.role)
	if halt == nil {
		return nil
	}
	if !controllerutil.ContainsFinalizer(s.node, dataplanev1.NodeFinalizer) {
		halt.After = again
	}
	return halt
}

// topology is the phase that ensures that runs have the Topology that they
// are to follow. That of its role is protected by the role.
func (s *scope) topology(ctx context.Context) error {
	own := topology.Nearest(s.node.Spec.TopologyRef)
	if _, err := topology.Use(ctx, s.Client, s.node, own, s.node.Status.LastAppliedTopology); err != nil {
		return err
	}
	s.node.Status.LastAppliedTopology = own
	t, err := topology.Get(ctx, s.Client, s.node.Namespace, s.eff.TopologyRef)
	if err != nil || t == nil {
		return err
	}
	s.node.Status.Conditions.MarkTrue(condition.TopologyReadyCondition, "Runs use Topology %s", t.Name)
	return nil
}

// deploy is phase 0.
func (s *scope) deploy(ctx context.Context) error {
	s.deploying = true
	known := s.node.Status.HostKey
	state, err := s.Engine.Converge(ctx, &s.node.Status.Ledger, s.targets...)
	if err != nil {
		return err
	}
	if s.node.Status.HostKey != known {
		// Now that its key is known it may turn out to be the machine of another node.
		if err := s.checkMachineConflict(ctx); err != nil {
			s.deploying = false
			return err
		}
	}
	conditions := &s.node.Status.Conditions
	edpm.ShowDrift(conditions, &s.node.Status.Ledger, ptr.Deref(s.eff.Deploy.DriftCheck, dataplanev1.DriftCheck{}).Repair)
	switch {
	case state.Unreachable:
		halt := edpm.Failure(dataplanev1.ProvisionReadyCondition, dataplanev1.HostUnreachableReason, state)
		halt.Message += dataplane.MissingMachineNote(s.node, s.role)
		return halt
	case slices.Contains([]edpm.Phase{edpm.Converged, edpm.Failed, edpm.Refused, edpm.HostNotEmpty}, state.Phase) || len(s.node.Status.Hash) > 0:
		conditions.MarkTrue(dataplanev1.ProvisionReadyCondition, "The host answers%s", dataplane.OutdatedMachineNote(s.node))
	default:
		conditions.MarkUnknown(dataplanev1.ProvisionReadyCondition, condition.RequestedReason, "No run has reached the host yet: the first run checks it")
	}
	if state.Phase == edpm.Converged {
		s.forgetOldServices()
		return nil
	}
	if state.Phase == edpm.HostNotEmpty {
		state.Message += s.howToEmpty(state)
	}
	return edpm.Halt(condition.DeploymentReadyCondition, state)
}

// howToEmpty says what a step waits for that needs the host empty.
func (s *scope) howToEmpty(state edpm.State) string {
	switch policy := s.eff.Deploy.Drain; {
	case state.Emptied:
		return ". The host is empty by now, and the step is run again"
	case policy == "" || policy == dataplanev1.DrainNone:
		return fmt.Sprintf(". Run kubectl edpm drain %s, or set deployStrategy.drain of the node or its role, which permits to drain hosts for such steps", s.node.Name)
	}
	return ". deployStrategy.drain has its services empty the host, maxUnavailable hosts of a role at a time: see status.services"
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
// every service is off the host, and then removes the finalizer.
func (s *scope) remove(ctx context.Context) error {
	if err := s.Engine.Forget(ctx, Kind, s.node.Namespace, s.node.Name, stepsOf(s.node)...); err != nil {
		return err
	}
	left, err := s.remainingServices(ctx)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return phase.Waiting(condition.DeploymentReadyCondition, dataplanev1.ServicesRemainingReason,
			"Deleting: waiting until the services are removed from the host: %s", strings.Join(left, "; "))
	}
	if err := s.removeInventory(ctx); err != nil {
		return err
	}
	if controllerutil.ContainsFinalizer(s.node, dataplanev1.NodeFinalizer) {
		return client.IgnoreNotFound(s.finalizer(ctx, controllerutil.RemoveFinalizer))
	}
	return s.awaitRelease()
}

// awaitRelease reports what becomes of the machine of a node whose finalizer is removed: it
// is released then, and not earlier, because no service can be added any more.
func (s *scope) awaitRelease() error {
	if !controllerutil.ContainsFinalizer(s.node, dataplanev1.MachineFinalizer) {
		return nil
	}
	if halt := dataplane.ReportedMachine(s.node); halt != nil {
		return halt
	}
	return phase.Waiting(dataplanev1.ProvisionReadyCondition, dataplanev1.MetalReleasingReason, "Deleting: waiting until the machine is released")
}

// remainingServices are the services that the node shows, and objects of services that ran
// something on its host and that it does not show yet.
func (s *scope) remainingServices(ctx context.Context) ([]string, error) {
	var left []string
	for _, svc := range s.node.Status.Services {
		left = append(left, fmt.Sprintf("%s (%s/%s: %s)", svc.Name, svc.Kind, svc.ObjectName, svc.Message))
	}
	if len(left) > 0 {
		return left, nil
	}
	return s.Engine.Others(ctx, Kind, s.node.Namespace, s.node.Name)
}

// removeInventory deletes the inventory, if the node published it.
func (s *scope) removeInventory(ctx context.Context) error {
	cm := &corev1.ConfigMap{}
	err := s.Get(ctx, types.NamespacedName{Namespace: s.node.Namespace, Name: dataplane.InventoryName(s.node.Name)}, cm)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	return apply.Delete(ctx, s.Client, s.node, cm, apply.Orphan)
}

func stepsOf(node *dataplanev1.OpenStackDataPlaneNode) []string {
	steps := []string{}
	for key := range node.Status.Runs {
		step, _, _ := strings.Cut(key, "@")
		steps = append(steps, step)
	}
	return append(steps, dataplanev1.DefaultServices...)
}
