package novaexternalcompute

import (
	"context"
	"fmt"
	"maps"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/inherit"
	"github.com/edpm-operators/edpm-operators/internal/nodestatus"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/topology"
)

// Steps of a compute, in order, and the one that takes both off the host.
var (
	libvirtStep = edpm.Step{Name: "libvirt", Playbook: "edpm.operators.libvirt"}
	novaStep    = edpm.Step{Name: "nova", Playbook: "edpm.operators.nova"}
	cleanupStep = edpm.Step{Name: "nova-cleanup", Playbook: "edpm.operators.nova_cleanup"}
)

const (
	overrideFile = "02-nova-override.conf"
	// cleanupAttempts bounds how often a host is tried to be cleaned up before
	// a person has to decide.
	cleanupAttempts = 5
)

// deploy is phase 1: libvirt, then nova.
func (s *scope) deploy(ctx context.Context) error {
	if err := s.announce(ctx); err != nil {
		return err
	}
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

// announce makes the node know of the compute before anything is put on the
// host: from then on the node cannot go without it.
func (s *scope) announce(ctx context.Context) error {
	if nodestatus.Has(s.node, nodestatus.Nova) {
		return nil
	}
	entry := s.entry(false, "being deployed")
	if _, err := nodestatus.Apply(ctx, s.Client, s.node, entry); apierrors.IsNotFound(err) {
		return phase.Failing(novav1.DataPlaneNodeReadyCondition, novav1.NodeMissingReason, "OpenStackDataPlaneNode %s has gone meanwhile", s.node.Name)
	} else if err != nil {
		return err
	}
	s.node = s.node.DeepCopy()
	s.node.Status.Services = append(s.node.Status.Services, entry)
	return nil
}

func (s *scope) entry(ready bool, message string) dataplanev1.NodeServiceStatus {
	return dataplanev1.NodeServiceStatus{Name: nodestatus.Nova, Ready: ready, Message: message, Kind: Kind, ObjectName: s.compute.Name}
}

// show tells on the node how the compute stands: that it is ready, what is
// wrong, or that it is under way. When the node cannot have this compute, the
// controller that watches nodes says so there.
func (s *scope) show(ctx context.Context) error {
	if s.node == nil || !s.node.DeletionTimestamp.IsZero() || s.refused() {
		return nil
	}
	ready := s.compute.Status.Conditions.Get(condition.ReadyCondition)
	entry := s.entry(s.compute.Status.Conditions.IsTrue(condition.ReadyCondition), "being deployed")
	switch {
	case entry.Ready:
		entry.Message = ""
	case ready.Severity == condition.SeverityError || ready.Severity == condition.SeverityWarning:
		entry.Message = string(ready.Reason) + ": see the conditions of the object"
	}
	_, err := nodestatus.Apply(ctx, s.Client, s.node, entry)
	return client.IgnoreNotFound(err)
}

// refused tells whether the node wants another compute than this one: in
// another cell, or one that does not belong to something else.
func (s *scope) refused() bool {
	cell := inherit.Annotation(s.node, s.role, novav1.CellAnnotation)
	owner := metav1.GetControllerOf(s.compute)
	return cell != "" && (cell != s.compute.Spec.CellName || owner != nil && owner.UID != s.node.UID)
}

// base is what all steps of the compute have in common.
func (s *scope) base(step edpm.Step) edpm.Target {
	return edpm.Target{
		Namespace: s.compute.Namespace, Host: s.compute.Name, OwnerKind: Kind, OwnerUID: s.compute.UID, Step: step,
		Role: s.roleName(), Cell: s.compute.Spec.CellName, Strategy: s.strategy, Rerun: s.rerun(),
		Image: first(s.compute.Spec.AnsibleEEContainerImage, s.Images.NovaAnsibleEE), ImageChosen: s.compute.Spec.AnsibleEEContainerImage != "",
		SSHKeySecret: s.compute.Spec.SSHKeySecretName, SSHKeyDigest: s.keyHash, NetworkAttachments: s.compute.Spec.NetworkAttachments,
		Topology: topology.NameOf(inherit.TopologyRef(s.node, s.role)), HostKey: s.hostKey(),
		Vars: maps.Clone(s.vars),
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

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// release is the last phase of a compute that is being deleted: it takes the
// services off the host, and then lets the compute go.
func (s *scope) release(ctx context.Context) error {
	s.Engine.Forget(s.compute.Namespace, s.compute.Name, libvirtStep.Name, novaStep.Name)
	if err := s.leaving(ctx, "being removed"); err != nil {
		return err
	}
	if controllerutil.ContainsFinalizer(s.compute, novav1.NovaExternalComputeFinalizer) && !s.skipCleanup() {
		if err := s.cleanUpHost(ctx); err != nil {
			return err
		}
	}
	s.Engine.Forget(s.compute.Namespace, s.compute.Name, cleanupStep.Name)
	if err := s.farewell(ctx); err != nil {
		return err
	}
	return client.IgnoreNotFound(s.patchFinalizers(ctx, controllerutil.RemoveFinalizer))
}

// leaving shows on the node that the compute is on its way out.
func (s *scope) leaving(ctx context.Context, message string) error {
	if s.node == nil || !nodestatus.Has(s.node, nodestatus.Nova) || s.refused() {
		return nil
	}
	_, err := nodestatus.Apply(ctx, s.Client, s.node, s.entry(false, message))
	return client.IgnoreNotFound(err)
}

// farewell takes the compute off the list of services of its node. When the node
// is to have a new one at once the entry is left to it: in between the node
// could go while its host is being configured.
func (s *scope) farewell(ctx context.Context) error {
	if s.node == nil {
		return nil
	}
	if s.node.DeletionTimestamp.IsZero() && inherit.Annotation(s.node, s.role, novav1.CellAnnotation) != "" {
		return s.leaving(ctx, "being deployed")
	}
	_, err := nodestatus.Remove(ctx, s.Client, s.node, nodestatus.Nova)
	return err
}

func (s *scope) skipCleanup() bool {
	if s.compute.Annotations[edpmv1.SkipCleanupAnnotation] == "true" {
		return true
	}
	return s.node != nil && s.node.Annotations[edpmv1.SkipCleanupAnnotation] == "true"
}

// cleanUpHost returns nil once nothing of the compute is on the host.
func (s *scope) cleanUpHost(ctx context.Context) error {
	touched, err := s.Engine.Touched(ctx, &s.compute.Status.Ledger, s.compute, libvirtStep.Name, novaStep.Name)
	if err != nil || !touched {
		return err
	}
	if err := s.access(ctx); err != nil {
		return s.leftBehind(err)
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

// leftBehind says why the host cannot be cleaned up and what is left on it.
func (s *scope) leftBehind(err error) *phase.Halt {
	host, _ := s.vars["ansible_host"].(string)
	return phase.Stalled(condition.DeploymentReadyCondition, novav1.CleanupFailedReason,
		"Cannot clean up host %s: %v. Left on it: units edpm_nova_compute and edpm_libvirt_*, and /var/lib/openstack/nova with passwords. Mend the access, try again with a new value of annotation %s, or let go with annotation %s: \"true\"",
		first(host, s.compute.Name), err, edpmv1.RerunAnnotation, edpmv1.SkipCleanupAnnotation)
}
