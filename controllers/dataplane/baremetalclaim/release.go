package baremetalclaim

import (
	"cmp"
	"context"
	"fmt"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/edpm-operators/edpm-operators/apis/common"
	dataplanev1 "github.com/edpm-operators/edpm-operators/apis/dataplane/v1beta1"
	metal3v1 "github.com/edpm-operators/edpm-operators/apis/metal3/v1alpha1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/metal"
)

// releaseMachine releases the machine of a node that is being deleted, once its
// services are removed: then the controller of the node has removed its finalizer, which no
// service is added without. Next to [scope.replaceMachine], which a person asks for,
// it is the only place that deprovisions anything.
func (s *scope) releaseMachine(ctx context.Context) error {
	switch {
	case !controllerutil.ContainsFinalizer(s.node, dataplanev1.MachineFinalizer):
		return errNoted
	case controllerutil.ContainsFinalizer(s.node, dataplanev1.NodeFinalizer) || len(s.node.Status.Services) > 0:
		return errNoted
	}
	if err := s.applyPolicy(ctx); err != nil {
		return err
	}
	err := apply.Finalizer(ctx, s.Client, s.node, dataplanev1.MachineFinalizer, controllerutil.RemoveFinalizer)
	return cmp.Or(client.IgnoreNotFound(err), errNoted)
}

// applyPolicy does to the machine what the policy says of the time after the node.
func (s *scope) applyPolicy(ctx context.Context) error {
	if s.recallMachine(); s.node.Status.BareMetalHost == nil {
		return nil
	}
	policy := s.lastPolicy()
	if policy == dataplanev1.ReclaimRetain {
		return nil
	}
	exists, err := s.metal.defined(ctx)
	switch {
	case err != nil:
		return err
	case !exists && s.letGo():
		return nil
	case !exists && !s.node.Status.BareMetalHost.Claimed:
		return nil
	}
	if err := s.needKind(ctx); err != nil {
		return err
	}
	host, err := s.presentHost(ctx)
	if err != nil || host == nil {
		return err
	}
	err = s.releaseHost(ctx, host, policy, "Deleting")
	if s.letGo() && metal.IsRefusal(err) {
		s.leave(ctx, host, "It stays claimed in the name of the node: remove spec.consumerRef and spec.image", err)
		return nil
	}
	return err
}

// leave reports what is left of a host whose release is refused, and is waited for no longer. The
// event outlives the node.
func (s *scope) leave(ctx context.Context, host *metal3v1.BareMetalHost, what string, err error) {
	log.FromContext(ctx).Error(err, "Failed to release a BareMetalHost, which is left as it is", "host", host.Name)
	s.Events.Eventf(s.node, host, corev1.EventTypeWarning, string(dataplanev1.MetalWriteRefusedReason), "Releasing",
		"Annotation %s: BareMetalHost %s is left as it is. %s. %v", common.SkipCleanupAnnotation, host.Name, what, err)
}

// releaseHost is what a policy does to a host. why begins the message of waiting for it.
func (s *scope) releaseHost(ctx context.Context, host *metal3v1.BareMetalHost, policy, why string) error {
	if policy == dataplanev1.ReclaimDetach {
		return s.patchHost(ctx, host, metal.Detach)
	}
	return s.deprovision(ctx, host, why)
}

func (s *scope) letGo() bool { return s.node.Annotations[common.SkipCleanupAnnotation] == "true" }

// lastPolicy is that of the role, else what it said last. Where no one knows, nothing
// is done to the machine.
func (s *scope) lastPolicy() string {
	return cmp.Or(s.policy(), s.node.Status.BareMetalHost.ReclaimPolicy, dataplanev1.ReclaimRetain)
}

// deprovision has the image removed, waits until that is done, and frees the host.
func (s *scope) deprovision(ctx context.Context, host *metal3v1.BareMetalHost, why string) error {
	var refusal error
	if host.Spec.Image != nil {
		err := s.patchHost(ctx, host, metal.Deprovision)
		if err != nil && (!s.letGo() || !metal.IsRefusal(err)) {
			return err
		}
		refusal = err
	}
	if metal.Deprovisioned(host) || s.letGo() {
		err := s.patchHost(ctx, host, metal.Free)
		if err == nil && refusal != nil {
			s.leave(ctx, host, "It is free, and its image is still there: remove spec.image", refusal)
		}
		return err
	}
	if v := metal.Unattended(host); !v.Done() {
		return s.waitFor(v)
	}
	progress := fmt.Sprintf("it is %q", host.Status.Provisioning.State)
	if host.Status.ErrorMessage != "" {
		progress += fmt.Sprintf(" (%s)", metal.Complaint(host))
	}
	return s.waitFor(metal.Verdict{Reason: dataplanev1.MetalReleasingReason, Severity: condition.SeverityInfo, Message: fmt.Sprintf(
		"%s: waiting until BareMetalHost %s is deprovisioned, %s. If this does not end, see its events, or set annotation %s: \"true\" on the node to wait no longer",
		why, host.Name, progress, common.SkipCleanupAnnotation)})
}

// patchHost patches a host as it was read; afterwards it is as the API server
// answered. One that no longer exists needs no patch.
func (s *scope) patchHost(ctx context.Context, host *metal3v1.BareMetalHost, change func(*metal3v1.BareMetalHost) ([]byte, error)) error {
	patch, err := change(host)
	if err != nil {
		return err
	}
	err = s.Patch(ctx, host, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return metal.WriteError(host, "Releasing", s.releaseRemedy(), err)
	}
	return nil
}

// releaseRemedy is what to do about a release that is refused. A machine that is replaced
// has to be released: the node would find it again.
func (s *scope) releaseRemedy() string {
	switch {
	case s.letGo() && !s.node.DeletionTimestamp.IsZero():
		return "Correct the BareMetalHost"
	case s.node.DeletionTimestamp.IsZero():
		return "Correct the BareMetalHost, or delete it"
	}
	return fmt.Sprintf("Correct the BareMetalHost, or set annotation %s: \"true\" on the node to delete it and leave the machine as it is", common.SkipCleanupAnnotation)
}
