package hosted

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/edpm-operators/edpm-operators/apis/common"
	hostedv1 "github.com/edpm-operators/edpm-operators/apis/common/hosted"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/dataplane"
	"github.com/edpm-operators/edpm-operators/internal/edpm"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// cleanupAttempts bounds how often a host is tried to be cleaned up before a person
// has to decide.
const cleanupAttempts = 5

// release is the last phase of an object that is being deleted: it waits until no one
// uses the service, removes it from the host, and then the finalizer.
func (s *Scope) release(ctx context.Context) error {
	if err := s.forget(ctx, s.parts.Steps...); err != nil {
		return err
	}
	if controllerutil.ContainsFinalizer(s.Object, s.Finalizer) && !s.takenOver() {
		for _, run := range slices.Concat([]phase.Func{s.idle}, s.parts.Drain, []phase.Func{s.cleanUpHost}, s.parts.Leave) {
			if err := run(ctx); err != nil {
				return err
			}
		}
	}
	if err := s.forget(ctx, s.parts.Cleanup); err != nil {
		return err
	}
	return client.IgnoreNotFound(apply.Finalizer(ctx, s.Client, s.Object, s.Finalizer, controllerutil.RemoveFinalizer))
}

// forget withdraws the targets of the steps.
func (s *Scope) forget(ctx context.Context, steps ...Step) error {
	return s.Engine.Forget(ctx, s.name, s.Object.GetNamespace(), s.spec.DataplaneNodeName, namesOf(steps...)...)
}

// takenOver reports whether the object belongs to a node that no longer exists,
// and another node of its name is to have it: so it is when both were restored
// from a backup. The host is left to the object that comes next.
func (s *Scope) takenOver() bool {
	owner := metav1.GetControllerOf(s.Object)
	return s.Node != nil && s.Node.DeletionTimestamp.IsZero() && owner != nil && owner.UID != s.Node.UID && owner.Name == s.Node.Name &&
		owner.Kind == "OpenStackDataPlaneNode" && s.mismatch(s.Object, s.class, s.value(s.Node, s.Role, s.class)) == nil
}

// SkipCleanup reports whether the object or its node is deleted without clean-up.
func (s *Scope) SkipCleanup() bool {
	if s.Object.GetAnnotations()[common.SkipCleanupAnnotation] == "true" {
		return true
	}
	return s.Node != nil && s.Node.Annotations[common.SkipCleanupAnnotation] == "true"
}

// idle returns nil once no run of the object is in progress.
func (s *Scope) idle(ctx context.Context) error {
	if s.SkipCleanup() {
		return nil
	}
	run, err := s.Engine.Unfinished(ctx, s.name, s.Object, namesOf(s.parts.Steps...)...)
	if err != nil {
		return err
	}
	if run != "" {
		return phase.Waiting(condition.DeploymentReadyCondition, hostedv1.CleanupReason,
			"Deleting: waiting for OpenStackAnsibleEE %s to finish; it is deleted if it has not started", run)
	}
	return nil
}

// Touched reports whether the service may be on the host.
func (s *Scope) Touched(ctx context.Context) (bool, error) {
	touched, err := s.Engine.Touched(ctx, s.name, &s.status.Ledger, s.Object, namesOf(s.parts.Steps...)...)
	// Of a node that was restored from a backup no one knows what is on its host,
	// also before the node says so.
	return touched || s.Node != nil && (s.Node.Status.Unknown() || dataplane.Restored(s.Node)), err
}

// Warn reports as an event what a deleted object leaves behind.
func (s *Scope) Warn(reason, format string, args ...any) {
	s.runner.Events.Eventf(s.Object, nil, corev1.EventTypeWarning, reason, "Deleting", format, args...)
}

// cleanUpHost returns nil once the service is not on the host.
func (s *Scope) cleanUpHost(ctx context.Context) error {
	if s.SkipCleanup() {
		return nil
	}
	if touched, err := s.Touched(ctx); err != nil || !touched {
		return err
	}
	if err := s.access(ctx); err != nil {
		if halt := (*phase.Halt)(nil); !errors.As(err, &halt) {
			return err // a fault, which is retried
		}
		return s.leftBehind(err)
	}
	if err := s.unoccupied(ctx); err != nil {
		return err
	}
	s.converging = true
	state, err := s.Engine.Converge(ctx, &s.status.Ledger, s.cleanup())
	if err != nil || state.Phase == edpm.Converged {
		return err
	}
	if state.Phase == edpm.RetriesExhausted || state.Phase == edpm.Failed {
		halt := s.leftBehind(fmt.Errorf("%s", state.Describe()))
		halt.Repeats = state.Phase == edpm.Failed && state.Repeated
		return halt
	}
	return phase.Waiting(condition.DeploymentReadyCondition, hostedv1.CleanupReason, "Deleting: %s", state.Describe())
}

// cleanup is wanted of an object that is being deleted. It is run even with deploy
// false: the person who deleted the object has asked for it.
func (s *Scope) cleanup() edpm.Target {
	t := s.target(s.parts.Cleanup)
	t.Strategy = edpm.Strategy{Deploy: true}
	t.MaxAttempts = cleanupAttempts
	return t
}

// unoccupied refuses to clean up a machine that another node is deployed on: it
// would lose its services.
func (s *Scope) unoccupied(ctx context.Context) error {
	key := dataplane.BareKey(cmp.Or(s.hostKey(), s.status.HostKey))
	host := dataplane.Host{Namespace: s.Object.GetNamespace(), Node: s.spec.DataplaneNodeName, Vars: s.Vars, Jump: s.spec.JumpHost, Key: key}
	other, err := dataplane.FindOccupant(ctx, s.Client, host)
	if err != nil || other == nil {
		return err
	}
	return phase.Stalled(condition.DeploymentReadyCondition, hostedv1.MachineConflictReason,
		"Cannot clean up: %s is deployed on the same machine (both have %s) and would lose its services. Set annotation %s: \"true\" to delete this object without clean-up, or delete the other node first",
		other.Name(), other.Shared, common.SkipCleanupAnnotation)
}

// leftBehind says why the host cannot be cleaned up and what is left on it.
func (s *Scope) leftBehind(err error) *phase.Halt {
	host, _ := s.Vars["ansible_host"].(string)
	return phase.Stalled(condition.DeploymentReadyCondition, hostedv1.CleanupFailedReason,
		"Cannot clean up host %s: %v. Left on it: %s. Fix the access to the host and set annotation %s to a new value to try again, or skip clean-up with annotation %s: \"true\"",
		cmp.Or(host, s.spec.DataplaneNodeName), err, cmp.Or(s.class.Leftovers, s.parts.Leftovers), common.RerunAnnotation, common.SkipCleanupAnnotation)
}
