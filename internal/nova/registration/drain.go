package registration

import (
	"context"
	"errors"
	"time"

	"github.com/openstack-k8s-operators/lib-common/modules/common/condition"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/edpm-operators/edpm-operators/apis/common"
	novav1 "github.com/edpm-operators/edpm-operators/apis/nova/v1beta1"
	"github.com/edpm-operators/edpm-operators/internal/nova/computeservice"
	"github.com/edpm-operators/edpm-operators/internal/nova/drain"
	"github.com/edpm-operators/edpm-operators/internal/phase"
	"github.com/edpm-operators/edpm-operators/internal/validate"
)

// drainReason is with which the service of a compute is disabled that is drained. By it the
// service is known when the drain ends.
const drainReason = "edpm-operators: the host is being drained"

// wantsDrain reports whether the node is to be drained, whatever way its annotation names.
func (s *Registration) wantsDrain() bool {
	if s.Node == nil {
		return false
	}
	_, wants := s.Node.Annotations[common.DrainAnnotation]
	return wants
}

// MoveGuests is the phase that moves the guests off a host whose node asks for it, and
// completes what it began when the node no longer does. It halts for nothing: what is wrong
// keeps nothing from being deployed.
func (s *Registration) MoveGuests(ctx context.Context) error {
	if !s.wantsDrain() && s.previous == nil {
		return nil
	}
	err := s.moveGuests(ctx)
	halt, trouble := (*phase.Halt)(nil), (*computeservice.Trouble)(nil)
	switch {
	case errors.As(err, &trouble):
		halt = phase.Failing(novav1.DrainedCondition, trouble.Reason, "The guests are to be moved, but %s. It is tried again automatically", trouble.Message)
	case err != nil && !errors.As(err, &halt):
		return err
	}
	if halt != nil {
		s.follow(false)
		s.compute.Status.Conditions.MarkFalse(halt.Type, halt.Reason, halt.Severity, "%s", halt.Message)
	}
	return nil
}

func (s *Registration) moveGuests(ctx context.Context) error {
	if halt := s.undrainable(); halt != nil {
		return halt
	}
	if !s.view.Asked { // by a manager that has just been started
		return s.repeat()
	}
	service := s.compute.Status.ComputeService
	switch {
	case s.wantsDrain() && service == nil:
		return phase.Waiting(novav1.DrainedCondition, novav1.ServiceNotReportedReason, "nova knows no service nova-compute of the host, and so no guests: see condition %s", novav1.ComputeServiceReadyCondition)
	case service == nil:
		return nil
	case s.wantsDrain() && !service.Disabled:
		return phase.Waiting(novav1.DrainedCondition, novav1.DrainingReason, "Waiting until the service of host %s is disabled in nova, so that it gets no new guests", service.Host)
	}
	if trouble, _ := s.observer.Trouble(client.ObjectKeyFromObject(s.api)); trouble != nil && trouble.Reason != novav1.CellUnreachableReason {
		return trouble
	}
	nova, err := s.askable(ctx, s.api)
	if err != nil {
		return err
	}
	outcome, err := s.carry(ctx, nova, s.view.Service)
	if err != nil {
		return err
	}
	s.conclude(outcome)
	return nil
}

// undrainable returns why no guest can be moved, nil if they can.
func (s *Registration) undrainable() *phase.Halt {
	t := novav1.DrainedCondition
	_, _, errs := s.drainOrder()
	switch halt := s.unwritten(); {
	case len(errs) > 0:
		return phase.Stalled(t, novav1.InvalidSpecReason, "OpenStackDataPlaneNode %s: %v", s.compute.Spec.DataplaneNodeName, errs.ToAggregate())
	case s.api == nil && s.wantsDrain():
		return phase.Stalled(t, novav1.DrainNotPossibleReason,
			"NovaCell %s belongs to no Nova that runs an API, so no one can be asked to move guests: run it by apiServiceTemplate.replicas of the Nova, or move the guests and remove annotation %s of the node",
			s.compute.Spec.CellName, common.DrainAnnotation)
	case halt != nil:
		return &phase.Halt{Type: t, Reason: halt.Reason, Severity: halt.Severity, Message: halt.Message}
	}
	return nil
}

// drainOrder is what the node says of its drain.
func (s *Registration) drainOrder() (mode string, parallel int, errs field.ErrorList) {
	if s.Node == nil {
		return "", 0, nil
	}
	return validate.Drain(s.Node.Annotations)
}

// repeat shows what was shown before.
func (s *Registration) repeat() error {
	if s.api == nil {
		return nil
	}
	if s.previous != nil {
		s.compute.Status.Conditions.Set(s.previous)
		return nil
	}
	return phase.Waiting(novav1.DrainedCondition, novav1.DrainingReason, "Waiting until nova is asked for the service of the host")
}

// carry has nova do what is due for the guests of a host.
func (s *Registration) carry(ctx context.Context, nova *computeservice.Client, service computeservice.Service) (drain.Outcome, error) {
	now := time.Now()
	mode, parallel, _ := s.drainOrder()
	h := drain.Host{Name: service.Host, Mode: mode, Parallel: parallel, Now: now, Notes: s.drains.Of(client.ObjectKeyFromObject(s.compute), now)}
	var err error
	if h.Guests, err = nova.Guests(ctx, h.Name); err != nil {
		return drain.Outcome{}, err
	}
	if h.Migrations, err = nova.Migrations(ctx, h.Name); err != nil {
		return drain.Outcome{}, err
	}
	// Lists leave out what is in a cell that nova does not reach, which Refresh says.
	fresh, err := nova.Refresh(ctx, service)
	if err != nil {
		return drain.Outcome{}, err
	}
	verdicts := drain.Judge(h)
	if !fresh.Up && len(verdicts) > 0 {
		return drain.Outcome{}, phase.Failing(novav1.DrainedCondition, novav1.ServiceDownReason,
			"Host %s has %d guests, which nova cannot move because its nova-compute is down: see condition %s. If the host is dead, evacuate them", h.Name, len(verdicts), novav1.ComputeServiceReadyCondition)
	}
	if fresh.Disabled || mode == "" {
		err = drain.Carry(ctx, nova, h, verdicts)
	}
	if err == nil {
		err = drain.Explain(ctx, nova, h, verdicts)
	}
	return drain.Summarize(h, verdicts), err
}

// conclude shows how far the drain is.
func (s *Registration) conclude(o drain.Outcome) {
	conditions := &s.compute.Status.Conditions
	mode, _, _ := s.drainOrder()
	switch p := o.Problem; {
	case p != nil && mode == "":
		conditions.MarkFalse(p.Type, p.Reason, p.Severity, "The drain has ended, and cold migrations are being completed. %s", p.Message)
	case p != nil:
		conditions.MarkFalse(p.Type, p.Reason, p.Severity, "%s", p.Message)
	case mode == "":
		s.drains.Forget(client.ObjectKeyFromObject(s.compute))
		return
	default:
		done := condition.TrueCondition(novav1.DrainedCondition, "%s", o.Text)
		done.Reason = drain.Reason(mode)
		conditions.Set(done)
	}
	s.follow(o.Lively)
}

// moveForRemoval moves the guests of a compute that is being deleted, if its node asks for
// that, and waits for the last of them.
func (s *Registration) moveForRemoval(ctx context.Context) error {
	l := &s.leaving
	outcome, err := s.carry(ctx, l.Client, l.service)
	if halt := (*phase.Halt)(nil); errors.As(err, &halt) {
		return s.occupied(halt.Message, false)
	}
	if err != nil {
		return s.unaskable(err)
	}
	s.conclude(outcome)
	if outcome.Problem != nil || l.instances > 0 {
		return s.occupied(outcome.Text, outcome.Lively)
	}
	return nil
}
