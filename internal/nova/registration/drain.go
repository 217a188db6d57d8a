package registration

import (
	"cmp"
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
func (s *Registration) wantsDrain() bool { return s.drainedFor() != "" }

// drainedFor is what has the node drained: its annotation, or a step; empty for nothing. The
// two are independent: neither ends what the other asks for.
func (s *Registration) drainedFor() string {
	switch {
	case s.isAnnotated():
		return "annotation " + common.DrainAnnotation + " of the node"
	case s.compute.Status.Drain != nil:
		return "step " + cmp.Or(s.compute.Status.Drain.Step, "of the node") + " needs it empty"
	}
	return ""
}

// isAnnotated reports whether a person asks for the drain.
func (s *Registration) isAnnotated() bool {
	if s.Node == nil {
		return false
	}
	_, asked := s.Node.Annotations[common.DrainAnnotation]
	return asked
}

// MoveGuests is the phase that moves the guests off a host whose node asks for it, and
// completes what it began when the node no longer does. It halts for nothing: what is wrong
// keeps nothing from being deployed.
func (s *Registration) MoveGuests(ctx context.Context) error {
	defer s.forgetGuests()
	if s.compute.Status.Fence != nil || !s.wantsDrain() && s.previous == nil {
		return nil
	}
	return s.display(novav1.DrainedCondition, s.moveGuests(ctx))
}

// forgetGuests forgets how many guests the host has when nova is no longer asked for them.
func (s *Registration) forgetGuests() {
	conditions := s.compute.Status.Conditions
	if conditions.Get(novav1.DrainedCondition) == nil && conditions.Get(novav1.EvacuatedCondition) == nil {
		s.compute.Status.Guests = nil
	}
}

// display shows in a condition why guests are not moved. What is a fault is returned.
func (s *Registration) display(t condition.Type, err error) error {
	halt, trouble := (*phase.Halt)(nil), (*computeservice.Trouble)(nil)
	switch {
	case errors.As(err, &trouble):
		halt = phase.Failing(t, trouble.Reason, "Guests wait to be moved: %s. It is tried again automatically", trouble.Message)
	case err != nil && !errors.As(err, &halt):
		return err
	}
	if halt != nil {
		s.follow(halt.Reason == novav1.EvacuatingReason)
		s.compute.Status.Conditions.MarkFalse(t, halt.Reason, halt.Severity, "%s", halt.Message)
	}
	return nil
}

func (s *Registration) moveGuests(ctx context.Context) error {
	if halt := s.undrainable(); halt != nil {
		return halt
	}
	if !s.view.Asked { // by a manager that has just been started
		return s.repeat(s.previous, novav1.DrainedCondition, novav1.DrainingReason)
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
	nova, err := s.unburdened(ctx)
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

// unburdened returns a client of the Nova, unless its last list failed: then the next one says
// when it can be asked again.
func (s *Registration) unburdened(ctx context.Context) (*computeservice.Client, error) {
	if trouble, _ := s.observer.Trouble(client.ObjectKeyFromObject(s.api)); trouble != nil && trouble.Reason != novav1.CellUnreachableReason {
		return nil, trouble
	}
	return s.askable(ctx, s.api)
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
			"No Nova with an API manages NovaCell %s, so the operator cannot move guests: enable the API with apiServiceTemplate.replicas of the Nova, or move the guests and remove annotation %s of the node",
			s.compute.Spec.CellName, common.DrainAnnotation)
	case halt != nil:
		return &phase.Halt{Type: t, Reason: halt.Reason, Severity: halt.Severity, Message: halt.Message}
	}
	return nil
}

// drainOrder is what the node says of its drain, or its role of one for a step.
func (s *Registration) drainOrder() (mode string, parallel int, errs field.ErrorList) {
	if s.Node == nil {
		return "", 0, nil
	}
	mode, parallel, errs = validate.Drain(s.Node.Annotations)
	if !s.isAnnotated() && s.compute.Status.Drain != nil {
		mode = s.permitted()
	}
	return mode, parallel, errs
}

// order is how guests are moved, and how many at a time: off a host that is fenced by
// evacuations, else as the node says of its drain.
func (s *Registration) order() (mode string, parallel int) {
	mode, parallel, _ = s.drainOrder()
	if s.isOff() {
		mode = drain.Evacuation
	}
	return mode, parallel
}

// repeat shows what was shown before nova was asked.
func (s *Registration) repeat(previous *condition.Condition, t condition.Type, inProgress condition.Reason) error {
	if s.api == nil {
		return nil
	}
	if previous != nil {
		s.compute.Status.Conditions.Set(previous)
		return nil
	}
	return phase.Waiting(t, inProgress, "Waiting until nova is asked for the service of the host")
}

// carry has nova do what is due for the guests of a host.
func (s *Registration) carry(ctx context.Context, nova *computeservice.Client, service computeservice.Service) (drain.Outcome, error) {
	now := time.Now()
	mode, parallel := s.order()
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
	if halt := exposed(mode, h.Name, fresh); halt != nil {
		return drain.Outcome{}, halt
	}
	if h.Obstacles, err = s.obstacles(ctx, mode); err != nil {
		return drain.Outcome{}, err
	}
	verdicts := drain.Judge(h)
	switch {
	case len(verdicts) == 0, fresh.Up:
	case mode == drain.Evacuation:
		if err := s.checkSilence(fresh); err != nil {
			return drain.Outcome{}, err
		}
	default:
		return drain.Outcome{}, phase.Failing(novav1.DrainedCondition, novav1.ServiceDownReason,
			"Host %s has %d guests, which nova cannot move because its nova-compute is down: see condition %s. If the host is off, kubectl edpm fence %s (annotation %s) has them evacuated",
			h.Name, len(verdicts), novav1.ComputeServiceReadyCondition, s.compute.Spec.DataplaneNodeName, common.FenceAnnotation)
	}
	if err = drain.Carry(ctx, nova, h, verdicts); err == nil {
		err = drain.Explain(ctx, nova, h, verdicts)
	}
	return drain.Summarize(h, verdicts), err
}

// exposed waits while nova may put guests on a host that is being emptied: a person may have enabled
// its service since the last list, which says when it is disabled again. An empty host would be taken
// for one that stays so. It is nil if nova puts none there.
func exposed(mode, host string, fresh computeservice.Service) *phase.Halt {
	switch {
	case mode == "":
	case mode == drain.Evacuation && (!fresh.Disabled || !fresh.ForcedDown):
		return phase.Waiting(novav1.EvacuatedCondition, novav1.EvacuatingReason, "Waiting until the service of host %s is disabled and forced down in nova", host)
	case !fresh.Disabled:
		return phase.Waiting(novav1.DrainedCondition, novav1.DrainingReason, "Waiting until the service of host %s is disabled in nova, so that it gets no new guests", host)
	}
	return nil
}

// conclude shows how far the drain is.
func (s *Registration) conclude(o drain.Outcome) {
	conditions := &s.compute.Status.Conditions
	s.compute.Status.Guests = &o.Guests
	mode, _ := s.order()
	switch p := o.Problem; {
	case p != nil && mode == "":
		conditions.MarkFalse(p.Type, p.Reason, p.Severity, "The drain has ended, but its cold migrations are not complete yet. %s", p.Message)
	case p != nil:
		conditions.MarkFalse(p.Type, p.Reason, p.Severity, "%s", p.Message)
	case mode == "":
		s.drains.Forget(client.ObjectKeyFromObject(s.compute))
		return
	default:
		done := condition.TrueCondition(drain.Condition(mode), "%s", o.Text)
		done.Reason = drain.Reason(mode)
		conditions.Set(done)
	}
	s.follow(o.Lively)
}

// moveForRemoval moves the guests of a compute that is being deleted, if its node asks for
// that or its host is fenced, completes what a drain that has ended began, and waits for the last of
// them.
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
	mode, _ := s.order()
	switch {
	case s.isOff() && outcome.Problem == nil && l.instances == 0:
		return s.uncleanable()
	case outcome.Problem != nil, mode != "" && l.instances > 0:
		return s.occupied(outcome.Text, outcome.Lively)
	}
	return s.occupants()
}
