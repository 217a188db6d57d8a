package registration

import (
	"cmp"
	"context"
	"errors"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
)

// adjust has nova disable the service while the node asks for it, and enable it afterwards.
func (s *service) adjust(ctx context.Context, deployed bool) error {
	s.unchanged = nil
	if s.api == nil || *s.status == nil || !s.view.Asked || s.conflict != nil {
		return nil //nolint:nilerr // of a conflict unwritten says so
	}
	if change, _ := s.due(deployed); change == nil {
		return nil
	}
	err := s.change(ctx, deployed)
	if errors.As(err, &s.unchanged) {
		s.follow(false)
		return nil // unwritten says so
	}
	return err
}

// change changes the service if that is still due when nova is asked again: what the list
// says is up to an interval old, and a person may have disabled the service since.
func (s *service) change(ctx context.Context, deployed bool) error {
	nova, err := s.askable(ctx, s.api)
	if err != nil {
		return err
	}
	service, err := nova.Refresh(ctx, s.view.Service)
	if err != nil || service.ID == "" { // the next list says that it no longer exists
		return err
	}
	s.show(service)
	change, reason := s.due(deployed)
	if change == nil {
		return nil
	}
	if service, err = nova.Update(ctx, service, change); err != nil {
		return err
	}
	s.show(service)
	(*s.status).DisabledFor = reason
	return nil
}

// due returns what is to be changed of the service, nil for nothing, and the reason with
// which it is then disabled by the operator. For nothing it is noted.
func (s *service) due(deployed bool) (computeservice.Change, string) {
	status := *s.status
	reason, wanted := s.toDisable()
	change, reason := adjustment(status, wanted, reason, deployed)
	if s.isOff() && !status.ForcedDown { // in one request: nova calls no nova-compute then
		change = change.ForceDown(true)
	}
	if change == nil {
		status.DisabledFor = reason
	}
	return change, reason
}

// disableReason returns the reason with which the node has the service disabled, and
// whether it does.
func (s *Registration) disableReason() (string, bool) {
	if s.Node == nil {
		return "", false
	}
	if reason, wanted := s.Node.Annotations[common.DisableAnnotation]; wanted {
		return computeservice.Shorten(cmp.Or(reason, common.DisableAnnotation)), true
	}
	if s.fenced() != nil {
		return fenceReason, true
	}
	return drainReason, s.wantsDrain()
}

// adjustment returns what is to be changed of a service, nil for nothing, and the
// reason with which it is then disabled by the operator. What another user has
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

// annotated reports whether a service that is disabled with a reason has that from what the
// node says. What is known of the service may be nil.
func annotated(known *novav1.ComputeServiceStatus, reason string) bool {
	return reason == drainReason || reason == fenceReason || known != nil && known.DisabledFor != "" && reason == known.DisabledFor
}
