package registration

import (
	"cmp"
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	edpmv1 "github.com/edpm-operators/edpm-operators/apis/edpm"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
)

// adjust has nova disable the service if the node says so, and enable it again.
func (s *Registration) adjust(ctx context.Context, deployed bool) error {
	status := s.compute.Status.ComputeService
	if s.api == nil || status == nil || !s.view.Asked {
		return nil
	}
	reason, wanted := "", false
	if s.Node != nil {
		reason, wanted = s.Node.Annotations[edpmv1.DisableAnnotation]
	}
	change, reason := adjustment(status, wanted, computeservice.Shorten(cmp.Or(reason, edpmv1.DisableAnnotation)), deployed)
	if change == nil {
		status.DisabledFor = reason
		return nil
	}
	nova, err := s.services.Client(ctx, client.ObjectKeyFromObject(s.api))
	if err == nil {
		s.view.Service, err = nova.Update(ctx, s.view.Service, change)
	}
	if errors.As(err, &s.unchanged) {
		return nil // Ready says so
	}
	if err == nil {
		s.compute.Status.ComputeService = serviceStatus(s.view.Service)
		s.compute.Status.ComputeService.DisabledFor = reason
	}
	return err
}

// adjustment returns what is to be changed of a service, nil for nothing, and the
// reason with which it is then disabled by the operator. What somebody else has
// disabled, nova itself included, stays so.
func adjustment(s *novav1.ComputeServiceStatus, wanted bool, reason string, deployed bool) (computeservice.Change, string) {
	removed := s.Disabled && s.DisabledReason == removalReason
	ours := s.Disabled && annotated(s, s.DisabledReason)
	switch {
	case wanted && s.Disabled && s.DisabledReason == reason:
		return nil, reason
	case s.Disabled && !removed && !ours:
		return nil, ""
	case wanted:
		return computeservice.Disable(reason), reason
	case !s.Disabled, removed && !deployed:
		return nil, ""
	case removed:
		return computeservice.Enable().ForceDown(false), ""
	}
	return computeservice.Enable(), ""
}

// annotated reports whether a service that is disabled with a reason has that from the
// annotation of the node. What is known of the service may be nil.
func annotated(known *novav1.ComputeServiceStatus, reason string) bool {
	return known != nil && known.DisabledFor != "" && reason == known.DisabledFor
}
