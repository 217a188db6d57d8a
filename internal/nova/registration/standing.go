package registration

import (
	"context"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"sigs.k8s.io/controller-runtime/pkg/client"

	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/drain"
)

// ShowStanding is the phase that names guests whose migrations stand still, whoever has asked for
// them. It asks nova for nothing: the observer does, for all computes at once. A drain or an
// evacuation names them itself.
func (s *Registration) ShowStanding(context.Context) error {
	service := s.compute.Status.ComputeService
	if s.api == nil || service == nil || s.conflict != nil || s.wantsDrain() || s.fenced() != nil {
		return nil //nolint:nilerr // of a conflict unwritten says so
	}
	found, known := s.observer.Standing(client.ObjectKeyFromObject(s.api), service.Host)
	switch {
	case len(found) > 0:
		text, _ := drain.Open(drain.Host{Name: service.Host, Migrations: found, Now: time.Now()})
		s.compute.Status.Conditions.MarkFalse(novav1.MigrationsProgressingCondition, novav1.MigrationsStuckReason, condition.SeverityError,
			"Migrations from or to host %s stand still: %s", service.Host, text)
	case !known && s.previousStanding != nil: // by a manager that has just been started
		s.compute.Status.Conditions.Set(s.previousStanding)
		s.follow(false)
	}
	return nil
}
