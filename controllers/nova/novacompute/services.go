package novacompute

import (
	"context"
	"slices"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/registration"
	"github.com/edpm-operators/edpm-operators/internal/podified"
)

// observe is the phase that finds out what nova says of the pods, and has it put nothing
// more on those that are not wanted.
func (s *scope) observe(ctx context.Context) error {
	wanted := ptr.Deref(s.compute.Spec.Replicas, 1)
	if !s.compute.DeletionTimestamp.IsZero() {
		wanted = 0
	}
	running, err := s.Pods.PodCount(ctx, s.compute, s.compute.Name)
	if err != nil {
		return err
	}
	s.services = registration.NewPodServices(s.Client, s.Services, s.Runner.Events, s.compute, wanted, running)
	if err := s.services.Observe(ctx); err != nil {
		return err
	}
	if halt := s.services.Leaving(); halt != nil { // another phase may halt before the last one says so
		s.compute.Status.Conditions.MarkFalse(halt.Type, halt.Reason, halt.Severity, "%s", halt.Message)
	}
	return nil
}

// leave is the phase that deletes the services of pods which have ended in nova.
func (s *scope) leave(ctx context.Context) error {
	pods, err := s.Pods.PodNames(ctx, s.compute, s.bare())
	if err != nil {
		return err
	}
	return s.services.Leave(ctx, func(pod string) bool { return slices.Contains(pods, pod) })
}

// ready is the last phase: nova can put guests on the pods.
func (s *scope) ready(context.Context) error { return s.services.Ready() }

// stop is the phase that ends the pods of a compute that is being deleted, but for those
// that cannot leave yet.
func (s *scope) stop(ctx context.Context) error {
	return s.Pods.Shrink(ctx, s.compute, s.compute.Name, s.services.Keep())
}

// release is the last phase of a compute that is being deleted.
func (s *scope) release(ctx context.Context) error {
	if halt := s.services.Leaving(); halt != nil && controllerutil.ContainsFinalizer(s.compute, novav1.NovaComputeFinalizer) {
		return halt
	}
	return s.Pods.Release(ctx, s.compute, []*podified.Service{s.bare()})
}

// bare is what is needed of the service to know its pods.
func (s *scope) bare() *podified.Service { return &podified.Service{Name: s.compute.Name} }
