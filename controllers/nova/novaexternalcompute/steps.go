package novaexternalcompute

import (
	"context"
	"fmt"
	"maps"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/inherit"
	"github.com/edpm-operators/edpm-operators/internal/nodes"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/topology"
)

// Steps of a compute, in order, and the one that takes both off the host.
var (
	libvirtStep = edpm.Step{Name: "libvirt", Playbook: "edpm.operators.libvirt"}
	novaStep    = edpm.Step{Name: "nova", Playbook: "edpm.operators.nova"}
	cleanupStep = edpm.Step{Name: "nova-cleanup", Playbook: "edpm.operators.nova_cleanup", Removal: true}
)

const (
	overrideFile = "02-nova-override.conf"
	// cleanupAttempts bounds how often a host is tried to be cleaned up before
	// a person has to decide.
	cleanupAttempts = 5
)

// deploy is phase 1: libvirt, then nova.
func (s *scope) deploy(ctx context.Context) error {
	s.converging = true
	state, err := s.Engine.Converge(ctx, &s.compute.Status.Ledger, s.libvirt(), s.nova())
	if err != nil {
		return err
	}
	if state.Phase != edpm.Converged {
		return edpm.Halt(condition.DeploymentReadyCondition, state)
	}
	s.compute.Status.Conditions.MarkTrue(condition.DeploymentReadyCondition, condition.DeploymentReadyMessage)
	return nil
}

// base is what all steps of the compute have in common.
func (s *scope) base(step edpm.Step) edpm.Target {
	return edpm.Target{
		Namespace: s.compute.Namespace, Host: s.compute.Name, OwnerKind: Kind, OwnerUID: s.compute.UID, Step: step,
		Role: s.roleName(), Cell: s.compute.Spec.CellName, Strategy: s.strategy, Rerun: s.rerun(), Tokens: s.tokens(), Replacement: nodes.Replacement(s.node),
		Image: first(s.compute.Spec.AnsibleEEContainerImage, s.Images.NovaAnsibleEE), ImageChosen: s.compute.Spec.AnsibleEEContainerImage != "",
		SSHKeySecret: s.compute.Spec.SSHKeySecretName, SSHKeyDigest: s.keyHash, NetworkAttachments: s.compute.Spec.NetworkAttachments,
		Topology: topology.NameOf(inherit.TopologyRef(s.node, s.role)), HostKey: s.hostKey(),
		EnvDigests: s.environment, Vars: maps.Clone(s.vars),
	}
}

// hostKey is the key by which the node knows its host.
func (s *scope) hostKey() string {
	if s.node == nil {
		return ""
	}
	return s.node.Status.HostKey
}

func (s *scope) libvirt() edpm.Target {
	t := s.base(libvirtStep)
	t.Vars["edpm_libvirt_image"] = first(s.compute.Spec.NovaLibvirtContainerImage, s.Images.NovaLibvirt)
	return t
}

func (s *scope) nova() edpm.Target {
	t := s.base(novaStep)
	t.Vars["edpm_nova_compute_image"] = first(s.compute.Spec.NovaComputeContainerImage, s.Images.NovaCompute)
	t.Files = map[string][]byte{novav1.GeneratedConfigKey: s.config, overrideFile: []byte(s.compute.Spec.CustomServiceConfig)}
	return t
}

// cleanup is wanted of a compute that is being deleted. It is run even with
// deploy false: the person who deleted the compute has asked for it.
func (s *scope) cleanup() edpm.Target {
	t := s.base(cleanupStep)
	t.Strategy = edpm.Strategy{Deploy: true}
	t.MaxAttempts = cleanupAttempts
	return t
}

func (s *scope) roleName() string {
	if s.node == nil {
		return ""
	}
	return s.node.Spec.Role
}

// rerun is the token on the compute, else on its node, else on the role.
func (s *scope) rerun() string {
	if token, ok := s.compute.Annotations[edpmv1.RerunAnnotation]; ok {
		return token
	}
	return inherit.Annotation(s.node, s.role, edpmv1.RerunAnnotation)
}

// tokens are those of the compute, its node and the role.
func (s *scope) tokens() map[string]string {
	tokens := inherit.RerunTokens(s.node, s.role)
	if token := s.compute.Annotations[edpmv1.RerunAnnotation]; token != "" {
		tokens["service"] = token
	}
	return tokens
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// release is the last phase of a compute that is being deleted: it waits for its
// guests to leave, removes the services from the host and from nova, and then the
// finalizer.
func (s *scope) release(ctx context.Context) error {
	if err := s.forget(ctx, libvirtStep, novaStep); err != nil {
		return err
	}
	if controllerutil.ContainsFinalizer(s.compute, novav1.NovaExternalComputeFinalizer) && !s.takenOver() {
		for _, step := range []phase.Func{s.idle, s.drain, s.cleanUpHost, s.leaveNova} {
			if err := step(ctx); err != nil {
				return err
			}
		}
	}
	if err := s.forget(ctx, cleanupStep); err != nil {
		return err
	}
	return client.IgnoreNotFound(s.patchFinalizers(ctx, controllerutil.RemoveFinalizer))
}

// forget withdraws the targets of the steps.
func (s *scope) forget(ctx context.Context, steps ...edpm.Step) error {
	names := []string{}
	for _, step := range steps {
		names = append(names, step.Name)
	}
	return s.Engine.Forget(ctx, Kind, s.compute.Namespace, s.compute.Name, names...)
}

// takenOver reports whether the compute belongs to a node that no longer exists,
// and another node of its name is to have it: so it is when both were restored
// from a backup. The host is left to the compute that comes next.
func (s *scope) takenOver() bool {
	owner := metav1.GetControllerOf(s.compute)
	return s.node != nil && s.node.DeletionTimestamp.IsZero() && owner != nil && owner.UID != s.node.UID && owner.Name == s.node.Name &&
		owner.Kind == "OpenStackDataPlaneNode" && inherit.Annotation(s.node, s.role, novav1.CellAnnotation) == s.compute.Spec.CellName
}

func (s *scope) skipCleanup() bool {
	if s.compute.Annotations[edpmv1.SkipCleanupAnnotation] == "true" {
		return true
	}
	return s.node != nil && s.node.Annotations[edpmv1.SkipCleanupAnnotation] == "true"
}

// idle returns nil once no run of the compute is in progress.
func (s *scope) idle(ctx context.Context) error {
	if s.skipCleanup() {
		return nil
	}
	run, err := s.Engine.Unfinished(ctx, Kind, s.compute, libvirtStep.Name, novaStep.Name)
	if err != nil {
		return err
	}
	if run != "" {
		return phase.Waiting(condition.DeploymentReadyCondition, novav1.CleanupReason,
			"Deleting: waiting for OpenStackAnsibleEE %s to finish; it is deleted if it has not started", run)
	}
	return nil
}

// touched reports whether something of the compute may be on the host.
func (s *scope) touched(ctx context.Context) (bool, error) {
	touched, err := s.Engine.Touched(ctx, Kind, &s.compute.Status.Ledger, s.compute, libvirtStep.Name, novaStep.Name)
	// Of a node that was restored from a backup nobody knows what is on its host,
	// also before the node says so.
	return touched || s.node != nil && (s.node.Status.Unknown() || nodes.Restored(s.node)), err
}

// cleanUpHost returns nil once nothing of the compute is on the host.
func (s *scope) cleanUpHost(ctx context.Context) error {
	if s.skipCleanup() {
		return nil
	}
	if touched, err := s.touched(ctx); err != nil || !touched {
		return err
	}
	if err := s.access(ctx); err != nil {
		return s.leftBehind(err)
	}
	if err := s.unoccupied(ctx); err != nil {
		return err
	}
	s.converging = true
	state, err := s.Engine.Converge(ctx, &s.compute.Status.Ledger, s.cleanup())
	if err != nil || state.Phase == edpm.Converged {
		return err
	}
	if state.Phase == edpm.GaveUp || state.Phase == edpm.Failed {
		halt := s.leftBehind(fmt.Errorf("%s", state.Describe()))
		halt.Repeats = state.Phase == edpm.Failed && state.Repeated
		return halt
	}
	return phase.Waiting(condition.DeploymentReadyCondition, novav1.CleanupReason, "Deleting: %s", state.Describe())
}

// unoccupied refuses to clean up a machine that another node is deployed on: it
// would lose its services.
func (s *scope) unoccupied(ctx context.Context) error {
	host := nodes.Host{Namespace: s.compute.Namespace, Node: s.compute.Name, Vars: s.vars, Key: nodes.BareKey(first(s.hostKey(), s.compute.Status.HostKey))}
	other, err := nodes.FindOccupant(ctx, s.Client, host)
	if err != nil || other == nil {
		return err
	}
	return phase.Stalled(condition.DeploymentReadyCondition, novav1.MachineConflictReason,
		"Cannot clean up: %s is deployed on the same machine (both have %s) and would lose its services. Set annotation %s: \"true\" to delete this object without clean-up, or delete the other node first",
		other.Name(), other.Shared, edpmv1.SkipCleanupAnnotation)
}

// leftBehind says why the host cannot be cleaned up and what is left on it.
func (s *scope) leftBehind(err error) *phase.Halt {
	host, _ := s.vars["ansible_host"].(string)
	return phase.Stalled(condition.DeploymentReadyCondition, novav1.CleanupFailedReason,
		"Cannot clean up host %s: %v. Left on it: units edpm_nova_compute and edpm_libvirt_*, and /var/lib/openstack/nova with passwords. Fix the access to the host and set annotation %s to a new value to try again, or skip clean-up with annotation %s: \"true\"",
		first(host, s.compute.Name), err, edpmv1.RerunAnnotation, edpmv1.SkipCleanupAnnotation)
}
