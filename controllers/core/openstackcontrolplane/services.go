package openstackcontrolplane

import (
	"context"
	"fmt"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	openstackv1 "github.com/edpm-operators/edpm-operators/apis/core/v1beta1"
	glancev1 "github.com/edpm-operators/edpm-operators/apis/glance/v1beta1"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/apply"
	"github.com/edpm-operators/edpm-operators/internal/controlplane"
	"github.com/edpm-operators/edpm-operators/internal/phase"
)

// service is a kind that a control plane creates.
type service interface {
	phase.Object
	IsReady() bool
}

func (s *scope) glance(ctx context.Context) error {
	section := s.plane.Spec.Glance
	wanted := section != nil && ptr.Deref(section.Enabled, true)
	desired := &glancev1.Glance{ObjectMeta: s.meta(openstackv1.GlanceName)}
	if wanted {
		desired.Spec = controlplane.Glance(s.plane.Spec)
	}
	return s.ensure(ctx, openstackv1.GlanceReadyCondition, "Glance", wanted, desired, &glancev1.Glance{})
}

func (s *scope) nova(ctx context.Context) error {
	section := s.plane.Spec.Nova
	wanted := section != nil && ptr.Deref(section.Enabled, true)
	desired := &novav1.Nova{ObjectMeta: s.meta(openstackv1.NovaName)}
	if wanted {
		desired.Spec = controlplane.Nova(s.plane.Spec)
	}
	return s.ensure(ctx, openstackv1.NovaReadyCondition, "Nova", wanted, desired, &novav1.Nova{})
}

func (s *scope) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.plane.Namespace, Name: name}
}

// ensure applies a service or removes it, and says how it is.
func (s *scope) ensure(ctx context.Context, t condition.Type, kind string, wanted bool, desired, present service) error {
	if !wanted {
		return s.remove(ctx, t, kind, present, client.ObjectKeyFromObject(desired))
	}
	err := apply.Child(ctx, s.Client, fieldManager, s.plane, desired, present, apply.Own)
	switch {
	case apierrors.IsInvalid(err):
		return phase.Stalled(t, openstackv1.InvalidSpecReason, "The API server rejects %s %s: %v", kind, desired.GetName(), err)
	case err != nil:
		return apply.Halt(t, err)
	case !present.IsReady():
		return phase.Waiting(t, openstackv1.ServiceNotReadyReason, "Waiting for %s %s to become Ready: %s", kind, present.GetName(), phase.ReadyMessage(present))
	}
	s.plane.Status.Conditions.MarkTrue(t, "%s %s is Ready", kind, present.GetName())
	return nil
}

// remove deletes a service that is disabled, if the control plane created it.
func (s *scope) remove(ctx context.Context, t condition.Type, kind string, present service, key client.ObjectKey) error {
	err := s.Get(ctx, key, present)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %s %s: %w", kind, key.Name, err)
	}
	if err == nil {
		if err := apply.Delete(ctx, s.Client, s.plane, present, apply.Own); err != nil {
			return err
		}
	}
	s.plane.Status.Conditions.MarkTrue(t, "%s is disabled", kind)
	return nil
}
